//! How much each element counts.

use libm::sqrtf;

use crate::inline::shared;

/// The weights of one block's elements, and what their row tells about the size of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance<'w, const LEN: usize> {
    /// One weight per element of the block.
    pub(crate) weights: &'w [f32; LEN],
    /// Mean of the squares of the row.
    pub(crate) row_sigma2: f32,
}

impl<const LEN: usize> Importance<'_, LEN> {
    /// Weights that count with the number and the size of numbers in its row.
    #[inline(always)]
    pub(crate) fn by_row(&self, x: &[f32; LEN]) -> [f32; LEN] {
        self.by(self.row_sigma2, x)
    }

    /// Weights that count with the number and this mean square.
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
    /// The squares, added up in order.
    pub(crate) fn sum_of_squares(values: &[f32]) -> f32 {
        let mut sum = 0.0;
        for value in values {
            sum += value * value;
        }
        sum
    }
}
