//! `apr run-task`: does tasks of a job.

use core::str::FromStr;
use std::env;
use std::io::Write as _;
use std::path::PathBuf;

use clap::value_parser;
use serde::Serialize;

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::jobs::{Done, Outcome, Patience, Plan, run_all, run_task};
use crate::report::Report;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::plural;

const AFTER_HELP: &str = "A task that is done is not done again: its record is printed. Several processes can do the same task at the same time; the \
    record and the outputs are those of the first one that is ready. `env` takes the number from JOB_COMPLETION_INDEX, SLURM_ARRAY_TASK_ID or \
    AWS_BATCH_JOB_ARRAY_INDEX.\n\n\
    Examples:\n  apr run-task job.json 0\n  apr run-task job.json all --jobs 2\n\n\
    Exit codes: 0 done, 75 not done, because of the network or a disk: try again; else the worst exit code of the inputs of the task.";

/// Which tasks.
#[derive(Clone, Copy, Debug)]
enum Which {
    Number(usize),
    Environment,
    All,
}

impl FromStr for Which {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            "env" => Ok(Self::Environment),
            number => number.parse().map(Self::Number).map_err(|_| "a number, `env` or `all`"),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The plan of the job.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Number of a task, from 0; `env`; or `all` that are not done.
    #[arg(value_name = "N")]
    task: Which,
    /// With `all`: tasks at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u16).range(1..=256))]
    jobs: u16,
    #[command(flatten)]
    give_up: GiveUpArg,
}

/// Whether a network or a disk that fails is tried again.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct GiveUpArg {
    /// Record inputs that the network or a disk fails for, instead of leaving their task undone.
    #[arg(long)]
    give_up: bool,
}

impl GiveUpArg {
    pub(crate) const fn patience(self) -> Patience {
        if self.give_up { Patience::GiveUp } else { Patience::TryAgain }
    }
}

#[derive(Serialize)]
struct TaskReport<'a> {
    job: &'a str,
    tasks: Vec<Row<'a>>,
    exit: u8,
}

impl Report for TaskReport<'_> {
    const SCHEMA: &'static str = "apr.task-run/1";
}

/// A task that was tried.
#[derive(Serialize)]
struct Row<'a> {
    task: u64,
    done: bool,
    exit: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<&'a [Outcome]>,
    /// Why it was not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn new(task: usize, done: &'a Done) -> Self {
        let (results, problem) = match done {
            Done::Recorded(record) => (Some(&*record.results), None),
            Done::TryAgain(problem) => (None, Some(problem)),
        };
        Self {
            task: task as u64,
            done: results.is_some(),
            exit: done.exit() as u8,
            results,
            input: problem.map(|problem| &*problem.input),
            code: problem.and_then(|problem| problem.code.as_deref()),
            message: problem.and_then(|problem| problem.message.as_deref()),
        }
    }
}

/// Runs `apr run-task`.
///
/// # Errors
///
/// If the plan is not valid or has no such task, or an input has changed.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = Plan::read(&args.plan)?;
    let patience = args.give_up.patience();
    let mut tried = Vec::new();
    let exit = match args.task {
        Which::All => {
            let mut progress = console.progress("doing tasks", plan.tasks() as u64);
            run_all(&plan, args.jobs.into(), patience, |number, done| {
                progress.advance(1);
                tried.push((number, done.clone()));
            })?
        }
        Which::Number(number) => one(&plan, number, patience, &mut tried)?,
        Which::Environment => one(&plan, number_of_environment()?, patience, &mut tried)?,
    };
    if console.is_json() {
        let tasks = tried.iter().map(|(number, done)| Row::new(*number, done)).collect();
        console.report(&TaskReport { job: plan.job(), tasks, exit: exit as u8 })?;
        return Ok(exit);
    }
    console.text(|out, _| {
        tried.iter().try_for_each(|(number, done)| writeln!(out, "{}", line(*number, done)))
    })?;
    Ok(exit)
}

fn one(
    plan: &Plan,
    number: usize,
    patience: Patience,
    tried: &mut Vec<(usize, Done)>,
) -> Result<Exit, Failure> {
    let done = run_task(plan, number, patience)?;
    let exit = done.exit();
    tried.push((number, done));
    Ok(exit)
}

fn line(number: usize, done: &Done) -> String {
    match done {
        Done::Recorded(record) => {
            let inputs = plural(record.results.len() as u64, "input");
            let refused = record.results.iter().filter(|result| result.exit != 0).count();
            let outputs: usize = record.results.iter().map(|result| result.outputs.len()).sum();
            let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
            format!("task {number}: {inputs}{refused}, {}", plural(outputs as u64, "output"))
        }
        Done::TryAgain(problem) => {
            let message = escape::cut(problem.message.as_deref().unwrap_or("no answer"), 200);
            let code = escape::cut(problem.code.as_deref().unwrap_or("?"), 60);
            format!("task {number}: not done: {}: {message} [{code}]", escape::cut(&problem.input, 200))
        }
    }
}

/// The number that an engine gives to this process.
fn number_of_environment() -> Result<usize, Failure> {
    const NAMES: [&str; 3] = ["JOB_COMPLETION_INDEX", "SLURM_ARRAY_TASK_ID", "AWS_BATCH_JOB_ARRAY_INDEX"];
    let found = NAMES.iter().find_map(|name| Some((*name, env::var(name).ok()?)));
    let Some((name, text)) = found else {
        let what = format!("none of {} is set", NAMES.join(", "));
        return Err(Failure::new(CODE_USAGE, what).help("give the number of a task"));
    };
    text.parse().map_err(|_| {
        Failure::new(CODE_USAGE, format!("{name} is `{}`, not a number", escape::cut(&text, 40)))
    })
}
