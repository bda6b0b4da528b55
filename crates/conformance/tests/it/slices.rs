//! Slicing beside an oracle that takes element by element, over all small cases.

use std::num::{NonZeroU64, NonZeroUsize};
use std::ops::Bound;

use conformance::{official, oracle};
use safetensors::slice::{TensorIndexer, slice_byte_ranges};
use st_core::{Bounds, Dtype, Index, SlicePlan};

fn range(start: Option<i64>, stop: Option<i64>, step: u64) -> Index {
    Index::Range { start, stop, step: NonZeroU64::new(step).unwrap() }
}

/// Every range with bounds from one before to one past a dimension of four, places, and the ellipsis.
fn indices() -> Vec<Index> {
    let bounds: Vec<Option<i64>> = (-5..=5).map(Some).chain([None, Some(i64::MIN), Some(i64::MAX)]).collect();
    let mut out = vec![Index::Ellipsis];
    out.extend((-5..=5).chain([i64::MIN, i64::MAX]).map(Index::Select));
    for start in &bounds {
        for stop in &bounds {
            for step in [1, 2, 3, u64::MAX] {
                out.push(range(*start, *stop, step));
            }
        }
    }
    out
}

fn check(dtype: Dtype, shape: &[usize], index: &[Index]) {
    if dtype.byte_len(shape).is_err() {
        // No file holds such a tensor.
        assert!(SlicePlan::new(dtype, shape, index, Bounds::Clamp).is_err());
        return;
    }
    for bounds in [Bounds::Exact, Bounds::Clamp] {
        let context = || format!("{dtype} {shape:?} {index:?} {bounds:?}");
        let plan = SlicePlan::new(dtype, shape, index, bounds);
        match (plan, oracle::slice(dtype, shape, index, bounds)) {
            (Ok(plan), Some(expected)) => {
                assert_eq!(plan.shape(), expected.shape, "{}", context());
                assert_eq!(plan.ranges().collect::<Vec<_>>(), expected.ranges, "{}", context());
                let sum = expected.ranges.iter().map(|range| range.end - range.start).sum::<u64>();
                assert_eq!(plan.byte_len(), sum, "{}", context());
            }
            (Err(_), None) => {}
            (plan, expected) => panic!("{}: {plan:?}, expected {expected:?}", context()),
        }
    }
}

#[test]
fn every_index_of_one_dimension() {
    for dtype in [Dtype::U8, Dtype::F32, Dtype::F4] {
        for size in 0..=4 {
            for index in indices() {
                check(dtype, &[size], &[index]);
            }
        }
    }
}

#[test]
fn pairs_of_indices_of_two_and_three_dimensions() {
    let few: Vec<Index> = indices().into_iter().step_by(7).collect();
    for dtype in [Dtype::I16, Dtype::F4, Dtype::F6E3M2] {
        for shape in [&[4, 3][..], &[2, 4], &[1, 4], &[4, 1], &[0, 4], &[2, 3, 4], &[4, 2, 2], &[3, 1, 4]] {
            for outer in &few {
                for inner in &few {
                    check(dtype, shape, &[*outer, *inner]);
                }
            }
        }
    }
}

/// The crate knows neither negative numbers nor the ellipsis, and gives the whole tensor where a strided
/// range is empty: those are left out. Its panic on a reversed range counts as a refusal.
#[test]
fn exact_bounds_give_the_verdicts_and_bytes_of_the_crate() {
    let theirs = |index: &Index| -> Option<TensorIndexer> {
        let bound =
            |bound: Option<i64>| bound.map(|bound| usize::try_from(bound).ok()).unwrap_or(Some(usize::MAX));
        match *index {
            Index::Select(place) => {
                Some(TensorIndexer::Select(usize::try_from(place).ok().filter(|p| *p < 9)?))
            }
            Index::Range { start, stop, step } => {
                let step = NonZeroUsize::try_from(step).ok()?;
                let (first, end) = (bound(start)?, bound(stop)?);
                let start = start.map_or(Bound::Unbounded, |_| Bound::Included(first));
                let stop = stop.map_or(Bound::Unbounded, |_| Bound::Excluded(end));
                Some(TensorIndexer::Narrow(start, stop, step))
            }
            Index::Ellipsis => None,
        }
    };
    let known: Vec<(Index, TensorIndexer)> =
        indices().iter().filter_map(|index| Some((*index, theirs(index)?))).collect();
    let mut compared = 0;
    for shape in [[4, 3], [3, 4], [1, 4]] {
        for (outer, their_outer) in &known {
            for (inner, their_inner) in known.iter().step_by(3) {
                let context = format!("{shape:?} {outer:?} {inner:?}");
                let plan = SlicePlan::new(Dtype::F32, &shape, &[*outer, *inner], Bounds::Exact);
                if plan.as_ref().is_ok_and(|plan| plan.byte_len() == 0) {
                    continue;
                }
                let items = [their_outer.clone(), their_inner.clone()];
                let judge = || slice_byte_ranges(safetensors::Dtype::F32, &shape, &items);
                match (plan, official::call(|| Ok(judge()))) {
                    (Ok(plan), Ok(Ok((ranges, new_shape)))) => {
                        assert_eq!(plan.shape(), new_shape, "{context}");
                        let bytes = plan.ranges().flatten();
                        let expected = ranges.iter().flat_map(|(start, stop)| *start as u64..*stop as u64);
                        assert!(bytes.eq(expected), "{context}");
                    }
                    (Err(_), Err(_) | Ok(Err(_))) => {}
                    (plan, theirs) => panic!("{context}: {plan:?}, the crate: {theirs:?}"),
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "only {compared} cases were compared");
}

#[test]
fn no_index_and_too_many() {
    for shape in [&[][..], &[3], &[2, 2]] {
        for count in 0..4 {
            check(Dtype::F32, shape, &vec![Index::ALL; count]);
            check(Dtype::F32, shape, &vec![Index::Ellipsis; count]);
            check(Dtype::F32, shape, &vec![Index::Select(0); count]);
        }
    }
}
