//! Digits of the ternary formats.

use crate::inline::shared;
use crate::round::round_away;

shared! {
    /// The digit of a value that was divided by the scale: 0, 1 or 2 for -1, 0 or 1.
    ///
    /// Values that are not finite have the digit 1: on x86-64 they convert to the smallest 64-bit integer, whose lower 32 bits
    /// are zero.
    pub(super) fn digit(scaled: f32) -> u8 {
        if scaled.is_finite() { (round_away(scaled) as i32).wrapping_add(1) as u8 } else { 1 }
    }

    /// The value of a digit.
    pub(super) fn value(digit: u8, scale: f32) -> f32 {
        (f32::from(digit) - 1.0) * scale
    }
}
