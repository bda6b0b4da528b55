//! A sharded model, with an index that maps tensors to files.

use alloc::collections::BTreeMap;
use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use read_at::{AnySource, ReadAt};
use st_core::{ReadOptions, ShardIndex, ShardProblem, SlicePlan, TensorView};

use crate::error::{Error, ErrorKind, InFile, not_found};
use crate::file::SafeTensorsFile;
use crate::mapped::MappedSafeTensors;

/// File name of a model in one piece.
pub(crate) const SINGLE_NAME: &str = "model.safetensors";

/// File name of the index of a sharded model.
pub(crate) const INDEX_NAME: &str = "model.safetensors.index.json";

/// Ending of every shard index.
pub(crate) const INDEX_ENDING: &str = ".index.json";

/// Longest index that is read: what [`ShardIndex::from_json`] accepts.
const MAX_INDEX_LEN: u64 = 100_000_000;

/// A set of safetensors files that together hold one model.
///
/// Only the index is read on opening. A shard is opened when a tensor of it is first asked for, and its
/// header is then compared with the index in both directions. [`tensor`](Self::tensor) maps the shard, with
/// the consequences written at [`MappedSafeTensors`]; [`read_tensor`](Self::read_tensor) and
/// [`read_slice`](Self::read_slice) never map.
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, TensorView, WriteOptions};
/// use st_mmap::ShardedSafeTensors;
///
/// # let folder = std::env::temp_dir().join(format!("st-mmap-doc-sharded-{}", std::process::id()));
/// let data = [7; 100];
/// let view = TensorView::new(Dtype::U8, &[100], &data)?;
/// let tensors = [("a", view), ("b", view), ("c", view)];
/// st_mmap::write_sharded(&folder, &tensors, 200, &WriteOptions::default())?;
///
/// let model = ShardedSafeTensors::open(&folder)?;
/// assert_eq!(model.shard_names().count(), 2);
/// assert_eq!(model.tensor("c")?.data(), data); // Maps the second shard only.
/// assert!(model.check()?.is_empty());
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedSafeTensors {
    /// The index, or the only file.
    path: PathBuf,
    folder: PathBuf,
    options: ReadOptions,
    set: Set,
    /// What opens the shards of a set that is no folder.
    shards: Option<Box<dyn Shards>>,
}

/// Opens the shards of a set that is no folder of this machine.
pub trait Shards: fmt::Debug + Send + Sync {
    /// The shard of this name in the index: a relative path without `..`.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    fn open(&self, name: &str) -> Result<AnySource, read_at::Error>;
}

#[derive(Debug)]
enum Set {
    Indexed { index: ShardIndex, shards: BTreeMap<String, Shard> },
    Single(Shard),
}

/// A shard at its stages; each is reached once and kept.
#[derive(Debug, Default)]
struct Shard {
    /// Tensors the index assigns to it.
    listed: usize,
    opened: OnceLock<SafeTensorsFile>,
    verified: OnceLock<()>,
    mapped: OnceLock<MappedSafeTensors>,
}

impl ShardedSafeTensors {
    /// Opens a set by the path of its index, by its folder, or as a set of one by the path of a safetensors
    /// file.
    ///
    /// A folder must hold exactly one `*.index.json`, or none and a `model.safetensors`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::File`] if something cannot be opened, [`ErrorKind::NoModel`] or
    /// [`ErrorKind::SeveralIndexes`] for a folder without a clear choice, [`ErrorKind::Format`] if the index
    /// (or the only file) is not valid, which includes a shard path that leaves the folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path, &ReadOptions::STRICT)
    }

    /// [`open`](Self::open) with other rules for the headers of the shards.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Self, Error> {
        let path = path.as_ref();
        let path = if path.is_dir() { choose(path)? } else { path.to_path_buf() };
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let is_index = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        let set = if is_index { Self::read_index(&path)? } else { Set::Single(Shard::default()) };
        let this = Self { path, folder, options: *options, set, shards: None };
        if let Set::Single(shard) = &this.set {
            this.opened("", shard)?;
        }
        Ok(this)
    }

    /// Opens a set whose files are elsewhere, by its index; `path` names the index in errors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if the index is not valid, [`ErrorKind::Io`] if it cannot be read.
    pub fn from_index(
        index: &dyn ReadAt,
        path: &Path,
        shards: Box<dyn Shards>,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        // Of a longer one enough to be refused.
        let mut text = vec![0; index.total_len().min(MAX_INDEX_LEN + 1) as usize];
        let read = index.read_exact_at(0, &mut text);
        read.map_err(|error| ErrorKind::Io { operation: "read", error: error.into() }.at(path))?;
        let set = Self::set_of_index(&text, path)?;
        Ok(Self { path: path.to_path_buf(), folder, options: *options, set, shards: Some(shards) })
    }

    fn read_index(path: &Path) -> Result<Set, Error> {
        Self::set_of_index(&durable_file::read(path, MAX_INDEX_LEN)?, path)
    }

    fn set_of_index(text: &[u8], path: &Path) -> Result<Set, Error> {
        let index = ShardIndex::from_json(text).in_file(path)?;
        let mut shards: BTreeMap<String, Shard> = BTreeMap::new();
        for (_, shard) in index.weight_map() {
            if let Some(known) = shards.get_mut(shard) {
                known.listed += 1;
            } else {
                shards.insert(shard.to_owned(), Shard { listed: 1, ..Shard::default() });
            }
        }
        Ok(Set::Indexed { index, shards })
    }

    /// The index file, or the only file of a set of one.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The index; `None` for a set of one.
    #[must_use]
    pub fn index(&self) -> Option<&ShardIndex> {
        match &self.set {
            Set::Indexed { index, .. } => Some(index),
            Set::Single(_) => None,
        }
    }

    /// Names of all tensors: in the order of the index, or of the file in a set of one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let single = match &self.set {
            Set::Single(shard) => shard.opened.get(),
            Set::Indexed { .. } => None,
        };
        let listed = self.index().into_iter().flat_map(|index| index.weight_map().map(|(tensor, _)| tensor));
        listed.chain(single.into_iter().flat_map(|file| file.header().iter().map(|info| info.name())))
    }

    /// File names of the shards as the index gives them, sorted; none for a set of one.
    pub fn shard_names(&self) -> impl Iterator<Item = &str> {
        let shards = match &self.set {
            Set::Indexed { shards, .. } => Some(shards),
            Set::Single(_) => None,
        };
        shards.into_iter().flat_map(|shards| shards.keys().map(String::as_str))
    }

    /// The file that holds a tensor, opened and compared with the index. Never maps.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if no shard has such a tensor or the shard's header is invalid,
    /// [`ErrorKind::File`] if the shard cannot be opened, [`ErrorKind::Shard`] if it and the index disagree.
    pub fn file_of(&self, tensor: &str) -> Result<&SafeTensorsFile, Error> {
        let (name, shard) = self.locate(tensor)?;
        self.verified(name, shard)
    }

    /// A tensor by name. Maps its shard.
    ///
    /// # Errors
    ///
    /// Those of [`file_of`](Self::file_of), and [`ErrorKind::Io`] if the shard cannot be mapped.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, Error> {
        let (shard_name, shard) = self.locate(name)?;
        if let Some(mapped) = shard.mapped.get() {
            return mapped.tensor(name);
        }
        let mapped = self.verified(shard_name, shard)?.map()?;
        shard.mapped.get_or_init(|| mapped).tensor(name)
    }

    /// Reads a tensor into a buffer of exactly its length. Never maps.
    ///
    /// # Errors
    ///
    /// Those of [`file_of`](Self::file_of) and of [`SafeTensorsFile::read_tensor`].
    pub fn read_tensor(&self, name: &str, out: &mut [u8]) -> Result<(), Error> {
        self.file_of(name)?.read_tensor(name, out)
    }

    /// Reads a slice of a tensor. Never maps.
    ///
    /// # Errors
    ///
    /// Those of [`file_of`](Self::file_of) and of [`SafeTensorsFile::read_slice`].
    pub fn read_slice(&self, name: &str, plan: &SlicePlan, out: &mut [u8]) -> Result<(), Error> {
        self.file_of(name)?.read_slice(name, plan, out)
    }

    /// Opens every shard and lists all disagreements between them and the index: missing shards, ghost tensors,
    /// unlisted tensors and a wrong total size. Empty means that the set is whole.
    ///
    /// # Errors
    ///
    /// Those of opening a shard that exists: it cannot be compared when its header is invalid.
    pub fn check(&self) -> Result<Vec<ShardProblem>, Error> {
        let Set::Indexed { index, shards } = &self.set else {
            return Ok(Vec::new());
        };
        let mut present = BTreeMap::new();
        for (name, shard) in shards {
            match self.opened(name, shard) {
                Ok(file) => drop(present.insert(name.as_str(), file.header())),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(index.check(|name| present.get(name).copied()))
    }

    fn locate(&self, tensor: &str) -> Result<(&str, &Shard), Error> {
        match &self.set {
            Set::Single(shard) => Ok(("", shard)),
            Set::Indexed { index, shards } => index
                .shard_of(tensor)
                .and_then(|name| shards.get_key_value(name))
                .map(|(name, shard)| (name.as_str(), shard))
                .ok_or_else(|| not_found(tensor).in_file(&self.path)),
        }
    }

    /// Opened, not yet compared with the index. Two threads may open it at once; one result is kept.
    fn opened<'set>(&self, name: &str, shard: &'set Shard) -> Result<&'set SafeTensorsFile, Error> {
        if let Some(file) = shard.opened.get() {
            return Ok(file);
        }
        // `ShardIndex` has checked that the name stays below the folder; the only file of a set has none.
        let path = if name.is_empty() { self.path.clone() } else { self.folder.join(name) };
        let file = match &self.shards {
            None => SafeTensorsFile::open_with(path, &self.options)?,
            Some(shards) => {
                let source = shards
                    .open(name)
                    .map_err(|error| ErrorKind::Io { operation: "open", error: error.into() }.at(&path))?;
                SafeTensorsFile::from_source(source, &path, &self.options)?
            }
        };
        Ok(shard.opened.get_or_init(|| file))
    }

    fn verified<'set>(&self, name: &str, shard: &'set Shard) -> Result<&'set SafeTensorsFile, Error> {
        let file = self.opened(name, shard)?;
        if let (Set::Indexed { index, .. }, None) = (&self.set, shard.verified.get()) {
            compare(index, name, shard.listed, file)?;
            shard.verified.get_or_init(|| ());
        }
        Ok(file)
    }
}

/// Refuses a shard that lacks a tensor the index promises, or has one the index does not assign to it.
fn compare(index: &ShardIndex, shard: &str, listed: usize, file: &SafeTensorsFile) -> Result<(), Error> {
    let header = file.header();
    let unlisted = header.iter().map(|info| info.name()).find(|name| index.shard_of(name) != Some(shard));
    if let Some(tensor) = unlisted {
        let problem = ShardProblem::UnlistedTensor { tensor: tensor.into(), shard: shard.into() };
        return Err(ErrorKind::Shard { problem }.at(file.path()));
    }
    // Every tensor here is listed for this shard, so equal counts mean equal sets.
    if header.len() == listed {
        return Ok(());
    }
    let mut promised = index.weight_map().filter(|(_, name)| *name == shard).map(|(tensor, _)| tensor);
    match promised.find(|tensor| header.tensor(tensor).is_none()) {
        None => Ok(()),
        Some(tensor) => {
            let problem = ShardProblem::GhostTensor { tensor: tensor.into(), shard: shard.into() };
            Err(ErrorKind::Shard { problem }.at(file.path()))
        }
    }
}

/// The index of a folder, or its single model file.
fn choose(folder: &Path) -> Result<PathBuf, Error> {
    let list = |error| ErrorKind::Io { operation: "list folder", error }.at(folder);
    let mut indexes = Vec::new();
    for entry in fs::read_dir(folder).map_err(list)? {
        let name = entry.map_err(list)?.file_name();
        if name.as_encoded_bytes().ends_with(INDEX_ENDING.as_bytes()) {
            indexes.push(folder.join(name));
        }
    }
    let single = folder.join(SINGLE_NAME);
    match indexes.len() {
        0 if single.exists() => Ok(single),
        0 => Err(ErrorKind::NoModel.at(folder)),
        1 => Ok(indexes.remove(0)),
        count => Err(ErrorKind::SeveralIndexes { count }.at(folder)),
    }
}
