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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_source_in_any_order() {
        let bytes: Vec<u8> = (0..3 * WINDOW + 5).map(|idx| (idx % 251) as u8).collect();
        let source = bytes.as_slice();
        let mut reader = Reader::new(&source);
        for at in
            [0, WINDOW - 1, WINDOW, WINDOW + 7, WINDOW + 6, 2 * WINDOW + 9, 3, bytes.len() - 1, bytes.len()]
        {
            let rest = bytes.get(at..).expect("inside");
            assert_eq!(reader.byte(at as u64).expect("in memory"), rest.first().copied(), "{at}");
            let some = rest.get(..WINDOW + 1).unwrap_or(rest);
            assert_eq!(reader.bytes(at as u64, WINDOW as u64 + 1).expect("in memory"), some, "{at}");
            assert_eq!(reader.find(at as u64, 255).expect("in memory"), None);
        }
        assert_eq!(reader.find(0, 250).expect("in memory"), Some(250));
        assert_eq!(reader.byte(u64::MAX).expect("in memory"), None);
    }
}
