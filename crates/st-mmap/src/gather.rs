//! Fetches many byte ranges with few reads and little memory.

use core::ops::Range;

/// Ranges closer together than this are fetched by one read that runs over the gap. From a warm cache a
/// separate read costs as much as copying 4 (tmpfs) to 8 KiB (ext4); from a disk it costs more, but the
/// system reads ahead.
pub(crate) const MAX_GAP: u64 = 8 << 10;

/// Longest read that runs over gaps; also the size of the scratch buffer.
pub(crate) const MAX_SPAN: u64 = 256 << 10;

/// Some neighbouring ranges and the read that fetches them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// From the first byte of the first range to the last of the last.
    pub(crate) span: Range<u64>,
    /// Number of ranges in it.
    pub(crate) count: u64,
}

/// Groups ascending ranges into windows, lazily.
#[derive(Clone, Debug)]
pub(crate) struct Windows<I> {
    ranges: I,
    /// The first range of the next window.
    next: Option<Range<u64>>,
}

impl<I: Iterator<Item = Range<u64>>> Windows<I> {
    pub(crate) fn new(mut ranges: I) -> Self {
        let next = ranges.next();
        Self { ranges, next }
    }
}

impl<I: Iterator<Item = Range<u64>>> Iterator for Windows<I> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        let mut window = Window { span: self.next.take()?, count: 1 };
        for range in self.ranges.by_ref() {
            // Ranges that do not ascend are read alone: correct whatever the order.
            let near = range.start >= window.span.end && range.start - window.span.end <= MAX_GAP;
            if !near || range.end < range.start || range.end - window.span.start > MAX_SPAN {
                self.next = Some(range);
                break;
            }
            window.span.end = range.end;
            window.count += 1;
        }
        Some(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(ranges: &[Range<u64>]) -> Vec<(Range<u64>, u64)> {
        Windows::new(ranges.iter().cloned()).map(|window| (window.span, window.count)).collect()
    }

    #[test]
    fn near_ranges_share_a_window_and_far_ones_do_not() {
        assert_eq!(windows(&[]), []);
        assert_eq!(windows(&[0..4, 8..12, 16..20]), [(0..20, 3)]);
        assert_eq!(windows(&[0..4, 4 + MAX_GAP..8 + MAX_GAP]), [(0..8 + MAX_GAP, 2)]);
        assert_eq!(windows(&[0..4, 5 + MAX_GAP..9 + MAX_GAP]), [(0..4, 1), (5 + MAX_GAP..9 + MAX_GAP, 1)]);
    }

    #[test]
    fn windows_stay_within_the_scratch_buffer_unless_alone() {
        let long = MAX_SPAN * 3;
        assert_eq!(windows(&[0..long, long + 1..long + 2]), [(0..long, 1), (long + 1..long + 2, 1)]);
        let half = MAX_SPAN / 2;
        assert_eq!(
            windows(&[0..half, half..MAX_SPAN, MAX_SPAN..MAX_SPAN + 1]),
            [(0..MAX_SPAN, 2), (MAX_SPAN..MAX_SPAN + 1, 1)]
        );
    }

    #[test]
    fn disorder_is_not_merged() {
        assert_eq!(windows(&[10..20, 0..5]), [(10..20, 1), (0..5, 1)]);
        assert_eq!(windows(&[10..20, 15..25]), [(10..20, 1), (15..25, 1)]);
    }
}
