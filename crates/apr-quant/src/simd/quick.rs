//! Formats of 32 elements whose codes follow from the extremes of a block.

use fearless_simd::prelude::*;
use fearless_simd::{f32x16, i32x16, u32x16};

use crate::blocks::{q4_0, q4_1, q5_0, q5_1, q8_0};
use crate::codecs::rules_of;
use crate::each::each;
use crate::error::Error;
use crate::half_float::f16_bits;
use crate::importance::Importance;
use crate::rows::{Rows, check_input, check_output};

/// Below this magnitude, the inverse of a step may be infinite.
const SMALLEST: f32 = 1e-30;
/// Largest finite `f16`.
const LARGEST_STEP: f32 = 65_504.0;

/// Half a block.
type Half<S> = f32x16<S>;

/// Encodes blocks with `kernel`, which returns false for a block that only the scalar code `long_way` handles.
#[inline(always)]
fn encode<const BYTES: usize>(
    rows: &Rows<'_>,
    out: &mut [u8],
    kernel: impl Fn(&[f32; 32], &mut [u8; BYTES]) -> bool,
    long_way: impl Fn(&[f32; 32], Option<Importance<'_, 32>>, &mut [u8; BYTES]),
) -> Result<(), Error> {
    let (blocks, _) = rows.values.as_chunks::<32>();
    let (out, _) = out.as_chunks_mut::<BYTES>();
    for (idx, (x, out)) in blocks.iter().zip(out).enumerate() {
        if !kernel(x, out) {
            let rules = rules_of(rows.dtype);
            check_input(rows, rules, x, 32 * idx)?;
            long_way(x, None, out);
            check_output(rows, rules, x, 32 * idx, out)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn halves<S: Simd>(simd: S, x: &[f32; 32]) -> [Half<S>; 2] {
    let (halves, _) = x.as_chunks::<16>();
    [Half::load_array_ref(simd, &halves[0]), Half::load_array_ref(simd, &halves[1])]
}

/// Applies `f` to both halves.
#[inline(always)]
fn both<T, U>([low, high]: [T; 2], f: impl Fn(T) -> U) -> [U; 2] {
    [f(low), f(high)]
}

/// Bits of the largest magnitude; at least those of infinity if a value is not finite.
#[inline(always)]
fn largest<S: Simd>(simd: S, [low, high]: [Half<S>; 2]) -> u32 {
    let magnitudes = |half: Half<S>| half.to_bits() & u32x16::splat(simd, 0x7fff_ffff);
    // Signed integers have the same order here, and more instruction sets compare them.
    let (low, high): (i32x16<S>, i32x16<S>) = (magnitudes(low).bitcast(), magnitudes(high).bitcast());
    low.max(high).reduce_max().cast_unsigned()
}

/// Lanes below 256 as bytes.
#[inline(always)]
fn bytes<S: Simd>(lanes: i32x16<S>) -> [u8; 16] {
    each(&lanes.to_array(), |lane| lane as u8)
}

#[inline(always)]
fn q8_0_block<S: Simd>(simd: S, x: &[f32; 32], out: &mut [u8; 34]) -> bool {
    let x = halves(simd, x);
    let largest = f32::from_bits(largest(simd, x));
    if !(SMALLEST..127.0 * LARGEST_STEP).contains(&largest) {
        return false;
    }
    let scale = largest / 127.0;
    let inverse = 1.0 / scale;
    // For magnitudes up to 128 this equals `roundf`.
    let half = Half::splat(simd, 0.499_999_97);
    let codes = both(
        x,
        #[inline(always)]
        |x| {
            let x = x * inverse;
            bytes::<S>((x + half.copysign(x)).to_int())
        },
    );
    out[..2].copy_from_slice(&f16_bits(scale).to_le_bytes());
    out[2..18].copy_from_slice(&codes[0]);
    out[18..].copy_from_slice(&codes[1]);
    true
}

/// Scale and codes around zero, in lanes: the first value with the largest magnitude gets code 0.
#[inline(always)]
fn around_zero<S: Simd>(simd: S, x: &[f32; 32], middle: f32) -> Option<(f32, [i32x16<S>; 2])> {
    let lanes = halves(simd, x);
    let largest = largest(simd, lanes);
    if !(SMALLEST..middle * LARGEST_STEP).contains(&f32::from_bits(largest)) {
        return None;
    }
    let wanted = Half::splat(simd, f32::from_bits(largest));
    let [low, high] = both(
        lanes,
        #[inline(always)]
        |half| half.abs().simd_eq(wanted).to_bitmask() as u32,
    );
    let first = (low | high << 16).trailing_zeros() as usize;
    let scale = x[first & 31] / -middle;
    let inverse = 1.0 / scale;
    let top = i32x16::splat(simd, 2 * middle as i32 - 1);
    let codes = both(
        lanes,
        #[inline(always)]
        |half| (half * inverse + (middle + 0.5)).to_int::<i32x16<S>>().min(top),
    );
    Some((scale, codes))
}

/// Scale, minimum and codes, in lanes.
#[inline(always)]
fn from_minimum<S: Simd>(simd: S, x: &[f32; 32], most: f32) -> Option<(f32, f32, [i32x16<S>; 2])> {
    let lanes = halves(simd, x);
    let [low, high] = lanes;
    if largest(simd, lanes) >= LARGEST_STEP.to_bits() {
        return None;
    }
    let (min, max) = (low.min(high).reduce_min(), low.max(high).reduce_max());
    let scale = (max - min) / most;
    // If the minimum is zero, the sign of the first zero is stored; only the scalar code finds it.
    if !(SMALLEST..LARGEST_STEP).contains(&scale) || min == 0.0 {
        return None;
    }
    let inverse = 1.0 / scale;
    let top = i32x16::splat(simd, most as i32);
    let codes = both(
        lanes,
        #[inline(always)]
        |half| ((half - min) * inverse + 0.5).to_int::<i32x16<S>>().min(top),
    );
    Some((scale, min, codes))
}

/// Packs the codes of the first half into lower nibbles, of the second into upper nibbles.
#[inline(always)]
fn nibbles<S: Simd>(simd: S, [low, high]: [i32x16<S>; 2]) -> [u8; 16] {
    let mask = i32x16::splat(simd, 15);
    bytes(low & mask | (high & mask) << 4)
}

/// The fifth bits of both halves.
#[inline(always)]
fn fifth_bits<S: Simd>(simd: S, codes: [i32x16<S>; 2]) -> [u8; 4] {
    let [low, high] = both(
        codes,
        #[inline(always)]
        |half| half.simd_gt(i32x16::splat(simd, 15)).to_bitmask() as u32,
    );
    (low | high << 16).to_le_bytes()
}

#[inline(always)]
fn put_f16(out: &mut [u8], at: usize, value: f32) {
    out[at..at + 2].copy_from_slice(&f16_bits(value).to_le_bytes());
}

#[inline(always)]
fn q4_0_block<S: Simd>(simd: S, x: &[f32; 32], out: &mut [u8; 18]) -> bool {
    let Some((scale, codes)) = around_zero(simd, x, 8.0) else { return false };
    put_f16(out, 0, scale);
    out[2..].copy_from_slice(&nibbles(simd, codes));
    true
}

#[inline(always)]
fn q5_0_block<S: Simd>(simd: S, x: &[f32; 32], out: &mut [u8; 22]) -> bool {
    let Some((scale, codes)) = around_zero(simd, x, 16.0) else { return false };
    put_f16(out, 0, scale);
    out[2..6].copy_from_slice(&fifth_bits(simd, codes));
    out[6..].copy_from_slice(&nibbles(simd, codes));
    true
}

#[inline(always)]
fn q4_1_block<S: Simd>(simd: S, x: &[f32; 32], out: &mut [u8; 20]) -> bool {
    let Some((scale, min, codes)) = from_minimum(simd, x, 15.0) else { return false };
    put_f16(out, 0, scale);
    put_f16(out, 2, min);
    out[4..].copy_from_slice(&nibbles(simd, codes));
    true
}

#[inline(always)]
fn q5_1_block<S: Simd>(simd: S, x: &[f32; 32], out: &mut [u8; 24]) -> bool {
    let Some((scale, min, codes)) = from_minimum(simd, x, 31.0) else { return false };
    put_f16(out, 0, scale);
    put_f16(out, 2, min);
    out[4..8].copy_from_slice(&fifth_bits(simd, codes));
    out[8..].copy_from_slice(&nibbles(simd, codes));
    true
}

macro_rules! rows_of {
    ($($dtype:ident: $bytes:literal, $kernel:ident;)*) => {
        $(pub(super) fn $dtype<S: Simd>(simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
            simd.vectorize(
                #[inline(always)]
                || encode::<$bytes>(
                    rows,
                    out,
                    #[inline(always)]
                    |x, out| $kernel(simd, x, out),
                    #[inline(always)]
                    |x, importance, out| $dtype::encode(x, importance, out),
                ),
            )
        })*
    };
}

rows_of! {
    q8_0: 34, q8_0_block;
    q4_0: 18, q4_0_block;
    q4_1: 20, q4_1_block;
    q5_0: 22, q5_0_block;
    q5_1: 24, q5_1_block;
}
