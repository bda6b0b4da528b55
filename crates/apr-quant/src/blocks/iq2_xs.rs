//! `IQ2_XS`: 2.3125 bits per value, codebook of 512 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 64 | 16 bits per eight values: nine of index, seven of signs |
//! | 66 | 8 | four bits of scale per 16 values, first in the lower half |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq2_xs`); layout: `block_iq2_xs` of `ggml-common.h`.

use crate::blocks::codebook::{IQ2_XS, even_signs, write};
use crate::half_float::read_f16;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 74], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (words, scales) = block[2..].split_at(64);
    let (words, _) = words.as_chunks::<2>();
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, &word)) in outs.iter_mut().zip(words).enumerate() {
        let word = u16::from_le_bytes(word);
        let code = scales[idx / 4] >> (idx / 2 % 2 * 4) & 15;
        let scale = scale * (0.5 + f32::from(code)) * 0.25;
        write(IQ2_XS.point(usize::from(word & 511)), even_signs(u32::from(word >> 9)), scale, out);
    }
}
