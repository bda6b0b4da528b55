//! `Q8_1`: `f16` scale, `f16` of the scale times the sum of the codes, 32 signed bytes.
//!
//! The sum may be infinite where the values are not: only products need it.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q8_1_ref`); layout: `block_q8_1` of `ggml-common.h`.

use crate::blocks::extremes::{inverse, largest};
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::{round_away, truncate};

/// The reference has no importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], _importance: Option<Importance<'_, 32>>, out: &mut [u8; 36]) {
    let scale = largest(x) / 127.0;
    let inverse = inverse(scale);
    let codes = each(x, |value| truncate(round_away(value * inverse)) as i8);
    let sum: i32 = codes.iter().map(|&code| i32::from(code)).sum();
    write_f16(out, 0, scale);
    write_f16(out, 2, sum as f32 * scale);
    for (byte, code) in out[4..].iter_mut().zip(codes) {
        *byte = code.cast_unsigned();
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 36], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    for (value, code) in out.iter_mut().zip(&block[4..]) {
        *value = f32::from(code.cast_signed()) * scale;
    }
}
