//! Sums of products over rows: the inner loop of every linear prediction.
//!
//! Each product of two `f32` is exact in `f64`, and the products are added to the intercept one feature after the
//! other. So a result has the same bits however many rows are taken at once, and with or without fused instructions.

/// Most features that have a loop of their own.
#[cfg(any(test, not(apr_small)))]
const UNROLLED: usize = 16;

/// Rows per batch where the number of features is not known at compile time.
const ROWS: usize = 4;

/// Coefficients in memory, or in the bytes of a payload.
pub(super) trait Coefficients: ExactSizeIterator<Item = f32> + Clone {}

impl<I: ExactSizeIterator<Item = f32> + Clone> Coefficients for I {}

pub(super) fn value(row: &[f32], coefficients: impl Coefficients, intercept: f32) -> f64 {
    let terms = row.iter().zip(coefficients);
    terms.fold(f64::from(intercept), |sum, (&value, coefficient)| {
        sum + f64::from(value) * f64::from(coefficient)
    })
}

/// `rows` holds one row of `coefficients.len()` values for each place of `out`.
///
/// Small builds have one loop for all numbers of features: sixteen take several kilobytes.
#[cfg(apr_small)]
pub(super) fn values_into(rows: &[f32], coefficients: impl Coefficients, intercept: f32, out: &mut [f32]) {
    any(rows, coefficients, intercept, out);
}

/// `rows` holds one row of `coefficients.len()` values for each place of `out`.
#[cfg(not(apr_small))]
pub(super) fn values_into(rows: &[f32], coefficients: impl Coefficients, intercept: f32, out: &mut [f32]) {
    /// A loop for each number of features, so that the compiler lays out the additions and keeps the coefficients in
    /// registers.
    macro_rules! unrolled {
        ($($n:literal)*) => {
            match coefficients.len() {
                $($n => fixed::<$n>(rows, coefficients, intercept, out),)*
                _ => any(rows, coefficients, intercept, out),
            }
        };
    }
    const { assert!(UNROLLED == 16) };
    unrolled!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
}

#[cfg(not(apr_small))]
fn fixed<const N: usize>(rows: &[f32], coefficients: impl Coefficients, intercept: f32, out: &mut [f32]) {
    let mut weights = [0.0; N];
    for (weight, coefficient) in weights.iter_mut().zip(coefficients) {
        *weight = f64::from(coefficient);
    }
    let intercept = f64::from(intercept);
    for (place, row) in out.iter_mut().zip(rows.as_chunks::<N>().0) {
        let mut sum = intercept;
        for idx in 0..N {
            sum += f64::from(row[idx]) * weights[idx];
        }
        *place = sum as f32;
    }
}

/// Several rows at once, so that one addition does not wait for the one before.
fn any(rows: &[f32], coefficients: impl Coefficients, intercept: f32, out: &mut [f32]) {
    let width = coefficients.len();
    let (blocks, rest) = out.as_chunks_mut::<ROWS>();
    let mut rows_left = rows;
    for block in blocks {
        let Some((rows, after)) = rows_left.split_at_checked(ROWS * width) else { break };
        rows_left = after;
        let mut sums = [f64::from(intercept); ROWS];
        let (a, bcd) = rows.split_at(width);
        let (b, cd) = bcd.split_at(width);
        let (c, d) = cd.split_at(width);
        for ((((weight, &a), &b), &c), &d) in coefficients.clone().zip(a).zip(b).zip(c).zip(d) {
            let weight = f64::from(weight);
            for (sum, value) in sums.iter_mut().zip([a, b, c, d]) {
                *sum += f64::from(value) * weight;
            }
        }
        *block = sums.map(|sum| sum as f32);
    }
    for (place, row) in rest.iter_mut().zip(rows_left.chunks_exact(width.max(1))) {
        *place = value(row, coefficients.clone(), intercept) as f32;
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::rng::Rng;

    #[test]
    fn every_loop_gives_the_bits_of_the_plain_sum() {
        let mut rng = Rng::new(3);
        for n_features in (1..=UNROLLED + 9).chain([100]) {
            for n_rows in [0, 1, 3, 4, 5, 17] {
                let mut numbers =
                    |count: usize| (0..count).map(|_| rng.normal() as f32).collect::<Vec<f32>>();
                let (rows, coefficients) = (numbers(n_rows * n_features), numbers(n_features));
                let mut out = vec![0.0; n_rows];
                values_into(&rows, coefficients.iter().copied(), 0.1, &mut out);
                let plain = rows
                    .chunks_exact(n_features)
                    .map(|row| value(row, coefficients.iter().copied(), 0.1) as f32);
                assert!(
                    plain.map(f32::to_bits).eq(out.into_iter().map(f32::to_bits)),
                    "{n_features} {n_rows}"
                );
            }
        }
    }
}
