//! `apr status`: how far a job is.

use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Exit, Failure};
use crate::jobs::{Plan, Store};
use crate::report::{OneLine, Report};
use crate::terminal::Console;
use crate::terminal::human::plural;

/// Most numbers in text.
const SHOWN: usize = 20;

const AFTER_HELP: &str = "Only records count: a task that is being done is missing until it has ended.\n\n\
    Examples:\n  apr status job.json\n  apr status job.json --missing\n\n\
    Exit codes: 0 all tasks are done, 75 some are missing.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The plan of the job.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Print the numbers of the tasks that are missing, one on each line, and nothing else.
    #[arg(long)]
    missing: bool,
}

#[derive(Serialize)]
struct StatusReport<'a> {
    job: &'a str,
    tasks: u64,
    done: u64,
    missing: OneLine<'a, usize>,
    attempts: u64,
    finished: bool,
}

impl Report for StatusReport<'_> {
    const SCHEMA: &'static str = "apr.job-status/1";
}

/// Runs `apr status`.
///
/// # Errors
///
/// If the plan or a record is not valid.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = Plan::read(&args.plan)?;
    let store = Store::of(&plan);
    let missing = store.missing(&plan);
    if missing.is_empty() && !store.is_done() {
        // What is no record would end `apr finish`.
        (0..plan.tasks()).try_for_each(|task| store.record(&plan, task).map(drop))?;
    }
    let exit = if missing.is_empty() { Exit::Success } else { Exit::TryAgain };
    let done = plan.tasks() - missing.len();
    if console.is_json() {
        console.report(&StatusReport {
            job: plan.job(),
            tasks: plan.tasks() as u64,
            done: done as u64,
            missing: OneLine(&missing),
            attempts: store.attempts() as u64,
            finished: store.is_done(),
        })?;
        return Ok(exit);
    }
    if args.missing {
        console.text(|out, _| missing.iter().try_for_each(|task| writeln!(out, "{task}")))?;
        return Ok(exit);
    }
    let end = match (missing.as_slice(), store.is_done()) {
        (_, true) => ", finished".to_owned(),
        ([], false) => ", not finished: `apr finish` puts the outputs in their places".to_owned(),
        (missing, false) => {
            let shown: Vec<String> = missing.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = if missing.len() > SHOWN { ", ..." } else { "" };
            format!("; missing: {}{more}", shown.join(", "))
        }
    };
    let tasks = plural(plan.tasks() as u64, "task");
    console.text(|out, _| writeln!(out, "job {}: {done} of {tasks} done{end}", plan.job()))?;
    Ok(exit)
}
