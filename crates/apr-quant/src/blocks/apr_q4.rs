//! `AprQ4`, the 4-bit blocks of `.apr` files: `f16` scale, 32 nibbles, consecutive elements in one byte. A value is (code - 8)
//! * scale.
//!
//! Scale and codes are those of [`q4_0`], so that a block becomes one of `Q4_0` by reordering its nibbles.

use crate::blocks::q4_0;
use crate::half_float::{read_f16, write_f16};

/// Encodes up to 32 values. The codes of the padding are 0, as other writers of the format write them.
#[inline(always)]
pub(crate) fn encode(x: &[f32], out: &mut [u8; 18]) {
    let mut padded = [0.0; 32];
    for (padded, value) in padded.iter_mut().zip(x) {
        *padded = *value;
    }
    let (scale, codes) = q4_0::nearest(&padded);
    out.fill(0);
    write_f16(out, 0, scale);
    let codes = codes.get(..x.len()).unwrap_or(&codes);
    for (byte, pair) in out[2..].iter_mut().zip(codes.chunks(2)) {
        *byte = match *pair {
            [low, high] => low | high << 4,
            [low] => low,
            _ => 0,
        };
    }
}

/// Decodes `out.len()` values, at most 32.
#[inline(always)]
pub(crate) fn decode(block: &[u8; 18], out: &mut [f32]) {
    let scale = read_f16(block, 0);
    for (pair, byte) in out.chunks_mut(2).zip(&block[2..]) {
        for (value, code) in pair.iter_mut().zip([byte & 15, byte >> 4]) {
            *value = (f32::from(code) - 8.0) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_byte() {
        let mut x = [0.0; 32];
        (x[0], x[1], x[31]) = (-4.0, 3.5, 0.5);
        let (mut block, mut back) = ([9; 18], [9.0; 32]);
        encode(&x, &mut block);
        assert_eq!((&block[..4], block[17]), (&[0x00, 0x38, 0xf0, 0x88][..], 0x98));
        decode(&block, &mut back);
        assert_eq!(back, x);
    }

    #[test]
    fn missing_elements_have_code_zero() {
        let (mut block, mut back) = ([9; 18], [9.0; 3]);
        encode(&[0.0, 0.0, 0.0], &mut block);
        assert_eq!(block[..5], [0x00, 0x80, 0x88, 0x08, 0x00]);
        decode(&block, &mut back);
        assert_eq!(back, [0.0; 3]);
    }

    /// The inverse of the step is infinite.
    #[test]
    fn a_block_below_the_smallest_step_is_zero() {
        let (mut block, mut back) = ([9; 18], [9.0; 32]);
        encode(&[1e-40; 32], &mut block);
        decode(&block, &mut back);
        assert!(back.iter().all(|value| *value == 0.0));
    }
}
