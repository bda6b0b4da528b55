//! Sums of weighted rows: the derivatives of linear functions.
//!
//! Tiles of four sums for eight columns stay in registers while all rows pass. Each sum is taken row after row.

use crate::kernels::vectors::Vectors;

/// Sums of a tile.
const SUMS: usize = 4;

/// Columns of a tile.
const COLUMNS: usize = 8;

/// Rows and what each counts for each sum.
#[derive(Clone, Copy)]
pub(crate) struct WeightedRows<'d> {
    /// `[n_rows, width]`
    pub(crate) rows: &'d [f64],
    /// `[n_rows, n_sums]`
    pub(crate) factors: &'d [f64],
    /// Values of a row, at least 1.
    pub(crate) width: usize,
    /// Sums of each value, at least 1.
    pub(crate) n_sums: usize,
}

impl WeightedRows<'_> {
    /// Adds to each of the sums of `out` (`[n_sums, width]`) the terms of all rows, one after the other: `term` gets a factor and a value.
    pub(crate) fn add_to(&self, term: impl Fn(f64, f64) -> f64 + Copy, out: &mut [f64]) {
        match Vectors::detect() {
            None => self.one_by_one(term, out),
            Some(vectors) => vectors.run(
                #[inline(always)]
                || self.all_tiles(term, out),
            ),
        }
    }

    /// As [`add_to`](Self::add_to) without tiles.
    fn one_by_one(&self, term: impl Fn(f64, f64) -> f64, out: &mut [f64]) {
        for (row, factors) in self.rows.chunks_exact(self.width).zip(self.factors.chunks_exact(self.n_sums)) {
            for (sums, &factor) in out.chunks_exact_mut(self.width).zip(factors) {
                sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += term(factor, value));
            }
        }
    }

    #[inline(always)]
    fn all_tiles(&self, term: impl Fn(f64, f64) -> f64 + Copy, out: &mut [f64]) {
        let mut first = 0;
        macro_rules! sums {
            ($($n:literal)*) => {
                $(while self.n_sums - first >= $n {
                    self.columns_of::<$n>(first, term, out);
                    first += $n;
                })*
            };
        }
        const { assert!(SUMS == 4) };
        sums!(4 2 1);
    }

    #[inline(always)]
    fn columns_of<const S: usize>(
        &self,
        first_sum: usize,
        term: impl Fn(f64, f64) -> f64 + Copy,
        out: &mut [f64],
    ) {
        let mut first = 0;
        macro_rules! columns {
            ($($n:literal)*) => {
                $(while self.width - first >= $n {
                    self.tile::<S, $n>(first_sum, first, term, out);
                    first += $n;
                })*
            };
        }
        const { assert!(COLUMNS == 8) };
        columns!(8 4 2 1);
    }

    #[inline(always)]
    fn tile<const S: usize, const C: usize>(
        &self,
        first_sum: usize,
        first: usize,
        term: impl Fn(f64, f64) -> f64 + Copy,
        out: &mut [f64],
    ) {
        let &Self { rows, factors, width, n_sums } = self;
        let begin = |sum: usize| (first_sum + sum) * width + first;
        let mut sums = [[0.0; C]; S];
        for (sum, sums) in sums.iter_mut().enumerate() {
            sums.copy_from_slice(&out[begin(sum)..][..C]);
        }
        for (row, factors) in rows.chunks_exact(width).zip(factors.chunks_exact(n_sums)) {
            let (values, factors) = (&row[first..first + C], &factors[first_sum..first_sum + S]);
            for (sums, &factor) in sums.iter_mut().zip(factors) {
                for (sum, &value) in sums.iter_mut().zip(values) {
                    *sum += term(factor, value);
                }
            }
        }
        for (sum, sums) in sums.iter().enumerate() {
            out[begin(sum)..][..C].copy_from_slice(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn tiles_have_the_bits_of_the_plain_loops() {
        let mut rng = Rng::new(6);
        for width in (1..=20).chain([64]) {
            for (n_rows, n_sums) in [(1, 1), (7, 3), (20, 4), (33, 10)] {
                let mut values = |count: usize| (0..count).map(|_| rng.normal()).collect::<Vec<f64>>();
                let (rows, factors) = (values(n_rows * width), values(n_rows * n_sums));
                let before = values(n_sums * width);
                let data = WeightedRows { rows: &rows, factors: &factors, width, n_sums };
                let term = |factor: f64, value: f64| factor * value * value;
                let (mut found, mut expected) = (before.clone(), before);
                data.add_to(term, &mut found);
                data.one_by_one(term, &mut expected);
                assert_eq!(found, expected, "{width} {n_rows} {n_sums}");
            }
        }
    }
}
