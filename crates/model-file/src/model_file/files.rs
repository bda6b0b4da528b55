//! Files, folders and sets of shards by their paths.

use alloc::boxed::Box;
use alloc::sync::Arc;
use std::path::Path;

use read_at::{AnySource, FileSource, SharedSource};
use st_mmap::{SafeTensorsFile, ShardedSafeTensors, Shards};

use super::{Contents, ModelFile, NOTHING_BESIDE};
use crate::content::Content;
use crate::error::Error;
use crate::kind::{FileKind, ModelFormat};
use crate::options::OpenOptions;
use crate::safetensors::SafeTensors;

impl ModelFile<AnySource> {
    /// Opens a file, a folder with a model, or an index of shards.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read); [`File`](crate::ErrorKind::File) and [`Files`](crate::ErrorKind::Files) for what cannot be opened. A set whose index and
    /// shards disagree is opened: [`shard_problems`](Self::shard_problems) lists the differences.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions<'_>) -> Result<Self, Error> {
        let path = path.as_ref();
        #[cfg(feature = "foreign")]
        let inside = Self::foreign_in(path);
        #[cfg(feature = "foreign")]
        let path = inside.as_deref().unwrap_or(path);
        if path.is_dir() {
            return Self::open_set(path, options);
        }
        let regular = durable_file::open_regular(path, u64::MAX)?;
        let len = regular.len();
        let source = FileSource::with_len(regular.into_file(), len);
        let kind = FileKind::of_source(&source)?;
        Self::from_file(source, kind, path, options)
    }

    /// Opens a file that was opened before and whose kind was detected.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn from_file(
        source: FileSource,
        kind: FileKind,
        path: &Path,
        options: &OpenOptions<'_>,
    ) -> Result<Self, Error> {
        if kind.expected() == ModelFormat::SafeTensors {
            if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json")) {
                return Self::open_set(path, options);
            }
            #[cfg(feature = "foreign")]
            options.check_object(kind)?;
            let read = &options.read_options().safetensors;
            let file = SafeTensorsFile::from_source(source, path, read)?;
            return Ok(Self::of_files(SafeTensors::File(file)));
        }
        #[cfg(feature = "foreign")]
        let beside = &foreign_tensors::Folder::of_file(path);
        #[cfg(not(feature = "foreign"))]
        let beside = &();
        Self::of_source(source.into(), kind, beside, options)
    }

    /// Opens a file that is elsewhere and whose kind was detected. `name` names it in errors; if it ends in `.json`, as an index of
    /// shards does, `shards` opens those. Other files beside it are not read.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn from_shared(
        source: Arc<dyn SharedSource>,
        kind: FileKind,
        name: &Path,
        shards: Box<dyn Shards>,
        options: &OpenOptions<'_>,
    ) -> Result<Self, Error> {
        let source = AnySource::Shared(source);
        if kind.expected() != ModelFormat::SafeTensors {
            return Self::of_source(source, kind, NOTHING_BESIDE, options);
        }
        #[cfg(feature = "foreign")]
        options.check_object(kind)?;
        let read = &options.read_options().safetensors;
        Ok(Self::of_files(match name.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("json") => {
                SafeTensors::Sharded(ShardedSafeTensors::from_index(&source, name, shards, read)?)
            }
            _ => SafeTensors::File(SafeTensorsFile::from_source(source, name, read)?),
        }))
    }

    /// The file of another program to read in a folder without safetensors: of those that Hugging Face's libraries and TensorFlow name so,
    /// the first.
    #[cfg(feature = "foreign")]
    #[must_use]
    pub fn foreign_in(folder: &Path) -> Option<std::path::PathBuf> {
        const NAMES: [&str; 6] = [
            "pytorch_model.bin.index.json",
            "pytorch_model.bin",
            "saved_model.pb",
            "flax_model.msgpack",
            "tf_model.h5",
            "model.onnx",
        ];
        if !folder.is_dir() {
            return None;
        }
        let is_safetensors = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            name.to_str().is_some_and(|name| {
                name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
            })
        };
        if std::fs::read_dir(folder).ok()?.flatten().any(is_safetensors) {
            return None;
        }
        NAMES.iter().map(|name| folder.join(name)).find(|file| file.is_file())
    }

    /// Opens a folder or an index of shards.
    fn open_set(path: &Path, options: &OpenOptions<'_>) -> Result<Self, Error> {
        #[cfg(feature = "foreign")]
        options.check_object(FileKind::Model(ModelFormat::SafeTensors))?;
        let read = &options.read_options().safetensors;
        let set = ShardedSafeTensors::open_with(path, read)?;
        Ok(Self::of_files(match set.index() {
            Some(_) => SafeTensors::Sharded(set),
            None => SafeTensors::File(SafeTensorsFile::open_with(set.path(), read)?),
        }))
    }

    /// Whether compat reading accepts a file that was refused with these options. A file that is refused for its header is not read
    /// further: it may be large. The checksum of tensors is not compared.
    #[must_use]
    pub fn is_accepted_by_compat(path: &Path, options: &OpenOptions<'_>) -> bool {
        let of_header = options.clone().without_access();
        match Self::open(path, &of_header) {
            Ok(_) => Self::open(path, &options.compat()).is_ok_and(|file| file.decode().is_ok()),
            Err(_) => Self::open(path, &of_header.compat()).is_ok(),
        }
    }

    fn of_files(files: SafeTensors) -> Self {
        let contents = Contents::SafeTensors(Box::new(files));
        Self { content: Content::Files, contents, is_sealed: false }
    }
}
