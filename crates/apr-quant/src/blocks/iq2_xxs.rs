//! `IQ2_XXS`: 2.0625 bits per value, codebook of 256 points. Decoded only.
//!
//! After an `f16` scale, eight bytes for each group of 32: four indices, then 32 bits: four times seven signs, then four bits
//! of scale.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq2_xxs`); layout: `block_iq2_xxs` of `ggml-common.h`.

use crate::blocks::codebook::{IQ2_XXS, even_signs, write};
use crate::half_float::read_f16;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 66], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (_, groups) = block.as_rchunks::<8>();
    let (outs, _) = out.as_chunks_mut::<32>();
    for (out, &[a, b, c, d, e, f, g, h]) in outs.iter_mut().zip(groups) {
        let bits = u32::from_le_bytes([e, f, g, h]);
        let scale = scale * (0.5 + (bits >> 28) as f32) * 0.25;
        let (outs, _) = out.as_chunks_mut::<8>();
        for (idx, (out, index)) in outs.iter_mut().zip([a, b, c, d]).enumerate() {
            write(IQ2_XXS.point(usize::from(index)), even_signs(bits >> (7 * idx)), scale, out);
        }
    }
}
