//! `Q4_0`: `f16` scale, 32 nibbles. A value is (code - 8) * scale.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q4_0_ref`, `quantize_row_q4_0_impl` with importance,
//! `dequantize_row_q4_0`); layout: `block_q4_0` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut, read_nibbles, write_nibbles};
use crate::blocks::extremes::{inverse, signed_largest};
use crate::blocks::k_search;
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::truncate;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], importance: Option<Importance<'_, 32>>, out: &mut [u8; 18]) {
    let (scale, codes) = match importance {
        None => nearest(x),
        Some(importance) => k_search::signed(&importance.by_row(x), 8, x),
    };
    write_f16(out, 0, scale);
    write_nibbles(&codes, part_mut(out, 2));
}

/// The value with the largest magnitude gets code 0.
#[inline(always)]
pub(crate) fn nearest(x: &[f32; 32]) -> (f32, [u8; 32]) {
    let scale = signed_largest(x) / -8.0;
    let inverse = inverse(scale);
    // Clamped as in the reference: to a signed byte, then to the largest code.
    (scale, each(x, |value| (truncate(value * inverse + 8.5) as i8).min(15) as u8))
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 18], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    let codes = read_nibbles(part(block, 2));
    for (value, code) in out.iter_mut().zip(&codes) {
        *value = f32::from(*code as i8 - 8) * scale;
    }
}
