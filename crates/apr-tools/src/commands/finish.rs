//! `apr finish`: puts the outputs of a job in their places.

use std::path::{Path, PathBuf};

use crate::error::{CODE_TASKS_MISSING, Exit, Failure};
use crate::jobs::{Plan, Record, Store, Summary, Verification, finish};
use crate::terminal::Console;
use crate::terminal::human::plural;

const AFTER_HELP: &str = "Nothing is moved before all tasks are done and all outputs have been compared with their records. Run again, it goes on where it was \
    interrupted; after it has ended it changes nothing and prints the same report.\n\n\
    Examples:\n  apr finish job.json --report report.csv\n  apr finish job.json --verify --json\n\n\
    Exit codes: 75 tasks are missing; 2 a file is in the place of an output; 4 an output is not what was recorded; else the worst exit code of the inputs.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The plan of the job.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Compare SHA-256 of all outputs with the records, not the lengths alone.
    #[arg(long)]
    verify: bool,
    /// Write the report to a file: CSV or JSON by its ending.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs `apr finish`.
///
/// # Errors
///
/// If tasks are missing, an output is not what was recorded, or its place is taken.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let verification = if args.verify { Verification::Digest } else { Verification::Length };
    end(&Plan::read(&args.plan)?, verification, args.report.as_deref(), console)
}

/// Ends a job, and prints its report.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn end(
    plan: &Plan,
    verification: Verification,
    report: Option<&Path>,
    console: &mut Console,
) -> Result<Exit, Failure> {
    if let Some(report) = report {
        Summary::check_place(report)?;
    }
    let store = Store::of(plan);
    let missing = store.missing(plan);
    if !missing.is_empty() {
        let shown: Vec<String> = missing.iter().take(20).map(ToString::to_string).collect();
        let more = if missing.len() > shown.len() { ", ..." } else { "" };
        let are = if missing.len() == 1 { "is" } else { "are" };
        let what = format!("{} of {} {are} missing", missing.len(), plural(plan.tasks() as u64, "task"));
        return Err(Failure::new(CODE_TASKS_MISSING, what)
            .because(format!("there are no records of {}{more}", shown.join(", "))));
    }
    let records = (0..plan.tasks()).filter_map(|task| store.record(plan, task).transpose());
    let records = records.collect::<Result<Vec<Record>, Failure>>()?;
    if !records.is_empty() {
        finish(plan, &records, verification)?;
    }
    let summary = Summary::new(plan.job(), plan.to(), &records);
    if let Some(path) = report {
        summary.write(path)?;
    }
    summary.print(console)?;
    Ok(summary.exit())
}
