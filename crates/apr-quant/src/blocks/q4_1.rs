//! `Q4_1`: `f16` scale and minimum, 32 nibbles. A value is code * scale + minimum.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q4_1_ref`, `quantize_row_q4_1_impl` with importance,
//! `dequantize_row_q4_1`); layout: `block_q4_1` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut, read_nibbles, write_nibbles};
use crate::blocks::extremes::{inverse, span};
use crate::blocks::k_search;
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::round::truncate;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], importance: Option<Importance<'_, 32>>, out: &mut [u8; 20]) {
    let (scale, min, codes) = match importance {
        None => nearest(x),
        Some(importance) => {
            let found = k_search::span(&k_search::WEIGHTED, &importance.by_row(x), 15, x);
            (found.scale, -found.min, found.codes)
        }
    };
    write_f16(out, 0, scale);
    write_f16(out, 2, min);
    write_nibbles(&codes, part_mut(out, 4));
}

/// The smallest value gets code 0, the largest code 15.
#[inline(always)]
fn nearest(x: &[f32; 32]) -> (f32, f32, [u8; 32]) {
    let (min, max) = span(x);
    let scale = (max - min) / 15.0;
    let inverse = inverse(scale);
    (scale, min, each(x, |value| (truncate((value - min) * inverse + 0.5) as i8).min(15) as u8))
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 20], out: &mut [f32; 32]) {
    let scale = read_f16(block, 0);
    let min = read_f16(block, 2);
    let codes = read_nibbles(part(block, 4));
    for (value, code) in out.iter_mut().zip(&codes) {
        *value = f32::from(*code) * scale + min;
    }
}
