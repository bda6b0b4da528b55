//! Sums of weighted rows: the derivatives of linear functions, means and variances of components.
//!
//! Tiles of four sums for eight columns stay in registers while all rows pass. Each sum is taken row after row.

use crate::kernels::vectors::Vectors;

/// Sums of a tile.
const SUMS: usize = 4;

/// Columns of a tile.
const COLUMNS: usize = 8;

/// Adds to each of the sums of `out` (`[n_sums, width]`) the terms of all rows, one after the other: `factors` (`[n_rows, n_sums]`) has what a row
/// counts for it, and `centres` (`[n_sums, width]`) a third value of the term.
pub(crate) fn add_weighted_rows(
    rows: &[f64],
    width: usize,
    factors: &[f64],
    centres: &[f64],
    term: impl Fn(f64, f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let Some(vectors) = Vectors::detect() else {
        return one_by_one(rows, width, factors, centres, term, out);
    };
    vectors.run(
        #[inline(always)]
        || all_tiles(rows, width, factors, centres, term, out),
    );
}

/// As [`add_weighted_rows`] without tiles.
fn one_by_one(
    rows: &[f64],
    width: usize,
    factors: &[f64],
    centres: &[f64],
    term: impl Fn(f64, f64, f64) -> f64,
    out: &mut [f64],
) {
    let n_sums = out.len() / width;
    for (row, factors) in rows.chunks_exact(width).zip(factors.chunks_exact(n_sums)) {
        let sums = out.chunks_exact_mut(width).zip(centres.chunks_exact(width)).zip(factors);
        for ((sums, centre), &factor) in sums {
            for ((sum, &value), &centre) in sums.iter_mut().zip(row).zip(centre) {
                *sum += term(factor, value, centre);
            }
        }
    }
}

#[inline(always)]
fn all_tiles(
    rows: &[f64],
    width: usize,
    factors: &[f64],
    centres: &[f64],
    term: impl Fn(f64, f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let n_sums = out.len() / width;
    let data = Data { rows, width, factors, centres, n_sums };
    let mut first = 0;
    macro_rules! sums {
        ($($n:literal)*) => {
            $(while n_sums - first >= $n {
                columns_of::<$n>(&data, first, term, out);
                first += $n;
            })*
        };
    }
    const { assert!(SUMS == 4) };
    sums!(4 2 1);
}

struct Data<'d> {
    rows: &'d [f64],
    width: usize,
    factors: &'d [f64],
    centres: &'d [f64],
    n_sums: usize,
}

#[inline(always)]
fn columns_of<const S: usize>(
    data: &Data<'_>,
    first_sum: usize,
    term: impl Fn(f64, f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let mut first = 0;
    macro_rules! columns {
        ($($n:literal)*) => {
            $(while data.width - first >= $n {
                tile::<S, $n>(data, first_sum, first, term, out);
                first += $n;
            })*
        };
    }
    const { assert!(COLUMNS == 8) };
    columns!(8 4 2 1);
}

#[inline(always)]
fn tile<const S: usize, const C: usize>(
    data: &Data<'_>,
    first_sum: usize,
    first: usize,
    term: impl Fn(f64, f64, f64) -> f64 + Copy,
    out: &mut [f64],
) {
    let &Data { rows, width, factors, centres, n_sums } = data;
    let (mut sums, mut centre) = ([[0.0; C]; S], [[0.0; C]; S]);
    for sum in 0..S {
        let begin = (first_sum + sum) * width + first;
        sums[sum].copy_from_slice(&out[begin..begin + C]);
        centre[sum].copy_from_slice(&centres[begin..begin + C]);
    }
    for (row, factors) in rows.chunks_exact(width).zip(factors.chunks_exact(n_sums)) {
        let (values, factors) = (&row[first..first + C], &factors[first_sum..first_sum + S]);
        for sum in 0..S {
            for column in 0..C {
                sums[sum][column] += term(factors[sum], values[column], centre[sum][column]);
            }
        }
    }
    for (sum, sums) in sums.iter().enumerate() {
        let begin = (first_sum + sum) * width + first;
        out[begin..begin + C].copy_from_slice(sums);
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
                let (centres, before) = (values(n_sums * width), values(n_sums * width));
                let term =
                    |factor: f64, value: f64, centre: f64| factor * (value - centre) * (value - centre);
                let (mut found, mut expected) = (before.clone(), before);
                add_weighted_rows(&rows, width, &factors, &centres, term, &mut found);
                one_by_one(&rows, width, &factors, &centres, term, &mut expected);
                assert_eq!(found, expected, "{width} {n_rows} {n_sums}");
            }
        }
    }
}
