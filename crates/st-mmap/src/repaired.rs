//! A file with a defective header, read as its repair.

use std::path::Path;

use read_at::{AnySource, Error as ReadError, ReadAt, check_range};
use st_core::{Header, ReadOptions, Repair};

use crate::error::{Error, InFile};

/// Most bytes of a header that are read.
const MAX_PREFIX: u64 = 8 + st_core::MAX_HEADER_LEN + 8;

/// The bytes of a safetensors file after a [`Repair`]: the repaired header, followed by the data section of the file as it is.
///
/// Nothing is written: a copy of all bytes is the repaired file, and readers of a source open it as one.
#[derive(Debug)]
pub struct RepairedFile {
    source: AnySource,
    repair: Repair,
}

impl RepairedFile {
    /// Reads the header of `source` and repairs it; `path` names the file in errors.
    ///
    /// # Errors
    ///
    /// Those of [`Repair::new`], and [`ErrorKind::Io`](crate::ErrorKind::Io) if the source cannot be read.
    pub fn of(source: impl Into<AnySource>, path: &Path, options: &ReadOptions) -> Result<Self, Error> {
        let source = source.into();
        let len = source.total_len();
        let mut first8 = [0; 8];
        if len >= 8 {
            read(&source, &mut first8, path)?;
        }
        let header_len = Header::declared_len(first8, len, options).in_file(path)?;
        let mut prefix = vec![0; len.min(8 + header_len + 8).min(MAX_PREFIX) as usize];
        read(&source, &mut prefix, path)?;
        let repair = Repair::new(&prefix, len, options).in_file(path)?;
        Ok(Self { source, repair })
    }

    /// The repair: the new header and the list of changes.
    #[must_use]
    pub const fn repair(&self) -> &Repair {
        &self.repair
    }
}

fn read(source: &AnySource, out: &mut [u8], path: &Path) -> Result<(), Error> {
    use crate::error::ErrorKind;
    let read = source.read_exact_at(0, out);
    read.map_err(|error| ErrorKind::Io { operation: "read", error: error.into() }.at(path))
}

impl ReadAt for RepairedFile {
    fn total_len(&self) -> u64 {
        let data = self.repair.data_range();
        self.repair.header_bytes().len() as u64 + (data.end - data.start)
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        check_range(offset, out.len(), self.total_len())?;
        let header = self.repair.header_bytes();
        let of_header = header.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = of_header.len().min(out.len());
        let (first, rest) = out.split_at_mut(count);
        first.copy_from_slice(of_header.get(..count).unwrap_or_default());
        if rest.is_empty() {
            return Ok(());
        }
        let in_data = offset + count as u64 - header.len() as u64;
        self.source.read_exact_at(self.repair.data_range().start + in_data, rest)
    }
}
