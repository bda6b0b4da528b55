//! `IQ3_XXS`: 3.0625 bits per value, codebook of 256 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 64 | index of every four values |
//! | 66 | 32 | 32 bits per 32 values: four times seven signs, then four bits of scale |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq3_xxs`); layout: `block_iq3_xxs` of `ggml-common.h`.

use crate::blocks::codebook::{IQ3_XXS, even_signs, joined, write};
use crate::half_float::read_f16;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 98], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (indexes, words) = block[2..].split_at(64);
    let (pairs, _) = indexes.as_chunks::<2>();
    let (words, _) = words.as_chunks::<4>();
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, &[first, second])) in outs.iter_mut().zip(pairs).enumerate() {
        let bits = u32::from_le_bytes(words[idx / 4]);
        let scale = scale * (0.5 + (bits >> 28) as f32) * 0.5;
        let point = joined(IQ3_XXS.point(usize::from(first)), IQ3_XXS.point(usize::from(second)));
        write(point, even_signs(bits >> (7 * (idx % 4))), scale, out);
    }
}
