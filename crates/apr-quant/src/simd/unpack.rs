//! Decodes blocks, sixteen values at a time.

use fearless_simd::prelude::*;
use fearless_simd::{f32x16, mask8x16, u8x16};

use crate::blocks::mxfp4::half_scale;
use crate::blocks::six_bit;
use crate::half_float::read_f16;

/// Runs a kernel over the blocks.
#[inline(always)]
fn decode<S: Simd, const LEN: usize, const BYTES: usize>(
    simd: S,
    bytes: &[u8],
    out: &mut [f32],
    kernel: impl Fn(S, &[u8; BYTES], &mut [[f32; 16]]),
) {
    let (blocks, _) = bytes.as_chunks::<BYTES>();
    let (out, _) = out.as_chunks_mut::<LEN>();
    for (block, out) in blocks.iter().zip(out) {
        kernel(simd, block, out.as_chunks_mut().0);
    }
}

/// Sixteen bytes of a block.
#[inline(always)]
fn load<S: Simd>(simd: S, block: &[u8], at: usize) -> u8x16<S> {
    u8x16::from_slice(simd, &block[at..at + 16])
}

/// Codes as floats.
#[inline(always)]
fn floats<S: Simd>(simd: S, codes: u8x16<S>) -> f32x16<S> {
    let codes = codes.to_array();
    let mut floats = [0.0; 16];
    for (float, code) in floats.iter_mut().zip(codes) {
        *float = f32::from(code);
    }
    f32x16::load_array(simd, floats)
}

/// Signed codes as floats.
#[inline(always)]
fn signed_floats<S: Simd>(simd: S, codes: u8x16<S>) -> f32x16<S> {
    let codes = codes.to_array();
    let mut floats = [0.0; 16];
    for (float, code) in floats.iter_mut().zip(codes) {
        *float = f32::from(code.cast_signed());
    }
    f32x16::load_array(simd, floats)
}

/// 16 where the bit of a code is set, else 0.
#[inline(always)]
fn fifth_bits<S: Simd>(simd: S, bits: u16) -> u8x16<S> {
    mask8x16::from_bitmask(simd, u64::from(bits)).select(u8x16::splat(simd, 16), u8x16::splat(simd, 0))
}

#[inline(always)]
fn q8_0_block<S: Simd>(simd: S, block: &[u8; 34], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 0);
    for (idx, out) in out.iter_mut().enumerate() {
        (signed_floats(simd, load(simd, block, 2 + 16 * idx)) * scale).store_array(out);
    }
}

/// Lower and upper nibbles of sixteen bytes.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, block: &[u8], at: usize) -> [u8x16<S>; 2] {
    let bytes = load(simd, block, at);
    [bytes & 15, bytes >> 4]
}

#[inline(always)]
fn q4_0_block<S: Simd>(simd: S, block: &[u8; 18], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 0);
    for (codes, out) in nibbles(simd, block, 2).into_iter().zip(out) {
        ((floats(simd, codes) - 8.0) * scale).store_array(out);
    }
}

#[inline(always)]
fn q4_1_block<S: Simd>(simd: S, block: &[u8; 20], out: &mut [[f32; 16]]) {
    let (scale, min) = (read_f16(block, 0), read_f16(block, 2));
    for (codes, out) in nibbles(simd, block, 4).into_iter().zip(out) {
        (floats(simd, codes) * scale + min).store_array(out);
    }
}

#[inline(always)]
fn q5_0_block<S: Simd>(simd: S, block: &[u8; 22], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 0);
    for (idx, (codes, out)) in nibbles(simd, block, 6).into_iter().zip(out).enumerate() {
        let bits = u16::from_le_bytes([block[2 + 2 * idx], block[3 + 2 * idx]]);
        ((floats(simd, codes | fifth_bits(simd, bits)) - 16.0) * scale).store_array(out);
    }
}

#[inline(always)]
fn q5_1_block<S: Simd>(simd: S, block: &[u8; 24], out: &mut [[f32; 16]]) {
    let (scale, min) = (read_f16(block, 0), read_f16(block, 2));
    for (idx, (codes, out)) in nibbles(simd, block, 8).into_iter().zip(out).enumerate() {
        let bits = u16::from_le_bytes([block[4 + 2 * idx], block[5 + 2 * idx]]);
        (floats(simd, codes | fifth_bits(simd, bits)) * scale + min).store_array(out);
    }
}

/// An element of an array whose length is a power of two.
#[inline(always)]
fn at<T: Copy, const N: usize>(array: &[T; N], idx: usize) -> T {
    array[idx & (N - 1)]
}

#[inline(always)]
fn q2_k_block<S: Simd>(simd: S, block: &[u8; 84], out: &mut [[f32; 16]]) {
    let (scale, min) = (read_f16(block, 80), read_f16(block, 82));
    for half in 0..2 {
        for side in 0..2 {
            let bytes = load(simd, block, 16 + 32 * half + 16 * side);
            for shift in 0..4 {
                let group = 8 * half + 2 * shift + side;
                let scales = block[group];
                let (scale, min) = (scale * f32::from(scales & 15), min * f32::from(scales >> 4));
                let codes = bytes >> (2 * shift as u32) & 3;
                (floats(simd, codes) * scale - min).store_array(&mut out[group]);
            }
        }
    }
}

#[inline(always)]
fn q3_k_block<S: Simd>(simd: S, block: &[u8; 110], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 108);
    let scales = six_bit::read_scales(block[96..].first_chunk().expect("twelve bytes"));
    for half in 0..2 {
        for side in 0..2 {
            let bytes = load(simd, block, 32 + 32 * half + 16 * side);
            let mask = load(simd, block, 16 * side);
            for shift in 0..4 {
                let group = 8 * half + 2 * shift + side;
                let scale = scale * f32::from(at(&scales, group).cast_signed() - 32);
                let third = mask >> (4 * half + shift) as u32 & 1;
                let codes = bytes >> (2 * shift as u32) & 3 | third << 2;
                ((floats(simd, codes) - 4.0) * scale).store_array(&mut out[group]);
            }
        }
    }
}

/// `Q4_K`, and `Q5_K` with fifth bits.
#[inline(always)]
fn pairs<S: Simd>(simd: S, block: &[u8], fifth: Option<usize>, nibbles_at: usize, out: &mut [[f32; 16]]) {
    let head: &[u8; 16] = block.first_chunk().expect("a head");
    let (scale, min) = (read_f16(head, 0), read_f16(head, 2));
    let (scales, mins) = six_bit::read_pairs(head[4..].first_chunk().expect("twelve bytes"));
    for quarter in 0..4 {
        for side in 0..2 {
            let nibbles = nibbles(simd, block, nibbles_at + 32 * quarter + 16 * side);
            for (upper, mut codes) in nibbles.into_iter().enumerate() {
                let group = 2 * quarter + upper;
                if let Some(fifth) = fifth {
                    let bits = load(simd, block, fifth + 16 * side);
                    let moved =
                        if group < 4 { bits << (4 - group as u32) } else { bits >> (group as u32 - 4) };
                    codes |= moved & 16;
                }
                let (scale, min) = (scale * f32::from(at(&scales, group)), min * f32::from(at(&mins, group)));
                (floats(simd, codes) * scale - min).store_array(&mut out[2 * group + side]);
            }
        }
    }
}

#[inline(always)]
fn q4_k_block<S: Simd>(simd: S, block: &[u8; 144], out: &mut [[f32; 16]]) {
    pairs(simd, block, None, 16, out);
}

#[inline(always)]
fn q5_k_block<S: Simd>(simd: S, block: &[u8; 176], out: &mut [[f32; 16]]) {
    pairs(simd, block, Some(16), 48, out);
}

#[inline(always)]
fn q6_k_block<S: Simd>(simd: S, block: &[u8; 210], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 208);
    for half in 0..2 {
        for side in 0..2 {
            let [first, third] = nibbles(simd, block, 64 * half + 16 * side);
            let [second, fourth] = nibbles(simd, block, 64 * half + 32 + 16 * side);
            let high = load(simd, block, 128 + 32 * half + 16 * side);
            for (quarter, nibbles) in [first, second, third, fourth].into_iter().enumerate() {
                let group = 8 * half + 2 * quarter + side;
                let scale = scale * f32::from(block[192 + group].cast_signed());
                let codes = nibbles | (high >> (2 * quarter as u32) & 3) << 4;
                ((floats(simd, codes) - 32.0) * scale).store_array(&mut out[group]);
            }
        }
    }
}

/// Four-bit floats, doubled.
const FLOATS: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

#[inline(always)]
fn mxfp4_block<S: Simd>(simd: S, block: &[u8; 17], out: &mut [[f32; 16]]) {
    let scale = half_scale(block[0]);
    let table = u8x16::load_array(simd, FLOATS.map(i8::cast_unsigned));
    for (codes, out) in nibbles(simd, block, 1).into_iter().zip(out) {
        (signed_floats(simd, table.swizzle_dyn(codes)) * scale).store_array(out);
    }
}

#[inline(always)]
fn tq2_0_block<S: Simd>(simd: S, block: &[u8; 66], out: &mut [[f32; 16]]) {
    let scale = read_f16(block, 64);
    for half in 0..2 {
        for side in 0..2 {
            let bytes = load(simd, block, 32 * half + 16 * side);
            for shift in 0..4 {
                let codes = bytes >> (2 * shift as u32) & 3;
                ((floats(simd, codes) - 1.0) * scale).store_array(&mut out[8 * half + 2 * shift + side]);
            }
        }
    }
}

macro_rules! blocks_of {
    ($($dtype:ident: $len:literal in $bytes:literal, $kernel:ident;)*) => {
        $(pub(super) fn $dtype<S: Simd>(simd: S, bytes: &[u8], out: &mut [f32]) {
            simd.vectorize(
                #[inline(always)]
                || decode::<S, $len, $bytes>(simd, bytes, out, #[inline(always)] |simd, block, out| $kernel(simd, block, out)),
            );
        })*
    };
}

blocks_of! {
    q8_0: 32 in 34, q8_0_block;
    q4_0: 32 in 18, q4_0_block;
    q4_1: 32 in 20, q4_1_block;
    q5_0: 32 in 22, q5_0_block;
    q5_1: 32 in 24, q5_1_block;
    q2_k: 256 in 84, q2_k_block;
    q3_k: 256 in 110, q3_k_block;
    q4_k: 256 in 144, q4_k_block;
    q5_k: 256 in 176, q5_k_block;
    q6_k: 256 in 210, q6_k_block;
    mxfp4: 32 in 17, mxfp4_block;
    tq2_0: 256 in 66, tq2_0_block;
}
