//! `IQ4_NL`: `f16` scale, 32 nibbles. A value is one of sixteen non-uniform levels times the scale.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_iq4_nl_ref`, `quantize_row_iq4_nl_impl`, `dequantize_row_iq4_nl`);
//! layout: `block_iq4_nl` of `ggml-common.h`.

use crate::blocks::extremes::inverse;
use crate::blocks::uneven::{decode_codes, encode_codes, search};
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::{Importance, sum_of_squares};

#[inline(always)]
pub(crate) fn encode(x: &[f32; 32], importance: Option<Importance<'_, 32>>, out: &mut [u8; 18]) {
    let weights = match importance {
        Some(importance) => importance.by(sum_of_squares(x) * (2.0 / 32.0), x),
        None => each(x, |value| value * value),
    };
    let scale = search(x, &weights);
    write_f16(out, 0, scale);
    let (_, [codes]) = out.as_rchunks_mut() else { return };
    encode_codes(x, inverse(scale), codes);
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 18], out: &mut [f32; 32]) {
    let (_, [codes]) = block.as_rchunks() else { return };
    decode_codes(codes, read_f16(block, 0), out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_become_the_step_next_to_nothing() {
        let (mut block, mut back) = ([1; 18], [1.0; 32]);
        encode(&[0.0; 32], None, &mut block);
        assert_eq!((&block[..2], &block[2..]), (&[0; 2][..], &[0x88; 16][..]));
        decode(&block, &mut back);
        assert_eq!(back, [0.0; 32]);
    }
}
