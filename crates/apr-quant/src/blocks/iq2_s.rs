//! `IQ2_S`: two and a half bits a number from a codebook of 1,024 points. Read only.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 2 | `f16` scale |
//! | 2 | 32 | lower eight bits of the index of each eight numbers |
//! | 34 | 32 | signs |
//! | 66 | 8 | upper two bits of four indexes, the first lowest |
//! | 74 | 8 | per 16 numbers four bits of scale, the first in the lower half |

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
