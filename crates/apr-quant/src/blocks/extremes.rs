//! What the scale of a block comes from.

use crate::inline::shared;

shared! {
    /// The first number of the largest magnitude, with its sign; zero if all are zero.
    pub(crate) fn signed_largest(x: &[f32]) -> f32 {
        let (mut magnitude, mut signed) = (0.0, 0.0);
        for &value in x {
            if magnitude < value.abs() {
                (magnitude, signed) = (value.abs(), value);
            }
        }
        signed
    }

    /// The largest magnitude. Not-a-number wins against what came before it and loses against what comes after.
    pub(crate) fn largest(x: &[f32]) -> f32 {
        let mut largest = 0.0;
        for value in x {
            largest = if largest > value.abs() { largest } else { value.abs() };
        }
        largest
    }

    /// The first smallest and the first largest number: of two zeros, the sign of the first stays.
    pub(crate) fn span(x: &[f32]) -> (f32, f32) {
        let (mut min, mut max) = (f32::MAX, f32::MIN);
        for &value in x {
            min = if value < min { value } else { min };
            max = if value > max { value } else { max };
        }
        (min, max)
    }
}

/// One divided by a step; zero for a step of zero.
#[inline(always)]
pub(crate) fn inverse(step: f32) -> f32 {
    if step == 0.0 { 0.0 } else { 1.0 / step }
}
