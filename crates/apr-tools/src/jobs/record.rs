//! What a job stores beside its outputs: records of tasks, and what is being made.

use core::hash::BuildHasher as _;
use std::fs;
use std::hash::RandomState;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use durable_file::Replacement;
use serde::{Deserialize, Serialize};

use super::outcome::{Outcome, worst};
use super::plan::{Plan, is_below};
use crate::error::{CODE_INTERNAL, CODE_PLAN, Exit, Failure};

/// The folder of all jobs with the same folder of outputs.
const FOLDER: &str = ".apr-job";
const SCHEMA: &str = "apr.task/1";
/// Longest record: one of a hundred inputs with some thousand outputs.
const MAX_RECORD: u64 = 64 << 20;

/// That a task is done, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    schema: String,
    pub(super) job: String,
    pub(super) task: usize,
    /// Name of the folder with its outputs.
    pub(super) attempt: String,
    pub(crate) results: Vec<Outcome>,
}

impl Record {
    pub(super) fn new(job: &str, task: usize, attempt: String, results: Vec<Outcome>) -> Self {
        Self { schema: SCHEMA.to_owned(), job: job.to_owned(), task, attempt, results }
    }

    pub(crate) fn exit(&self) -> Exit {
        worst(self.results.iter().map(|result| result.exit))
    }
}

/// The files of a job.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    job: String,
}

impl Store {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self { folder: plan.to().join(FOLDER).join(plan.job()), job: plan.job().to_owned() }
    }

    /// Whether the job was begun.
    pub(super) fn is_known(&self) -> bool {
        self.folder.is_dir()
    }

    /// The folder that an attempt makes its outputs in.
    pub(super) fn attempt(&self, name: &str) -> PathBuf {
        self.folder.join("attempts").join(name)
    }

    /// Begins an attempt at a task, in a folder that no other one has.
    ///
    /// # Errors
    ///
    /// If there is no place for it.
    pub(super) fn begin(&self, task: usize) -> Result<(String, PathBuf), Failure> {
        self.create("attempts")?;
        self.create("tasks")?;
        // By chance, so that a name does not come back after the job was aborted.
        let name = format!("{task:05}-{:016x}", RandomState::new().hash_one(std::process::id()));
        let path = self.attempt(&name);
        fs::create_dir(&path).map_err(|error| Failure::io("create the folder", &path, &error))?;
        Ok((name, path))
    }

    fn create(&self, name: &str) -> Result<(), Failure> {
        let path = self.folder.join(name);
        fs::create_dir_all(&path).map_err(|error| Failure::io("create the folder", &path, &error))
    }

    fn record_path(&self, task: usize) -> PathBuf {
        self.folder.join("tasks").join(format!("{task:05}.json"))
    }

    /// The record of a task, if it is done.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is none.
    pub(crate) fn record(&self, plan: &Plan, task: usize) -> Result<Option<Record>, Failure> {
        let path = self.record_path(task);
        if path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return Ok(None);
        }
        let refused = |what: String| {
            let failure = Failure::new(CODE_PLAN, what).in_file(&path);
            failure.help("remove the file: then the task is missing, and `apr run-task` does it again")
        };
        let record: Record = serde_json::from_slice(&durable_file::read(&path, MAX_RECORD)?)
            .map_err(|error| refused(format!("this is not the record of a task: {error}")))?;
        let mut outputs = record.results.iter().flat_map(|result| &result.outputs);
        let is_sound = record.schema == SCHEMA
            && record.job == self.job
            && record.task == task
            && is_below(&record.attempt)
            && plan.is_of_task(task, &record.results)
            && outputs.all(|output| is_below(&output.path));
        match is_sound {
            true => Ok(Some(record)),
            false => Err(refused("this is the record of another task".to_owned())),
        }
    }

    /// Puts a record in place. `false`: another one is there.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(super) fn put(&self, record: &Record) -> Result<bool, Failure> {
        put_new(&self.record_path(record.task), record)
    }

    fn done_path(&self) -> PathBuf {
        self.folder.join("done.json")
    }

    /// Whether all outputs are in their places.
    pub(crate) fn is_done(&self) -> bool {
        self.done_path().is_file()
    }

    /// Says that all outputs are in their places.
    ///
    /// # Errors
    ///
    /// If that cannot be written.
    pub(super) fn set_done(&self) -> Result<(), Failure> {
        #[derive(Serialize)]
        struct Done<'a> {
            schema: &'a str,
            job: &'a str,
        }
        put_new(&self.done_path(), &Done { schema: "apr.job-done/1", job: &self.job }).map(drop)
    }

    /// Numbers of the tasks without a record.
    pub(crate) fn missing(&self, plan: &Plan) -> Vec<usize> {
        (0..plan.tasks()).filter(|task| !self.record_path(*task).exists()).collect()
    }

    /// Whether the job has stored something.
    pub(crate) fn exists(&self) -> bool {
        self.folder.exists()
    }

    /// How many attempts have a folder.
    pub(crate) fn attempts(&self) -> usize {
        fs::read_dir(self.folder.join("attempts")).map_or(0, Iterator::count)
    }

    /// Removes the attempts.
    ///
    /// # Errors
    ///
    /// If one cannot be removed.
    pub(super) fn remove_attempts(&self) -> Result<(), Failure> {
        remove(&self.folder.join("attempts"))
    }

    /// Removes everything.
    ///
    /// # Errors
    ///
    /// If it cannot be removed.
    pub(crate) fn remove(&self) -> Result<(), Failure> {
        remove(&self.folder)?;
        // The folder of all jobs, if this was the last one.
        let _ = self.folder.parent().map(fs::remove_dir);
        Ok(())
    }

    /// Stores the plan.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn keep(&self, plan: &Plan) -> Result<PathBuf, Failure> {
        self.create("tasks")?;
        let path = self.folder.join("plan.json");
        plan.write(&path, crate::output::Overwrite::Replace)?;
        Ok(path)
    }
}

/// Removes a folder with what is in it, if it is there.
///
/// # Errors
///
/// If it cannot be removed.
pub(super) fn remove(folder: &Path) -> Result<(), Failure> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Failure::io("remove it", folder, &error)),
        _ => Ok(()),
    }
}

/// Writes a file that must not be there. `false`: it is.
fn put_new(path: &Path, content: &impl Serialize) -> Result<bool, Failure> {
    let mut json = serde_json::to_vec_pretty(content)
        .map_err(|error| Failure::new(CODE_INTERNAL, format!("a record that is not JSON: {error}")))?;
    json.push(b'\n');
    let written = Replacement::create_new(path).and_then(|mut file| {
        file.write_all(&json).map_err(|error| file.write_error(error))?;
        file.commit()
    });
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == durable_file::ErrorKind::Exists => Ok(false),
        Err(error) => Err(error.into()),
    }
}
