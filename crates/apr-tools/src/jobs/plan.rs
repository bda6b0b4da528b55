//! The plan of a job: what is read, what is run, and how it is divided.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cell::LazyCell;
use core::ops::Range;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::attempt;
use super::files::{Pinned, text};
use super::inputs::{Input, Set, Sources};
use super::outcome::Outcome;
use super::record::Store;
use super::template::{Template, Values, as_word};
use crate::error::{CODE_INTERNAL, CODE_OUTPUT_EXISTS, CODE_PLAN, CODE_USAGE, Failure};
use crate::output::{self, Overwrite};
use crate::remote;
use crate::terminal::escape;

const SCHEMA: &str = "apr.plan/1";

/// Advice for inputs that would have the same output.
pub(super) const SAME_OUTPUT: &str =
    "{to}/{path} with an ending keeps them apart; --include and --exclude choose";

/// Longest plan that is read.
const MAX_PLAN: u64 = 1 << 30;
/// Most inputs of a task.
const MAX_TASK_INPUTS: usize = 100;
/// Digits of the name of a job.
const JOB_DIGITS: usize = 16;

/// A task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    /// Numbers of the inputs: the first, and the one after the last.
    inputs: (usize, usize),
    /// Which of the files of a divided conversion; none if all are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<u32>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    schema: String,
    /// Digits of the digest of everything else.
    job: String,
    /// Of the program: another one may write other bytes.
    version: String,
    pub(super) command: Template,
    to: String,
    force: bool,
    inputs: Vec<Input>,
    /// Files that the command names besides: keys, an importance matrix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<Pinned>,
    /// Sets that get an index at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sets: Vec<Set>,
    tasks: Vec<Task>,
}

/// What a job is to do.
pub(crate) struct Request<'a> {
    pub(crate) command: Template,
    pub(crate) sources: Sources<'a>,
    /// Bytes of the inputs of a task.
    pub(crate) task_size: u64,
    pub(crate) overwrite: Overwrite,
    /// Whether inputs whose outputs are there are left out.
    pub(crate) skip_existing: bool,
}

impl Plan {
    /// Makes the plan of a job.
    ///
    /// # Errors
    ///
    /// If an input cannot be looked at, there are none, or an output is there already or would be written twice. Outputs of the same job are
    /// not in its way.
    pub(crate) fn new(request: Request<'_>) -> Result<Self, Failure> {
        let Request { command, sources, task_size, overwrite, skip_existing } = request;
        remote::refuse_folder(sources.to)?;
        let (mut inputs, sets) = sources.find(&command)?;
        if sources.by_shard {
            check_sets(&command, &sets)?;
        }
        if skip_existing && (sources.by_shard || command.divides()) {
            let what = "--skip-existing is for inputs that have one output each";
            return Err(Failure::new(CODE_USAGE, what));
        }
        if skip_existing {
            let is_there = |path: &String| sources.to.join(path).symlink_metadata().is_ok();
            inputs.retain(|input| {
                let outputs = command.named_outputs(&input.path);
                outputs.is_empty() || !outputs.iter().all(is_there)
            });
        }
        let (tasks, outputs) = match command.divides() {
            true => divided(&command, &inputs, &text(&sources.to.join("dry-run"))?)?,
            false => (grouped(&inputs, task_size), Vec::new()),
        };
        let files = command.files().map(Pinned::option).collect::<Result<_, _>>()?;
        let mut plan = Self {
            schema: SCHEMA.to_owned(),
            job: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            to: text(sources.to)?,
            force: overwrite == Overwrite::Replace,
            inputs,
            files,
            sets,
            tasks,
        };
        let outputs: Vec<PathBuf> = plan.outputs()?.into_iter().chain(outputs).collect();
        plan.job = plan.digits()?;
        if !Store::of(&plan).is_known() {
            plan.check_places(&outputs)?;
        }
        Ok(plan)
    }

    /// Reads a plan.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is none, was changed, or is of another version of the program.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let refused = |what: String| Failure::new(CODE_PLAN, what).in_file(path);
        let mut plan: Self = serde_json::from_slice(&durable_file::read(path, MAX_PLAN)?)
            .map_err(|error| refused(format!("this is not the plan of a job: {error}")))?;
        if plan.schema != SCHEMA {
            return Err(refused(format!("this is `{}`, not `{SCHEMA}`", escape::cut(&plan.schema, 40))));
        }
        let job = core::mem::take(&mut plan.job);
        plan.job = plan.digits()?;
        if plan.job != job {
            return Err(refused("the plan was changed after it was made".to_owned()));
        }
        let version = env!("CARGO_PKG_VERSION");
        if plan.version != version {
            let what =
                format!("the plan is of apr {}, and this is {version}", escape::cut(&plan.version, 40));
            return Err(refused(what).help("run all tasks with one version, or plan the job again"));
        }
        // Of a plan that was made by another program.
        plan.command.check()?;
        remote::refuse_folder(Path::new(&plan.to))?;
        plan.outputs()?;
        let is_inside = |range: Range<usize>| range.start < range.end && range.end <= plan.inputs.len();
        let mut paths =
            plan.inputs.iter().map(|input| &input.path).chain(plan.sets.iter().map(|set| &set.path));
        match plan.tasks.iter().map(Task::range).all(is_inside) && paths.all(|path| is_below(path)) {
            true => Ok(plan),
            false => Err(refused("a task or an input of the plan leads out of it".to_owned())),
        }
    }

    /// Writes the plan.
    ///
    /// # Errors
    ///
    /// If it is there and may not be replaced, or cannot be written.
    pub(crate) fn write(&self, path: &Path, overwrite: Overwrite) -> Result<(), Failure> {
        let mut json = serde_json::to_vec_pretty(self).map_err(of_json)?;
        json.push(b'\n');
        output::write_file(path, &json, overwrite)
    }

    /// The name of a job that has none.
    fn digits(&self) -> Result<String, Failure> {
        let mut hash = Hashed(Sha256::new());
        serde_json::to_writer(&mut hash, self).map_err(of_json)?;
        let mut digits = base16ct::lower::encode_string(&hash.0.finalize());
        digits.truncate(JOB_DIGITS);
        Ok(digits)
    }

    /// The outputs that the command names.
    ///
    /// # Errors
    ///
    /// If one would be written twice, or would not be a file below the folder.
    fn outputs(&self) -> Result<Vec<PathBuf>, Failure> {
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        let shown = |text: &str| escape::cut(text, 100);
        for input in &self.inputs {
            for output in self.command.named_outputs(&input.path) {
                let path = self.to().join(&output);
                if !is_below(&output) {
                    let what = format!("the output of `{}` would not be in the folder", shown(&input.path));
                    return Err(Failure::new(CODE_USAGE, what).in_file(&path));
                }
                if let Some(other) = known.insert(output, &input.input) {
                    return Err(Failure::new(CODE_USAGE, "two inputs would have the same output")
                        .in_file(&path)
                        .because(format!("{} and {}", shown(other), shown(&input.input)))
                        .help(SAME_OUTPUT));
                }
            }
        }
        for (output, input) in &known {
            let folders = output.match_indices('/').map(|(at, _)| &output[..at]);
            if let Some(other) = folders.filter_map(|folder| known.get(folder)).next() {
                return Err(Failure::new(
                    CODE_USAGE,
                    "an output would be in a folder that is an output itself",
                )
                .in_file(&self.to().join(output))
                .because(format!("{} and {}", shown(other), shown(input)))
                .help("give outputs an ending: {out}.gguf"));
            }
        }
        Ok(known.into_keys().map(|output| self.to().join(output)).collect())
    }

    /// Refuses outputs that would replace something.
    fn check_places(&self, outputs: &[PathBuf]) -> Result<(), Failure> {
        let inputs = LazyCell::new(|| {
            let files = self.inputs.iter().flat_map(|input| &input.files);
            files.filter_map(|file| Path::new(&file.path).canonicalize().ok()).collect::<BTreeSet<PathBuf>>()
        });
        let indexes = self.sets.iter().map(|set| self.to().join(&set.path));
        for path in outputs.iter().cloned().chain(indexes) {
            if path.symlink_metadata().is_err() {
                continue;
            }
            if path.canonicalize().is_ok_and(|path| inputs.contains(&path)) {
                return Err(
                    Failure::new(CODE_USAGE, "an output would replace an input of the job").in_file(&path)
                );
            }
            output::check_file(&path, self.overwrite()).map_err(|failure| match failure.code() {
                CODE_OUTPUT_EXISTS => failure
                    .help("--force replaces outputs that are there, --skip-existing leaves out their inputs"),
                _ => failure,
            })?;
        }
        Ok(())
    }

    /// Whether results are those of the inputs of a task.
    pub(super) fn is_of_task(&self, number: usize, results: &[Outcome]) -> bool {
        let inputs = self.task(number).map_or(&[][..], |(_, inputs)| inputs);
        inputs.iter().map(|input| &input.input).eq(results.iter().map(|result| &result.input))
    }

    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    pub(crate) fn to(&self) -> &Path {
        Path::new(&self.to)
    }

    pub(super) const fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Replace } else { Overwrite::Refuse }
    }

    /// Files that the command names besides the inputs.
    pub(super) fn files(&self) -> &[Pinned] {
        &self.files
    }

    /// The inputs, in the order of the results of their tasks, and the sets of which they are shards.
    pub(super) fn sets(&self) -> (&[Input], &[Set]) {
        (&self.inputs, &self.sets)
    }

    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number and bytes of the inputs.
    pub(crate) fn totals(&self) -> (usize, u64) {
        (self.inputs.len(), self.inputs.iter().map(Input::bytes).fold(0, u64::saturating_add))
    }

    /// A task with its inputs.
    ///
    /// # Errors
    ///
    /// If the plan has no such task.
    pub(super) fn task(&self, number: usize) -> Result<(&Task, &[Input]), Failure> {
        let Some(task) = self.tasks.get(number) else {
            let what = format!("there is no task {number}: the job has {} of them, from 0", self.tasks.len());
            return Err(Failure::new(CODE_USAGE, what));
        };
        Ok((task, &self.inputs[task.range()]))
    }
}

impl Task {
    const fn range(&self) -> Range<usize> {
        self.inputs.0..self.inputs.1
    }
}

/// Whether a path, with `/`, stays below the folder that it is appended to.
pub(super) fn is_below(path: &str) -> bool {
    // Windows has other separators, and drives.
    let is_separator = |c: char| c == '\0' || cfg!(windows) && matches!(c, '\\' | ':');
    path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains(is_separator))
}

/// Hashes what is written.
struct Hashed(Sha256);

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses sets that would not be sets again.
fn check_sets(command: &Template, sets: &[Set]) -> Result<(), Failure> {
    let refused = |what: String| {
        Failure::new(CODE_USAGE, what)
            .help("--by-shard is for safetensors: -- quantize {in} -o {out}.safetensors --type f16")
    };
    if sets.is_empty() || command.divides() {
        return Err(refused("--by-shard needs a folder with an index of shards".to_owned()));
    }
    let folder = |path: &str| path.rfind('/').map_or("", |at| &path[..at]).to_owned();
    for set in sets {
        for shard in &set.shards {
            let outputs = command.named_outputs(shard);
            let is_beside =
                |output: &String| output.ends_with(".safetensors") && folder(output) == folder(&set.path);
            if outputs.len() != 1 || !outputs.iter().all(is_beside) {
                let shard = escape::cut(shard, 100);
                return Err(refused(format!(
                    "the output of `{shard}` would not be a shard beside its index"
                )));
            }
        }
    }
    Ok(())
}

/// Tasks of several small inputs, or of one large one.
fn grouped(inputs: &[Input], task_size: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    let (mut first, mut bytes) = (0, 0_u64);
    for (idx, input) in inputs.iter().enumerate() {
        let is_full = bytes.saturating_add(input.bytes()) > task_size || idx - first == MAX_TASK_INPUTS;
        if idx > first && is_full {
            tasks.push(Task { inputs: (first, idx), file: None });
            (first, bytes) = (idx, 0);
        }
        bytes = bytes.saturating_add(input.bytes());
    }
    if first < inputs.len() {
        tasks.push(Task { inputs: (first, inputs.len()), file: None });
    }
    tasks
}

/// A task for each file that a conversion writes, and these files; `to` is a folder where nothing is.
fn divided(command: &Template, inputs: &[Input], to: &str) -> Result<(Vec<Task>, Vec<PathBuf>), Failure> {
    let (mut tasks, mut outputs) = (Vec::new(), Vec::new());
    let folder = Path::new(to).parent().unwrap_or(Path::new(""));
    for (idx, input) in inputs.iter().enumerate() {
        let values = Values { input: &as_word(&input.input), to: &as_word(to), path: &input.path };
        let mut words = command.words(&values);
        words.push("--dry-run".to_owned());
        let answer = attempt::answer(words)?;
        let files = answer.files_of_conversion();
        for (number, file) in (1..).zip(&files) {
            tasks.push(Task { inputs: (idx, idx + 1), file: Some(number) });
            let file = Path::new(file);
            outputs.push(file.strip_prefix(to).map_or_else(|_| file.to_owned(), |file| folder.join(file)));
        }
        if files.is_empty() {
            // What is refused is told by the task.
            tasks.push(Task { inputs: (idx, idx + 1), file: None });
        }
    }
    Ok((tasks, outputs))
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn of_json(error: serde_json::Error) -> Failure {
    Failure::new(CODE_INTERNAL, format!("a plan that is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(name: &str, bytes: u64) -> Input {
        let files = vec![Pinned::at_commit(name.to_owned(), bytes, String::new())];
        Input { input: name.to_owned(), path: name.to_owned(), files }
    }

    #[test]
    fn tasks_have_a_size() {
        let inputs: Vec<Input> = [3, 3, 5, 20, 1, 1].map(|bytes| input("x", bytes)).into();
        let ranges = |size| grouped(&inputs, size).iter().map(|task| task.inputs).collect::<Vec<_>>();
        assert_eq!(ranges(10), [(0, 2), (2, 3), (3, 4), (4, 6)]);
        assert_eq!(ranges(0).len(), 6);
        assert_eq!(ranges(u64::MAX), [(0, 6)]);
        let many = vec![input("x", 0); 250];
        assert_eq!(
            grouped(&many, 10).iter().map(|task| task.range().len()).collect::<Vec<_>>(),
            [100, 100, 50]
        );
        assert_eq!(grouped(&[], 10), []);
    }

    #[test]
    fn paths_stay_below() {
        for path in ["a", "a/b.gguf", ".hidden/x", "sha256:0a"].iter().take(if cfg!(windows) { 3 } else { 4 })
        {
            assert!(is_below(path), "{path}");
        }
        for path in ["", "/a", "../a", "a/../b", "a//b", "./a", "a\0"] {
            assert!(!is_below(path), "{path}");
        }
    }
}
