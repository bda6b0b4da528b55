//! `TQ1_0`: ternary values, five per byte, and one `f16` scale. A value is -1, 0 or 1 times the scale.
//!
//! | offset | size | elements |
//! | --- | --- | --- |
//! | 0 | 32 | byte `i`: elements `i`, `i + 32`, ... `i + 128` |
//! | 32 | 16 | byte `i`: elements 160 + `i`, `i + 16`, ... `i + 64` |
//! | 48 | 4 | byte `i`: elements 240 + `i`, `i + 4`, `i + 8`, `i + 12`, and a zero digit |
//! | 52 | 2 | scale |
//!
//! Five elements are the base-3 digits of a number below 243, first element highest. The byte is that number times 256, divided
//! by 243 and rounded up, so that each multiplication by 3 shifts the next digit out at the top.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_tq1_0_ref`, `dequantize_row_tq1_0`); layout: `block_tq1_0` of
//! `ggml-common.h`.

use crate::blocks::extremes::{inverse, largest};
use crate::blocks::ternary::{digit, value};
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], _importance: Option<Importance<'_, 256>>, out: &mut [u8; 54]) {
    let scale = largest(x);
    let inverse = inverse(scale);
    encode_run::<32, 5>(&x[..160], inverse, &mut out[..32]);
    encode_run::<16, 5>(&x[160..240], inverse, &mut out[32..48]);
    encode_run::<4, 4>(&x[240..], inverse, &mut out[48..52]);
    write_f16(out, 52, scale);
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 54], out: &mut [f32; 256]) {
    let scale = read_f16(block, 52);
    decode_run::<32, 5>(&block[..32], scale, &mut out[..160]);
    decode_run::<16, 5>(&block[32..48], scale, &mut out[160..240]);
    decode_run::<4, 4>(&block[48..52], scale, &mut out[240..]);
}

/// `STRIDE` bytes of `DIGITS` elements each.
#[inline(always)]
fn encode_run<const STRIDE: usize, const DIGITS: usize>(x: &[f32], inverse: f32, out: &mut [u8]) {
    let mut numbers = [0u32; STRIDE];
    let (lines, _) = x.as_chunks::<STRIDE>();
    for line in lines {
        for (number, value) in numbers.iter_mut().zip(line) {
            *number = (*number * 3 + u32::from(digit(value * inverse))) & 0xff;
        }
    }
    for (byte, mut number) in out.iter_mut().zip(numbers) {
        if DIGITS < 5 {
            number = (number * 3) & 0xff;
        }
        *byte = (number * 256).div_ceil(243) as u8;
    }
}

#[inline(always)]
fn decode_run<const STRIDE: usize, const DIGITS: usize>(bytes: &[u8], scale: f32, out: &mut [f32]) {
    let (lines, _) = out.as_chunks_mut::<STRIDE>();
    let mut power = 1u8;
    for line in lines.iter_mut().take(DIGITS) {
        for (out, byte) in line.iter_mut().zip(bytes) {
            let digit = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
            *out = value(digit as u8, scale);
        }
        power = power.wrapping_mul(3);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ternary_numbers_come_back() {
        let mut x = [0.0; 256];
        let mut state = 1u32;
        for value in &mut x {
            state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
            *value = ((state >> 24) % 3) as f32 * 0.25 - 0.25;
        }
        let (mut block, mut back) = ([0; 54], [9.0; 256]);
        encode(&x, None, &mut block);
        decode(&block, &mut back);
        assert_eq!(back, x);
    }

    #[test]
    fn the_first_element_is_the_highest_digit() {
        let mut x = [0.0; 256];
        x[0] = -1.0;
        x[240] = 1.0;
        let mut block = [0; 54];
        encode(&x, None, &mut block);
        let stored = |number: u32| (number * 256).div_ceil(243) as u8;
        assert_eq!((block[0], block[1]), (stored(40), stored(121)));
        assert_eq!((block[48], block[49]), (stored((54 + 9 + 3 + 1) * 3), stored(40 * 3)));
    }
}
