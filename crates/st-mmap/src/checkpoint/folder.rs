//! One checkpoint: its files, how they are written, and how they are verified.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use durable_file::StagedDir;
use st_core::{TensorView, WriteOptions};

use super::manifest::{self, Digest, Manifest};
use super::meta::{self, Meta};
use super::seal::{self, Hashed, SealedTensors};
use super::{CheckpointData, LoadOptions, Verification};
use crate::arena::{Arena, LoadedSafeTensors};
use crate::error::{Error, ErrorKind, InFile};
use crate::file::SafeTensorsFile;
use crate::positioned::PositionedFile;
use crate::save::{lay_out, write_tensors};

const MODEL: &str = "model.safetensors";
const OPTIMIZER_TENSORS: &str = "optimizer.safetensors";
const OPTIMIZER_JSON: &str = "optimizer.json";

/// Longest optimizer state that is read.
const MAX_OPTIMIZER_JSON: u64 = 64 << 20;

/// A checkpoint that was opened, and verified unless [`is_verified`](Self::is_verified) is false.
///
/// The tensors are on disk; their files stay open, so replacing them changes nothing here.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    files: Vec<CheckpointFile>,
    verified: bool,
    meta: Meta,
    model: SealedTensors,
    optimizer: Option<(SealedTensors, String)>,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointFile {
    /// Its name in the folder.
    pub name: String,
    /// What it is for.
    pub role: FileRole,
    /// SHA-256 in lower-case hexadecimal, as verified; `None` if the checkpoint has no manifest.
    pub sha256: Option<String>,
}

/// What a file of a checkpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileRole {
    /// The weights.
    Model,
    /// Tensors of the optimizer state.
    OptimizerTensors,
    /// The rest of the optimizer state.
    OptimizerState,
    /// Step, metrics, class names.
    Meta,
    /// A pickle. Verified like every file, never opened as one: that would run code.
    IgnoredPickle,
    /// Anything else.
    Other,
}

impl FileRole {
    fn of(name: &str) -> Self {
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
        match (name, ending) {
            (MODEL, _) => Self::Model,
            (OPTIMIZER_TENSORS, _) => Self::OptimizerTensors,
            (OPTIMIZER_JSON, _) => Self::OptimizerState,
            (meta::NAME, _) => Self::Meta,
            (_, Some("pkl" | "pickle")) => Self::IgnoredPickle,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::OptimizerTensors => "optimizer tensors",
            Self::OptimizerState => "optimizer state",
            Self::Meta => "meta",
            Self::IgnoredPickle => "ignored pickle",
            Self::Other => "other",
        })
    }
}

impl Checkpoint {
    /// The step.
    #[must_use]
    pub const fn step(&self) -> u64 {
        self.meta.step()
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether every file has the digest of the manifest. `false` only without a manifest, which only
    /// [`Verification::ManifestOptional`] allows.
    #[must_use]
    pub const fn is_verified(&self) -> bool {
        self.verified
    }

    /// All files but the manifest, sorted by name.
    #[must_use]
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// Step, metrics and class names.
    #[must_use]
    pub const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The weights, to be read by position or mapped.
    #[must_use]
    pub fn model(&self) -> &SafeTensorsFile {
        self.model.file()
    }

    /// Loads the weights and verifies the loaded bytes once more: what comes back is what was saved, even if
    /// something wrote into the file since it was opened.
    ///
    /// # Errors
    ///
    /// Those of [`SafeTensorsFile::load`], and [`ErrorKind::ChecksumMismatch`].
    pub fn load_model<'arena>(&self, arena: &'arena mut Arena) -> Result<LoadedSafeTensors<'arena>, Error> {
        self.model.load(MODEL, arena)
    }

    /// Tensors of the optimizer state, if it was saved.
    #[must_use]
    pub fn optimizer(&self) -> Option<&SafeTensorsFile> {
        self.optimizer.as_ref().map(|(tensors, _)| tensors.file())
    }

    /// The rest of the optimizer state: the JSON text that was saved.
    #[must_use]
    pub fn optimizer_json(&self) -> Option<&str> {
        self.optimizer.as_ref().map(|(_, json)| json.as_str())
    }

    /// Loads the optimizer's tensors as [`load_model`](Self::load_model) loads the weights; `None` if there
    /// are none.
    ///
    /// # Errors
    ///
    /// Those of [`load_model`](Self::load_model).
    pub fn load_optimizer<'arena>(
        &self,
        arena: &'arena mut Arena,
    ) -> Result<Option<LoadedSafeTensors<'arena>>, Error> {
        self.optimizer.as_ref().map(|(tensors, _)| tensors.load(OPTIMIZER_TENSORS, arena)).transpose()
    }
}

/// Writes a checkpoint beside `target` and puts it in place.
pub(super) fn write(target: &Path, data: &CheckpointData<'_>) -> Result<(), Error> {
    if let Some(optimizer) = &data.optimizer {
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(optimizer.json);
        parsed.map_err(|_| ErrorKind::BadJson { problem: "the optimizer state is not a JSON value" })?;
    }
    let staged = StagedDir::create(target)?;
    let folder = staged.path();
    let mut manifest = Manifest::new();
    manifest.insert(MODEL.to_owned(), create_tensors(folder, MODEL, data.model)?);
    if let Some(optimizer) = &data.optimizer {
        let digest = create_tensors(folder, OPTIMIZER_TENSORS, optimizer.tensors)?;
        manifest.insert(OPTIMIZER_TENSORS.to_owned(), digest);
        manifest.insert(OPTIMIZER_JSON.to_owned(), create_text(folder, OPTIMIZER_JSON, optimizer.json)?);
    }
    manifest.insert(meta::NAME.to_owned(), create_text(folder, meta::NAME, &meta::render(data))?);
    create_text(folder, manifest::NAME, &manifest::render(&manifest))?;
    Ok(staged.commit()?)
}

fn create_tensors(folder: &Path, name: &str, tensors: &[(&str, TensorView<'_>)]) -> Result<Digest, Error> {
    let path = folder.join(name);
    let layout = lay_out(tensors, &WriteOptions::default()).in_file(&path)?;
    seal::create(&path, |out| write_tensors(&layout, tensors, out))
}

fn create_text(folder: &Path, name: &str, text: &str) -> Result<Digest, Error> {
    seal::create(&folder.join(name), |out| out.write_all(text.as_bytes()))
}

fn require_folder(folder: &Path, step: u64) -> Result<(), Error> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        _ => Err(ErrorKind::StepNotFound { step }.at(folder)),
    }
}

/// Reads `meta.json` of the checkpoint in `folder`, which is not verified.
pub(super) fn read_meta(folder: &Path, step: u64) -> Result<Meta, Error> {
    require_folder(folder, step)?;
    let bytes = durable_file::read(&folder.join(meta::NAME), meta::MAX_LEN)?;
    parse_meta(folder, step, bytes)
}

fn parse_meta(folder: &Path, step: u64, bytes: Vec<u8>) -> Result<Meta, Error> {
    let path = folder.join(meta::NAME);
    let meta = meta::parse(bytes).in_file(&path)?;
    if meta.step() == step {
        Ok(meta)
    } else {
        Err(ErrorKind::StepMismatch { folder: step, meta: meta.step() }.at(&path))
    }
}

/// Opens the checkpoint in `folder`: every digest first, then the content.
pub(super) fn read(folder: &Path, step: u64, options: &LoadOptions) -> Result<Checkpoint, Error> {
    require_folder(folder, step)?;
    let manifest = read_manifest(folder, options.verification)?;
    let digests = list(folder, manifest.as_ref())?;
    let mut content = Content { folder, options, model: None, optimizer: None, json: BTreeMap::new() };
    for (name, digest) in &digests {
        content.take(name, *digest)?;
    }

    let missing = |file: &str| ErrorKind::MissingFile { file: file.to_owned() }.at(folder);
    let meta = content.json.remove(meta::NAME).ok_or_else(|| missing(meta::NAME))?;
    let meta = parse_meta(folder, step, meta)?;
    let model = content.model.ok_or_else(|| missing(MODEL))?.into_tensors(&options.read)?;
    let optimizer = match (content.optimizer, content.json.remove(OPTIMIZER_JSON)) {
        (None, None) => None,
        (Some(_), None) => return Err(ErrorKind::OptimizerPair { missing: OPTIMIZER_JSON }.at(folder)),
        (None, Some(_)) => return Err(ErrorKind::OptimizerPair { missing: OPTIMIZER_TENSORS }.at(folder)),
        (Some(tensors), Some(json)) => {
            let json = String::from_utf8(json).map_err(|_| ErrorKind::BadJson { problem: "not UTF-8" });
            Some((tensors.into_tensors(&options.read)?, json.in_file(&folder.join(OPTIMIZER_JSON))?))
        }
    };
    let files = digests.into_iter().map(|(name, digest)| CheckpointFile {
        role: FileRole::of(&name),
        sha256: digest.as_ref().map(|digest| base16ct::lower::encode_string(digest)),
        name,
    });
    let files = files.collect();
    Ok(Checkpoint { path: folder.to_path_buf(), files, verified: manifest.is_some(), meta, model, optimizer })
}

fn read_manifest(folder: &Path, verification: Verification) -> Result<Option<Manifest>, Error> {
    let path = folder.join(manifest::NAME);
    match (durable_file::read(&path, manifest::MAX_LEN).map_err(Error::from), verification) {
        (Ok(bytes), _) => manifest::parse(&bytes).map(Some).in_file(&path),
        (Err(error), Verification::Required) if error.is_not_found() => {
            Err(ErrorKind::MissingManifest.at(folder))
        }
        (Err(error), Verification::ManifestOptional) if error.is_not_found() => Ok(None),
        (Err(error), _) => Err(error),
    }
}

/// The files of a checkpoint with the digests they should have: what is listed exists and what exists is
/// listed.
fn list(folder: &Path, manifest: Option<&Manifest>) -> Result<BTreeMap<String, Option<Digest>>, Error> {
    let failed = |error| ErrorKind::Io { operation: "list", error }.at(folder);
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        // A name that is not UTF-8 is in no manifest: its replacement characters are for the message.
        present.insert(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
    }
    present.remove(manifest::NAME);
    let Some(manifest) = manifest else {
        return Ok(present.into_iter().map(|name| (name, None)).collect());
    };
    let required = [MODEL, meta::NAME];
    let missing = manifest.keys().map(String::as_str).chain(required).find(|name| !present.contains(*name));
    if let Some(file) = missing {
        return Err(ErrorKind::MissingFile { file: file.to_owned() }.at(folder));
    }
    if let Some(file) = present.into_iter().find(|name| !manifest.contains_key(name)) {
        return Err(ErrorKind::UnlistedFile { file }.at(folder));
    }
    Ok(manifest.iter().map(|(name, digest)| (name.clone(), Some(*digest))).collect())
}

/// Files that have the right digest, not yet interpreted.
struct Content<'a> {
    folder: &'a Path,
    options: &'a LoadOptions,
    model: Option<Hashed>,
    optimizer: Option<Hashed>,
    json: BTreeMap<&'static str, Vec<u8>>,
}

impl Content<'_> {
    /// Opens a file, compares its digest if there is one, and keeps what will be needed of it.
    fn take(&mut self, name: &str, expected: Option<Digest>) -> Result<(), Error> {
        let path = self.folder.join(name);
        let mismatch = || ErrorKind::ChecksumMismatch { file: name.to_owned() }.at(&path);
        match FileRole::of(name) {
            role @ (FileRole::Model | FileRole::OptimizerTensors) => {
                let hashed = Hashed::open(&path, expected, &self.options.read)?.ok_or_else(mismatch)?;
                let slot = if role == FileRole::Model { &mut self.model } else { &mut self.optimizer };
                *slot = Some(hashed);
            }
            role @ (FileRole::Meta | FileRole::OptimizerState) => {
                let (name, max_len) = match role {
                    FileRole::Meta => (meta::NAME, meta::MAX_LEN),
                    _ => (OPTIMIZER_JSON, MAX_OPTIMIZER_JSON),
                };
                let bytes = durable_file::read(&path, max_len)?;
                if expected.is_some_and(|expected| seal::digest(&bytes) != expected) {
                    return Err(mismatch());
                }
                self.json.insert(name, bytes);
            }
            FileRole::IgnoredPickle | FileRole::Other => {
                let Some(expected) = expected else {
                    return Ok(());
                };
                if seal::digest_file(&PositionedFile::open(&path)?)? != expected {
                    return Err(mismatch());
                }
            }
        }
        Ok(())
    }
}
