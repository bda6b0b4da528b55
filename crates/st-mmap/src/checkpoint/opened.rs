//! A checkpoint whose tensors are read and verified in one pass.

use alloc::collections::BTreeMap;
use std::path::{Path, PathBuf};

use st_core::{Header, ReadOptions};

use super::folder::{self, CheckpointFile, Files};
use super::seal::Unread;
use super::{LoadOptions, Meta};
use crate::error::{Error, ErrorKind, InFile};

/// A checkpoint that was opened: its manifest is valid and complete, and all files but those with tensors have been verified.
///
/// A tensor file is verified when it is [read](Self::read_file), each through the handle that was opened with the checkpoint.
///
/// # Examples
///
/// ```
/// use st_core::{Dtype, TensorView};
/// use st_mmap::{CheckpointData, Checkpoints, LoadOptions};
///
/// # let folder = std::env::temp_dir().join(format!("st-mmap-doc-opened-{}", std::process::id()));
/// let checkpoints = Checkpoints::new(&folder);
/// let model = [("w", TensorView::new(Dtype::U8, &[3], &[1, 2, 3])?)];
/// checkpoints.save(&CheckpointData { step: 7, model: &model, ..CheckpointData::default() })?;
///
/// let opened = checkpoints.open(7, &LoadOptions::default())?;
/// for (name, len) in opened.tensor_files() {
///     let mut bytes = vec![0; len as usize];
///     let header = opened.read_file(name, &mut bytes)?; // Refused if its digest is another.
///     assert_eq!(header.tensor("w").expect("saved above").shape(), [3]);
/// }
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenedCheckpoint {
    path: PathBuf,
    meta: Meta,
    optimizer_json: Option<String>,
    files: Vec<CheckpointFile>,
    has_manifest: bool,
    tensors: BTreeMap<String, Unread>,
    options: ReadOptions,
}

/// Opens the checkpoint in `folder`.
pub(super) fn open(folder: &Path, step: u64, options: &LoadOptions) -> Result<OpenedCheckpoint, Error> {
    let Files { meta, optimizer_json, tensors, list, has_manifest } = folder::files(folder, step, options)?;
    Ok(OpenedCheckpoint {
        path: folder.to_path_buf(),
        meta,
        optimizer_json,
        files: list,
        has_manifest,
        tensors,
        options: options.read,
    })
}

impl OpenedCheckpoint {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Step, metrics and class names.
    #[must_use]
    pub const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The optimizer state besides its tensors: the JSON text that was saved.
    #[must_use]
    pub fn optimizer_json(&self) -> Option<&str> {
        self.optimizer_json.as_deref()
    }

    /// All files but the manifest, sorted by name.
    #[must_use]
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// Whether there is a manifest. Without one, which only [`Verification::ManifestOptional`](crate::Verification) allows, nothing is
    /// verified.
    #[must_use]
    pub const fn has_manifest(&self) -> bool {
        self.has_manifest
    }

    /// Names and lengths of the tensor files: `model.safetensors`, that of the optimizer if there is one, those of parts.
    pub fn tensor_files(&self) -> impl ExactSizeIterator<Item = (&str, u64)> {
        self.tensors.iter().map(|(name, file)| (name.as_str(), file.len()))
    }

    /// Reads a tensor file into a buffer of exactly its length, compares the digest of what was read, and returns its table of tensors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ChecksumMismatch`]; [`ErrorKind::Format`] if the file was invalid when it was saved; [`ErrorKind::MissingFile`] if there is no such tensor file; [`ErrorKind::BufferLength`],
    /// [`ErrorKind::Shrunk`] or [`ErrorKind::Io`]. After an error the content of the buffer is unspecified.
    pub fn read_file(&self, name: &str, out: &mut [u8]) -> Result<Header, Error> {
        let missing = || ErrorKind::MissingFile { file: name.to_owned() }.at(&self.path);
        self.tensors.get(name).ok_or_else(missing)?.read(name, out)?;
        Header::from_bytes(out, &self.options).in_file(&self.path.join(name))
    }
}
