//! `Q5_1`: `f16` scale and minimum, 32 fifth bits, 32 nibbles. A value is code * scale + minimum.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q5_1_ref`, `quantize_row_q5_1_impl` with importance,
//! `dequantize_row_q5_1`); layout: `block_q5_1` of `ggml-common.h`.

use crate::blocks::bits::{add_fifth_bits, part, part_mut, read_nibbles, write_fifth_bits, write_nibbles};
use crate::blocks::extremes::{inverse, span};
use crate::blocks::k_search;
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::truncate;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], importance: Option<Importance<'_, 32>>, out: &mut [u8; 24]) {
    let (scale, min, codes) = match importance {
        None => nearest(x),
        Some(importance) => {
            let found = k_search::span(&k_search::WEIGHTED, &importance.by_row(x), 31, x);
            (found.scale, -found.min, found.codes)
        }
    };
    write_f16(out, 0, scale);
    write_f16(out, 2, min);
    write_fifth_bits(&codes, part_mut(out, 4));
    write_nibbles(&codes, part_mut(out, 8));
}

/// The smallest value gets code 0, the largest code 31.
#[inline(always)]
fn nearest(x: &[f32; 32]) -> (f32, f32, [u8; 32]) {
    let (min, max) = span(x);
    let scale = (max - min) / 31.0;
    let inverse = inverse(scale);
    (scale, min, each(x, |value| truncate((value - min) * inverse + 0.5) as u8))
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 24], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    let min = read_f16(block, 2);
    let mut codes = read_nibbles(part(block, 8));
    add_fifth_bits(&mut codes, part(block, 4));
    for (value, code) in out.iter_mut().zip(&codes) {
        *value = f32::from(*code) * scale + min;
    }
}
