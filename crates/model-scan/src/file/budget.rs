//! Work that one file may cause, over all its streams and members.

use alloc::collections::BTreeMap;
use core::ops::Range;

use pickle_core::Limits;

use crate::report::Options;

/// The rest of that work. Each limit is linear in the length of the file.
pub(super) struct Budget {
    /// Bytes of files and members: each is counted where it is scanned.
    pub(super) bytes: u64,
    /// Bytes of members that other members of the same archive have, too.
    pub(super) shared: u64,
    pub(super) opcodes: u64,
    pub(super) members: u32,
}

impl Budget {
    /// Members of all archives in a file.
    const MEMBERS: u32 = 65_535;

    pub(super) fn new(options: &Options<'_>, len: u64) -> Self {
        let opcodes = match options.limits.opcodes {
            default if default == Limits::DEFAULT.opcodes => default.min(linear(len, 1 << 20)),
            chosen => chosen,
        };
        let bytes = linear(len.max(options.inflated.unwrap_or(0)), 64 << 20);
        Self { bytes, shared: len, opcodes, members: Self::MEMBERS }
    }

    /// Takes bytes of a file or member, and says whether there were as many.
    pub(super) const fn take_bytes(&mut self, len: u64) -> bool {
        take(&mut self.bytes, len)
    }

    /// Takes one member, and says whether there was one.
    pub(super) const fn take_member(&mut self) -> bool {
        match self.members.checked_sub(1) {
            Some(left) => {
                self.members = left;
                true
            }
            None => false,
        }
    }

    /// Whether the bytes of a member may be scanned: the first time always, then as long as shared bytes are left.
    pub(super) fn take_range(&mut self, scanned: &mut Ranges, range: Range<u64>) -> bool {
        let len = range.end.saturating_sub(range.start);
        !scanned.add(range) || take(&mut self.shared, len)
    }
}

const fn linear(len: u64, least: u64) -> u64 {
    len.saturating_mul(16).saturating_add(least)
}

const fn take(left: &mut u64, len: u64) -> bool {
    match left.checked_sub(len) {
        Some(rest) => {
            *left = rest;
            true
        }
        None => false,
    }
}

/// Bytes of an archive that were scanned, in ranges that do not touch: ends by starts.
#[derive(Default)]
pub(super) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range, and says whether some of its bytes were there before.
    fn add(&mut self, range: Range<u64>) -> bool {
        let (mut start, mut end, mut has_shared) = (range.start, range.end, false);
        // The last range that begins before the end, as long as it reaches the start.
        while let Some((&from, &to)) = self.0.range(..=end).next_back().filter(|(_, to)| **to >= start) {
            has_shared |= from < range.end && range.start < to;
            self.0.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.0.insert(start, end);
        has_shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_shared_if_they_have_a_byte_in_common() {
        let mut ranges = Ranges::default();
        for (start, end, shared) in [
            (10, 20, false),
            (20, 30, false),
            (0, 10, false),
            (40, 50, false),
            (29, 30, true),
            (30, 31, false),
            (30, 31, true),
            (35, 41, true),
            (31, 35, false),
            (60, 60, false),
            (60, 61, false),
            (0, 100, true),
            (99, 101, true),
            (101, 102, false),
        ] {
            assert_eq!(ranges.add(start..end), shared, "{start} {end}");
        }
        assert_eq!(ranges.0, [(0, 102)].into());
    }

    #[test]
    fn limits_are_linear_in_the_length() {
        let mut budget = Budget::new(&Options::DEFAULT, 1000);
        assert_eq!((budget.opcodes, budget.bytes), (16_000 + (1 << 20), 16_000 + (64 << 20)));
        assert_eq!(Budget::new(&Options::DEFAULT, 1 << 40).opcodes, Options::DEFAULT.limits.opcodes);
        let mut options = Options::DEFAULT;
        (options.limits.opcodes, options.inflated) = (1 << 40, Some(2000));
        let chosen = Budget::new(&options, 1000);
        assert_eq!((chosen.opcodes, chosen.bytes), (1 << 40, 32_000 + (64 << 20)));
        assert!(budget.take_bytes(16_000 + (64 << 20)) && !budget.take_bytes(1) && budget.take_bytes(0));
        let mut scanned = Ranges::default();
        let mut may = |range| budget.take_range(&mut scanned, range);
        assert!(may(0..900) && may(100..900) && may(500..700) && !may(0..1) && may(900..5000));
        assert!((0..65_535).all(|_| budget.take_member()) && !budget.take_member());
    }
}
