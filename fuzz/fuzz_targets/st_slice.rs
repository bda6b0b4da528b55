//! Any index of any small tensor: refused, or the byte ranges that taking element by element gives.

#![no_main]

use std::num::NonZeroU64;

use apr_fuzz::Choices;
use conformance::oracle;
use libfuzzer_sys::fuzz_target;
use st_core::{Bounds, Dtype, Index, SlicePlan, TensorView};

fuzz_target!(|input: &[u8]| {
    let choices = &mut Choices::new(input);
    let dtype = Dtype::ELEMENTS[choices.below(Dtype::ELEMENTS.len())];
    let shape: Vec<usize> = (0..choices.below(6)).map(|_| choices.below(7)).collect();
    let index: Vec<Index> = (0..choices.below(8)).map(|_| item(choices)).collect();
    let data: Vec<u8> = match dtype.byte_len(&shape) {
        Ok(len) => (0..len).map(|at| (at * 31 + at / 256) as u8).collect(),
        Err(_) => return,
    };
    for bounds in [Bounds::Exact, Bounds::Clamp] {
        let plan = SlicePlan::new(dtype, &shape, &index, bounds);
        let expected = oracle::slice(dtype, &shape, &index, bounds);
        let (plan, expected) = match (plan, expected) {
            (Err(_), None) => continue,
            (Ok(plan), Some(expected)) => (plan, expected),
            (plan, expected) => {
                panic!("{dtype} {shape:?} {index:?} {bounds:?}: {plan:?}, expected {expected:?}")
            }
        };
        assert_eq!(plan.shape(), expected.shape, "{dtype} {shape:?} {index:?} {bounds:?}");
        assert!(plan.ranges().eq(expected.ranges.iter().cloned()), "{dtype} {shape:?} {index:?} {bounds:?}");
        assert_eq!(plan.byte_len(), expected.ranges.iter().map(|range| range.end - range.start).sum::<u64>());
        assert_eq!(dtype.byte_len(plan.shape()), Ok(plan.byte_len()));

        let slice = TensorView::new(dtype, &shape, &data).and_then(|view| view.slice(&index, bounds));
        let bytes = slice.expect("as the plan").to_vec();
        let pieces = expected.ranges.iter().map(|range| &data[range.start as usize..range.end as usize]);
        assert_eq!(bytes, pieces.collect::<Vec<_>>().concat());
    }

    // Shapes no tensor in memory could have: an error or a plan, nothing else.
    let huge: Vec<usize> = shape.iter().map(|dim| dim.wrapping_mul(choices.integer() as usize)).collect();
    for bounds in [Bounds::Exact, Bounds::Clamp] {
        if let Ok(plan) = SlicePlan::new(dtype, &huge, &index, bounds) {
            let end = dtype.byte_len(&huge).expect("a plan needs a size");
            let mut last = 0;
            for range in plan.ranges().take(100) {
                assert!(last <= range.start && range.start < range.end && range.end <= end);
                last = range.end;
            }
        }
    }
});

fn item(choices: &mut Choices<'_>) -> Index {
    match choices.below(8) {
        0 => Index::Ellipsis,
        1 => Index::ALL,
        2 => Index::Select(choices.integer()),
        3 => Index::Select(choices.below(4) as i64),
        kind => {
            let mut bound = || (!choices.rarely(4)).then(|| choices.integer());
            let (start, stop) = (bound(), bound());
            let step = if kind == 4 { choices.integer().unsigned_abs() } else { 1 };
            Index::Range { start, stop, step: NonZeroU64::new(step).unwrap_or(NonZeroU64::MIN) }
        }
    }
}
