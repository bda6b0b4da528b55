//! `AprQ8`, the 8-bit integers of `.apr` files: one `f32` scale for the whole tensor, then a signed byte per element. A value
//! is code * scale.
//!
//! The scale is the largest magnitude divided by 127, or 1 for a tensor of zeros.

use crate::blocks::extremes::largest;
use crate::round::{round_away, truncate};

/// The scale of a tensor.
#[inline(always)]
pub(crate) fn scale(x: &[f32]) -> f32 {
    let largest = largest(x);
    if largest == 0.0 { 1.0 } else { largest / 127.0 }
}

/// Encodes the first `out.len()` values with the scale of their tensor.
#[inline(always)]
pub(crate) fn encode(x: &[f32], scale: f32, out: &mut [u8]) {
    for (code, value) in out.iter_mut().zip(x) {
        *code = truncate(round_away(value / scale)).clamp(-127, 127) as u8;
    }
}

/// Decodes codes to values.
#[inline(always)]
pub(crate) fn decode(codes: &[u8], scale: f32, out: &mut [f32]) {
    for (value, code) in out.iter_mut().zip(codes) {
        *value = f32::from(code.cast_signed()) * scale;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_has_code_127() {
        let x = [-254.0, 1.0, 3.0, 0.0];
        let (mut codes, mut back) = ([9; 4], [9.0; 4]);
        assert_eq!(scale(&x), 2.0);
        encode(&x, 2.0, &mut codes);
        assert_eq!(codes, [0x81, 1, 2, 0]);
        decode(&codes, 2.0, &mut back);
        assert_eq!(back, [-254.0, 2.0, 4.0, 0.0]);
        assert_eq!(scale(&[0.0, -0.0]), 1.0);
    }
}
