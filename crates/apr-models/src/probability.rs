//! Places for probabilities.

use crate::error::{Error, ErrorKind};
use crate::kernels::activations;
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

/// Writes the softmax of the scores, computed in `f64`.
pub(crate) fn softmax(scores: &mut [f64], out: &mut [f32]) {
    activations::softmax(scores);
    out.iter_mut().zip(scores).for_each(|(place, score)| *place = *score as f32);
}
