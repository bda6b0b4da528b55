//! The searches of [`k_search`](crate::blocks::k_search) with one group per lane: the additions of each group keep their order.
//!
//! The results are scales and minima; codes are computed afterwards from their stored forms. A code is an integral float here:
//! adding and subtracting 1.5 · 2^23 rounds to it. The reference's integer is the same below 2^22; each try first checks that
//! bound.

use fearless_simd::prelude::*;

use crate::blocks::k_search::{Distance, Tries, ZERO};
use crate::each::changed;

/// 1.5 · 2^23.
const ROUND: f32 = 12_582_912.0;
/// The magnitude up to which the reference's rounding is exact.
const LIMIT: f32 = 4_194_303.0;
/// Lanes of the widest SIMD level.
pub(super) const MOST_LANES: usize = 16;

/// Groups of `N` elements: vector `idx` holds element `idx` of each.
pub(super) type Groups<V, const N: usize> = [V; N];

/// Loads the group of each lane.
#[inline(always)]
pub(super) fn load<'x, S: Simd, const N: usize>(
    simd: S,
    group_of: impl Fn(usize) -> &'x [f32; N],
) -> Groups<S::f32s, N> {
    let mut groups = [S::f32s::splat(simd, 0.0); N];
    let mut tile = [S::f32s::splat(simd, 0.0); MOST_LANES];
    for (place, groups) in groups.chunks_exact_mut(S::f32s::LEN).enumerate() {
        for (lane, row) in tile[..S::f32s::LEN].iter_mut().enumerate() {
            *row = S::f32s::from_slice(simd, &group_of(lane)[place * S::f32s::LEN..][..S::f32s::LEN]);
        }
        turn::<S>(&mut tile);
        groups.copy_from_slice(&tile[..S::f32s::LEN]);
    }
    groups
}

/// Transposes as many vectors as there are lanes.
///
/// Interleaving the upper half with the lower one moves the highest bit of an element's index to the end; after log2(lanes)
/// rounds, row and lane are exchanged.
#[inline(always)]
fn turn<S: Simd>(tile: &mut [S::f32s; MOST_LANES]) {
    let half = S::f32s::LEN / 2;
    for _ in 0..S::f32s::LEN.ilog2() {
        let old = *tile;
        for idx in 0..half {
            (tile[2 * idx], tile[2 * idx + 1]) = old[idx].interleave(old[idx + half]);
        }
    }
}

/// The sum of squares of each group, in order.
#[inline(always)]
pub(super) fn sum_of_squares<S: Simd, const N: usize>(simd: S, x: &Groups<S::f32s, N>) -> S::f32s {
    let mut sum = S::f32s::splat(simd, 0.0);
    for &value in x {
        sum += value * value;
    }
    sum
}

#[inline(always)]
fn any<S: Simd>(mask: S::mask32s) -> bool {
    mask.to_bitmask() != 0
}

/// The value with the largest magnitude of each group, with its sign; on ties the first.
#[inline(always)]
fn signed_largest<S: Simd, const N: usize>(simd: S, x: &Groups<S::f32s, N>) -> (S::f32s, S::f32s) {
    let (mut magnitude, mut signed) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 0.0));
    for &value in x {
        let larger = magnitude.simd_lt(value.abs());
        magnitude = larger.select(value.abs(), magnitude);
        signed = larger.select(value, signed);
    }
    (signed, magnitude)
}

/// The nearest integers, ties to even, clamped to the bounds; for magnitudes up to [`LIMIT`].
#[inline(always)]
fn code<S: Simd>(simd: S, value: S::f32s, least: f32, most: f32) -> S::f32s {
    let rounded = value + S::f32s::splat(simd, ROUND) - S::f32s::splat(simd, ROUND);
    rounded.min(S::f32s::splat(simd, most)).max(S::f32s::splat(simd, least))
}

/// As [`code`], for any value: the bits that the reference interprets as an integer.
#[inline(always)]
fn code_of_any<S: Simd>(simd: S, value: S::f32s, least: f32, most: f32) -> S::f32s {
    let bits = (value + S::f32s::splat(simd, ROUND)).to_bits() & 0x007f_ffff | 0x4b00_0000;
    let rounded = S::f32s::from_bits(bits) - S::f32s::splat(simd, ROUND);
    rounded.min(S::f32s::splat(simd, most)).max(S::f32s::splat(simd, least))
}

/// Weighted products of values and codes, and of codes and codes.
#[inline(always)]
fn signed_sums<S: Simd, const N: usize>(
    simd: S,
    most: f32,
    x: &Groups<S::f32s, N>,
    inverse: S::f32s,
) -> (S::f32s, S::f32s) {
    let (mut dot, mut squares) = (S::f32s::splat(simd, 0.0), S::f32s::splat(simd, 0.0));
    for &value in x {
        let weight = value * value;
        let code = code(simd, inverse * value, -most, most - 1.0);
        dot += weight * value * code;
        squares += weight * code * code;
    }
    (dot, squares)
}

/// Scales of values around zero, with squares as weights: see [`signed`](crate::blocks::k_search::signed).
#[inline(always)]
pub(super) fn signed<S: Simd, const N: usize>(simd: S, most: f32, x: &Groups<S::f32s, N>) -> S::f32s {
    let zero = S::f32s::splat(simd, 0.0);
    let (largest, magnitude) = signed_largest::<S, N>(simd, x);
    let (dot, squares) = signed_sums::<S, N>(simd, most, x, S::f32s::splat(simd, -most) / largest);
    let mut scale = squares.simd_eq(zero).select(zero, dot / squares);
    let mut best = scale * dot;
    for step in (-9_i8..=9).filter(|&step| step != 0) {
        let inverse = S::f32s::splat(simd, -(most + 0.1 * f32::from(step))) / largest;
        let (dot, squares) = signed_sums::<S, N>(simd, most, x, inverse);
        let better = squares.simd_gt(zero) & (dot * dot).simd_gt(best * squares);
        scale = better.select(dot / squares, scale);
        best = better.select(scale * dot, best);
    }
    magnitude.simd_lt(S::f32s::splat(simd, ZERO)).select(zero, scale)
}

/// Packs of groups that are swept alternately: within a pack, each change depends on the one before.
pub(super) const SWEPT: usize = 4;

/// Scales found by changing one code at a time, and a mask of the groups that the last sweep changed: see
/// [`by_sweeps`](crate::blocks::k_search::by_sweeps), which ends after five.
///
/// A group that one sweep does not change is not changed by later ones, which run for the other groups.
///
/// If a lane keeps the value in memory, the compiler emits a masked store, which costs a dozen cycles with AVX2 and prevents
/// store-to-load forwarding (AMD Zen: twice the time). So the sums of each pack are separate variables, which stay in
/// registers, and a sweep writes codes to another array than it reads.
#[inline(always)]
pub(super) fn by_sweeps<S: Simd, const N: usize>(
    simd: S,
    most: f32,
    x: &[Groups<S::f32s, N>; SWEPT],
    n_sweeps: usize,
) -> [(S::f32s, S::mask32s); SWEPT] {
    let zero = S::f32s::splat(simd, 0.0);
    let (mut codes, mut new_codes) = ([[zero; N]; SWEPT], [[zero; N]; SWEPT]);
    let mut magnitudes = [zero; SWEPT];
    let mut sums = [Sums { dot: zero, squares: zero }; SWEPT];
    for pack in 0..SWEPT {
        let (largest, magnitude) = signed_largest::<S, N>(simd, &x[pack]);
        magnitudes[pack] = magnitude;
        let inverse = S::f32s::splat(simd, -most) / largest;
        codes[pack] = changed(
            &x[pack],
            #[inline(always)]
            |value| code(simd, inverse * value, -most, most - 1.0),
        );
        let (dot, squares) = signed_sums::<S, N>(simd, most, &x[pack], inverse);
        sums[pack] = Sums { dot, squares };
    }
    let [mut first, mut second, mut third, mut fourth] = sums;
    let mut changed = [S::mask32s::splat(simd, false); SWEPT];
    let (mut from, mut to) = (&mut codes, &mut new_codes);
    for _ in 0..n_sweeps {
        let [mut one, mut two, mut three, mut four] = [S::mask32s::splat(simd, false); SWEPT];
        for idx in 0..N {
            one |= change(simd, most, &mut first, x[0][idx], from[0][idx], &mut to[0][idx]);
            two |= change(simd, most, &mut second, x[1][idx], from[1][idx], &mut to[1][idx]);
            three |= change(simd, most, &mut third, x[2][idx], from[2][idx], &mut to[2][idx]);
            four |= change(simd, most, &mut fourth, x[3][idx], from[3][idx], &mut to[3][idx]);
        }
        changed = [one, two, three, four];
        if !any::<S>(one | two | three | four) {
            break;
        }
        (from, to) = (to, from);
    }
    let mut found = [(zero, changed[0]); SWEPT];
    for (pack, Sums { dot, squares }) in [first, second, third, fourth].into_iter().enumerate() {
        let is_found = squares.simd_gt(zero) & magnitudes[pack].simd_ge(S::f32s::splat(simd, ZERO));
        found[pack] = (is_found.select(dot / squares, zero), changed[pack]);
    }
    found
}

/// Weighted products of the numbers of groups and their codes, and of codes and codes.
#[derive(Clone, Copy)]
struct Sums<V> {
    dot: V,
    squares: V,
}

/// Changes the code of this element in the lanes where that reduces the error, and returns their mask.
#[inline(always)]
fn change<S: Simd>(
    simd: S,
    most: f32,
    sums: &mut Sums<S::f32s>,
    value: S::f32s,
    old: S::f32s,
    kept: &mut S::f32s,
) -> S::mask32s {
    let zero = S::f32s::splat(simd, 0.0);
    let Sums { dot, squares } = *sums;
    let weight = value * value;
    let rest = dot - weight * value * old;
    let rest_squares = squares - weight * old * old;
    let new = code_of_any(simd, value * rest_squares / rest, -most, most - 1.0);
    let new_dot = rest + weight * value * new;
    let new_squares = rest_squares + weight * new * new;
    let better = (new_dot * new_dot * squares).simd_gt(dot * dot * new_squares);
    let taken = rest.simd_gt(zero) & new.simd_ne(old) & new_squares.simd_gt(zero) & better;
    *sums = Sums { dot: taken.select(new_dot, dot), squares: taken.select(new_squares, squares) };
    *kept = taken.select(new, old);
    taken
}

/// Scales and negated minima: see [`span`](crate::blocks::k_search::span).
///
/// `None` if a try of any group leaves the range in which codes are rounded.
#[inline(always)]
pub(super) fn span<S: Simd, const N: usize>(
    simd: S,
    tries: &Tries,
    most: f32,
    x: &Groups<S::f32s, N>,
    weights: &Groups<S::f32s, N>,
) -> Option<(S::f32s, S::f32s)> {
    let zero = S::f32s::splat(simd, 0.0);
    let (mut least, mut max) = (x[0], x[0]);
    let mut sum_weights = weights[0];
    let mut sum_values = sum_weights * x[0];
    for (&weight, &value) in weights.iter().zip(x).skip(1) {
        least = value.min(least);
        max = value.max(max);
        sum_weights += weight;
        sum_values += weight * value;
    }
    let mut min = least.min(zero);
    let constant = max.simd_eq(min);
    let inverse = S::f32s::splat(simd, most) / (max - min);
    if !are_near(simd, inverse, (least - min, max - min), constant) {
        return None;
    }
    let mut scale = S::f32s::splat(simd, 1.0) / inverse;
    let mut codes = changed(
        x,
        #[inline(always)]
        |value| code(simd, inverse * (value - min), 0.0, most),
    );
    let mut best = error::<S, N>(simd, tries.error, x, weights, &codes, scale, min);
    for step in 0..=tries.count {
        let numerator = tries.first + tries.delta * f32::from(step) + most;
        let inverse = S::f32s::splat(simd, numerator) / (max - min);
        if !are_near(simd, inverse, (least - min, max - min), constant) {
            return None;
        }
        let (mut sum_codes, mut sum_squares, mut dot) = (zero, zero, zero);
        for ((&weight, &value), kept) in weights.iter().zip(x).zip(&mut codes) {
            let code = code(simd, inverse * (value - min), 0.0, most);
            *kept = code;
            let weighted = weight * code;
            sum_codes += weighted;
            sum_squares += weighted * code;
            dot += weighted * value;
        }
        let determinant = sum_weights * sum_squares - sum_codes * sum_codes;
        let fit_min = (sum_squares * sum_values - sum_codes * dot) / determinant;
        let fit_scale = (sum_weights * dot - sum_values * sum_codes) / determinant;
        let positive = fit_min.simd_gt(zero);
        let fit_scale = positive.select(dot / sum_squares, fit_scale);
        let fit_min = positive.select(zero, fit_min);
        let error = error::<S, N>(simd, tries.error, x, weights, &codes, fit_scale, fit_min);
        let better = determinant.simd_gt(zero) & error.simd_lt(best);
        best = better.select(error, best);
        scale = better.select(fit_scale, scale);
        min = better.select(fit_min, min);
    }
    let min = constant.select(least.min(zero), min);
    Some((constant.select(zero, scale), zero - min))
}

/// Whether the codes of all elements, which are between those of the extremes, are in the range of exact rounding.
#[inline(always)]
fn are_near<S: Simd>(simd: S, inverse: S::f32s, extremes: (S::f32s, S::f32s), constant: S::mask32s) -> bool {
    let limit = S::f32s::splat(simd, LIMIT);
    let near = (inverse * extremes.0).abs().simd_le(limit) & (inverse * extremes.1).abs().simd_le(limit);
    !any::<S>(!(near | constant))
}

/// Weighted sum of the errors of the codes.
#[inline(always)]
fn error<S: Simd, const N: usize>(
    simd: S,
    distance: Distance,
    x: &Groups<S::f32s, N>,
    weights: &Groups<S::f32s, N>,
    codes: &Groups<S::f32s, N>,
    scale: S::f32s,
    min: S::f32s,
) -> S::f32s {
    let mut error = S::f32s::splat(simd, 0.0);
    for ((&weight, &value), &code) in weights.iter().zip(x).zip(codes) {
        let difference = scale * code + min - value;
        let difference = match distance {
            Distance::Absolute => difference.abs(),
            Distance::Squared => difference * difference,
        };
        error += weight * difference;
    }
    error
}
