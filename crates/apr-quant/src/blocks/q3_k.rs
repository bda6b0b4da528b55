//! `Q3_K`: 16 groups of 16 with 6-bit scales and 3-bit codes: two bits packed four per byte, the third in a mask.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q3_K_ref`, `quantize_row_q3_K_impl` with importance,
//! `dequantize_row_q3_K`); layout: `block_q3_K` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::extremes::signed_largest;
use crate::blocks::groups::{codes_with, groups, groups_mut, weights_of};
use crate::blocks::{k_search, six_bit, two_bit};
use crate::each::each;
use crate::half_float::{f16_bits, f16_value, read_f16, write_f16};
use crate::importance::{Importance, sum_of_squares};
use crate::round::nearest_int;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 110]) {
    let mut codes = [0; 256];
    let mut found = [0.0; 16];
    let (scale, scales) = match importance {
        None => {
            for ((x, codes), scale) in groups(x).iter().zip(groups_mut(&mut codes)).zip(&mut found) {
                (*scale, *codes) = k_search::by_sweeps::<16>(4, x);
            }
            linear(&found)
        }
        Some(importance) => {
            let (weights, sums) = weights_of::<16, 16>(&importance, 2.0 * sum_of_squares(x) / 256.0, x);
            for (idx, (x, codes)) in groups(x).iter().zip(groups_mut(&mut codes)).enumerate() {
                (found[idx], *codes) = k_search::signed(&weights[idx], 4, x);
            }
            k_search::signed(&sums, 32, &found)
        }
    };
    write(scale, &scales, x, &mut codes, out);
}

/// As [`encode`], with given scales, without importance.
#[inline(always)]
pub(crate) fn encode_found(x: &[f32; 256], found: &[f32; 16], out: &mut [u8; 110]) {
    let mut codes = [0; 256];
    let (scale, scales) = linear(found);
    let stored = f16_value(f16_bits(scale));
    for (idx, (x, codes)) in groups(x).iter().zip(groups_mut(&mut codes)).enumerate() {
        if stored * (f32::from(scales[idx]) - 32.0) == 0.0 {
            (_, *codes) = k_search::by_sweeps::<16>(4, x);
        }
    }
    write(scale, &scales, x, &mut codes, out);
}

#[inline(always)]
fn write(scale: f32, scales: &[u8; 16], x: &[f32; 256], codes: &mut [u8; 256], out: &mut [u8; 110]) {
    let stored = f16_value(f16_bits(scale));
    codes_with::<16>(x, codes, -4, 3, |idx| (stored * (f32::from(scales[idx]) - 32.0), 0.0));
    write_third_bits(codes, part_mut(out, 0));
    two_bit::write(codes, part_mut(out, 32));
    six_bit::write_scales(scales, part_mut(out, 96));
    write_f16(out, 108, scale);
}

/// The scale with the largest magnitude becomes -32, stored as 0.
#[inline(always)]
fn linear(scales: &[f32; 16]) -> (f32, [u8; 16]) {
    let largest = signed_largest(scales);
    if largest == 0.0 {
        return (0.0, [0; 16]);
    }
    let inverse = -32.0 / largest;
    let code = |scale: f32| (i32::from(nearest_int(inverse * scale) as i8).clamp(-32, 31) + 32) as u8;
    (1.0 / inverse, each(scales, code))
}

/// Bit `k` of byte `l` is the third bit of code `32 k + l`.
#[inline(always)]
fn write_third_bits(codes: &[u8; 256], out: &mut [u8; 32]) {
    out.fill(0);
    for (bit, codes) in groups::<_, 32>(codes).iter().enumerate() {
        for (byte, code) in out.iter_mut().zip(codes) {
            *byte |= (code >> 2 & 1) << bit;
        }
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
    let mut codes = two_bit::read(part(block, 32));
    let mask: &[u8; 32] = part(block, 0);
    for (bit, codes) in groups_mut::<_, 32>(&mut codes).iter_mut().enumerate() {
        for (byte, code) in mask.iter().zip(codes) {
            *code |= (byte >> bit & 1) << 2;
        }
    }
    let scale = read_f16(block, 108);
    let scales = six_bit::read_scales(part(block, 96));
    for ((out, codes), code) in groups_mut::<_, 16>(out).iter_mut().zip(groups(&codes)).zip(scales) {
        let scale = scale * f32::from(code.cast_signed() - 32);
        *out = each(codes, |code| scale * f32::from(code.cast_signed() - 4));
    }
}
