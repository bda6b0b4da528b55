//! `Q2_0`: `f16` scale, 64 two-bit codes. A value is (code - 1) * scale; the scale is the largest magnitude.
//!
//! Code 3, twice the scale, is decoded but never written.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q2_0_ref`, `dequantize_row_q2_0`); layout: `block_q2_0` of
//! `ggml-common.h`.

use crate::blocks::extremes::{inverse, largest};
use crate::blocks::ternary;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::{round_away, truncate};

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 64], _importance: Option<Importance<'_, 64>>, out: &mut [u8; 18]) {
    let scale = largest(x);
    let inverse = inverse(scale);
    write_f16(out, 0, scale);
    for (byte, values) in out[2..].iter_mut().zip(x.chunks_exact(4)) {
        let code = |value: f32| truncate(round_away(value * inverse)).saturating_add(1).clamp(0, 3) as u8;
        *byte = (0..).zip(values).map(|(idx, value)| code(*value) << (2 * idx)).sum();
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 18], out: &mut [f32; 64]) {
    let scale = read_f16(block, 0);
    for (values, byte) in out.chunks_exact_mut(4).zip(&block[2..]) {
        for (idx, value) in values.iter_mut().enumerate() {
            *value = ternary::value((byte >> (2 * idx)) & 3, scale);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_byte() {
        let mut x = [0.0; 64];
        (x[0], x[1], x[3], x[63]) = (0.75, -0.75, 0.5, -0.375);
        let (mut block, mut back) = ([0; 18], [9.0; 64]);
        encode(&x, None, &mut block);
        assert_eq!((block[2], block[3], block[17]), (0b10_01_00_10, 0b01_01_01_01, 0b00_01_01_01));
        decode(&block, &mut back);
        assert_eq!(back[..4], [0.75, -0.75, 0.0, 0.75]);
        block[2] = 3;
        decode(&block, &mut back);
        assert_eq!(back[0], 1.5);
    }
}
