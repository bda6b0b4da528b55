//! `MXFP4`: one exponent byte (E8M0), 32 four-bit floats (E2M1).
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_mxfp4_ref`, `dequantize_row_mxfp4`); layout: `block_mxfp4` of
//! `ggml-common.h`.

use crate::blocks::fp4::{codes, pack, unpack};
use crate::importance::Importance;

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], _importance: Option<Importance<'_, 32>>, out: &mut [u8; 17]) {
    let mut largest = 0.0;
    for value in x {
        largest = if largest < value.abs() { value.abs() } else { largest };
    }
    out[0] = if largest > 0.0 { (floor_log2(largest) - 2 + 127) as u8 } else { 0 };
    let codes = codes(x, half_scale(out[0]));
    pack(&codes, &mut out[1..]);
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 17], out: &mut [f32; 32]) {
    unpack(&block[1..], half_scale(block[0]), out);
}

/// Half of the scale: 2^(exponent - 128).
#[inline(always)]
pub(crate) fn half_scale(exponent: u8) -> f32 {
    let exponent = u32::from(exponent);
    f32::from_bits(if exponent < 2 { 0x0020_0000 << exponent } else { (exponent - 1) << 23 })
}

/// Base-2 logarithm of a positive value, rounded to the nearest `f32`, then down.
///
/// The first rounding matters: up to 44 floats below a power of two have a logarithm that rounds to an integer. Their
/// distance from it is `k` 2^-24 / ln 2 for the `k`-th of them; half a unit in the last place of a logarithm between 64
/// and 128 is 44.4 times as much, and half as much with each halving of the logarithm.
#[inline(always)]
fn floor_log2(value: f32) -> i32 {
    let bits = value.to_bits();
    if bits < 0x0080_0000 {
        // Subnormal: the exponent is the position of the highest bit. No logarithm rounds up to an integer: that needs a value
        // within 44 units in the last place of a power of two, and subnormal numbers do not have that precision.
        return bits.ilog2().cast_signed() - 149;
    }
    let exponent = (bits >> 23).cast_signed() - 127;
    // Whole numbers just above it share the size of its rounding errors, seen from zero.
    let nearer = if exponent >= 0 { exponent } else { -(exponent + 1) };
    let below = 0x0080_0000 - (bits & 0x007f_ffff);
    let within = match nearer {
        0 => 0,
        _ => 44 >> (6 - nearer.ilog2()),
    };
    if below <= within { exponent + 1 } else { exponent }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A logarithm from the series of the distance to the power of two above: good to 60 bits where it is needed.
    fn rounded_log2(exponent: i32, below: u32) -> f32 {
        let part = f64::from(below) / f64::from(1 << 24);
        let natural = -(part + part * part / 2.0 + part * part * part / 3.0);
        (f64::from(exponent + 1) + natural * core::f64::consts::LOG2_E) as f32
    }

    #[test]
    fn logarithms_are_rounded_before_they_are_cut() {
        for exponent in -126..128 {
            for below in 1..200 {
                let value = f32::from_bits((((exponent + 128) as u32) << 23) - below);
                let expected = libm::floorf(rounded_log2(exponent, below)) as i32;
                assert_eq!(floor_log2(value), expected, "{below} below 2^{}", exponent + 1);
            }
            assert_eq!(floor_log2(f32::from_bits(((exponent + 127) as u32) << 23)), exponent);
        }
        assert_eq!(
            [1, 2, 3, 0x007f_ffff].map(|bits| floor_log2(f32::from_bits(bits))),
            [-149, -148, -148, -127]
        );
    }

    #[test]
    fn the_largest_number_is_four_to_eight_times_the_scale() {
        let mut x = [0.0; 32];
        (x[3], x[19]) = (-6.0, 1.5);
        let (mut block, mut back) = ([0; 17], [9.0; 32]);
        encode(&x, None, &mut block);
        assert_eq!((block[0], block[4]), (127, 0x3f));
        decode(&block, &mut back);
        assert_eq!(back, x);
    }

    #[test]
    fn the_smallest_exponents_are_subnormal() {
        assert_eq!(
            [0, 1, 2, 128].map(half_scale),
            [5.877_472e-39 / 2.0, 5.877_472e-39, 1.175_494_4e-38, 1.0]
        );
    }
}
