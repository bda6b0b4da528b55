//! `IQ1_S`: one and a half bits a number from a codebook of 2,048 points. Read only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 32 | lower eight bits of the index of each eight numbers |
//! | 34 | 16 | per 32 numbers 16 bits: four times the upper three of an index, three of scale, the sign of the shift |

use crate::blocks::codebook::IQ1;
use crate::half_float::read_f16;
use crate::inline::shared;

/// How far the points are moved off the whole numbers, up or down.
pub(super) const SHIFT: f32 = 0.125;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 50], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (low, words) = block[2..].split_at(32);
    let (words, _) = words.as_chunks::<2>();
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, &low)) in outs.iter_mut().zip(low).enumerate() {
        let word = u16::from_le_bytes(words[idx / 4]);
        let index = usize::from(low) | usize::from(word >> (idx % 4 * 3) & 7) << 8;
        let shift = if word & 0x8000 == 0 { SHIFT } else { -SHIFT };
        write_shifted(index, shift, scale * f32::from(2 * (word >> 12 & 7) + 1), out);
    }
}

shared! {
    /// Writes the eight numbers of a point, moved and scaled.
    pub(super) fn write_shifted(index: usize, shift: f32, scale: f32, out: &mut [f32; 8]) {
        for (out, value) in out.iter_mut().zip(&IQ1.point(index)) {
            *out = scale * (f32::from(*value) + shift);
        }
    }
}
