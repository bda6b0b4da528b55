//! `Q5_K`: as `Q4_K`, with 32 bytes of fifth bits before the nibbles.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q5_K_ref`, `quantize_row_q5_K_impl` with importance,
//! `dequantize_row_q5_K`); layout: `block_q5_K` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::four_five_k::{at_most_63, finish, search};
use crate::blocks::groups::{Scales, groups, groups_mut};
use crate::blocks::k_search::{Distance, Tries};
use crate::blocks::{q4_k, six_bit};
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;

pub(crate) const TRIES: Tries = Tries { first: -0.5, delta: 0.1, count: 15, error: Distance::Squared };

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 176]) {
    let (found, codes) = search(&TRIES, 31, x, importance, clamped);
    write(&found, &codes, out);
}

#[inline(always)]
fn clamped(scales: &[u8; 8], mins: &[u8; 8]) -> ([u8; 8], [u8; 8]) {
    (each(scales, at_most_63), each(mins, at_most_63))
}

/// As [`encode`], with given scales and minima.
#[inline(always)]
pub(crate) fn encode_found(x: &[f32; 256], scales: &[f32; 8], mins: &[f32; 8], out: &mut [u8; 176]) {
    let (found, codes) = finish(&TRIES, 31, x, scales, mins);
    write(&found, &codes, out);
}

#[inline(always)]
fn write(found: &Scales<8>, codes: &[u8; 256], out: &mut [u8; 176]) {
    write_f16(out, 0, found.scale);
    write_f16(out, 2, found.min);
    six_bit::write_pairs(&found.scales, &found.mins, part_mut(out, 4));
    let bits: &mut [u8; 32] = part_mut(out, 16);
    bits.fill(0);
    for (bit, codes) in groups::<_, 32>(codes).iter().enumerate() {
        for (byte, code) in bits.iter_mut().zip(codes) {
            *byte |= (code >> 4 & 1) << bit;
        }
    }
    q4_k::write_nibbles(codes, part_mut(out, 48));
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 176], out: &mut [f32; 256]) {
    let mut codes = q4_k::read_nibbles(part(block, 48));
    let bits: &[u8; 32] = part(block, 16);
    for (bit, codes) in groups_mut::<_, 32>(&mut codes).iter_mut().enumerate() {
        for (byte, code) in bits.iter().zip(codes) {
            *code |= (byte >> bit & 1) << 4;
        }
    }
    q4_k::values(&codes, (read_f16(block, 0), read_f16(block, 2)), part(block, 4), out);
}
