//! Extreme values of a block, from which its scale is computed.

use crate::inline::shared;

shared! {
    /// The first value with the largest magnitude, with its sign; zero if all are zero.
    pub(crate) fn signed_largest(x: &[f32]) -> f32 {
        let (mut magnitude, mut signed) = (0.0, 0.0);
        for &value in x {
            if magnitude < value.abs() {
                (magnitude, signed) = (value.abs(), value);
            }
        }
        signed
    }

    /// The largest magnitude. Not-a-number replaces the values before it and is replaced by the next value.
    pub(crate) fn largest(x: &[f32]) -> f32 {
        let mut largest = 0.0;
        for value in x {
            largest = if largest > value.abs() { largest } else { value.abs() };
        }
        largest
    }

    /// The first minimum and the first maximum: of two zeros, the sign of the first is kept.
    pub(crate) fn span(x: &[f32]) -> (f32, f32) {
        let (mut min, mut max) = (f32::MAX, f32::MIN);
        for &value in x {
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
        }
        (min, max)
    }
}

/// The inverse of a step; zero for a step of zero.
#[inline(always)]
pub(crate) fn inverse(step: f32) -> f32 {
    if step == 0.0 { 0.0 } else { 1.0 / step }
}
