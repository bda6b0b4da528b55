//! Which ranges are requested: pure arithmetic.

use core::ops::Range;

/// No request of a reader that goes through a file is longer.
pub(crate) const LONGEST: u64 = 8 << 20;
/// Bytes that are requested ahead of a reader.
pub(crate) const AHEAD_MAX: u64 = 64 << 20;
/// A range that a reader will read is requested by itself if it is not shorter.
pub(crate) const HINTED_MIN: u64 = 1 << 20;
/// A reader that goes on gets one request after the other for so many bytes, then several at once.
const RUN_MIN: u64 = 1 << 20;
/// Longest beginning of a file that is kept, and the longest request of all.
pub(crate) const BEGINNING_MAX: u64 = 16 << 20;
/// Bytes of one request where a file is copied.
pub(crate) const COPIED_AT_ONCE: u64 = 4 << 20;
/// The shortest request after the first: directories and headers are read in small pieces.
pub(crate) const SHORTEST: u64 = 64 << 10;

/// How far the beginning of a file is read at once, for a name and what has been read of it.
///
/// A GGUF header has no length in it and grows with the vocabulary: 1, 4 and 16 MiB. Others say how long they are.
pub(crate) fn first_read(file_name: &str) -> u64 {
    let is_gguf = file_name.to_ascii_lowercase().ends_with(".gguf");
    if is_gguf { 1 << 20 } else { SHORTEST }
}

/// The end of the next read of a beginning of `have` bytes, of which `needed` are wanted, if it is kept.
///
/// A GGUF header grows, and an index in JSON is read as a whole more than once.
pub(crate) fn next_end(beginning: &[u8], needed: u64, total: u64) -> Option<u64> {
    let have = beginning.len() as u64;
    let end = if beginning.starts_with(b"GGUF") {
        let grown = have.saturating_mul(4).min(BEGINNING_MAX).min(total);
        Some(grown).filter(|end| *end > needed)
    } else {
        Some(total).filter(|_| beginning.starts_with(b"{"))
    };
    end.filter(|end| have < *end && *end <= BEGINNING_MAX)
}

/// Reads further than asked where a reader goes through a file: each request twice as long as the last, up to 8 MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadAhead {
    /// Where the last request ended.
    end: u64,
    len: u64,
    /// Bytes that were requested without a gap.
    run: u64,
}

/// What is requested next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) range: Range<u64>,
    /// Bytes that were requested before it without a gap.
    pub(crate) run: u64,
}

impl Planned {
    /// Whether the reader has gone on for so long that several requests are sent at once.
    pub(crate) const fn is_run(&self) -> bool {
        self.run >= RUN_MIN
    }

    /// What is requested at once then.
    pub(crate) fn ahead(&self, total: u64) -> Range<u64> {
        let ahead = self.run.saturating_mul(2).min(AHEAD_MAX);
        self.range.start..self.range.end.max(self.range.start.saturating_add(ahead)).min(total)
    }
}

impl ReadAhead {
    pub(crate) const fn new() -> Self {
        Self { end: 0, len: 0, run: 0 }
    }

    /// What is requested for `len` bytes at `offset`, within `total`; at most 8 MiB unless more is asked for.
    pub(crate) fn plan(&mut self, offset: u64, len: u64, total: u64) -> Planned {
        let is_next = offset == self.end && self.len > 0;
        let ahead = if is_next { self.len.saturating_mul(2).min(LONGEST) } else { SHORTEST };
        let end = offset.saturating_add(len.max(ahead)).min(total);
        // What would be left of the file is less than a request is worth.
        let end = if total - end < SHORTEST && len <= LONGEST { total } else { end };
        let (len, run) = (end.saturating_sub(offset), if is_next { self.run } else { 0 });
        *self = Self { end, len, run: run.saturating_add(len) };
        Planned { range: offset..end, run }
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
            assert_eq!(next_end(&have, have.len() as u64 + 1, 1 << 30), Some(end));
            have.resize(end as usize, 0);
        }
        assert_eq!(next_end(&have, 20 << 20, 1 << 30), None);
        have.truncate(1 << 20);
        assert_eq!(next_end(&have, 2 << 20, 3 << 20), Some(3 << 20));
        assert_eq!(next_end(&have, 3 << 20, 3 << 20), None);
    }

    #[test]
    fn an_index_is_kept() {
        assert_eq!(next_end(b"{\"a\"", 100, 1 << 20), Some(1 << 20));
        assert_eq!(next_end(b"{\"a\"", 100, (16 << 20) + 1), None);
        assert_eq!(next_end(b"{", 1, 1), None);
        assert_eq!(next_end(&[0; 8], 100, 1 << 20), None);
    }

    #[test]
    fn reading_on_doubles_and_jumps_begin_anew() {
        let mut ahead = ReadAhead::new();
        let total = 1 << 40;
        let range = |planned: Planned| planned.range;
        let first = ahead.plan(1 << 20, 100, total);
        assert_eq!(first, Planned { range: (1 << 20)..(1 << 20) + SHORTEST, run: 0 });
        let mut at = (1 << 20) + SHORTEST;
        for shift in 1..10 {
            let len = (SHORTEST << shift).min(LONGEST);
            let planned = ahead.plan(at, 1, total);
            assert_eq!(planned, Planned { range: at..at + len, run: at - (1 << 20) });
            assert_eq!(planned.is_run(), shift > 4);
            at += len;
        }
        assert_eq!(range(ahead.plan(0, 1, total)), 0..SHORTEST);
        assert_eq!(range(ahead.plan(5, 10, 12)), 5..12);
        assert_eq!(range(ahead.plan(5, 200_000, 265_540)), 5..265_540);
        assert_eq!(range(ahead.plan(5, 200_000, 265_541)), 5..200_005);
    }
}
