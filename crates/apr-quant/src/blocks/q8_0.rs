//! `Q8_0`: `f16` scale, 32 signed bytes. A value is code * scale.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q8_0_ref`, `dequantize_row_q8_0`); layout: `block_q8_0` of
//! `ggml-common.h`.

use crate::blocks::extremes::{inverse, largest};
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::{round_away, truncate};

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], _importance: Option<Importance<'_, 32>>, out: &mut [u8; 34]) {
    let scale = largest(x) / 127.0;
    let inverse = inverse(scale);
    write_f16(out, 0, scale);
    for (code, value) in out[2..].iter_mut().zip(x) {
        *code = truncate(round_away(value * inverse)) as u8;
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 34], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    for (value, code) in out.iter_mut().zip(&block[2..]) {
        *value = f32::from(code.cast_signed()) * scale;
    }
}
