//! bzip2, xz and lzma, through readers of other crates.

use core::cell::Cell;
use std::io::{self, Read};

use pickle_core::{Error, ErrorKind};
use read_at::ReadAt;

use super::Compression;
use super::contained::EXPANDS;
use super::pieces::Pieces;

/// Memory of a decoder for an empty file: dictionaries of 4 MiB, as joblib's level 3 has.
#[cfg(feature = "xz")]
const MEMORY: u64 = 9 << 19;

/// Decompresses a file, and says what is wrong with it.
pub(super) fn decode(
    source: &dyn ReadAt,
    compression: Compression,
    pieces: &mut Pieces,
    max: u64,
) -> Result<Option<&'static str>, Error> {
    let has_failed = Cell::new(false);
    let input = Input { source, at: 0, has_failed: &has_failed };
    let problem = match compression {
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => read(bzip2::read::MultiBzDecoder::new(input), pieces, max),
        #[cfg(feature = "xz")]
        Compression::Xz => {
            read(lzma_rust2::XzReader::new_mem_limit(input, true, memory(source, max)), pieces, max)
        }
        #[cfg(feature = "xz")]
        Compression::Lzma => match lzma_rust2::LzmaReader::new_mem_limit(input, memory(source, max), None) {
            Ok(reader) => read(reader, pieces, max),
            Err(_) => Some("cannot be decompressed"),
        },
        _ => {
            let _ = (input, read::<io::Empty>, EXPANDS, pieces, max);
            Some("compressed with bzip2, xz or lzma")
        }
    };
    if has_failed.get() { Err(ErrorKind::Read {}.into()) } else { Ok(problem) }
}

/// In KiB: with what is decompressed, as much as a file of this length may use.
#[cfg(feature = "xz")]
fn memory(source: &dyn ReadAt, max: u64) -> u32 {
    let bytes = source.total_len().saturating_mul(12).saturating_add(MEMORY).max(max);
    u32::try_from(bytes >> 10).unwrap_or(u32::MAX - 1)
}

fn read<R: Read>(mut reader: R, pieces: &mut Pieces, max: u64) -> Option<&'static str> {
    let mut buffer = [0; 1 << 12];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return None,
            Ok(len) if pieces.push(buffer.get(..len).unwrap_or_default(), max) => {}
            Ok(_) => return Some(EXPANDS),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Some("cannot be decompressed"),
        }
    }
}

/// A source as a stream.
struct Input<'s> {
    source: &'s dyn ReadAt,
    at: u64,
    has_failed: &'s Cell<bool>,
}

impl Read for Input<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.source.total_len() - self.at;
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(out.len());
        if let Err(error) = self.source.read_exact_at(self.at, out.get_mut(..len).unwrap_or_default()) {
            self.has_failed.set(true);
            return Err(io::Error::other(error));
        }
        self.at += len as u64;
        Ok(len)
    }
}
