//! A codebook as a bit set of its points, an eighth of the size of the table; for small builds.

use super::coordinates;

/// The points of a set, in the order of their numbers.
pub(crate) struct Codebook<const N: usize, const LEN: usize> {
    set: &'static [u64],
    values: &'static [i8],
}

impl<const N: usize, const LEN: usize> Codebook<N, LEN> {
    /// Creates the set from its bits and the values of the coordinates.
    pub(crate) const fn new(set: &'static [u64], values: &'static [i8]) -> Self {
        Self { set, values }
    }

    /// The point with this index.
    pub(crate) fn point(&self, idx: usize) -> [i8; LEN] {
        coordinates(member(self.set, idx), self.values)
    }
}

/// The member of a set with this rank.
fn member(set: &[u64], idx: usize) -> usize {
    let mut before = idx;
    for (place, &word) in set.iter().enumerate() {
        let count = word.count_ones() as usize;
        if before < count {
            let mut rest = word;
            for _ in 0..before {
                rest &= rest - 1;
            }
            return place * 64 + rest.trailing_zeros() as usize;
        }
        before -= count;
    }
    0
}
