//! `Q1_0`: `f16` scale, 128 signs. A decoded value is the mean magnitude with the stored sign; zeros are positive.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q1_0_ref`, `dequantize_row_q1_0`); layout: `block_q1_0` of
//! `ggml-common.h`.

use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 128], _importance: Option<Importance<'_, 128>>, out: &mut [u8; 18]) {
    let mut sum = 0.0;
    for value in x {
        sum += value.abs();
    }
    write_f16(out, 0, sum / 128.0);
    for (byte, values) in out[2..].iter_mut().zip(x.chunks_exact(8)) {
        *byte = (0..).zip(values).map(|(bit, value)| u8::from(*value >= 0.0) << bit).sum();
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 18], out: &mut [f32; 128]) {
    let scale = read_f16(block, 0);
    for (values, byte) in out.chunks_exact_mut(8).zip(&block[2..]) {
        for (bit, value) in values.iter_mut().enumerate() {
            *value = if byte >> bit & 1 == 1 { scale } else { -scale };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_sign_and_the_mean_are_left() {
        let mut x = [1.0; 128];
        (x[0], x[9], x[10], x[127]) = (-3.0, -0.5, -0.0, -1.5);
        let (mut block, mut back) = ([0; 18], [9.0; 128]);
        encode(&x, None, &mut block);
        assert_eq!((block[2], block[3], block[17]), (0xfe, 0xfd, 0x7f));
        decode(&block, &mut back);
        assert_eq!((back[0], back[1], back[10]), (-1.0078125, 1.0078125, 1.0078125));
    }
}
