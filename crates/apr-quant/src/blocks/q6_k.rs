//! `Q6_K`: 16 groups of 16 with signed 8-bit scales and 6-bit codes: four bits in nibbles, two packed four per byte.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q6_K_ref`, `quantize_row_q6_K_impl` with importance,
//! `dequantize_row_q6_K`); layout: `block_q6_K` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::extremes::signed_largest;
use crate::blocks::groups::{codes_with, groups, groups_mut};
use crate::blocks::k_search::{self, ZERO};
use crate::each::each;
use crate::half_float::{f16_bits, f16_value, read_f16, write_f16};
use crate::importance::Importance;
use crate::round::nearest_int;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 210]) {
    let mut codes = [0; 256];
    let mut found = [0.0; 16];
    for (idx, (x, codes)) in groups(x).iter().zip(groups_mut(&mut codes)).enumerate() {
        let weights = match importance {
            None => each(x, |value| value * value),
            Some(importance) => groups(importance.weights)[idx],
        };
        (found[idx], *codes) = k_search::signed::<16>(&weights, 32, x);
    }
    write(x, &found, &mut codes, |_| None, out);
}

/// As [`encode`], with given scales, without importance.
#[inline(always)]
pub(crate) fn encode_found(x: &[f32; 256], found: &[f32; 16], out: &mut [u8; 210]) {
    let search = |x: &[f32; 16]| Some(k_search::signed(&each(x, |value| value * value), 32, x).1);
    write(x, found, &mut [0; 256], search, out);
}

/// `search` computes the codes of a group whose stored scale is zero, if they are not given.
#[inline(always)]
fn write(
    x: &[f32; 256],
    found: &[f32; 16],
    codes: &mut [u8; 256],
    search: impl Fn(&[f32; 16]) -> Option<[u8; 16]>,
    out: &mut [u8; 210],
) {
    let largest = signed_largest(found);
    if largest.abs() < ZERO {
        out.fill(0);
        return;
    }
    let inverse = -128.0 / largest;
    let scale = 1.0 / inverse;
    let stored = f16_value(f16_bits(scale));
    let scales = each(found, |scale| nearest_int(inverse * scale).min(127) as i8);
    for ((x, codes), &code) in groups(x).iter().zip(groups_mut(codes)).zip(&scales) {
        if stored * f32::from(code) == 0.0 {
            *codes = search(x).unwrap_or(*codes);
        }
    }
    codes_with::<16>(x, codes, -32, 31, |idx| (stored * f32::from(scales[idx]), 0.0));
    for half in 0..2 {
        for idx in 0..32 {
            let code = |quarter: usize| codes[128 * half + 32 * quarter + idx];
            let low = |quarter| code(quarter) & 0x0f;
            out[64 * half + idx] = low(0) | low(2) << 4;
            out[64 * half + 32 + idx] = low(1) | low(3) << 4;
            let high = |quarter: usize| code(quarter) >> 4 << (2 * quarter);
            out[128 + 32 * half + idx] = high(0) | high(1) | high(2) | high(3);
        }
    }
    *part_mut(out, 192) = each(&scales, i8::cast_unsigned);
    write_f16(out, 208, scale);
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, high): (&[u8; 128], &[u8; 64]) = (part(block, 0), part(block, 128));
    let mut codes = [0_u8; 256];
    for half in 0..2 {
        for idx in 0..32 {
            let (first, second) = (low[64 * half + idx], low[64 * half + 32 + idx]);
            let nibbles = [first & 0x0f, second & 0x0f, first >> 4, second >> 4];
            let high = high[32 * half + idx];
            for (quarter, nibble) in nibbles.into_iter().enumerate() {
                codes[128 * half + 32 * quarter + idx] = nibble | (high >> (2 * quarter) & 3) << 4;
            }
        }
    }
    let scale = read_f16(block, 208);
    let scales: &[u8; 16] = part(block, 192);
    for ((out, codes), code) in groups_mut::<_, 16>(out).iter_mut().zip(groups(&codes)).zip(scales) {
        let scale = scale * f32::from(code.cast_signed());
        *out = each(codes, |code| scale * f32::from(code.cast_signed() - 32));
    }
}
