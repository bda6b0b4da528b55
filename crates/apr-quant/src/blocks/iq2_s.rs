//! `IQ2_S`: 2.5625 bits per value, codebook of 1,024 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 32 | lower eight bits of the index of every eight values |
//! | 34 | 32 | signs |
//! | 66 | 8 | upper two bits of four indices, first lowest |
//! | 74 | 8 | four bits of scale per 16 values, first in the lower half |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq2_s`); layout: `block_iq2_s` of `ggml-common.h`.

use crate::blocks::codebook::{IQ2_S, write};
use crate::half_float::read_f16;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 82], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (low, signs, high, scales) = (&block[2..34], &block[34..66], &block[66..74], &block[74..82]);
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, (&low, &signs))) in outs.iter_mut().zip(low.iter().zip(signs)).enumerate() {
        let index = usize::from(low) | usize::from(high[idx / 4] >> (idx % 4 * 2) & 3) << 8;
        let code = scales[idx / 4] >> (idx / 2 % 2 * 4) & 15;
        write(IQ2_S.point(index), signs, scale * (0.5 + f32::from(code)) * 0.25, out);
    }
}
