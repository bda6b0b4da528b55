//! Where a payload's bytes come from.

use alloc::vec::Vec;

use crate::codec::sink::Sink;
use crate::error::{Error, ErrorKind};

/// Gives bytes in order, in pieces of its own choice.
pub(crate) trait Source {
    /// The next bytes, none only at the end. The same ones until some are consumed.
    fn fill(&mut self) -> Result<&[u8], Error>;

    /// Passes over the first `len` of the bytes that [`fill`](Self::fill) gave.
    fn consume(&mut self, len: usize);

    /// All bytes that are left, if they are in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }
}

/// All bytes of a source that has at most `len`. Room is made for all at once: while a block of memory grows, it may
/// exist twice.
pub(crate) fn collect(source: &mut dyn Source, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let room = usize::try_from(len).ok().filter(|&len| bytes.try_reserve_exact(len).is_ok());
    if room.is_none() {
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
