//! `IQ1_M`: 1.75 bits per value, codebook of 2,048 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 32 | lower eight bits of the index of every eight values |
//! | 32 | 16 | four bits per eight values: upper three of the index, sign of the shift |
//! | 48 | 8 | four 16-bit words: four 3-bit scales of 16 values each, and four bits of the `f16` scale |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq1_m`); layout: `block_iq1_m` of `ggml-common.h`.

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
