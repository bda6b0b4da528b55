//! `TQ2_0`: ternary values, four per byte, and one `f16` scale. A value is -1, 0 or 1 times the scale; the fourth code decodes
//! to 2.
//!
//! Bytes 0 to 31 hold elements 0 to 127, bytes 32 to 63 the others: byte `i` holds elements `i`, `i + 32`, `i + 64` and `i +
//! 96`,
//! the first in the lowest bits. The scale is at 64.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_tq2_0_ref`, `dequantize_row_tq2_0`); layout: `block_tq2_0` of
//! `ggml-common.h`.

use crate::blocks::extremes::{inverse, largest};
use crate::blocks::ternary::{digit, value};
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;

/// The reference ignores importance for this format.
#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], _importance: Option<Importance<'_, 256>>, out: &mut [u8; 66]) {
    let scale = largest(x);
    let inverse = inverse(scale);
    let (halves, _) = x.as_chunks::<128>();
    for (half, bytes) in halves.iter().zip(out.chunks_exact_mut(32)) {
        for (idx, byte) in bytes.iter_mut().enumerate() {
            let code = |line: usize| (digit(half[line * 32 + idx] * inverse) & 3) << (2 * line);
            *byte = code(0) | code(1) | code(2) | code(3);
        }
    }
    write_f16(out, 64, scale);
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 66], out: &mut [f32; 256]) {
    let scale = read_f16(block, 64);
    let (halves, _) = out.as_chunks_mut::<128>();
    for (half, bytes) in halves.iter_mut().zip(block.chunks_exact(32)) {
        for (line, out) in half.chunks_exact_mut(32).enumerate() {
            for (out, byte) in out.iter_mut().zip(bytes) {
                *out = value((byte >> (2 * line)) & 3, scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_elements_share_a_byte() {
        let mut x = [0.0; 256];
        (x[0], x[32], x[128 + 96 + 31]) = (2.0, -2.0, 2.0);
        let (mut block, mut back) = ([0; 66], [9.0; 256]);
        encode(&x, None, &mut block);
        assert_eq!((block[0], block[1], block[63]), (0b01_01_00_10, 0b01_01_01_01, 0b10_01_01_01));
        decode(&block, &mut back);
        assert_eq!(back, x);
    }

    #[test]
    fn the_fourth_code_is_two() {
        let (mut block, mut back) = ([0xff; 66], [9.0; 256]);
        write_f16(&mut block, 64, 0.5);
        decode(&block, &mut back);
        assert_eq!(back, [1.0; 256]);
    }
}
