//! `apr batch`: a command over many inputs, on this machine.

use std::path::PathBuf;

use clap::value_parser;

use super::finish;
use super::plan::JobArgs;
use crate::error::{Exit, Failure};
use crate::jobs::{Store, Verification, run_all};
use crate::terminal::Console;

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
    job: JobArgs,
}

/// Runs `apr batch`.
///
/// # Errors
///
/// If the job cannot be planned, or its outputs not be put in their places.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = args.job.plan()?;
    let store = Store::of(&plan);
    if !store.is_done() {
        store.keep(&plan)?;
        let mut progress = console.progress("doing tasks", plan.tasks() as u64);
        let exit = run_all(&plan, args.jobs.into(), |_, _| progress.advance(1))?;
        if exit == Exit::TryAgain {
            drop(progress);
            console.note("some tasks were not done: the same command tries them again");
        }
    }
    finish::end(&plan, Verification::Length, args.report.as_deref(), console)
}
