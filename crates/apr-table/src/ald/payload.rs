//! The bytes of a payload, decompressed as they are read.

use core::ops::Range;
use std::io::{self, BufReader, Read};

use super::header::Compression;
use super::{Source, invalid};
use crate::error::{Error, ErrorKind, within};

/// Longest payload that is held in memory: one that is encrypted or signed, and a chunk of LZ4.
pub(super) const MAX_HELD: u64 = 1 << 30;
/// Decompressed bytes that any payload may have.
const MIN_DECOMPRESSED: u64 = 32 << 20;
/// Decompressed bytes for each byte of a payload.
const MAX_RATIO: u64 = 1024;
/// Decompressed bytes for each byte of a block of LZ4: a byte of its lengths stands for so many.
const LZ4_RATIO: u64 = 255;
/// Largest window of zstd: that of level 19.
const WINDOW_LOG: u32 = 23;
/// Decompressed lengths are cut to 32 bits in the header of a single file.
const CUT: u64 = 1 << 32;

/// A part of the source.
pub(super) enum Section {
    Stored { source: Source, range: Range<u64> },
    Held(io::Cursor<Vec<u8>>),
}

impl Section {
    pub(super) fn new(source: Source, range: Range<u64>) -> Self {
        Self::Stored { source, range }
    }

    pub(super) fn in_memory(bytes: Vec<u8>) -> Self {
        Self::Held(io::Cursor::new(bytes))
    }

    /// Its bytes.
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Stored { range, .. } => range.end - range.start,
            Self::Held(bytes) => bytes.get_ref().len() as u64,
        }
    }
}

impl Read for Section {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Held(bytes) => bytes.read(out),
            Self::Stored { source, range } => {
                let len = (range.end - range.start).min(out.len() as u64) as usize;
                let out = out.get_mut(..len).unwrap_or_default();
                super::read(&**source, range.start, out).map_err(io::Error::other)?;
                range.start += len as u64;
                Ok(len)
            }
        }
    }
}

/// How long the decompressed bytes may be, and what they have to be at the end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    /// Exactly this.
    Exactly(u64),
    /// This, or more by a multiple of 2^32, as far as the payload allows.
    Cut(u32),
}

/// The decompressed bytes of a section.
pub(super) struct Decompressed {
    inner: Box<dyn Read + Send>,
    declared: Length,
    allowed: u64,
    n_read: u64,
}

impl Decompressed {
    /// # Errors
    ///
    /// If the declared length is out of proportion, or the compressed bytes do not begin as such.
    pub(super) fn new(section: Section, compression: Compression, declared: Length) -> Result<Self, Error> {
        let stored = section.len();
        let most = MIN_DECOMPRESSED.max(stored.saturating_mul(MAX_RATIO));
        let allowed = match declared {
            Length::Exactly(len) => len,
            Length::Cut(len) if u64::from(len) + CUT <= most => most,
            Length::Cut(len) => len.into(),
        };
        within("the decompressed payload", allowed, most)?;
        let section = BufReader::with_capacity(64 << 10, section);
        let inner: Box<dyn Read + Send> = match compression {
            Compression::None => Box::new(section),
            Compression::Zstd(_) => {
                let mut decoder = zstd::Decoder::with_buffer(section).map_err(damaged)?;
                decoder.window_log_max(WINDOW_LOG).map_err(damaged)?;
                Box::new(decoder)
            }
            Compression::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(section)),
        };
        Ok(Self { inner, declared, allowed, n_read: 0 })
    }

    /// The LZ4 block of a chunk, behind its length.
    pub(super) fn lz4_block(mut section: Section, declared: u64) -> Result<Self, Error> {
        let (stored, mut len) = (section.len(), [0; 4]);
        // It is held whole, and no block of LZ4 becomes longer than that.
        within("a decompressed chunk", declared, MAX_HELD.min(stored.saturating_mul(LZ4_RATIO)))?;
        section.read_exact(&mut len).map_err(damaged)?;
        if u64::from(u32::from_le_bytes(len)) != declared {
            return Err(invalid("two lengths of a chunk differ"));
        }
        let mut block = Vec::new();
        section.read_to_end(&mut block).map_err(damaged)?;
        let mut bytes = Vec::new();
        let needed = declared as usize;
        bytes.try_reserve_exact(needed).map_err(|_| Error::from(ErrorKind::AldMemory { bytes: declared }))?;
        bytes.resize(needed, 0);
        match lz4_flex::block::decompress_into(&block, &mut bytes) {
            Ok(len) if len == needed => {}
            _ => return Err(invalid("a chunk cannot be decompressed")),
        }
        let inner = Box::new(io::Cursor::new(bytes));
        Ok(Self { inner, declared: Length::Exactly(declared), allowed: declared, n_read: 0 })
    }

    /// Checks that all has been read, and that it was as long as declared.
    ///
    /// # Errors
    ///
    /// If it was not.
    pub(super) fn end(mut self) -> Result<(), Error> {
        let more = self.inner.read(&mut [0]).map_err(damaged)?;
        let is_right = match self.declared {
            Length::Exactly(len) => len == self.n_read,
            Length::Cut(len) => len == self.n_read as u32,
        };
        match more == 0 && is_right {
            true => Ok(()),
            false => Err(invalid("the payload does not have the length that is declared")),
        }
    }
}

impl Read for Decompressed {
    /// Ends where the declared length does, if there is more.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = (self.allowed - self.n_read).min(out.len() as u64) as usize;
        let out = out.get_mut(..len).unwrap_or_default();
        if out.is_empty() {
            return Ok(0);
        }
        let found = self.inner.read(out).map_err(|error| io::Error::other(damaged(error)))?;
        self.n_read += found as u64;
        Ok(found)
    }
}

/// One of our errors, from below the decompressor; otherwise one of it.
fn damaged(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(_) => invalid("the payload cannot be decompressed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_lz4_is_no_longer_than_its_block_can_become() {
        // No bytes become shorter than zeros.
        let zeros = vec![0; 1 << 20];
        let mut stored = (zeros.len() as u32).to_le_bytes().to_vec();
        stored.extend(lz4_flex::block::compress(&zeros));
        let chunk = |declared| Decompressed::lz4_block(Section::in_memory(stored.clone()), declared);
        let mut found = Vec::new();
        chunk(zeros.len() as u64).unwrap().read_to_end(&mut found).unwrap();
        assert!(found == zeros);
        let most = stored.len() as u64 * LZ4_RATIO;
        for (declared, code) in [(most, "tb-ald"), (most + 1, "tb-limit"), (u64::MAX, "tb-limit")] {
            assert_eq!(chunk(declared).err().unwrap().code(), code, "{declared}");
        }
    }
}
