//! How much each element counts.

/// The weights of one block's elements, and what their row tells about the size of errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance<'w, const LEN: usize> {
    /// One weight per element of the block.
    pub(crate) weights: &'w [f32; LEN],
    /// Sum of the squares of the row, in order, divided by its length.
    pub(crate) row_sigma2: f32,
}

/// Mean of the squares, added up in order.
#[inline(always)]
pub(crate) fn mean_square(values: &[f32]) -> f32 {
    let mut sum = 0.0;
    for value in values {
        sum += value * value;
    }
    sum / values.len() as f32
}
