//! `AprQ4`, the 4-bit blocks of `.apr` files: `f16` scale, 32 nibbles, consecutive elements in one byte. A value is (code - 8)
//! * scale.
//!
//! The scale is a seventh of the largest magnitude, or 1 for a block of zeros; code 0 does not occur. Values are divided by the
//! scale before it is rounded to 16 bits.

use crate::blocks::extremes::largest;
use crate::half_float::{read_f16, write_f16};
use crate::round::{round_away, truncate};

/// Encodes up to 32 values. The codes of the padding are 0, as other writers of the format write them.
#[inline(always)]
pub(crate) fn encode(x: &[f32], out: &mut [u8; 18]) {
    let largest = largest(x);
    let scale = if largest == 0.0 { 1.0 } else { largest / 7.0 };
    out.fill(0);
    write_f16(out, 0, scale);
    let code = |value: f32| (truncate(round_away(value / scale)).clamp(-8, 7) + 8) as u8;
    for (byte, pair) in out[2..].iter_mut().zip(x.chunks(2)) {
        *byte = match *pair {
            [low, high] => code(low) | code(high) << 4,
            [low] => code(low),
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
        (x[0], x[1], x[31]) = (3.5, -3.5, 0.5);
        let (mut block, mut back) = ([9; 18], [9.0; 32]);
        encode(&x, &mut block);
        assert_eq!((&block[..4], block[17]), (&[0x00, 0x38, 0x1f, 0x88][..], 0x98));
        decode(&block, &mut back);
        assert_eq!(back, x);
    }

    #[test]
    fn what_is_missing_has_code_zero() {
        let (mut block, mut back) = ([9; 18], [9.0; 3]);
        encode(&[0.0, 0.0, 0.0], &mut block);
        assert_eq!(block[..5], [0x00, 0x3c, 0x88, 0x08, 0x00]);
        decode(&block, &mut back);
        assert_eq!(back, [0.0; 3]);
    }
}
