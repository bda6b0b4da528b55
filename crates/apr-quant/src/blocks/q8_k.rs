//! `Q8_K`: `f32` scale, 256 signed bytes, 16 sums of 16 codes each.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q8_K_ref`, `dequantize_row_q8_K`); layout: `block_q8_K` of
//! `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::extremes::signed_largest;
use crate::importance::Importance;
use crate::round::nearest_int;

/// The value with the largest magnitude gets code -127.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], _importance: Option<Importance<'_, 256>>, out: &mut [u8; 292]) {
    let largest = signed_largest(x);
    if largest == 0.0 {
        out.fill(0);
        return;
    }
    let inverse = -127.0 / largest;
    let codes: &mut [u8; 256] = part_mut(out, 4);
    for (code, value) in codes.iter_mut().zip(x) {
        *code = nearest_int(inverse * value).min(127) as u8;
    }
    let mut sums = [0; 32];
    for (sum, codes) in sums.chunks_exact_mut(2).zip(codes.chunks_exact(16)) {
        let total: i16 = codes.iter().map(|code| i16::from(code.cast_signed())).sum();
        sum.copy_from_slice(&total.to_le_bytes());
    }
    *part_mut(out, 260) = sums;
    *part_mut(out, 0) = (1.0 / inverse).to_le_bytes();
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 292], out: &mut [f32; 256]) {
    let scale = f32::from_le_bytes(*part(block, 0));
    for (value, code) in out.iter_mut().zip(part::<256>(block, 4)) {
        *value = scale * f32::from(code.cast_signed());
    }
}
