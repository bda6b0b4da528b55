//! `Q4_K`: two `f16` factors for scales and minima, twelve bytes of 6-bit scales and minima, then 32 bytes of nibbles for every
//! two groups.
//!
//! Reference: ggml 0.25.3, `ggml-quants.c` (`quantize_row_q4_K_ref`, `quantize_row_q4_K_impl` with importance,
//! `dequantize_row_q4_K`); layout: `block_q4_K` of `ggml-common.h`.

use crate::blocks::bits::{part, part_mut};
use crate::blocks::four_five_k::{finish, search};
use crate::blocks::groups::{Scales, groups, groups_mut};
use crate::blocks::k_search::{Distance, Tries};
use crate::blocks::six_bit;
use crate::each::each;
use crate::half_float::{read_f16, write_f16};
use crate::importance::Importance;
use crate::inline::shared;

pub(crate) const TRIES: Tries = Tries { first: -1.0, delta: 0.1, count: 20, error: Distance::Squared };

#[inline(always)]
pub(crate) fn encode(x: &[f32; 256], importance: Option<Importance<'_, 256>>, out: &mut [u8; 144]) {
    let (found, codes) = search(&TRIES, 15, x, importance, packed);
    write(&found, &codes, out);
}

/// The reference packs codes without a range check: the upper bits overlap the scale in the same byte.
#[inline(always)]
fn packed(scales: &[u8; 8], mins: &[u8; 8]) -> ([u8; 8], [u8; 8]) {
    let mut pairs = [0; 12];
    six_bit::write_pairs(scales, mins, &mut pairs);
    six_bit::read_pairs(&pairs)
}

/// As [`encode`], with given scales and minima.
#[inline(always)]
pub(crate) fn encode_found(x: &[f32; 256], scales: &[f32; 8], mins: &[f32; 8], out: &mut [u8; 144]) {
    let (found, codes) = finish(&TRIES, 15, x, scales, mins);
    write(&found, &codes, out);
}

#[inline(always)]
fn write(found: &Scales<8>, codes: &[u8; 256], out: &mut [u8; 144]) {
    write_f16(out, 0, found.scale);
    write_f16(out, 2, found.min);
    six_bit::write_pairs(&found.scales, &found.mins, part_mut(out, 4));
    write_nibbles(codes, part_mut(out, 16));
}

shared! {
    /// Of every 64 codes, the first 32 are lower nibbles.
    pub(crate) fn write_nibbles(codes: &[u8; 256], out: &mut [u8; 128]) {
        for (bytes, codes) in out.as_chunks_mut::<32>().0.iter_mut().zip(groups::<_, 64>(codes)) {
            for (idx, byte) in bytes.iter_mut().enumerate() {
                *byte = codes[idx] & 0x0f | codes[idx + 32] << 4;
            }
        }
    }

    /// Unpacks the codes of 128 bytes.
    pub(crate) fn read_nibbles(bytes: &[u8; 128]) -> [u8; 256] {
        let mut codes = [0; 256];
        for (bytes, codes) in bytes.as_chunks::<32>().0.iter().zip(groups_mut::<_, 64>(&mut codes)) {
            for (idx, byte) in bytes.iter().enumerate() {
                codes[idx] = byte & 0x0f;
                codes[idx + 32] = byte >> 4;
            }
        }
        codes
    }

    /// Codes times the scales of their groups, minus the minima.
    pub(crate) fn values(codes: &[u8; 256], halves: (f32, f32), pairs: &[u8; 12], out: &mut [f32; 256]) {
        let (scales, mins) = six_bit::read_pairs(pairs);
        for (idx, (out, codes)) in groups_mut::<_, 32>(out).iter_mut().zip(groups(codes)).enumerate() {
            let (scale, min) = (halves.0 * f32::from(scales[idx]), halves.1 * f32::from(mins[idx]));
            *out = each(codes, |code| scale * f32::from(code) - min);
        }
    }
}

#[inline(always)]
pub(crate) fn decode(block: &[u8; 144], out: &mut [f32; 256]) {
    let codes = read_nibbles(part(block, 16));
    values(&codes, (read_f16(block, 0), read_f16(block, 2)), part(block, 4), out);
}
