//! `Q5_0`: `f16` scale, 32 fifth bits, 32 nibbles. A value is (code - 16) * scale.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q5_0_ref`, `quantize_row_q5_0_impl` with importance,
//! `dequantize_row_q5_0`); layout: `block_q5_0` of `ggml-common.h`.

use crate::blocks::bits::{add_fifth_bits, part, part_mut, read_nibbles, write_fifth_bits, write_nibbles};
use crate::blocks::extremes::{inverse, signed_largest};
use crate::blocks::k_search;
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::truncate;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], importance: Option<Importance<'_, 32>>, out: &mut [u8; 22]) {
    let (scale, codes) = match importance {
        None => nearest(x),
        Some(importance) => k_search::signed(&importance.by_row(x), 16, x),
    };
    write_f16(out, 0, scale);
    write_fifth_bits(&codes, part_mut(out, 2));
    write_nibbles(&codes, part_mut(out, 6));
}

/// The value with the largest magnitude gets code 0.
#[inline(always)]
fn nearest(x: &[f32; 32]) -> (f32, [u8; 32]) {
    let scale = signed_largest(x) / -16.0;
    let inverse = inverse(scale);
    // Clamped as in the reference: to a signed byte, then to the largest code.
    (scale, each(x, |value| (truncate(value * inverse + 16.5) as i8).min(31) as u8))
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 22], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    let mut codes = read_nibbles(part(block, 6));
    add_fifth_bits(&mut codes, part(block, 2));
    for (value, code) in out.iter_mut().zip(&codes) {
        *value = f32::from(*code as i8 - 16) * scale;
    }
}
