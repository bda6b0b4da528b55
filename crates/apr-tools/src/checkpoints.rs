//! Checkpoints of a training run: the folders `step_N` that `st_mmap::Checkpoints` writes, and the folders `checkpoint-N` of
//! other trainers.

use alloc::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::Value;
use st_mmap::{Checkpoints, ErrorKind, FormatVersion, LoadOptions, Verification};

use crate::code_files::{self, Contents};
use crate::error::Failure;
use crate::input::{self, Model, Rules};

/// Prefix of the names of a trainer's folders, before the step.
const TRAINER_PREFIX: &str = "checkpoint-";

/// The state that a trainer keeps beside the weights.
const TRAINER_STATE: &str = "trainer_state.json";

/// Longest state of a trainer that is read.
const MAX_STATE: u64 = 64 << 20;

/// Who wrote a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Layout {
    /// `step_N`, with a manifest: `docs/checkpoint-format.md`.
    Steps,
    /// `checkpoint-N`, without one.
    Trainer,
}

impl Layout {
    /// As JSON calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Trainer => "trainer",
        }
    }
}

/// A checkpoint, recognized by the name of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkpoint {
    pub(crate) layout: Layout,
    pub(crate) step: u64,
    /// As the user named it, or below what they named.
    pub(crate) path: PathBuf,
    /// Its folder, where the name counts and not what leads to it.
    parent: PathBuf,
}

/// The metadata of a checkpoint, and the files in its folder.
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) model_class: Option<String>,
    pub(crate) optimizer_class: Option<String>,
    pub(crate) framework: Option<String>,
    pub(crate) parts: Vec<String>,
    pub(crate) format_version: Option<FormatVersion>,
    /// When its folder was made.
    pub(crate) modified: Option<SystemTime>,
    pub(crate) has_manifest: bool,
    /// The files in its folder.
    pub(crate) contents: Contents,
    /// Why metrics and class names are unknown.
    pub(crate) problem: Option<Failure>,
}

impl About {
    /// Why something cannot be told, and the files that can run code when they are loaded.
    pub(crate) fn warnings(&self) -> Vec<(&'static str, String)> {
        let problem = self.problem.iter().map(|problem| ("checkpoint", problem.to_string()));
        let code = self.contents.warnings().into_iter().map(|warning| ("runs-code", warning));
        problem.chain(code).collect()
    }
}

impl Checkpoint {
    /// The checkpoint that a path leads to, if it is the folder of one.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let marks = ["manifest.json", "meta.json", TRAINER_STATE];
        if !marks.iter().any(|name| path.join(name).is_file()) {
            return None;
        }
        // `.` and links have other names than the folder they lead to.
        let folder = path.canonicalize().ok()?;
        let (layout, step) = meaning(folder.file_name()?.to_str()?)?;
        Some(Self { layout, step, path: path.to_owned(), parent: folder.parent()?.to_owned() })
    }

    /// The checkpoints below a folder by layout and step, unless the folder is a model itself. Why a folder cannot be listed is
    /// told where it is read as a model.
    pub(crate) fn all_below(folder: &Path) -> Vec<Self> {
        if !folder.is_dir() || input::holds_model(folder) {
            return Vec::new();
        }
        Self::all_in(folder).unwrap_or_default()
    }

    /// The checkpoints in a folder by layout and step, whatever else it holds.
    ///
    /// # Errors
    ///
    /// If it cannot be listed.
    pub(crate) fn all_in(folder: &Path) -> Result<Vec<Self>, Failure> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(|error| Failure::io("list the folder", folder, &error))? {
            let entry = entry.map_err(|error| Failure::io("list the folder", folder, &error))?;
            // Links are not followed, as the library does not follow them.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if let Some((layout, step)) = entry.file_name().to_str().and_then(meaning).filter(|_| is_folder) {
                let (path, parent) = (folder.join(entry.file_name()), folder.to_owned());
                found.push(Self { layout, step, path, parent });
            }
        }
        found.sort_unstable_by_key(|checkpoint| (checkpoint.layout, checkpoint.step));
        Ok(found)
    }

    /// Opens a checkpoint `step_N`, whose files are verified then.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub(crate) fn load(
        &self,
        rules: &Rules,
        verification: Verification,
    ) -> Result<st_mmap::Checkpoint, Failure> {
        let options = LoadOptions { verification, read: rules.safetensors };
        self.folder().load_with(self.step, &options).map_err(|error| accepting(error.into()))
    }

    /// Verifies the files of a checkpoint; of a trainer's the headers, where no manifest is demanded.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub(crate) fn verify(&self, rules: &Rules, verification: Verification) -> Result<(), Failure> {
        match (self.layout, verification) {
            (Layout::Steps, _) => self.load(rules, verification).map(drop),
            (Layout::Trainer, Verification::Required) => {
                let error = st_mmap::Error::from(ErrorKind::MissingManifest);
                Err(accepting(Failure::from(error).in_file(&self.path)))
            }
            (Layout::Trainer, _) => Model::open(&self.path, rules).map(drop),
        }
    }

    /// Name of its folder.
    pub(crate) fn name(&self) -> String {
        match self.layout {
            Layout::Steps => format!("step_{}", self.step),
            Layout::Trainer => format!("{TRAINER_PREFIX}{}", self.step),
        }
    }

    /// The folder of checkpoints, for the library.
    pub(crate) fn folder(&self) -> Checkpoints {
        Checkpoints::new(&self.parent)
    }

    /// Its metadata, not verified.
    pub(crate) fn about(&self) -> About {
        let modified = fs::metadata(&self.path).and_then(|found| found.modified()).ok();
        let mut about = About { contents: code_files::formats(&self.path), modified, ..About::default() };
        match self.layout {
            Layout::Trainer => about.metrics = trainer_metrics(&self.path.join(TRAINER_STATE)),
            Layout::Steps => {
                about.has_manifest = self.path.join("manifest.json").is_file();
                match self.folder().meta(self.step) {
                    Err(error) => about.problem = Some(Failure::from(error).in_file(&self.path)),
                    Ok(meta) => {
                        let class =
                            |class: Option<&str>| class.filter(|class| !class.is_empty()).map(str::to_owned);
                        about.metrics = meta.metrics().clone();
                        about.model_class = class(meta.model_class());
                        about.optimizer_class = class(meta.optimizer_class());
                        about.framework = class(meta.framework());
                        about.parts = meta.parts().to_vec();
                        about.format_version = Some(meta.format_version());
                    }
                }
            }
        }
        about
    }
}

/// With the option that accepts checkpoints without a manifest.
fn accepting(failure: Failure) -> Failure {
    match failure.code() {
        "sm-missing-manifest" => failure.help(
            "go back to a checkpoint that has one; or accept this one with --allow-missing-manifest, if you know where it \
             comes from",
        ),
        _ => failure,
    }
}

/// The last value of each number that a trainer logged; none of a state that cannot be read, which is not ours to judge.
fn trainer_metrics(path: &Path) -> BTreeMap<String, f64> {
    let state = durable_file::read(path, MAX_STATE).ok();
    let state: Option<Value> = state.and_then(|text| serde_json::from_slice(&text).ok());
    let Some(state) = state else { return BTreeMap::new() };
    let logged = state.get("log_history").and_then(Value::as_array).into_iter().flatten();
    let numbers = logged.filter_map(Value::as_object).flatten();
    let numbers = numbers
        .filter(|(name, _)| *name != "step")
        .filter_map(|(name, value)| Some((name.clone(), value.as_f64()?)));
    numbers.collect()
}

/// The meaning of a folder's name.
fn meaning(name: &str) -> Option<(Layout, u64)> {
    let (layout, digits) = match name.strip_prefix("step_") {
        Some(digits) => (Layout::Steps, digits),
        None => (Layout::Trainer, name.strip_prefix(TRAINER_PREFIX)?),
    };
    // `step_07` would not be found by its step.
    let step: u64 = digits.parse().ok()?;
    (digits == step.to_string()).then_some((layout, step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_names_are_checkpoints() {
        assert_eq!(meaning("step_30"), Some((Layout::Steps, 30)));
        assert_eq!(meaning("checkpoint-500"), Some((Layout::Trainer, 500)));
        for name in [
            "step_07",
            "step_+7",
            "step_",
            "checkpoint-",
            "checkpoint-05",
            "checkpoint_5",
            "step-5",
            "latest",
        ] {
            assert_eq!(meaning(name), None, "{name}");
        }
    }
}
