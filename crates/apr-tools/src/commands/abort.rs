//! `apr abort`: removes what a job has stored.

use std::path::PathBuf;

use serde::Serialize;

use crate::error::{Exit, Failure};
use crate::jobs::{Plan, Store};
use crate::report::Report;
use crate::terminal::{Console, escape};

const AFTER_HELP: &str = "Records and unfinished outputs are removed, outputs in their places and the plan are not. Stop the workers first: one that is \
    still working ends with an error.\n\n\
    Examples:\n  apr abort job.json\n  apr abort job.json --json\n\n\
    Exit codes: 0 success, 3 not a plan, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The plan of the job.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

#[derive(Serialize)]
struct AbortReport<'a> {
    job: &'a str,
    finished: bool,
}

impl Report for AbortReport<'_> {
    const SCHEMA: &'static str = "apr.job-abort/1";
}

/// Runs `apr abort`.
///
/// # Errors
///
/// If the plan is not valid, or a file cannot be removed.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = Plan::read(&args.plan)?;
    let store = Store::of(&plan);
    let (finished, exists) = (store.is_done(), store.exists());
    store.remove()?;
    if console.is_json() {
        console.report(&AbortReport { job: plan.job(), finished })?;
    } else {
        let job = plan.job();
        if exists {
            console.note(format_args!("removed what job {job} had stored"));
        } else {
            console.note(format_args!("job {job} has stored nothing in {}", escape::path(plan.to())));
        }
    }
    Ok(Exit::Success)
}
