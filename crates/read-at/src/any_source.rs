//! Open files, and sources of other kinds.

use alloc::sync::Arc;
use core::fmt;
use core::ops::Range;
use std::fs::File;

use crate::error::Error;
use crate::file_source::FileSource;
use crate::source::ReadAt;

/// A source that threads can share.
pub trait SharedSource: ReadAt + fmt::Debug + Send + Sync {}

impl<R: ReadAt + fmt::Debug + Send + Sync + ?Sized> SharedSource for R {}

/// An open file, or bytes elsewhere: for readers that map files where they can.
#[derive(Debug)]
pub enum AnySource {
    /// An open file.
    File(FileSource),
    /// Bytes elsewhere.
    Shared(Arc<dyn SharedSource>),
}

impl AnySource {
    /// The file, if it is one.
    #[must_use]
    pub const fn file(&self) -> Option<&File> {
        match self {
            Self::File(source) => Some(source.file()),
            Self::Shared(_) => None,
        }
    }
}

impl From<FileSource> for AnySource {
    fn from(source: FileSource) -> Self {
        Self::File(source)
    }
}

impl ReadAt for AnySource {
    fn total_len(&self) -> u64 {
        match self {
            Self::File(source) => source.total_len(),
            Self::Shared(source) => source.total_len(),
        }
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::File(source) => source.read_exact_at(offset, out),
            Self::Shared(source) => source.read_exact_at(offset, out),
        }
    }

    fn will_read(&self, range: Range<u64>) {
        match self {
            Self::File(_) => {}
            Self::Shared(source) => source.will_read(range),
        }
    }

    fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Self::File(_) => None,
            Self::Shared(source) => source.in_memory(),
        }
    }

    fn as_file(&self) -> Option<&FileSource> {
        match self {
            Self::File(source) => Some(source),
            Self::Shared(source) => source.as_file(),
        }
    }
}
