//! Converts scores to probabilities.

use alloc::vec;

use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::model;

/// Proves that `out` has a place for each of `n_outputs` values of each sample in `rows`.
pub(crate) fn check_outputs(
    rows: &[f32],
    given: usize,
    n_features: usize,
    n_outputs: usize,
) -> Result<(), Error> {
    match given.checked_rem(n_outputs) {
        Some(0) => model::check_rows(rows, given / n_outputs, n_features),
        _ => {
            let n_rows = rows.len() / n_features.max(1);
            Err(ErrorKind::OutputLength { needed: n_rows.saturating_mul(n_outputs), given }.into())
        }
    }
}

/// As [`check_outputs`] for one value a class.
pub(crate) fn check_probabilities(
    rows: &[f32],
    out: &[f32],
    n_features: usize,
    n_classes: usize,
) -> Result<(), Error> {
    check_outputs(rows, out.len(), n_features, n_classes)
}

/// `exp` of each score over the sum of all, scores first lowered so that the largest is 0.
pub(crate) fn softmax(scores: &mut [f64], out: &mut [f32]) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for score in scores.iter_mut() {
        *score = libm::exp(*score - largest);
        sum += *score;
    }
    for (place, score) in out.iter_mut().zip(scores) {
        *place = (*score / sum) as f32;
    }
}

/// The logistic function.
pub(crate) fn sigmoid(score: f64) -> f64 {
    // Of the two forms the one whose exponential cannot overflow.
    match score >= 0.0 {
        true => 1.0 / (1.0 + libm::exp(-score)),
        false => {
            let grown = libm::exp(score);
            grown / (1.0 + grown)
        }
    }
}

/// A table of `n_cols` values for each sample that `fill` fills.
pub(crate) fn table(
    x: &Matrix,
    n_cols: usize,
    fill: impl FnOnce(&[f32], &mut [f32]) -> Result<(), Error>,
) -> Result<Matrix, Error> {
    let n_rows = x.n_rows();
    let len = n_rows.checked_mul(n_cols).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols })?;
    let mut out = vec![0.0; len];
    fill(x.as_slice(), &mut out)?;
    Matrix::from_vec(n_rows, n_cols, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_scores_stay_probabilities() {
        let mut out = [0.0; 3];
        softmax(&mut [-1e300, 1e300, 1e300], &mut out);
        assert_eq!(out, [0.0, 0.5, 0.5]);
        softmax(&mut [-4000.0, -4000.0, -4000.0], &mut out);
        assert_eq!(out, [1.0 / 3.0; 3]);
        assert_eq!((sigmoid(-1e9), sigmoid(1e9), sigmoid(0.0)), (0.0, 1.0, 0.5));
    }
}
