//! `Q2_K`: 16 groups of 16 with 4-bit scales and minima, 2-bit codes, and two `f16` factors for scales and minima.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q2_K_ref`, `quantize_row_q2_K_impl` with importance,
//! `dequantize_row_q2_K`); layout: `block_q2_K` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::groups::{
    Scales, codes_with, groups, groups_mut, largest_positive, search_spans, weights_of,
};
use crate::blocks::k_search::{self, Distance, Tries, WEIGHTED};
use crate::blocks::two_bit;
use crate::each::each;
use crate::half_float::{f16_bits, f16_value, read_f16, write_f16};
use crate::importance::{Importance, sum_of_squares};
use crate::round::nearest_int;

pub(crate) const TRIES: Tries = Tries { first: -0.5, delta: 0.1, count: 15, error: Distance::Absolute };

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 84]) {
    let mut codes = [0; 256];
    let found = match importance {
        None => {
            let (scales, mins) = search_spans::<16, 16>(&TRIES, 3, x, &mut codes, |_, x| each(x, f32::abs));
            linear(&scales, &mins)
        }
        Some(importance) => {
            let (weights, sums) = weights_of::<16, 16>(&importance, sum_of_squares(x) / 256.0, x);
            let (scales, mins) = search_spans(&WEIGHTED, 3, x, &mut codes, |idx, _| weights[idx]);
            let (scale, scales) = k_search::unsigned(&sums, 15, &scales);
            let (min, mins) = k_search::unsigned(&sums, 15, &mins);
            Scales { scale, min, scales, mins }
        }
    };
    write(&found, x, &mut codes, out);
}

/// As [`encode`], with given scales and minima, without importance.
#[inline(always)]
pub(crate) fn encode_found(x: &[f32; 256], scales: &[f32; 16], mins: &[f32; 16], out: &mut [u8; 84]) {
    let mut codes = [0; 256];
    let found = linear(scales, mins);
    let scale = f16_value(f16_bits(found.scale));
    let bytes = bytes(&found);
    for (idx, (x, codes)) in groups(x).iter().zip(groups_mut(&mut codes)).enumerate() {
        if scale * f32::from(bytes[idx] & 0x0f) == 0.0 {
            *codes = k_search::span::<16>(&TRIES, &each(x, f32::abs), 3, x).codes;
        }
    }
    write(&found, x, &mut codes, out);
}

/// Bits of a scale's code above the fourth overlap the minimum's code, as in the reference.
#[inline(always)]
fn bytes(found: &Scales<16>) -> [u8; 16] {
    let mut bytes = found.scales;
    for (byte, min) in bytes.iter_mut().zip(&found.mins) {
        *byte |= min << 4;
    }
    bytes
}

#[inline(always)]
fn write(found: &Scales<16>, x: &[f32; 256], codes: &mut [u8; 256], out: &mut [u8; 84]) {
    let (scale, min) = (f16_value(f16_bits(found.scale)), f16_value(f16_bits(found.min)));
    let bytes = bytes(found);
    codes_with::<16>(x, codes, 0, 3, |idx| {
        (scale * f32::from(bytes[idx] & 0x0f), min * f32::from(bytes[idx] >> 4))
    });
    *part_mut(out, 0) = bytes;
    two_bit::write(codes, part_mut(out, 16));
    write_f16(out, 80, found.scale);
    write_f16(out, 82, found.min);
}

/// The largest scale and the largest minimum get code 15.
#[inline(always)]
fn linear(scales: &[f32; 16], mins: &[f32; 16]) -> Scales<16> {
    let codes = |numbers: &[f32; 16]| {
        let largest = largest_positive(numbers);
        let inverse = 15.0 / largest;
        let code = |number: f32| if largest > 0.0 { nearest_int(inverse * number) as u8 } else { 0 };
        (largest / 15.0, each(numbers, code))
    };
    let ((scale, scales), (min, mins)) = (codes(scales), codes(mins));
    Scales { scale, min, scales, mins }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 84], out: &mut [f32; 256]) {
    let scales: &[u8; 16] = part(block, 0);
    let (scale, min) = (read_f16(block, 80), read_f16(block, 82));
    *out = each(&two_bit::read(part(block, 16)), f32::from);
    for (out, scales) in groups_mut::<_, 16>(out).iter_mut().zip(scales) {
        let (scale, min) = (scale * f32::from(scales & 0x0f), min * f32::from(scales >> 4));
        *out = each(out, |code| scale * code - min);
    }
}
