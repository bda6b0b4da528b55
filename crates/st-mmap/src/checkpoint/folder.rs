//! One checkpoint: its files, how they are written, and how they are verified.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use durable_file::StagedDir;
use st_core::{Header, ReadOptions, TensorView, WriteOptions};

use super::manifest::{self, Digest, Manifest};
use super::meta::{self, Meta};
use super::seal::{self, SealedTensors, Unread};
use super::{CheckpointData, LoadOptions, Verification};
use crate::arena::{Arena, LoadedSafeTensors};
use crate::error::{Error, ErrorKind, InFile};
use crate::file::SafeTensorsFile;
use crate::positioned::PositionedFile;
use crate::save::{lay_out, write_tensors};

const MODEL: &str = "model.safetensors";
const OPTIMIZER_TENSORS: &str = "optimizer.safetensors";
const OPTIMIZER_JSON: &str = "optimizer.json";

/// Longest optimizer state that is read and written.
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
    /// The other tensor files, by name.
    others: BTreeMap<String, SealedTensors>,
    optimizer_json: Option<String>,
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
    /// Tensors of a part that `meta.json` names.
    Part,
    /// Step, metrics, class names.
    Meta,
    /// A pickle. Verified like every file, never opened as one: that would run code.
    IgnoredPickle,
    /// Anything else.
    Other,
}

impl FileRole {
    fn of(name: &str, parts: &[String]) -> Self {
        let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
        let is_part =
            || name.strip_suffix(meta::TENSORS).is_some_and(|name| parts.iter().any(|part| part == name));
        match (name, ending) {
            (MODEL, _) => Self::Model,
            (OPTIMIZER_TENSORS, _) => Self::OptimizerTensors,
            (OPTIMIZER_JSON, _) => Self::OptimizerState,
            (meta::NAME, _) => Self::Meta,
            (_, Some("pkl" | "pickle")) => Self::IgnoredPickle,
            _ if is_part() => Self::Part,
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
            Self::Part => "part",
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
        self.others.get(OPTIMIZER_TENSORS).map(SealedTensors::file)
    }

    /// The rest of the optimizer state: the JSON text that was saved.
    #[must_use]
    pub fn optimizer_json(&self) -> Option<&str> {
        self.optimizer_json.as_deref()
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
        self.load_file(OPTIMIZER_TENSORS, arena)
    }

    /// Tensors of a part; [`Meta::parts`] has the names.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&SafeTensorsFile> {
        self.others.get(&part_file(name)).map(SealedTensors::file)
    }

    /// Loads the tensors of a part as [`load_model`](Self::load_model) loads the weights; `None` if there is no such part.
    ///
    /// # Errors
    ///
    /// Those of [`load_model`](Self::load_model).
    pub fn load_part<'arena>(
        &self,
        name: &str,
        arena: &'arena mut Arena,
    ) -> Result<Option<LoadedSafeTensors<'arena>>, Error> {
        self.load_file(&part_file(name), arena)
    }

    fn load_file<'arena>(
        &self,
        file: &str,
        arena: &'arena mut Arena,
    ) -> Result<Option<LoadedSafeTensors<'arena>>, Error> {
        self.others.get(file).map(|tensors| tensors.load(file, arena)).transpose()
    }
}

fn part_file(name: &str) -> String {
    format!("{name}{}", meta::TENSORS)
}

/// Writes a checkpoint beside `target` and puts it in place.
pub(super) fn write(target: &Path, data: &CheckpointData<'_>) -> Result<(), Error> {
    let meta = meta::render(data);
    check_len(meta::NAME, &meta, meta::MAX_LEN)?;
    if let Some(optimizer) = &data.optimizer {
        check_len(OPTIMIZER_JSON, optimizer.json, MAX_OPTIMIZER_JSON)?;
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(optimizer.json);
        parsed.map_err(|_| ErrorKind::BadJson { problem: "the optimizer state is not a JSON value" })?;
    }
    for (idx, part) in data.parts.iter().enumerate() {
        let is_taken = data.parts.iter().take(idx).any(|earlier| earlier.name == part.name);
        if is_taken || !meta::is_part(part.name) {
            return Err(ErrorKind::BadPart { name: part.name.to_owned() }.into());
        }
    }
    let staged = StagedDir::create(target)?;
    let folder = staged.path();
    let mut manifest = Manifest::new();
    let digest = create_tensors(folder, MODEL, data.model, data.model_metadata.as_ref())?;
    manifest.insert(MODEL.to_owned(), digest);
    if let Some(optimizer) = &data.optimizer {
        let digest =
            create_tensors(folder, OPTIMIZER_TENSORS, optimizer.tensors, optimizer.metadata.as_ref())?;
        manifest.insert(OPTIMIZER_TENSORS.to_owned(), digest);
        manifest.insert(OPTIMIZER_JSON.to_owned(), create_text(folder, OPTIMIZER_JSON, optimizer.json)?);
    }
    for part in data.parts {
        let name = part_file(part.name);
        let digest = create_tensors(folder, &name, part.tensors, part.metadata.as_ref())?;
        manifest.insert(name, digest);
    }
    manifest.insert(meta::NAME.to_owned(), create_text(folder, meta::NAME, &meta)?);
    let manifest = manifest::render(&manifest);
    check_len(manifest::NAME, &manifest, manifest::MAX_LEN)?;
    create_text(folder, manifest::NAME, &manifest)?;
    Ok(staged.commit()?)
}

fn create_tensors(
    folder: &Path,
    name: &str,
    tensors: &[(&str, TensorView<'_>)],
    metadata: Option<&BTreeMap<String, String>>,
) -> Result<Digest, Error> {
    let path = folder.join(name);
    let options = WriteOptions { metadata: metadata.cloned(), ..WriteOptions::default() };
    let layout = lay_out(tensors, &options).in_file(&path)?;
    // What this library would not read is not to be found out when the training has to go on.
    Header::from_prefix(layout.header_bytes(), layout.file_len(), &ReadOptions::STRICT).in_file(&path)?;
    seal::create(&path, |out| write_tensors(&layout, tensors, out))
}

/// Refuses what [`files`] would refuse.
fn check_len(file: &'static str, text: &str, max: u64) -> Result<(), ErrorKind> {
    let len = text.len() as u64;
    if len > max { Err(ErrorKind::TooLong { file, len, max }) } else { Ok(()) }
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

/// The files of a checkpoint: those with tensors are open, all others have been verified.
pub(super) struct Files {
    pub(super) meta: Meta,
    pub(super) optimizer_json: Option<String>,
    /// By file name: the model, the optimizer, the parts.
    pub(super) tensors: BTreeMap<String, Unread>,
    pub(super) list: Vec<CheckpointFile>,
    pub(super) has_manifest: bool,
}

/// Opens the checkpoint in `folder`: the digest of each file first, then its content.
pub(super) fn read(folder: &Path, step: u64, options: &LoadOptions) -> Result<Checkpoint, Error> {
    let Files { meta, optimizer_json, tensors, list, has_manifest } = files(folder, step, options)?;
    let hashed = tensors.into_iter().map(|(name, file)| Ok((file.hash(&name, &options.read)?, name)));
    let hashed = hashed.collect::<Result<Vec<_>, Error>>()?;
    let parsed = hashed.into_iter().map(|(hashed, name)| Ok((name, hashed.into_tensors(&options.read)?)));
    let mut others = parsed.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let model = others.remove(MODEL).ok_or_else(|| missing(folder, MODEL))?;
    let path = folder.to_path_buf();
    Ok(Checkpoint { path, files: list, verified: has_manifest, meta, model, others, optimizer_json })
}

/// Opens the files of a checkpoint.
pub(super) fn files(folder: &Path, step: u64, options: &LoadOptions) -> Result<Files, Error> {
    require_folder(folder, step)?;
    let manifest = read_manifest(folder, options.verification)?;
    let digests = list(folder, manifest.as_ref())?;
    let json = |name: &str, max_len| {
        digests.get(name).map(|digest| read_json(folder, name, max_len, *digest)).transpose()
    };
    // First: it says which files are parts.
    let meta = json(meta::NAME, meta::MAX_LEN)?.ok_or_else(|| missing(folder, meta::NAME))?;
    let meta = parse_meta(folder, step, meta)?;
    let optimizer_json = json(OPTIMIZER_JSON, MAX_OPTIMIZER_JSON)?;

    let mut tensors = BTreeMap::new();
    let mut listed = Vec::with_capacity(digests.len());
    for (name, digest) in &digests {
        let (path, role) = (folder.join(name), FileRole::of(name, meta.parts()));
        match role {
            FileRole::Model | FileRole::OptimizerTensors | FileRole::Part => {
                tensors.insert(name.clone(), Unread::open(&path, *digest)?);
            }
            FileRole::Meta | FileRole::OptimizerState => {}
            FileRole::IgnoredPickle | FileRole::Other => {
                if let Some(expected) = digest
                    && seal::digest_file(&PositionedFile::open(&path)?)? != *expected
                {
                    return Err(ErrorKind::ChecksumMismatch { file: name.clone() }.at(&path));
                }
            }
        }
        let sha256 = digest.as_ref().map(|digest| base16ct::lower::encode_string(digest));
        listed.push(CheckpointFile { name: name.clone(), role, sha256 });
    }
    for name in core::iter::once(MODEL.to_owned()).chain(meta.parts().iter().map(|part| part_file(part))) {
        if !tensors.contains_key(&name) {
            return Err(missing(folder, &name));
        }
    }
    let optimizer_json = match (tensors.contains_key(OPTIMIZER_TENSORS), optimizer_json) {
        (false, None) => None,
        (true, None) => return Err(ErrorKind::OptimizerPair { missing: OPTIMIZER_JSON }.at(folder)),
        (false, Some(_)) => return Err(ErrorKind::OptimizerPair { missing: OPTIMIZER_TENSORS }.at(folder)),
        (true, Some(json)) => {
            let json = String::from_utf8(json).map_err(|_| ErrorKind::BadJson { problem: "not UTF-8" });
            Some(json.in_file(&folder.join(OPTIMIZER_JSON))?)
        }
    };
    Ok(Files { meta, optimizer_json, tensors, list: listed, has_manifest: manifest.is_some() })
}

fn missing(folder: &Path, file: &str) -> Error {
    ErrorKind::MissingFile { file: file.to_owned() }.at(folder)
}

/// Reads a file of JSON and compares its digest if one is `expected`.
fn read_json(folder: &Path, name: &str, max_len: u64, expected: Option<Digest>) -> Result<Vec<u8>, Error> {
    let path = folder.join(name);
    let bytes = durable_file::read(&path, max_len)?;
    match expected {
        Some(expected) if seal::digest(&bytes) != expected => {
            Err(ErrorKind::ChecksumMismatch { file: name.to_owned() }.at(&path))
        }
        _ => Ok(bytes),
    }
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
    let absent = manifest.keys().map(String::as_str).chain(required).find(|name| !present.contains(*name));
    if let Some(file) = absent {
        return Err(missing(folder, file));
    }
    if let Some(file) = present.into_iter().find(|name| !manifest.contains_key(name)) {
        return Err(ErrorKind::UnlistedFile { file }.at(folder));
    }
    Ok(manifest.iter().map(|(name, digest)| (name.clone(), Some(*digest))).collect())
}
