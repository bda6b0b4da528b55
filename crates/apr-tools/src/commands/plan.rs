//! `apr plan`: divides a command over many inputs into tasks.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::args::glob::PathSelection;
use crate::args::{ForceArg, parse_size};
use crate::error::{Exit, Failure};
use crate::jobs::{Digests, Plan, Request, Sources, Template};
use crate::output::Overwrite;
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{bytes, plural};

const AFTER_HELP: &str = "In COMMAND, {in} stands for an input, {out} for its path in DIR without the ending, {path} for its path with it, {to} for DIR. \
    Versions of all inputs are recorded: a task refuses an input that has become another one. Nothing is to be seen in DIR \
    before `apr finish`; what is made until then is in DIR/.apr-job.\n\n\
    Examples:\n  apr plan -o job.json --from sharded --to out -- quantize {in} -o {out}.gguf --type q8_0\n  \
    apr plan -o scan.json --from sharded --to reports -- scan {in}\n  \
    apr plan -o llama.json --from llama --to out -- convert {in} {out}.gguf --split-max-tensors 20\n\n\
    Exit codes: 0 success, 2 no inputs, or an output exists or would be written twice, 5 I/O.";

/// What a job is to do.
#[derive(Debug, clap::Args)]
pub(crate) struct JobArgs {
    /// A file, a folder with all files below it, a URL, a repository of the hub, or a prefix of an object store (repeatable).
    #[arg(long, value_name = "PLACE", required_unless_present = "list")]
    from: Vec<PathBuf>,
    /// Inputs, one on each line; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Folder of the outputs, and of what the job records.
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    #[command(flatten)]
    paths: PathSelection,
    /// Also record SHA-256 of all inputs: they are read now, and again by the tasks.
    #[arg(long)]
    digest: bool,
    /// Size of the inputs of a task.
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    task_size: String,
    /// Each shard of a set is an input, and the outputs get an index: for outputs in safetensors.
    #[arg(long)]
    by_shard: bool,
    /// Leave out inputs whose output is there.
    #[arg(long, conflicts_with = "force")]
    skip_existing: bool,
    #[command(flatten)]
    force: ForceArg,
    /// The command for one input, after `--`.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The plan.
    #[arg(short, long, value_name = "PLAN")]
    output: PathBuf,
    #[command(flatten)]
    job: JobArgs,
}

impl JobArgs {
    /// Makes the plan. `own` are files of the job, which are no inputs.
    ///
    /// # Errors
    ///
    /// Those of [`Plan::new`], and for a command that is none of a job.
    pub(crate) fn plan(&self, own: &[&Path]) -> Result<Plan, Failure> {
        Plan::new(Request {
            command: Template::new(self.command.clone())?,
            sources: Sources {
                places: &self.from,
                list: self.list.as_deref(),
                selection: &self.paths,
                digests: if self.digest { Digests::Compute } else { Digests::Leave },
                by_shard: self.by_shard,
                to: &self.to,
                own,
            },
            task_size: parse_size(&self.task_size)?,
            overwrite: self.force.overwrite(),
            skip_existing: self.skip_existing,
        })
    }

    pub(crate) fn overwrite(&self) -> Overwrite {
        self.force.overwrite()
    }
}

#[derive(Serialize)]
struct PlanReport<'a> {
    plan: alloc::borrow::Cow<'a, str>,
    job: &'a str,
    to: alloc::borrow::Cow<'a, str>,
    inputs: u64,
    bytes: u64,
    tasks: u64,
}

impl Report for PlanReport<'_> {
    const SCHEMA: &'static str = "apr.job-plan/1";
}

/// Runs `apr plan`.
///
/// # Errors
///
/// If the plan cannot be made or written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = args.job.plan(&[&args.output])?;
    // The same request again is the same job.
    if Plan::read(&args.output).is_ok_and(|known| known == plan) {
        console.remark("the plan was there already");
    } else {
        plan.write(&args.output, args.job.overwrite())?;
    }
    let (inputs, total) = plan.totals();
    if console.is_json() {
        console.report(&PlanReport {
            plan: report::path(&args.output),
            job: plan.job(),
            to: report::path(plan.to()),
            inputs: inputs as u64,
            bytes: total,
            tasks: plan.tasks() as u64,
        })?;
        return Ok(Exit::Success);
    }
    let (file, inputs) = (escape::path(&args.output), plural(inputs as u64, "input"));
    let tasks = plural(plan.tasks() as u64, "task");
    console
        .text(|out, _| writeln!(out, "{file}: job {}, {inputs} ({}), {tasks}", plan.job(), bytes(total)))?;
    let file = escape::path_word(&args.output);
    console.note(format_args!("next: apr run-task {file} 0, or `all`; then apr finish {file}"));
    Ok(Exit::Success)
}
