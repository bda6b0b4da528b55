//! Bytes by their offset, through a window.

use alloc::vec::Vec;

use read_at::{Error, ReadAt};

const WINDOW: usize = 1 << 16;

/// A source and the window that was read last.
pub(crate) struct Reader<'s> {
    source: &'s dyn ReadAt,
    window: Vec<u8>,
    start: u64,
}

impl<'s> Reader<'s> {
    pub(crate) const fn new(source: &'s dyn ReadAt) -> Self {
        Self { source, window: Vec::new(), start: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.source.total_len()
    }

    /// The bytes from `at` on that are in the window: none beyond the end.
    fn rest(&mut self, at: u64) -> Result<&[u8], Error> {
        let inside = |start: u64, len: usize| at >= start && at - start < len as u64;
        if !inside(self.start, self.window.len()) {
            let left = self.source.total_len().saturating_sub(at);
            self.window.resize(usize::try_from(left).unwrap_or(WINDOW).min(WINDOW), 0);
            self.source.read_exact_at(at.min(self.source.total_len()), &mut self.window)?;
            self.start = at;
        }
        let from = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        Ok(self.window.get(from..).unwrap_or_default())
    }

    pub(crate) fn byte(&mut self, at: u64) -> Result<Option<u8>, Error> {
        Ok(self.rest(at)?.first().copied())
    }

    /// Where a byte occurs first, from `at` on.
    pub(crate) fn find(&mut self, mut at: u64, wanted: u8) -> Result<Option<u64>, Error> {
        loop {
            let rest = self.rest(at)?;
            if rest.is_empty() {
                return Ok(None);
            }
            match rest.iter().position(|byte| *byte == wanted) {
                Some(idx) => return Ok(Some(at + idx as u64)),
                None => at += rest.len() as u64,
            }
        }
    }

    /// Up to `max` bytes from `at` on.
    pub(crate) fn bytes(&mut self, mut at: u64, max: u64) -> Result<Vec<u8>, Error> {
        let end = at.saturating_add(max).min(self.len());
        let mut bytes = Vec::new();
        while at < end {
            let rest = self.rest(at)?;
            let len = usize::try_from(end - at).unwrap_or(usize::MAX).min(rest.len());
            bytes.extend_from_slice(rest.get(..len).unwrap_or_default());
            at += len as u64;
        }
        Ok(bytes)
    }
}
