//! Formats of 256 elements: groups of one block, or of two, are searched in lanes; the rest is that of [`blocks`](crate::blocks).

#![expect(
    clippy::redundant_closure,
    clippy::redundant_closure_for_method_calls,
    reason = "a closure is compiled for the instructions around it, a function that is handed over is not"
)]

use fearless_simd::prelude::*;

use super::search::{self, MOST_LANES};
use crate::blocks::k_search::Tries;
use crate::blocks::{q2_k, q3_k, q4_k, q5_k, q6_k};
use crate::each::changed;
use crate::error::Error;
use crate::importance::Importance;
use crate::rows::{Rows, check_input, check_output, rules_of};

/// Lanes that are searched at once, at most.
const MOST: usize = 4 * MOST_LANES;

/// A number for each lane.
type Lanes = [f32; MOST];

/// Searches as many groups as there are lanes, then ends their blocks. What cannot be searched in lanes goes the long way.
#[inline(always)]
fn encode<S: Simd, const N: usize, const COUNT: usize, const BYTES: usize, const PACKS: usize>(
    rows: &Rows<'_>,
    out: &mut [u8],
    search: impl Fn(&[[f32; N]], &mut Lanes, &mut Lanes) -> bool,
    finish: impl Fn(&[f32; 256], &[f32; COUNT], &[f32; COUNT], &mut [u8; BYTES]),
    long_way: impl Fn(&[f32; 256], Option<Importance<'_, 256>>, &mut [u8; BYTES]),
) -> Result<(), Error> {
    let rules = rules_of(rows.format);
    let lanes = PACKS * S::f32s::LEN;
    let at_once = (lanes / COUNT).max(1);
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
        for (idx, groups) in groups.chunks(lanes).enumerate() {
            let (mut found, mut found_mins) = ([0.0; MOST], [0.0; MOST]);
            searched = searched && search(groups, &mut found, &mut found_mins);
            let first = idx * lanes;
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

/// Lanes to numbers.
#[inline(always)]
fn put<S: Simd>(lanes: S::f32s, pack: usize, out: &mut Lanes) {
    let first = pack * S::f32s::LEN;
    lanes.store_slice(&mut out[first..first + S::f32s::LEN]);
}

/// `Q4_K` and `Q5_K`: weights are the size of the group and that of the number.
#[inline(always)]
fn spans_by_size<S: Simd>(
    simd: S,
    tries: &Tries,
    most: f32,
    groups: &[[f32; 32]],
    scales: &mut Lanes,
    mins: &mut Lanes,
) -> bool {
    let x = search::load::<S, 32>(simd, groups, 0);
    let size = (search::sum_of_squares::<S, 32>(simd, &x) / 32.0).sqrt();
    let weights = changed(
        &x,
        #[inline(always)]
        |x| size + x.abs(),
    );
    let Some(found) = search::span::<S, 32>(simd, tries, most, &x, &weights) else { return false };
    put::<S>(found.0, 0, scales);
    put::<S>(found.1, 0, mins);
    true
}

#[inline(always)]
fn spans_by_magnitude<S: Simd>(simd: S, groups: &[[f32; 16]], scales: &mut Lanes, mins: &mut Lanes) -> bool {
    let x = search::load::<S, 16>(simd, groups, 0);
    let weights = changed(
        &x,
        #[inline(always)]
        |x| x.abs(),
    );
    let Some(found) = search::span::<S, 16>(simd, &q2_k::TRIES, 3.0, &x, &weights) else { return false };
    put::<S>(found.0, 0, scales);
    put::<S>(found.1, 0, mins);
    true
}

#[inline(always)]
fn sweeps<S: Simd>(simd: S, groups: &[[f32; 16]], scales: &mut Lanes) {
    let load = |pack| search::load::<S, 16>(simd, groups, pack * S::f32s::LEN);
    let packs = [load(0), load(1), load(2), load(3)];
    for (pack, found) in search::by_sweeps::<S, 16, 4>(simd, 4.0, &packs).into_iter().enumerate() {
        put::<S>(found, pack, scales);
    }
}

macro_rules! rows_of {
    ($($format:ident: $count:literal groups of $len:literal, $bytes:literal, packs: $packs:literal,
        |$simd:ident, $groups:ident, $scales:ident, $mins:ident| $search:expr,
        $finish:expr;)*) => {
        $(pub(super) fn $format<S: Simd>($simd: S, rows: &Rows<'_>, out: &mut [u8]) -> Result<(), Error> {
            $simd.vectorize(
                #[inline(always)]
                || encode::<S, $len, $count, $bytes, $packs>(
                    rows,
                    out,
                    #[inline(always)]
                    |$groups, $scales, $mins| $search,
                    #[inline(always)]
                    $finish,
                    #[inline(always)]
                    |x, importance, out| $format::encode(x, importance, out),
                ),
            )
        })*
    };
}

rows_of! {
    q2_k: 16 groups of 16, 84, packs: 1,
        |simd, groups, scales, mins| spans_by_magnitude(simd, groups, scales, mins),
        |x, scales, mins, out| q2_k::encode_found(x, scales, mins, out);
    q3_k: 16 groups of 16, 110, packs: 4,
        |simd, groups, scales, _mins| {
            sweeps(simd, groups, scales);
            true
        },
        |x, scales, _, out| q3_k::encode_found(x, scales, out);
    q4_k: 8 groups of 32, 144, packs: 1,
        |simd, groups, scales, mins| spans_by_size(simd, &q4_k::TRIES, 15.0, groups, scales, mins),
        |x, scales, mins, out| q4_k::encode_found(x, scales, mins, out);
    q5_k: 8 groups of 32, 176, packs: 1,
        |simd, groups, scales, mins| spans_by_size(simd, &q5_k::TRIES, 31.0, groups, scales, mins),
        |x, scales, mins, out| q5_k::encode_found(x, scales, mins, out);
    q6_k: 16 groups of 16, 210, packs: 1,
        |simd, groups, scales, _mins| {
            put::<S>(search::signed::<S, 16>(simd, 32.0, &search::load::<S, 16>(simd, groups, 0)), 0, scales);
            true
        },
        |x, scales, _, out| q6_k::encode_found(x, scales, out);
}
