//! `IQ1_S`: 1.5625 bits per value, codebook of 2,048 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 32 | lower eight bits of the index of every eight values |
//! | 34 | 16 | 16 bits per 32 values: upper three bits of four indices, three of scale, sign of the shift |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq1_s`); layout: `block_iq1_s` of `ggml-common.h`.

use crate::blocks::codebook::IQ1;
use crate::half_float::read_f16;
use crate::inline::shared;

/// Offset added to or subtracted from the coordinates of a point.
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
    /// Writes the eight values of a point, shifted and scaled.
    pub(super) fn write_shifted(index: usize, shift: f32, scale: f32, out: &mut [f32; 8]) {
        for (out, value) in out.iter_mut().zip(&IQ1.point(index)) {
            *out = scale * (f32::from(*value) + shift);
        }
    }
}
