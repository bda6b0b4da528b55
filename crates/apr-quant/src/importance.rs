//! Importance weights of elements.

use libm::sqrtf;

use crate::inline::shared;

/// The weights of a block's elements, and the mean square of their row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance<'w, const LEN: usize> {
    /// One weight per element of the block.
    pub(crate) weights: &'w [f32; LEN],
    /// Mean of the squares of the row.
    pub(crate) row_sigma2: f32,
}

impl<const LEN: usize> Importance<'_, LEN> {
    /// Weights times `sqrt(s + x * x)`, with the mean square `s` of the row.
    #[inline(always)]
    pub(crate) fn by_row(&self, x: &[f32; LEN]) -> [f32; LEN] {
        self.by(self.row_sigma2, x)
    }

    /// Weights times `sqrt(sigma2 + x * x)`.
    #[inline(always)]
    pub(crate) fn by(&self, sigma2: f32, x: &[f32; LEN]) -> [f32; LEN] {
        let mut weights = *self.weights;
        for (weight, value) in weights.iter_mut().zip(x) {
            *weight *= sqrtf(sigma2 + value * value);
        }
        weights
    }
}

shared! {
    /// Sum of the squares, added in order.
    pub(crate) fn sum_of_squares(values: &[f32]) -> f32 {
        let mut sum = 0.0;
        for value in values {
            sum += value * value;
        }
        sum
    }
}
