//! Parts of tensors against an element-by-element oracle, and refusals.

use core::iter;
use core::num::NonZeroU64;
use core::ops::Range;

use st_core::{Bounds, Dtype, ErrorKind, Index, SlicePlan, TensorView};

fn step(start: Option<i64>, stop: Option<i64>, step: u64) -> Index {
    Index::Range { start, stop, step: NonZeroU64::new(step).unwrap() }
}

/// Ranges joined from elements one by one; `places` holds what is taken of each dimension.
fn oracle(shape: &[usize], places: &[Vec<usize>], bits: u64) -> Vec<Range<u64>> {
    let mut offsets = vec![0u64];
    for (dim, places) in shape.iter().zip(places) {
        offsets = offsets
            .iter()
            .flat_map(|offset| places.iter().map(move |place| offset * *dim as u64 + *place as u64))
            .collect();
    }
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for offset in offsets {
        let (start, end) = (offset * bits, (offset + 1) * bits);
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => ranges.push(start..end),
        }
    }
    ranges.into_iter().map(|bits| bits.start / 8..bits.end / 8).collect()
}

#[test]
fn every_range_of_a_small_tensor() {
    let shape = [3, 1, 4, 2];
    let mut choices: Vec<Vec<(Index, Vec<usize>, bool)>> = Vec::new();
    for &dim in &shape {
        let mut of_dim = Vec::new();
        for start in 0..dim {
            of_dim.push((Index::from(start), vec![start], false));
            of_dim.push((Index::Select(start as i64 - dim as i64), vec![start], false));
            for stop in start..=dim {
                for by in 1..=3 {
                    let index = step(Some(start as i64), Some(stop as i64), by);
                    of_dim.push((index, (start..stop).step_by(by as usize).collect(), true));
                }
            }
        }
        choices.push(of_dim);
    }
    // All combinations of two dimensions, the others at a few choices.
    let mut checked = 0;
    for (a, b, c, d) in (0..choices[0].len())
        .flat_map(|a| (0..choices[2].len()).map(move |c| (a, c)))
        .flat_map(|(a, c)| (0..choices[3].len()).map(move |d| (a, (a + c) % 5, c, d)))
    {
        let picked = [&choices[0][a], &choices[1][b % choices[1].len()], &choices[2][c], &choices[3][d]];
        let index: Vec<_> = picked.iter().map(|(index, ..)| *index).collect();
        let places: Vec<_> = picked.iter().map(|(_, places, _)| places.clone()).collect();
        let kept: Vec<_> =
            picked.iter().filter(|(.., kept)| *kept).map(|(_, places, _)| places.len()).collect();
        for bounds in [Bounds::Exact, Bounds::Clamp] {
            let plan = SlicePlan::new(Dtype::I16, &shape, &index, bounds).unwrap();
            assert_eq!(plan.shape(), kept);
            assert_eq!(plan.byte_len(), places.iter().map(|places| places.len() as u64).product::<u64>() * 2);
            assert!(plan.ranges().eq(oracle(&shape, &places, 16)), "{index:?}");
            checked += 1;
        }
    }
    assert!(checked > 20_000);
}

#[test]
fn ranges_that_touch_are_joined_across_rows() {
    let plan = |index: &[Index]| SlicePlan::new(Dtype::U8, &[4, 4], index, Bounds::Exact).unwrap();
    let joined = plan(&[Index::ALL, step(None, None, 3)]);
    assert_eq!(joined.ranges().collect::<Vec<_>>(), [0..1, 3..5, 7..9, 11..13, 15..16]);
    assert!(plan(&[(1..3).into()]).ranges().eq(iter::once(4..12)));
    assert!(plan(&[]).ranges().eq(iter::once(0..16)));
}

#[test]
fn many_ranges_need_no_memory() {
    let plan =
        SlicePlan::new(Dtype::U8, &[1 << 30, 1 << 30], &[Index::ALL, 0.into()], Bounds::Exact).unwrap();
    assert_eq!(plan.byte_len(), 1 << 30);
    assert_eq!(plan.ranges().nth(3), Some(3 << 30..(3 << 30) + 1));
}

#[test]
fn the_crates_bounds() {
    let err = |index: &[Index]| *SlicePlan::new(Dtype::U8, &[4, 5], index, Bounds::Exact).unwrap_err().kind();
    let range = |dim, index, size| ErrorKind::IndexOutOfRange { dim, index, size };
    assert_eq!(err(&[4.into()]), range(0, 4, 4));
    assert_eq!(err(&[Index::Select(-5)]), range(0, -5, 4));
    assert_eq!(err(&[Index::Select(i64::MIN)]), range(0, i64::MIN, 4));
    assert_eq!(err(&[usize::MAX.into()]), range(0, i64::MAX, 4));
    assert_eq!(err(&[(4..).into()]), range(0, 4, 4));
    assert_eq!(err(&[(4..4).into()]), range(0, 4, 4));
    assert_eq!(err(&[Index::ALL, (..6).into()]), range(1, 5, 5));
    assert_eq!(err(&[Index::ALL, (0..=usize::MAX).into()]), range(1, i64::MAX - 1, 5));
    assert_eq!(err(&[Index::ALL, (..=5).into()]), range(1, 5, 5));
    assert_eq!(err(&[step(Some(-3), None, 1)]), range(0, -3, 4));
    assert_eq!(err(&[step(None, Some(-1), 1)]), range(0, -1, 4));
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = Index::from(3..2);
    assert_eq!(err(&[reversed]), ErrorKind::ReversedRange { dim: 0, start: 3, stop: 2 });
    assert_eq!(err(&[0.into(), 0.into(), 0.into()]), ErrorKind::TooManyIndices { given: 3, rank: 2 });
    assert_eq!(
        err(&[Index::Ellipsis, 0.into(), 0.into(), 0.into()]),
        ErrorKind::TooManyIndices { given: 3, rank: 2 }
    );
    assert_eq!(err(&[Index::Ellipsis, Index::Ellipsis]), ErrorKind::SecondEllipsis);
    // A dimension of size 0 has no place a range could begin at.
    let empty = SlicePlan::new(Dtype::U8, &[0, 5], &[Index::ALL], Bounds::Exact).unwrap_err();
    assert_eq!(*empty.kind(), range(0, 0, 0));
    assert!(SlicePlan::new(Dtype::U8, &[0, 5], &[], Bounds::Exact).is_ok());
    let scalar = SlicePlan::new(Dtype::U8, &[], &[Index::ALL], Bounds::Clamp).unwrap_err();
    assert_eq!(*scalar.kind(), ErrorKind::TooManyIndices { given: 1, rank: 0 });
    let size = SlicePlan::new(Dtype::U8, &[usize::MAX, 2], &[], Bounds::Exact).unwrap_err();
    assert_eq!(*size.kind(), ErrorKind::SizeOverflow);
}

#[test]
fn numpys_bounds() {
    let plan = |index: &[Index]| SlicePlan::new(Dtype::U8, &[4, 5], index, Bounds::Clamp).unwrap();
    let rows = |index: Index| {
        (plan(&[index]).shape()[0], plan(&[index]).ranges().next().map(|range| range.start / 5))
    };
    assert_eq!(rows(step(Some(-3), None, 1)), (3, Some(1)));
    assert_eq!(rows(step(Some(-9), Some(-1), 2)), (2, Some(0)));
    assert_eq!(rows(step(None, Some(-1), 1)), (3, Some(0)));
    assert_eq!(rows((2..99).into()), (2, Some(2)));
    assert_eq!(rows((4..).into()), (0, None));
    assert_eq!(rows((9..12).into()), (0, None));
    assert_eq!(rows(step(Some(3), Some(2), 1)), (0, None));
    assert_eq!(rows(step(Some(i64::MIN), Some(i64::MAX), u64::MAX)), (1, Some(0)));
    assert_eq!(SlicePlan::new(Dtype::U8, &[0], &[Index::ALL], Bounds::Clamp).unwrap().shape(), [0]);
    let error = SlicePlan::new(Dtype::U8, &[4], &[Index::Select(4)], Bounds::Clamp).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::IndexOutOfRange { dim: 0, index: 4, size: 4 });
    assert_eq!(Bounds::default(), Bounds::Exact);
}

#[test]
fn an_ellipsis_stands_for_the_rest() {
    let shape = |index: &[Index]| {
        SlicePlan::new(Dtype::U8, &[2, 3, 4], index, Bounds::Exact).unwrap().shape().to_vec()
    };
    assert_eq!(shape(&[Index::Ellipsis]), [2, 3, 4]);
    assert_eq!(shape(&[Index::Ellipsis, 0.into()]), [2, 3]);
    assert_eq!(shape(&[0.into(), Index::Ellipsis]), [3, 4]);
    assert_eq!(shape(&[0.into(), Index::Ellipsis, 0.into()]), [3]);
    assert_eq!(shape(&[0.into(), 0.into(), Index::Ellipsis, 0.into()]), [0usize; 0]);
    assert_eq!(shape(&[0.into(), (1..=2).into(), (..3).into()]), [2, 3]);
    assert_eq!(shape(&[(..).into(), (..=1).into()]), [2, 2, 4]);
}

#[test]
fn sub_byte_slices_begin_and_end_on_bytes() {
    let plan = |shape: &[usize], index: &[Index]| {
        SlicePlan::new(Dtype::F4, shape, index, Bounds::Exact).map(|plan| plan.ranges().collect::<Vec<_>>())
    };
    let refused = |shape: &[usize], index: &[Index]| *plan(shape, index).unwrap_err().kind();
    assert!(plan(&[2, 6], &[1.into(), (2..6).into()]).unwrap().into_iter().eq(iter::once(4..6)));
    assert_eq!(plan(&[3, 2], &[step(None, None, 2)]).unwrap(), [0..1, 2..3]);
    assert_eq!(refused(&[2, 6], &[1.into(), (1..5).into()]), ErrorKind::SliceInsideByte);
    assert_eq!(refused(&[2, 6], &[1.into(), (2..5).into()]), ErrorKind::SliceInsideByte);
    assert_eq!(refused(&[2, 6], &[1.into(), 2.into()]), ErrorKind::SliceInsideByte);
    assert_eq!(refused(&[2, 3], &[1.into()]), ErrorKind::SliceInsideByte);
    assert_eq!(refused(&[4, 3], &[Index::ALL, (0..2).into()]), ErrorKind::SliceInsideByte);
    assert_eq!(refused(&[1, 3], &[]), ErrorKind::PartialByte { bits: 12 });
    // Nothing is nowhere.
    assert_eq!(plan(&[2, 6], &[1.into(), (1..1).into()]).unwrap(), []);
    let six = SlicePlan::new(Dtype::F6E2M3, &[8, 4], &[(1..3).into()], Bounds::Exact).unwrap();
    assert!(six.ranges().eq(iter::once(3..9)));
}

#[test]
fn slices_hold_the_bytes() {
    let view = TensorView::new(Dtype::U8, &[2, 2, 2], b"abcdefgh").unwrap();
    let slice = view.slice(&[Index::ALL, 1.into()], Bounds::Exact).unwrap();
    assert_eq!((slice.shape(), slice.byte_len(), slice.to_vec()), (&[2, 2][..], 4, b"cdgh".to_vec()));
    assert_eq!(slice.pieces().collect::<Vec<_>>(), [b"cd", b"gh"]);
}
