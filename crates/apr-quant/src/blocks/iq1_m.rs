//! `IQ1_M`: one and three quarter bits a number from a codebook of 2,048 points. Read only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 32 | lower eight bits of the index of each eight numbers |
//! | 32 | 16 | per eight numbers four bits: the upper three of the index, the sign of the shift |
//! | 48 | 8 | four words of 16 bits: four times three bits of scale for 16 numbers each, and four of the `f16` scale |

use crate::blocks::iq1_s::{SHIFT, write_shifted};
use crate::half_float::f16_value;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 56], out: &mut [f32; 256]) {
    let (low, rest) = block.split_at(32);
    let (high, words) = rest.split_at(16);
    let (words, _) = words.as_chunks::<2>();
    let mut scales = [0u16; 4];
    let mut half = 0;
    for (idx, (scale, &word)) in scales.iter_mut().zip(words).enumerate() {
        *scale = u16::from_le_bytes(word);
        half |= *scale >> 12 << (4 * idx);
    }
    let scale = f16_value(half);
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, &low)) in outs.iter_mut().zip(low).enumerate() {
        let nibble = high[idx / 2] >> (idx % 2 * 4);
        let index = usize::from(low) | usize::from(nibble & 7) << 8;
        let shift = if nibble & 8 == 0 { SHIFT } else { -SHIFT };
        let code = scales[idx / 8] >> (idx / 2 % 4 * 3) & 7;
        write_shifted(index, shift, scale * f32::from(2 * code + 1), out);
    }
}
