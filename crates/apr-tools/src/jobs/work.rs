//! Does tasks.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::thread;

use super::attempt::{self, Answer};
use super::files::text;
use super::inputs::Input;
use super::outcome::{Outcome, OutputFile};
use super::plan::{Plan, Task};
use super::record::{Record, Store, remove};
use super::template::{Outputs, Values};
use crate::error::{Exit, Failure};
use crate::file_digest::sha256;
use crate::scanning;

/// How a task ended.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    /// By this run, or before.
    Recorded(Record),
    /// What failed may not fail again.
    TryAgain(Problem),
}

/// Why nothing was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) input: String,
    pub(crate) code: Option<String>,
    pub(crate) message: Option<String>,
}

/// Does a task, unless it is done.
///
/// # Errors
///
/// If the plan has no such task, an input is another one than when the job was planned, or the task cannot be recorded.
pub(crate) fn run_task(plan: &Plan, number: usize) -> Result<Done, Failure> {
    let store = Store::of(plan);
    let (task, inputs) = plan.task(number)?;
    if let Some(record) = store.record(number)? {
        return Ok(Done::Recorded(record));
    }
    check(inputs)?;
    let (attempt, folder) = store.begin(number)?;
    let mut results = Vec::with_capacity(inputs.len());
    for input in inputs {
        match result(plan, task, input, &folder) {
            Ok(outcome) => results.push(outcome),
            Err(Stop::TryAgain(problem)) => {
                remove(&folder)?;
                return Ok(Done::TryAgain(problem));
            }
            Err(Stop::Failure(failure)) => {
                remove(&folder)?;
                return Err(failure);
            }
        }
    }
    // What was read while it was replaced is none of the versions.
    if let Err(failure) = check(inputs) {
        remove(&folder)?;
        return Err(failure);
    }
    let record = Record::new(plan.job(), number, attempt, results);
    let has_outputs = record.results.iter().any(|result| !result.outputs.is_empty());
    let is_first = store.put(&record)?;
    if !is_first || !has_outputs {
        remove(&folder)?;
    }
    match is_first {
        true => Ok(Done::Recorded(record)),
        false => Ok(Done::Recorded(store.record(number)?.unwrap_or(record))),
    }
}

fn check(inputs: &[Input]) -> Result<(), Failure> {
    inputs.iter().flat_map(|input| &input.files).try_for_each(super::files::Pinned::check)
}

enum Stop {
    TryAgain(Problem),
    Failure(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

/// Runs the command for an input.
fn result(plan: &Plan, task: &Task, input: &Input, folder: &Path) -> Result<Outcome, Stop> {
    let command = &plan.command;
    // Those of an input in a folder of their own: it says which they are.
    let own = folder.join("out");
    for output in command.named_outputs(&input.path).iter().chain([&input.path]) {
        let path = own.join(output);
        let parent = path.parent().unwrap_or(&own);
        fs::create_dir_all(parent).map_err(|error| Failure::io("create the folder", parent, &error))?;
    }
    let values = Values { input: &input.input, to: &text(&own)?, path: &input.path };
    let mut words = command.words(&values);
    if let Some(file) = task.file {
        words.push(format!("--split-only={file}"));
    }
    let answer = attempt::answer(words)?;
    let (code, message) = answer.problem();
    if answer.exit == Exit::Io as u8 && !is_of_input(&answer, input) {
        return Err(Stop::TryAgain(Problem { input: input.input.clone(), code, message }));
    }
    if command.outputs() == Outputs::Report && answer.exit == 0 {
        let path = own.join(format!("{}.json", input.path));
        crate::output::write_file(&path, format!("{:#}\n", answer.report).as_bytes(), plan.overwrite())?;
    }
    let (code, message) = if answer.exit == 0 { (None, None) } else { (code, message) };
    let outputs = moved(&own, folder)?;
    let verdict = answer.verdict();
    Ok(Outcome { input: input.input.clone(), exit: answer.exit, code, message, verdict, outputs })
}

/// Whether the operating system refused a file of the input: that will not change while the file does not.
fn is_of_input(answer: &Answer, input: &Input) -> bool {
    let file = answer.failed_file();
    file.is_some_and(|file| file == input.input || input.files.iter().any(|pinned| pinned.path == file))
        && !answer.problem().0.is_some_and(|code| code.starts_with("rm-"))
}

/// Moves the outputs of one input to those of the whole attempt.
fn moved(own: &Path, folder: &Path) -> Result<Vec<OutputFile>, Failure> {
    let all = folder.join("all");
    let below = scanning::below(own);
    if let Some(failure) = below.unread.into_iter().next() {
        return Err(failure);
    }
    let mut outputs = Vec::with_capacity(below.files.len());
    for file in below.files {
        let path = file.strip_prefix(own).unwrap_or(&file).to_owned();
        let bytes = fs::metadata(&file).map_err(|error| Failure::io("look at", &file, &error))?.len();
        let sha256 = base16ct::lower::encode_string(&sha256(&file, |_| {})?);
        let to = all.join(&path);
        let parent = to.parent().unwrap_or(&all);
        fs::create_dir_all(parent).map_err(|error| Failure::io("create the folder", parent, &error))?;
        fs::rename(&file, &to).map_err(|error| Failure::io("move", &file, &error))?;
        outputs.push(OutputFile { path: text(&path)?.replace('\\', "/"), bytes, sha256 });
    }
    remove(own)?;
    Ok(outputs)
}

/// Does all missing tasks, some of them at once; `told` hears of each that has ended. A task that fails does not end the others.
///
/// # Errors
///
/// The first failure, after all tasks were tried.
pub(crate) fn run_all(
    plan: &Plan,
    jobs: usize,
    mut told: impl FnMut(usize, &Done) + Send,
) -> Result<Exit, Failure> {
    let missing = Store::of(plan).missing(plan);
    let queue = Mutex::new(missing.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let ended = Mutex::new((Vec::new(), Ok(()), &mut told));
    let work = || {
        while let Some(number) = next() {
            let result = run_task(plan, number);
            let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
            let (exits, first, told) = &mut *ended;
            match result {
                Ok(done) => {
                    told(number, &done);
                    exits.push(done.exit());
                }
                Err(failure) if first.is_ok() => *first = Err(failure),
                Err(_) => {}
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs {
            // Without a thread the others do its tasks.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let (exits, first, _) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    first?;
    match exits.contains(&Exit::TryAgain) {
        true => Ok(Exit::TryAgain),
        false => Ok(super::outcome::worst(exits.into_iter().map(|exit| exit as u8))),
    }
}

impl Done {
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Recorded(record) => record.exit(),
            Self::TryAgain(_) => Exit::TryAgain,
        }
    }
}
