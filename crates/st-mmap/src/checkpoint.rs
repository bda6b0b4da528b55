//! Training checkpoints: a folder for each step, complete or absent, verified when read.
//!
//! The format is `docs/checkpoint-format.md`.

mod folder;
mod json;
mod manifest;
mod meta;
mod opened;
mod retention;
mod seal;

use alloc::collections::BTreeMap;
use core::num::NonZeroUsize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use st_core::{ReadOptions, TensorView};

pub use self::folder::{Checkpoint, CheckpointFile, FileRole};
pub use self::meta::{FormatVersion, Meta};
pub use self::opened::OpenedCheckpoint;
pub use self::retention::{Best, Kept, KeptBy, Plan, Prefer, Retention};

use crate::error::{Error, ErrorKind};
use crate::new_folder;

const PREFIX: &str = "step_";

/// Surrounds the name of a checkpoint that is being deleted.
const REMOVED: (&str, &str) = (".", ".removed");

/// A folder of checkpoints, one sub-folder for each step.
///
/// # Examples
///
/// ```
/// use std::collections::BTreeMap;
/// use std::num::NonZeroUsize;
///
/// use st_core::{Dtype, TensorView};
/// use st_mmap::{Arena, CheckpointData, Checkpoints};
///
/// # let folder = std::env::temp_dir().join(format!("st-mmap-doc-checkpoints-{}", std::process::id()));
/// let checkpoints = Checkpoints::new(&folder);
/// let weights: Vec<u8> = [0.5_f32, -1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
/// for step in [10, 20, 30] {
///     checkpoints.save(&CheckpointData {
///         step,
///         model: &[("w", TensorView::new(Dtype::F32, &[2], &weights)?)],
///         metrics: BTreeMap::from([("loss".to_owned(), 1.0 / step as f64)]),
///         model_class: "Linear",
///         ..CheckpointData::default()
///     })?;
/// }
/// checkpoints.keep_last(NonZeroUsize::MIN.saturating_add(1))?;
/// assert_eq!(checkpoints.steps()?, [20, 30]);
///
/// let resume = checkpoints.resume()?; // The newest that verifies.
/// let newest = resume.checkpoint.expect("two were kept");
/// assert_eq!((newest.step(), newest.meta().model_class()), (30, Some("Linear")));
/// let mut arena = Arena::new();
/// assert_eq!(newest.load_model(&mut arena)?.tensor("w")?.data(), weights);
///
/// // One flipped bit is found, whichever file it is in.
/// # let path = folder.join("step_30").join("meta.json");
/// let mut bytes = std::fs::read(&path)?;
/// bytes[5] ^= 1;
/// std::fs::write(&path, bytes)?;
/// let error = checkpoints.load(30).expect_err("damaged");
/// assert!(error.to_string().contains("checksum mismatch for meta.json"));
/// assert_eq!(checkpoints.resume()?.checkpoint.map(|older| older.step()), Some(20));
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Checkpoints {
    folder: PathBuf,
}

/// What a checkpoint is made of.
#[derive(Clone, Debug, Default)]
pub struct CheckpointData<'data> {
    /// The step, which names the folder.
    pub step: u64,
    /// The weights.
    pub model: &'data [(&'data str, TensorView<'data>)],
    /// Metadata of the file of the weights: other names of tied ones.
    pub model_metadata: Option<BTreeMap<String, String>>,
    /// State of the optimizer, if it is to be kept.
    pub optimizer: Option<OptimizerData<'data>>,
    /// Further tensor files.
    pub parts: &'data [PartData<'data>],
    /// Numbers worth remembering; NaN and infinities are allowed.
    pub metrics: BTreeMap<String, f64>,
    /// Name of the model's type.
    pub model_class: &'data str,
    /// Name of the optimizer's type.
    pub optimizer_class: &'data str,
    /// What wrote the state, `torch` for example; empty for plain tensors.
    pub framework: &'data str,
}

/// State of an optimizer: tensors, and the rest as JSON.
#[derive(Clone, Debug)]
pub struct OptimizerData<'data> {
    /// Moments and whatever else is a tensor.
    pub tensors: &'data [(&'data str, TensorView<'data>)],
    /// Metadata of the file of the tensors.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Everything else, one JSON value; `{}` if there is nothing.
    pub json: &'data str,
}

/// A further tensor file of a checkpoint.
#[derive(Clone, Debug)]
pub struct PartData<'data> {
    /// Its name without `.safetensors`: at most 64 letters, digits, `_`, `-` and `.`, a letter or digit first.
    pub name: &'data str,
    /// Its tensors.
    pub tensors: &'data [(&'data str, TensorView<'data>)],
    /// Its metadata.
    pub metadata: Option<BTreeMap<String, String>>,
}

/// What to do with a checkpoint that has no manifest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verification {
    /// Refuse it. The default.
    #[default]
    Required,
    /// Read it without verifying anything; a manifest that exists is obeyed all the same.
    ManifestOptional,
}

/// How to read a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// What to do without a manifest.
    pub verification: Verification,
    /// Rules for the headers of the tensor files.
    pub read: ReadOptions,
}

/// The newest checkpoint that can be used, and why newer ones cannot.
#[derive(Debug)]
pub struct Resume {
    /// `None` if there is none.
    pub checkpoint: Option<Checkpoint>,
    /// Newer steps that were refused, newest first.
    pub skipped: Vec<(u64, Error)>,
}

impl Checkpoints {
    /// Checkpoints below `folder`, which is made by the first save.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder that holds them.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the checkpoint of a step is or would be.
    #[must_use]
    pub fn path_of(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{step}"))
    }

    /// Saves a checkpoint and returns its folder. After a crash it is complete or absent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] of kind `Exists` if there is one of this step, [`ErrorKind::Format`] if the
    /// tensors cannot be laid out, or have names longer than are read, [`ErrorKind::BadJson`] if the optimizer's JSON is not JSON, [`ErrorKind::BadPart`], [`ErrorKind::TooLong`],
    /// [`ErrorKind::File`] or [`ErrorKind::Io`] if something cannot be written. No file is left.
    pub fn save(&self, data: &CheckpointData<'_>) -> Result<PathBuf, Error> {
        let target = self.path_of(data.step);
        new_folder::make(&self.folder)?;
        // A leftover that cannot be removed is no reason to lose this checkpoint; `keep_last` reports it.
        let _ = self.finish_removals();
        folder::write(&target, data)?;
        Ok(target)
    }

    /// Opens and verifies the checkpoint of a step.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StepNotFound`], [`ErrorKind::MissingManifest`], [`ErrorKind::BadManifest`],
    /// [`ErrorKind::MissingFile`], [`ErrorKind::UnlistedFile`], [`ErrorKind::ChecksumMismatch`]; and for
    /// files that are what they were when saved, yet not valid: [`ErrorKind::Format`],
    /// [`ErrorKind::BadMeta`], [`ErrorKind::UnknownVersion`], [`ErrorKind::StepMismatch`], [`ErrorKind::OptimizerPair`],
    /// [`ErrorKind::BadJson`]. [`ErrorKind::File`] or [`ErrorKind::Io`] if something cannot be read.
    pub fn load(&self, step: u64) -> Result<Checkpoint, Error> {
        self.load_with(step, &LoadOptions::default())
    }

    /// [`load`](Self::load) with other rules.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load).
    pub fn load_with(&self, step: u64, options: &LoadOptions) -> Result<Checkpoint, Error> {
        folder::read(&self.path_of(step), step, options)
    }

    /// Opens the checkpoint of a step without reading its tensors: each of its tensor files is verified when it is
    /// [read](OpenedCheckpoint::read_file), so that loading all of them takes one pass over the disk.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load), as far as they are not about the content of tensor files.
    pub fn open(&self, step: u64, options: &LoadOptions) -> Result<OpenedCheckpoint, Error> {
        opened::open(&self.path_of(step), step, options)
    }

    /// The description of the checkpoint of a step. Only its `meta.json` is read, and nothing is verified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::StepNotFound`], [`ErrorKind::BadMeta`], [`ErrorKind::UnknownVersion`], [`ErrorKind::StepMismatch`];
    /// [`ErrorKind::File`] if the file cannot be read.
    pub fn meta(&self, step: u64) -> Result<Meta, Error> {
        folder::read_meta(&self.path_of(step), step)
    }

    /// The steps that have a checkpoint, ascending. Names of any other form are ignored; nothing is verified.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the folder exists and cannot be listed.
    pub fn steps(&self) -> Result<Vec<u64>, Error> {
        let mut steps = self.list(step_of)?;
        steps.sort_unstable();
        Ok(steps)
    }

    /// The highest step that has a checkpoint.
    ///
    /// # Errors
    ///
    /// Those of [`steps`](Self::steps).
    pub fn latest(&self) -> Result<Option<u64>, Error> {
        Ok(self.list(step_of)?.into_iter().max())
    }

    /// The newest checkpoint that passes every check of [`load`](Self::load).
    ///
    /// # Errors
    ///
    /// Those of [`steps`](Self::steps). Errors of single checkpoints are in [`Resume::skipped`].
    pub fn resume(&self) -> Result<Resume, Error> {
        self.resume_with(&LoadOptions::default())
    }

    /// [`resume`](Self::resume) with other rules.
    ///
    /// # Errors
    ///
    /// Those of [`resume`](Self::resume).
    pub fn resume_with(&self, options: &LoadOptions) -> Result<Resume, Error> {
        let mut skipped = Vec::new();
        for step in self.steps()?.into_iter().rev() {
            match self.load_with(step, options) {
                Ok(checkpoint) => return Ok(Resume { checkpoint: Some(checkpoint), skipped }),
                Err(error) => skipped.push((step, error)),
            }
        }
        Ok(Resume { checkpoint: None, skipped })
    }

    /// Removes all but the `keep` newest checkpoints and returns the removed steps, ascending.
    ///
    /// Steps are compared, contents are not verified. A crash leaves each checkpoint complete or gone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] or [`ErrorKind::File`] if something cannot be listed, renamed, flushed or removed.
    pub fn keep_last(&self, keep: NonZeroUsize) -> Result<Vec<u64>, Error> {
        let mut steps = self.steps()?;
        steps.truncate(steps.len().saturating_sub(keep.get()));
        self.remove(&steps)?;
        Ok(steps)
    }

    /// Removes the checkpoints of these steps. A crash leaves each of them complete or gone.
    fn remove(&self, steps: &[u64]) -> Result<(), Error> {
        self.finish_removals()?;
        let mut is_changed = false;
        for step in steps {
            let from = self.path_of(*step);
            let to = self.folder.join(format!("{}{PREFIX}{step}{}", REMOVED.0, REMOVED.1));
            match fs::rename(&from, to) {
                Ok(()) => is_changed = true,
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(ErrorKind::Io { operation: "remove", error }.at(&from)),
            }
        }
        if is_changed {
            // Before the first file goes: a power cut must not bring back the name of half a checkpoint.
            durable_file::sync_dir(&self.folder)?;
            self.finish_removals()?;
        }
        Ok(())
    }

    /// Deletes what a removal, here or in a process that died, has renamed.
    fn finish_removals(&self) -> Result<(), Error> {
        let removed = |name: &str| {
            let name = name.strip_prefix(REMOVED.0)?.strip_suffix(REMOVED.1)?;
            step_of(name)
        };
        for step in self.list(removed)? {
            let path = self.folder.join(format!("{}{PREFIX}{step}{}", REMOVED.0, REMOVED.1));
            match fs::remove_dir_all(&path) {
                // Another process may be at it too.
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(ErrorKind::Io { operation: "remove", error }.at(&path));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Sub-folders whose names mean something. A folder that does not exist yet is empty.
    fn list(&self, meaning: impl Fn(&str) -> Option<u64>) -> Result<Vec<u64>, Error> {
        let failed = |error| ErrorKind::Io { operation: "list", error }.at(&self.folder);
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let Some(step) = entry.file_name().to_str().and_then(&meaning) else {
                continue;
            };
            // Links are not followed: what is renamed and removed later is a folder of ours.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => found.push(step),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(found)
    }
}

/// The step that the name of a folder encodes: decimal, without sign or leading zeros.
fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix(PREFIX)?;
    let canonical =
        digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit()));
    if canonical { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_names_are_steps() {
        assert_eq!(step_of("step_0"), Some(0));
        assert_eq!(step_of("step_100"), Some(100));
        assert_eq!(step_of("step_18446744073709551615"), Some(u64::MAX));
        for name in [
            "step_",
            "step_00",
            "step_07",
            "step_+7",
            "step_-7",
            "step_7 ",
            "step_7_tmp",
            "Step_7",
            "step_7.0",
            "7",
            "step_18446744073709551616",
            "step_٧",
            ".step_7.removed",
        ] {
            assert_eq!(step_of(name), None, "{name}");
        }
    }
}
