//! The bytes of a model: a file, or what is inside a sealed file.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;

use apr_sealed::{Error, ErrorKind, Part, SealedReader};
use read_at::FileSource;

use crate::error::Failure;

/// Where the bytes are.
#[derive(Debug)]
pub(crate) enum Stored {
    File {
        file: File,
        len: u64,
    },
    /// Each byte is decrypted and verified where it is read.
    Sealed(Box<SealedContent>),
}

impl Stored {
    /// Opens a regular file.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or is none.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let regular = durable_file::open_regular(path, u64::MAX)?;
        Ok(Self::File { len: regular.len(), file: regular.into_file() })
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::File { len, .. } => *len,
            Self::Sealed(content) => content.reader.content_len(),
        }
    }

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is shorter; if what is sealed was changed.
    pub(super) fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::File { file, .. } => {
                let mut file = file;
                file.seek(SeekFrom::Start(offset))?;
                Ok(file.read_exact(out)?)
            }
            Self::Sealed(content) => content.read_at(offset, out),
        }
    }

    /// The same; a failure says that `operation` on `label` failed.
    ///
    /// # Errors
    ///
    /// Those of [`read_at`](Self::read_at).
    pub(super) fn read(
        &self,
        offset: u64,
        out: &mut [u8],
        (operation, label): (&str, &Path),
    ) -> Result<(), Failure> {
        self.read_at(offset, out).map_err(|error| match error.kind() {
            ErrorKind::Io(error) => Failure::io(operation, label, error),
            _ => Failure::from(error).in_file(label),
        })
    }

    /// All bytes.
    ///
    /// # Errors
    ///
    /// Those of [`read_at`](Self::read_at), and if there is no memory for them.
    pub(super) fn read_all(&self) -> Result<Vec<u8>, Error> {
        let (len, mut bytes) = (self.len(), Vec::new());
        let room = usize::try_from(len).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
        bytes.resize(room.ok_or(ErrorKind::OutOfMemory { bytes: len })?, 0);
        self.read_at(0, &mut bytes)?;
        Ok(bytes)
    }

    /// From the first byte to the last.
    pub(super) fn reader(&self) -> impl Read {
        Reader { stored: self, at: 0 }
    }
}

struct Reader<'s> {
    stored: &'s Stored,
    at: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.stored.len() - self.at).unwrap_or(usize::MAX);
        let (now, _) = out.split_at_mut(left.min(out.len()));
        self.stored.read_at(self.at, now).map_err(io::Error::other)?;
        self.at += now.len() as u64;
        Ok(now.len())
    }
}

/// The original of a sealed file, any range of which can be read.
#[derive(Debug)]
pub(crate) struct SealedContent {
    reader: SealedReader<'static, FileSource>,
    /// Where each part begins in the original.
    starts: Vec<u64>,
}

impl SealedContent {
    pub(crate) fn new(reader: SealedReader<'static, FileSource>) -> Self {
        let starts = reader.parts().iter().scan(0, |end, part| {
            let start = *end;
            *end += part.len();
            Some(start)
        });
        Self { starts: starts.collect(), reader }
    }

    fn read_at(&self, offset: u64, mut out: &mut [u8]) -> Result<(), Error> {
        let beyond = || Error::from(io::Error::from(io::ErrorKind::UnexpectedEof));
        let mut at = offset;
        // Empty parts begin where the next one does: of several, the last.
        let mut idx = self.starts.partition_point(|start| *start <= at).saturating_sub(1);
        while !out.is_empty() {
            let (start, part) = self.starts.get(idx).zip(self.reader.parts().get(idx)).ok_or_else(beyond)?;
            let within = at - start;
            let len = Part::len(part).saturating_sub(within).min(out.len() as u64);
            let (now, rest) = out.split_at_mut(len as usize);
            self.reader.read_part(idx, within, now)?;
            (out, at, idx) = (rest, at + len, idx + 1);
        }
        Ok(())
    }
}
