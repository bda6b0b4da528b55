//! `apr batch`: a command over many inputs, on this machine.

use std::path::{Path, PathBuf};

use clap::value_parser;

use super::finish;
use super::plan::JobArgs;
use super::run_task::GiveUpArg;
use crate::error::{Exit, Failure};
use crate::jobs::{Done, Store, Summary, Verification, run_all};
use crate::terminal::{Console, escape};

const AFTER_HELP: &str = "The same as `apr plan`, `apr run-task all` and `apr finish`. Run again after an interruption it goes on where it ended; after it has \
    ended, it does nothing and prints the same report. Inputs that are refused are in the report, and do not end the others.\n\n\
    Examples:\n  apr batch --from tiny_llama.gguf --to quantized -- quantize {in} -o {out}.gguf --type q8_0\n  \
    apr batch --from sharded --to reports --jobs 2 -- check {in}\n\n\
    Exit codes: 75 the network or a disk failed: run it again; else the worst exit code of the inputs.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Tasks at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Write the report to a file: CSV or JSON by its ending.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    give_up: GiveUpArg,
    #[command(flatten)]
    job: JobArgs,
}

/// Runs `apr batch`.
///
/// # Errors
///
/// If the job cannot be planned, or its outputs not be put in their places.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(report) = &args.report {
        Summary::check_place(report)?;
    }
    let own: Vec<&Path> = args.report.iter().map(PathBuf::as_path).collect();
    let plan = args.job.plan(&own)?;
    let store = Store::of(&plan);
    if plan.tasks() > 0 && !store.is_done() {
        let kept = store.keep(&plan)?;
        console.detail(format_args!("the plan is {}", escape::path(&kept)));
        let mut progress = console.progress("doing tasks", plan.tasks() as u64);
        let mut first = None;
        run_all(&plan, args.jobs.into(), args.give_up.patience(), |_, done| {
            progress.advance(1);
            if let Done::TryAgain(problem) = done {
                first.get_or_insert_with(|| problem.clone());
            }
        })?;
        drop(progress);
        if let Some(problem) = first {
            let (input, message) = (escape::cut(&problem.input, 200), problem.message.unwrap_or_default());
            console.note(format_args!(
                "some tasks were not done: {input}: {}; the same command tries them again; with --give-up, failures are recorded as results",
                escape::cut(&message, 200)
            ));
        }
    }
    finish::end(&plan, Verification::Length, args.report.as_deref(), console)
}
