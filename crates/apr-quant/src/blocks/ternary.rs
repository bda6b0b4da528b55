//! What the ternary formats have in common.

use crate::inline::shared;
use crate::round::round_away;

shared! {
    /// The digit of a number that was divided by the scale: 0, 1 or 2 for -1, 0 or 1.
    ///
    /// What is not finite has the digit 1: on x86-64 it becomes the smallest 64-bit integer, of which 32 bits are left.
    pub(super) fn digit(scaled: f32) -> u8 {
        if scaled.is_finite() { (round_away(scaled) as i32).wrapping_add(1) as u8 } else { 1 }
    }

    /// The number that a digit stands for.
    pub(super) fn value(digit: u8, scale: f32) -> f32 {
        (f32::from(digit) - 1.0) * scale
    }
}
