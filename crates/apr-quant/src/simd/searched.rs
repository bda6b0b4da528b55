//! Formats with blocks of 256 elements: the groups of one or two blocks are searched in lanes; the rest is done by
//! [`blocks`](crate::blocks).

#![expect(
    clippy::redundant_closure,
    clippy::redundant_closure_for_method_calls,
    reason = "a closure is compiled for the instructions around it, a function that is handed over is not"
)]

use fearless_simd::prelude::*;

use super::search::{self, MOST_LANES};
use crate::blocks::k_search::Tries;
use crate::blocks::{q2_k, q3_k, q4_k, q5_k, q6_k};
use crate::codecs::rules_of;
use crate::each::changed;
use crate::error::Error;
use crate::importance::Importance;
use crate::rows::{Rows, check_input, check_output};

/// Groups per call of [`sweeps`]: enough that the groups which need another sweep fill whole vectors.
const SWEPT_TOGETHER: usize = 256;

/// Searches `n_groups` groups at once, at most `MOST`, then finishes their blocks. Blocks that cannot be searched in lanes are
/// encoded by `long_way`.
#[inline(always)]
fn encode<const N: usize, const COUNT: usize, const BYTES: usize, const MOST: usize>(
    rows: &Rows<'_>,
    out: &mut [u8],
    n_groups: usize,
    search: impl Fn(&[[f32; N]], &mut [f32; MOST], &mut [f32; MOST]) -> bool,
    finish: impl Fn(&[f32; 256], &[f32; COUNT], &[f32; COUNT], &mut [u8; BYTES]),
    long_way: impl Fn(&[f32; 256], Option<Importance<'_, 256>>, &mut [u8; BYTES]),
) -> Result<(), Error> {
    let rules = rules_of(rows.dtype);
    let at_once = (n_groups / COUNT).max(1);
    let (blocks, _) = rows.values.as_chunks::<256>();
    let (out, _) = out.as_chunks_mut::<BYTES>();
    for (idx, (x, out)) in blocks.chunks(at_once).zip(out.chunks_mut(at_once)).enumerate() {
        let first = 256 * at_once * idx;
        let mut searched = true;
        for (idx, x) in x.iter().enumerate() {
            searched &= check_input(rows, rules, x, first + 256 * idx).unwrap_or(false);
        }
        let (mut scales, mut mins) = ([0.0; MOST], [0.0; MOST]);
        let (groups, _) = x.as_flattened().as_chunks::<N>();
        for (idx, groups) in groups.chunks(n_groups).enumerate() {
            let (mut found, mut found_mins) = ([0.0; MOST], [0.0; MOST]);
            searched = searched && search(groups, &mut found, &mut found_mins);
            let first = idx * n_groups;
            scales[first..first + groups.len()].copy_from_slice(&found[..groups.len()]);
            mins[first..first + groups.len()].copy_from_slice(&found_mins[..groups.len()]);
        }
        let (scales, mins) = (scales.as_chunks::<COUNT>().0, mins.as_chunks::<COUNT>().0);
        for (idx, (x, out)) in x.iter().zip(out).enumerate() {
            if searched {
                finish(x, &scales[idx], &mins[idx], out);
            } else {
                check_input(rows, rules, x, first + 256 * idx)?;
                long_way(x, None, out);
            }
            check_output(rows, rules, x, first + 256 * idx, out)?;
        }
    }
    Ok(())
}

/// Stores lanes.
#[inline(always)]
fn put<S: Simd>(lanes: S::f32s, out: &mut [f32]) {
    lanes.store_slice(&mut out[..S::f32s::LEN]);
}

/// Loads one group per lane; surplus lanes get the first group.
#[inline(always)]
fn load<S: Simd, const N: usize>(simd: S, groups: &[[f32; N]]) -> search::Groups<S::f32s, N> {
    search::load::<S, N>(
        simd,
        #[inline(always)]
        |lane| groups.get(lane).unwrap_or(&groups[0]),
    )
}

/// `Q4_K` and `Q5_K`: weights are the root mean square of the group plus the magnitude of the value.
#[inline(always)]
fn spans_by_size<S: Simd>(
    simd: S,
    tries: &Tries,
    most: f32,
    groups: &[[f32; 32]],
    scales: &mut [f32],
    mins: &mut [f32],
) -> bool {
    let x = load::<S, 32>(simd, groups);
    let size = (search::sum_of_squares::<S, 32>(simd, &x) / 32.0).sqrt();
    let weights = changed(
        &x,
        #[inline(always)]
        |x| size + x.abs(),
    );
    let Some(found) = search::span::<S, 32>(simd, tries, most, &x, &weights) else { return false };
    put::<S>(found.0, scales);
    put::<S>(found.1, mins);
    true
}

#[inline(always)]
fn spans_by_magnitude<S: Simd>(simd: S, groups: &[[f32; 16]], scales: &mut [f32], mins: &mut [f32]) -> bool {
    let x = load::<S, 16>(simd, groups);
    let weights = changed(
        &x,
        #[inline(always)]
        |x| x.abs(),
    );
    let Some(found) = search::span::<S, 16>(simd, &q2_k::TRIES, 3.0, &x, &weights) else { return false };
    put::<S>(found.0, scales);
    put::<S>(found.1, mins);
    true
}

/// `Q3_K`: one sweep for all groups, then the complete search again for those that it changed: a fifth of normally distributed
/// groups. Of 32 groups searched together, one nearly always needs three sweeps.
#[inline(always)]
fn sweeps<S: Simd>(simd: S, groups: &[[f32; 16]], scales: &mut [f32]) {
    let lanes = S::f32s::LEN;
    let mut order = [0_u16; SWEPT_TOGETHER];
    for (place, group) in order.iter_mut().zip(0..) {
        *place = group;
    }
    let mut count = groups.len();
    for n_sweeps in [1, 5] {
        let mut n_changed = 0;
        for first in (0..count).step_by(search::SWEPT * lanes) {
            let mut packs = [[S::f32s::splat(simd, 0.0); 16]; search::SWEPT];
            for (pack, x) in packs.iter_mut().enumerate() {
                *x = search::load::<S, 16>(
                    simd,
                    #[inline(always)]
                    |lane| &groups[usize::from(order[(first + pack * lanes + lane).min(count - 1)])],
                );
            }
            let found = search::by_sweeps::<S, 16>(simd, 4.0, &packs, n_sweeps);
            for (pack, (found, changed)) in found.into_iter().enumerate() {
                let mut values = [0.0; MOST_LANES];
                put::<S>(found, &mut values);
                let changed = changed.to_bitmask();
                let first = first + pack * lanes;
                for idx in first..count.min(first + lanes) {
                    let group = order[idx];
                    scales[usize::from(group)] = values[idx - first];
                    // Elements before this index have been read.
                    order[n_changed] = group;
                    n_changed += usize::from(changed >> (idx - first) & 1 == 1);
                }
            }
        }
        count = n_changed;
    }
}

macro_rules! rows_of {
    ($($dtype:ident: $count:literal groups of $len:literal, $bytes:literal, $at_once:expr, at most $most:expr,
        |$simd:ident, $groups:ident, $scales:ident, $mins:ident| $search:expr,
        $finish:expr;)*) => {
        $(pub(super) fn $dtype<S: Simd>($simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
            $simd.vectorize(
                #[inline(always)]
                || encode::<$len, $count, $bytes, { $most }>(
                    rows,
                    out,
                    $at_once,
                    #[inline(always)]
                    |$groups, $scales, $mins| $search,
                    #[inline(always)]
                    $finish,
                    #[inline(always)]
                    |x, importance, out| $dtype::encode(x, importance, out),
                ),
            )
        })*
    };
}

rows_of! {
    q2_k: 16 groups of 16, 84, S::f32s::LEN, at most MOST_LANES,
        |simd, groups, scales, mins| spans_by_magnitude(simd, groups, scales, mins),
        |x, scales, mins, out| q2_k::encode_found(x, scales, mins, out);
    q3_k: 16 groups of 16, 110, SWEPT_TOGETHER, at most SWEPT_TOGETHER,
        |simd, groups, scales, _mins| {
            sweeps(simd, groups, scales);
            true
        },
        |x, scales, _, out| q3_k::encode_found(x, scales, out);
    q4_k: 8 groups of 32, 144, S::f32s::LEN, at most MOST_LANES,
        |simd, groups, scales, mins| spans_by_size(simd, &q4_k::TRIES, 15.0, groups, scales, mins),
        |x, scales, mins, out| q4_k::encode_found(x, scales, mins, out);
    q5_k: 8 groups of 32, 176, S::f32s::LEN, at most MOST_LANES,
        |simd, groups, scales, mins| spans_by_size(simd, &q5_k::TRIES, 31.0, groups, scales, mins),
        |x, scales, mins, out| q5_k::encode_found(x, scales, mins, out);
    q6_k: 16 groups of 16, 210, S::f32s::LEN, at most MOST_LANES,
        |simd, groups, scales, _mins| {
            put::<S>(search::signed::<S, 16>(simd, 32.0, &load::<S, 16>(simd, groups)), scales);
            true
        },
        |x, scales, _, out| q6_k::encode_found(x, scales, out);
}
