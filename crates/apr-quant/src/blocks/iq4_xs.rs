//! `IQ4_XS`: eight groups of 32 with 6-bit scales. A value is one of sixteen non-uniform levels times the scale of its group.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale of the scales |
//! | 2 | 2 | upper two bits of the group scales, first group lowest |
//! | 4 | 4 | lower four bits of the group scales, two per byte, first group lowest |
//! | 8 | 128 | 16 bytes of nibbles per group |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_iq4_xs_ref`, `quantize_row_iq4_nl_impl`, `dequantize_row_iq4_xs`);
//! layout: `block_iq4_xs` of `ggml-common.h`.

use crate::blocks::extremes::{inverse, signed_largest};
use crate::blocks::uneven::{decode_codes, encode_codes, search};
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::{Importance, sum_of_squares};
use crate::round::nearest_int;

/// Offset of the stored group scales, which are signed.
const OFFSET: i32 = 32;

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 136]) {
    let (groups, _) = x.as_chunks::<32>();
    let row_sigma2 = if importance.is_some() { sum_of_squares(x) * (2.0 / 256.0) } else { 0.0 };
    let mut scales = [0.0; 8];
    for (idx, (group, scale)) in groups.iter().zip(&mut scales).enumerate() {
        let weights = match importance.and_then(|importance| importance.weights.as_chunks().0.get(idx)) {
            Some(weights) => Importance { weights, row_sigma2 }.by(row_sigma2, group),
            None => each(group, |value| value * value),
        };
        *scale = search(group, &weights);
    }
    let step = -signed_largest(&scales) / 32.0;
    let (mut high, mut low) = (0, 0);
    let (_, codes) = out.as_rchunks_mut::<16>();
    for (idx, (group, codes)) in groups.iter().zip(codes).enumerate() {
        let code = nearest_int(inverse(step) * scales[idx]).clamp(-OFFSET, OFFSET - 1);
        let scale = step * code as f32;
        encode_codes(group, inverse(scale), codes);
        let stored = (code + OFFSET).cast_unsigned();
        low |= (stored & 15) << (4 * idx);
        high |= (stored >> 4) << (2 * idx);
    }
    write_f16(out, 0, step);
    out[2..4].copy_from_slice(&high.to_le_bytes()[..2]);
    out[4..8].copy_from_slice(&low.to_le_bytes());
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 136], out: &mut [f32; 256]) {
    let step = read_f16(block, 0);
    let high = u32::from(block[2]) | u32::from(block[3]) << 8;
    let low = u32::from_le_bytes([block[4], block[5], block[6], block[7]]);
    let (groups, _) = out.as_chunks_mut::<32>();
    let (_, codes) = block.as_rchunks::<16>();
    // The groups begin after eight bytes, which is not a multiple of sixteen.
    for (idx, (group, codes)) in groups.iter_mut().zip(codes).enumerate() {
        let stored = (low >> (4 * idx)) & 15 | ((high >> (2 * idx)) & 3) << 4;
        let scale = step * (stored.cast_signed() - OFFSET) as f32;
        decode_codes(codes, scale, group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_scales_are_put_together_from_both_places() {
        let mut block = [0; 136];
        write_f16(&mut block, 0, 1.0);
        // Group 0: 32 - 32; group 7: 63 - 32.
        block[2] = 0b10;
        block[3] = 0b1100_0000;
        block[7] = 0xf0;
        block[8 + 7 * 16] = 0x0f;
        let mut out = [9.0; 256];
        decode(&block, &mut out);
        assert_eq!((out[0], out[224], out[225], out[32]), (0.0, 31.0 * 113.0, 31.0 * -127.0, -32.0 * -127.0));
    }

    #[test]
    fn a_block_of_zeros_stays_one() {
        let (mut block, mut back) = ([1; 136], [1.0; 256]);
        encode(&[0.0; 256], None, &mut block);
        decode(&block, &mut back);
        assert_eq!(back, [0.0; 256]);
    }
}
