//! Which ranges are requested: pure arithmetic.

use core::ops::Range;

/// No request that is planned here is longer.
const LONGEST: u64 = 8 << 20;
/// Longest beginning of a file that is kept, and the longest request of all.
pub(crate) const BEGINNING_MAX: u64 = 16 << 20;
/// Bytes of one request where a file is copied.
pub(crate) const COPIED_AT_ONCE: u64 = 4 << 20;
/// The shortest request after the first: directories and headers are read in small pieces.
const SHORTEST: u64 = 64 << 10;

/// A range in pieces of at most `len` bytes.
pub(crate) fn pieces(range: Range<u64>, len: u64) -> impl Iterator<Item = Range<u64>> {
    let count = range.end.saturating_sub(range.start).div_ceil(len);
    (0..count).map(move |idx| {
        let start = range.start + idx * len;
        start..range.end.min(start + len)
    })
}

/// How far the beginning of a file is read at once, for a name and what has been read of it.
///
/// A GGUF header has no length in it and grows with the vocabulary: 1, 4 and 16 MiB. Others say how long they are.
pub(crate) fn first_read(file_name: &str) -> u64 {
    let is_gguf = file_name.to_ascii_lowercase().ends_with(".gguf");
    if is_gguf { 1 << 20 } else { SHORTEST }
}

/// The end of the next read of a beginning of `have` bytes, of which `needed` are wanted.
pub(crate) fn next_end(beginning: &[u8], needed: u64, len: u64) -> u64 {
    const GGUF: &[u8] = b"GGUF";
    let have = beginning.len() as u64;
    let grown = if beginning.starts_with(GGUF) { have.saturating_mul(4).min(BEGINNING_MAX) } else { 0 };
    needed.max(grown).min(len)
}

/// Reads further than asked where a reader goes through a file: each request twice as long as the last, up to 8 MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    /// Where the last request ended.
    end: u64,
    len: u64,
}

impl ReadAhead {
    pub(crate) const fn new() -> Self {
        Self { end: 0, len: 0 }
    }

    /// What is requested for `len` bytes at `offset`, within `total`; at most 8 MiB unless more is asked for.
    pub(crate) fn plan(&mut self, offset: u64, len: u64, total: u64) -> Range<u64> {
        let is_next = offset == self.end && self.len > 0;
        let ahead = if is_next { self.len.saturating_mul(2).min(LONGEST) } else { SHORTEST };
        let end = offset.saturating_add(len.max(ahead)).min(total);
        // What would be left of the file is less than a request is worth.
        let end = if total - end < SHORTEST && len <= LONGEST { total } else { end };
        *self = Self { end, len: end.saturating_sub(offset) };
        offset..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_of_gguf_grow_to_sixteen_mebibytes_in_three_reads() {
        let mut have = vec![0; first_read("M.GGUF") as usize];
        have[..4].copy_from_slice(b"GGUF");
        for end in [4 << 20, 16 << 20] {
            assert_eq!(next_end(&have, have.len() as u64 + 1, 1 << 30), end);
            have.resize(end as usize, 0);
        }
        assert_eq!(next_end(&have, 20 << 20, 1 << 30), 20 << 20);
        assert_eq!(next_end(&have, 20 << 20, 18 << 20), 18 << 20);
        assert_eq!(next_end(b"{\"a\"", 100, 1 << 30), 100);
    }

    #[test]
    fn reading_on_doubles_and_jumps_begin_anew() {
        let mut ahead = ReadAhead::new();
        let total = 1 << 40;
        assert_eq!(ahead.plan(1 << 20, 100, total), (1 << 20)..(1 << 20) + SHORTEST);
        let mut at = (1 << 20) + SHORTEST;
        for shift in 1..10 {
            let len = (SHORTEST << shift).min(LONGEST);
            assert_eq!(ahead.plan(at, 1, total), at..at + len);
            at += len;
        }
        assert_eq!(ahead.plan(0, 1, total), 0..SHORTEST);
        assert_eq!(ahead.plan(5, 10, 12), 5..12);
        assert_eq!(ahead.plan(5, 200_000, 265_540), 5..265_540);
        assert_eq!(ahead.plan(5, 200_000, 265_541), 5..200_005);
    }
}
