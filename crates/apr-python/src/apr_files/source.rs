//! The bytes of a file.

use alloc::sync::Arc;
use std::io;
use std::path::{Path, PathBuf};

use model_file::FileKind;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use read_at::{FileSource, ReadAt, SharedSource};

use super::refusal::Refusal;
use crate::buffer::{Buffer, Wanted};
use crate::foreign::Refused;
use crate::range_file::{Filename, Location};

/// A file, by its path or as the bytes in memory.
pub(crate) enum Source {
    File(PathBuf),
    /// The memory of a `bytes` object, which is immutable.
    Memory(Buffer),
    /// A copy of memory that could change between two looks at it.
    Copy(Vec<u8>),
    /// At a URL, or behind an object that reads ranges.
    Elsewhere {
        source: Arc<dyn SharedSource>,
        name: PathBuf,
        kind: FileKind,
    },
}

impl Source {
    /// str and os.PathLike are paths, everything with contiguous bytes is a file's content.
    pub(crate) fn here(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        // A memory-mapped array has both: it is its bytes.
        if !object.is_instance_of::<PyString>()
            && let Ok(buffer) = Buffer::of(object, Wanted::Bytes)
        {
            return Ok(match object.is_exact_instance_of::<PyBytes>() {
                true => Self::Memory(buffer),
                false => Self::Copy(buffer.bytes().to_vec()),
            });
        }
        object.extract().map(Self::File).map_err(|_| {
            let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!("a file is its path (str, os.PathLike) or its bytes, not {kind}"))
        })
    }

    /// The same, where a path may be a URL or one of `fs`.
    pub(crate) fn anywhere<'py>(
        object: &Bound<'py, PyAny>,
        fs: Option<&Bound<'py, PyAny>>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let path = match Self::here(object)? {
            Self::File(path) => path,
            memory => return Ok(memory),
        };
        Ok(match Location::of(object.py(), Filename::Path(path), fs, allow_http)? {
            Location::Path(path) => Self::File(path),
            Location::Ranges(file) => {
                let file = file.get();
                let (source, name) = (file.source(), file.path().to_path_buf());
                Self::Elsewhere { source, name, kind: file.kind() }
            }
        })
    }

    /// The path, or what a file elsewhere is called.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::Elsewhere { name: path, .. } => Some(path),
            Self::Memory(_) | Self::Copy(_) => None,
        }
    }

    /// The path of a file of this machine.
    pub(crate) fn local_path(&self) -> Option<&Path> {
        self.path().filter(|_| matches!(self, Self::File(_)))
    }

    /// The file, for a refusal that names its format.
    pub(crate) fn refused(&self) -> Option<Refused<'_>> {
        match self {
            Self::Elsewhere { name, kind, .. } => Some(Refused::Known(*kind, name)),
            _ => self.bytes().map(Refused::Memory).or(self.path().map(Refused::File)),
        }
    }

    /// The content, if it is in memory.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File(_) | Self::Elsewhere { .. } => None,
            Self::Memory(buffer) => Some(buffer.bytes()),
            Self::Copy(bytes) => Some(bytes),
        }
    }

    /// All bytes.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Refusal> {
        let source = self.open()?;
        let len = usize::try_from(source.total_len()).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| Refusal::Io(io::ErrorKind::OutOfMemory.into()))?;
        bytes.resize(len, 0);
        source.read_exact_at(0, &mut bytes).map_err(model_file::Error::from)?;
        Ok(bytes)
    }

    /// The bytes, to be read at any offset.
    pub(crate) fn open(&self) -> Result<Bytes<'_>, Refusal> {
        Ok(match self {
            Self::File(path) => Arc::new(open(path)?),
            Self::Elsewhere { source, .. } => Arc::new(Arc::clone(source)),
            Self::Memory(_) | Self::Copy(_) => Arc::new(self.bytes().unwrap_or_default()),
        })
    }
}

/// A file's bytes.
pub(super) type Bytes<'b> = Arc<dyn ReadAt + Send + Sync + 'b>;

/// An open regular file.
pub(crate) fn open(path: &Path) -> Result<FileSource, Refusal> {
    let regular = durable_file::open_regular(path, u64::MAX)?;
    let len = regular.len();
    Ok(FileSource::with_len(regular.into_file(), len))
}
