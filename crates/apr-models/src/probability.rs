//! Converts scores to probabilities.

use crate::error::{Error, ErrorKind};
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
