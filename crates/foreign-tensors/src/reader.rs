//! Bytes by their offset, through a window.

use alloc::vec::Vec;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::tensor::reserved;

const WINDOW: usize = 1 << 13;

const SHORT: &str = "the file ends within a value";

/// A source, and the bytes of it that were read last. A source in memory is read in place.
pub(crate) struct Reader<'s> {
    source: &'s dyn ReadAt,
    window: Vec<u8>,
    start: u64,
}

impl<'s> Reader<'s> {
    pub(crate) fn new(source: &'s dyn ReadAt) -> Self {
        Self { source, window: Vec::new(), start: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.source.total_len()
    }

    /// The bytes from `at` on that are at hand: none beyond the end.
    fn rest(&mut self, at: u64, wanted: usize) -> Result<&[u8], Error> {
        if let Some(all) = self.source.in_memory() {
            return Ok(usize::try_from(at).ok().and_then(|at| all.get(at..)).unwrap_or_default());
        }
        let inside = at
            .checked_sub(self.start)
            .is_some_and(|skip| skip.saturating_add(wanted.min(WINDOW) as u64) <= self.window.len() as u64);
        if !inside {
            let left = self.len().saturating_sub(at);
            self.window.resize(usize::try_from(left).unwrap_or(WINDOW).min(WINDOW), 0);
            self.source.read_exact_at(at.min(self.len()), &mut self.window)?;
            self.start = at;
        }
        let skip = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.window.get(skip..).unwrap_or_default())
    }

    /// The byte at an offset.
    pub(crate) fn byte(&mut self, at: u64) -> Result<u8, Error> {
        let byte = self.rest(at, 1)?.first().copied();
        byte.ok_or_else(|| Error::malformed(SHORT).at(at))
    }

    /// A few bytes at an offset.
    pub(crate) fn array<const N: usize>(&mut self, at: u64) -> Result<[u8; N], Error> {
        let bytes = self.rest(at, N)?.first_chunk().copied();
        bytes.ok_or_else(|| Error::malformed(SHORT).at(at))
    }

    /// All bytes of a range, which is compared with the source before memory is allocated.
    pub(crate) fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        if range.end > self.len() || range.start > range.end {
            return Err(Error::malformed(SHORT).at(range.start));
        }
        let len = range.end - range.start;
        let mut bytes = reserved(len)?;
        if len <= WINDOW as u64 {
            let rest = self.rest(range.start, len as usize)?;
            bytes.extend_from_slice(rest.get(..len as usize).unwrap_or_default());
        } else {
            bytes.resize(len as usize, 0);
            self.source.read_exact_at(range.start, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// A string of UTF-8.
    #[cfg(any(feature = "onnx", feature = "tflite", feature = "flax"))]
    pub(crate) fn text(
        &mut self,
        range: Range<u64>,
        budget: &mut Budget,
    ) -> Result<alloc::string::String, Error> {
        let at = range.start;
        budget.take(range.end.saturating_sub(at))?;
        let bytes = self.bytes(range)?;
        alloc::string::String::from_utf8(bytes).map_err(|_| Error::malformed("a name is not UTF-8").at(at))
    }
}

/// What is left of [`Limits::text_bytes`](crate::Limits::text_bytes).
pub(crate) struct Budget {
    left: u64,
    allowed: u64,
}

impl Budget {
    pub(crate) const fn new(allowed: u64) -> Self {
        Self { left: allowed, allowed }
    }

    /// # Errors
    ///
    /// [`ErrorKind::Limit`].
    pub(crate) fn take(&mut self, len: u64) -> Result<(), Error> {
        let limit = || ErrorKind::Limit { limit: "text_bytes", allowed: self.allowed };
        self.left = self.left.checked_sub(len).ok_or_else(limit)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use read_at::Error as ReadError;

    /// A source that is not in memory.
    struct Remote(Vec<u8>);

    impl ReadAt for Remote {
        fn total_len(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
            self.0.read_exact_at(offset, out)
        }
    }

    #[test]
    fn windows_and_memory_give_the_same() {
        let bytes: Vec<u8> = (0..WINDOW * 2 + 7).map(|at| (at % 251) as u8).collect();
        let remote = Remote(bytes.clone());
        for source in [&bytes as &dyn ReadAt, &remote] {
            let mut reader = Reader::new(source);
            for at in [0, 5, WINDOW - 2, WINDOW * 2, 3, bytes.len() - 4] {
                let found: [u8; 4] = reader.array(at as u64).unwrap();
                assert_eq!(found, bytes[at..at + 4], "{at}");
                assert_eq!(reader.byte(at as u64).unwrap(), bytes[at]);
            }
            assert_eq!(reader.bytes(1..reader.len()).unwrap(), bytes[1..]);
            assert_eq!(reader.bytes(9..12).unwrap(), bytes[9..12]);
            assert!(reader.array::<4>(bytes.len() as u64 - 3).is_err());
            assert!(reader.byte(u64::MAX).is_err() && reader.bytes(4..u64::MAX).is_err());
        }
    }
}
