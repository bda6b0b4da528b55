//! `NVFP4`: four groups of 16 four-bit floats (E2M1), each with an unsigned eight-bit float (UE4M3) as scale.
//!
//! Bytes 0 to 3 are the scales, followed by eight bytes of codes per group. Scales range from 2^-9 to 240; for 256 and more the
//! reference writes the largest one, 448. Values beyond six times the scale are clamped to that.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_nvfp4_ref`, `dequantize_row_nvfp4`); layout: `block_nvfp4` of
//! `ggml-common.h`.

use crate::blocks::fp4::{codes, pack, unpack};
use crate::importance::Importance;

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 64], _importance: Option<Importance<'_, 64>>, out: &mut [u8; 36]) {
    let (scales, bytes) = out.split_at_mut(4);
    let (groups, _) = x.as_chunks::<16>();
    for ((group, scale), bytes) in groups.iter().zip(scales).zip(bytes.chunks_exact_mut(8)) {
        let mut largest = 0.0;
        for value in group {
            largest = if largest < value.abs() { value.abs() } else { largest };
        }
        *scale = scale_code(largest / 6.0);
        pack(&codes(group, half_scale(*scale)), bytes);
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 36], out: &mut [f32; 64]) {
    let (scales, bytes) = block.split_at(4);
    for ((out, &scale), bytes) in out.chunks_exact_mut(16).zip(scales).zip(bytes.chunks_exact(8)) {
        unpack(bytes, half_scale(scale), out);
    }
}

/// The nearest scale, rounded by the first dropped bit.
#[inline(always)]
fn scale_code(value: f32) -> u8 {
    /// The largest scale: 7f would be not-a-number.
    const LARGEST: u8 = 0x7e;
    if value < f32::from_bits(121 << 23) {
        // Below 2^-6: multiples of 2^-9, of which seven are subnormal.
        return ((value * 512.0 + 0.5) as u8).min(7);
    }
    if value >= 256.0 {
        return LARGEST;
    }
    if value.is_nan() {
        return 0;
    }
    // Four bits of exponent, counted from 2^-7, three of mantissa, and the one that rounds.
    let code = ((value.to_bits() >> 19) - (120 << 4)).div_ceil(2) as u8;
    if code >= 0x78 { LARGEST } else { code }
}

/// Half of the value of a scale; 0 for 7f. The highest bit is ignored.
#[inline(always)]
fn half_scale(code: u8) -> f32 {
    let code = if code == 0x7f { 0 } else { code & 0x7f };
    let magnitude = u32::from(code) << 20;
    // 2^119: the exponent of an `f32` starts 120 below, and the scale is halved. Exact, for subnormal numbers too.
    f32::from_bits(magnitude) * f32::from_bits((127 + 119) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_that_is_written_reads_as_itself() {
        for code in (0..0x78).chain([0x7e]) {
            assert_eq!(scale_code(2.0 * half_scale(code)), code);
        }
        assert_eq!(
            [1, 8, 0x38, 0x7e, 0x7f, 0xb8].map(half_scale),
            [1.0 / 1024.0, 1.0 / 128.0, 0.5, 224.0, 0.0, 0.5]
        );
    }

    #[test]
    fn scales_round_at_the_first_dropped_bit() {
        let cases =
            [(0.0, 0), (1.0 / 1024.0, 1), (0.000_976, 0), (0.0146, 7), (1.0625, 0x39), (1.0624, 0x38)];
        for (value, code) in cases {
            assert_eq!(scale_code(value), code, "{value}");
        }
        assert_eq!(
            [247.9, 248.0, 255.9, 256.0, 1e30, f32::INFINITY].map(scale_code),
            [0x77, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e]
        );
        assert_eq!([-0.0, f32::NAN].map(scale_code), [0, 0]);
    }
}
