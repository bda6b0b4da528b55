//! A codebook as a table of its points.

use super::coordinates;

/// The points of a set, in the order of their numbers.
pub(crate) struct Codebook<const N: usize, const LEN: usize>([[i8; LEN]; N]);

impl<const N: usize, const LEN: usize> Codebook<N, LEN> {
    /// Creates the set from its bits and the values of the coordinates.
    pub(crate) const fn new(set: &[u64], values: &[i8]) -> Self {
        let (mut points, mut count, mut number) = ([[0; LEN]; N], 0, 0);
        while number < set.len() * 64 {
            if set[number / 64] >> (number % 64) & 1 == 1 {
                points[count] = coordinates(number, values);
                count += 1;
            }
            number += 1;
        }
        assert!(count == N, "the set has as many points as the codebook");
        Self(points)
    }

    /// The point with this index.
    #[inline(always)]
    pub(crate) fn point(&self, idx: usize) -> [i8; LEN] {
        self.0[idx]
    }
}
