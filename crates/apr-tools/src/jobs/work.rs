//! Does tasks.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::attempt;
use super::files::{Pinned, text};
use super::inputs::Input;
use super::outcome::{Outcome, OutputFile};
use super::plan::{Plan, Task};
use super::record::{Record, Store, remove};
use super::template::{Outputs, Values, as_word};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::file_digest::hex_sha256;
use crate::output::{self, Overwrite};
use crate::{remote, scanning};

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

/// What becomes of an input that the network or a disk fails for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The task is not done.
    TryAgain,
    /// It is a result.
    GiveUp,
}

/// Does a task, unless it is done.
///
/// # Errors
///
/// If the plan has no such task, or an input is another one than when the job was planned.
pub(crate) fn run_task(plan: &Plan, number: usize, patience: Patience) -> Result<Done, Failure> {
    done(plan, number, patience).or_else(|failure| match failure.exit() {
        // A disk that is full may be emptied, a server come back.
        Exit::Io => Ok(Done::TryAgain(Problem {
            input: failure.file().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default(),
            code: Some(failure.code().to_owned()),
            message: Some(failure.what().to_owned()),
        })),
        _ => Err(failure),
    })
}

fn done(plan: &Plan, number: usize, patience: Patience) -> Result<Done, Failure> {
    let store = Store::of(plan);
    let (task, inputs) = plan.task(number)?;
    if let Some(record) = store.record(plan, number)? {
        return Ok(Done::Recorded(record));
    }
    check(plan, inputs)?;
    let (attempt, folder) = store.begin(number)?;
    let results = all_results(plan, task, inputs, &folder, patience);
    // What was read while it was replaced is none of the versions.
    let results = results.and_then(|results| check(plan, inputs).map(|()| results));
    let results = match results {
        Ok(Ok(results)) => results,
        Ok(Err(problem)) => {
            remove(&folder)?;
            return Ok(Done::TryAgain(problem));
        }
        Err(failure) => {
            remove(&folder)?;
            return Err(failure);
        }
    };
    let record = Record::new(plan.job(), number, attempt, results);
    let has_outputs = record.results.iter().any(|result| !result.outputs.is_empty());
    let is_first = store.put(&record).inspect_err(|_| drop(remove(&folder)))?;
    if !is_first || !has_outputs {
        remove(&folder)?;
    }
    match is_first {
        true => Ok(Done::Recorded(record)),
        false => Ok(Done::Recorded(store.record(plan, number)?.unwrap_or(record))),
    }
}

/// Compares the inputs, and other files that the command names, with the plan; URLs are opened again for it.
fn check(plan: &Plan, inputs: &[Input]) -> Result<(), Failure> {
    let mut files = inputs.iter().flat_map(|input| &input.files).chain(plan.files());
    remote::apart(|| files.try_for_each(Pinned::check))?
}

/// The results of all inputs of a task, or why it cannot be done now.
fn all_results(
    plan: &Plan,
    task: &Task,
    inputs: &[Input],
    folder: &Path,
    patience: Patience,
) -> Result<Result<Vec<Outcome>, Problem>, Failure> {
    let mut results = Vec::with_capacity(inputs.len());
    for input in inputs {
        let outcome = result(plan, task, input, folder)?;
        // A FIFO or a device stays one.
        let is_final = outcome.code.as_deref() == Some("df-not-regular");
        if outcome.exit == Exit::Io as u8 && patience == Patience::TryAgain && !is_final {
            let Outcome { input, code, message, .. } = outcome;
            return Ok(Err(Problem { input, code, message }));
        }
        results.push(outcome);
    }
    Ok(Ok(results))
}

/// Runs the command for an input.
fn result(plan: &Plan, task: &Task, input: &Input, folder: &Path) -> Result<Outcome, Failure> {
    let command = &plan.command;
    // Those of an input in a folder of their own: it says which they are.
    let own = folder.join("out");
    let create = |path: &Path, error| Failure::io("create the folder", path, &error);
    // Not with the folder above it: that is gone if the job was aborted.
    fs::create_dir(&own).map_err(|error| create(&own, error))?;
    for name in command.named_outputs(&input.path) {
        let path = own.join(name);
        let parent = path.parent().unwrap_or(&own);
        fs::create_dir_all(parent).map_err(|error| create(parent, error))?;
    }
    let values = Values { input: &as_word(&input.input), to: &as_word(&text(&own)?), path: &input.path };
    let mut words = command.words(&values);
    if let Some(file) = task.file {
        words.push(format!("--split-only={file}"));
    }
    let answer = attempt::answer(words)?;
    if command.outputs() == Outputs::Report && answer.exit == 0 {
        let path = own.join(format!("{}.json", input.path));
        output::write_file(&path, format!("{:#}\n", answer.report).as_bytes(), Overwrite::Refuse)?;
    }
    let (code, message) = if answer.exit == 0 { (None, None) } else { answer.problem() };
    let outputs = moved(&own, folder)?;
    let verdict = answer.verdict();
    Ok(Outcome { input: input.input.clone(), exit: answer.exit, code, message, verdict, outputs })
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
        let bytes = fs::metadata(&file)
            .map_err(|error| Failure::io("get the attributes of the file", &file, &error))?
            .len();
        let sha256 = hex_sha256(&file, |_| {})?;
        let to = all.join(&path);
        if to.symlink_metadata().is_ok() {
            let what = "two inputs of a task have the same output";
            return Err(Failure::new(CODE_USAGE, what).in_file(&path));
        }
        let parent = to.parent().unwrap_or(&all);
        fs::create_dir_all(parent).map_err(|error| Failure::io("create the folder", parent, &error))?;
        fs::rename(&file, &to).map_err(|error| Failure::io("move it", &file, &error))?;
        let path = text(&path)?;
        let path = if cfg!(windows) { path.replace('\\', "/") } else { path };
        outputs.push(OutputFile { path, bytes, sha256 });
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
    patience: Patience,
    mut told: impl FnMut(usize, &Done) + Send,
) -> Result<Exit, Failure> {
    let missing = Store::of(plan).missing(plan);
    let queue = Mutex::new(missing.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let ended = Mutex::new((Vec::new(), Ok(()), &mut told));
    let work = || {
        while let Some(number) = next() {
            let result = run_task(plan, number, patience);
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
