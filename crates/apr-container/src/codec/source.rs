//! Sources of a payload's bytes.

use alloc::vec::Vec;

use crate::codec::sink::Sink;
use crate::error::{Error, ErrorKind};

/// Provides bytes in order, in pieces whose length it chooses.
pub(crate) trait Source {
    /// The next bytes, empty only at the end. Repeated calls return the same bytes until some are consumed.
    fn fill(&mut self) -> Result<&[u8], Error>;

    /// Consumes the first `len` of the bytes that [`fill`](Self::fill) returned.
    fn consume(&mut self, len: usize);

    /// All remaining bytes, if they are in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }
}

/// All bytes of a source that has at most `len`. Memory is reserved once: a block that grows may exist twice.
pub(crate) fn collect(source: &mut dyn Source, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let reserved = usize::try_from(len).ok().filter(|&len| bytes.try_reserve_exact(len).is_ok());
    if reserved.is_none() {
        return Err(ErrorKind::OutOfMemory { bytes: len }.into());
    }
    loop {
        let chunk = source.fill()?;
        let taken = chunk.len();
        if taken == 0 {
            return Ok(bytes);
        }
        bytes.put(chunk)?;
        source.consume(taken);
    }
}

/// A payload in memory.
#[derive(Debug)]
pub(crate) struct SliceSource<'data> {
    rest: &'data [u8],
}

impl<'data> SliceSource<'data> {
    pub(crate) const fn new(bytes: &'data [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl Source for SliceSource<'_> {
    fn fill(&mut self) -> Result<&[u8], Error> {
        Ok(self.rest)
    }

    fn consume(&mut self, len: usize) {
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self.rest)
    }
}
