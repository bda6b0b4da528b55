//! `IQ3_S`: 3.4375 bits per value, codebook of 512 points. Decoded only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 64 | lower eight bits of the index of every four values |
//! | 66 | 8 | ninth bit of eight indices, first lowest |
//! | 74 | 32 | signs |
//! | 106 | 4 | four bits of scale per 32 values, first in the lower half |
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`dequantize_row_iq3_s`); layout: `block_iq3_s` of `ggml-common.h`.

use crate::blocks::codebook::{IQ3_S, joined, write};
use crate::half_float::read_f16;

#[inline(always)]
pub(crate) fn decode(block: &[u8; 110], out: &mut [f32; 256]) {
    let scale = read_f16(block, 0);
    let (low, high, signs, scales) = (&block[2..66], &block[66..74], &block[74..106], &block[106..110]);
    let (pairs, _) = low.as_chunks::<2>();
    let (outs, _) = out.as_chunks_mut::<8>();
    for (idx, (out, (&[first, second], &signs))) in outs.iter_mut().zip(pairs.iter().zip(signs)).enumerate() {
        let ninth = usize::from(high[idx / 4] >> (idx % 4 * 2));
        let first = IQ3_S.point(usize::from(first) | (ninth & 1) << 8);
        let second = IQ3_S.point(usize::from(second) | (ninth >> 1 & 1) << 8);
        let code = scales[idx / 8] >> (idx / 4 % 2 * 4) & 15;
        write(joined(first, second), signs, scale * f32::from(1 + 2 * code), out);
    }
}
