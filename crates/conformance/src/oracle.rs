//! Slicing element by element: slow, simple, and independent of the tested code.

use core::ops::Range;

use st_core::{Bounds, Dtype, Index};

/// What a slice has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Shape of the result.
    pub shape: Vec<usize>,
    /// Bytes of the tensor in order, neighbours joined.
    pub ranges: Vec<Range<u64>>,
}

/// Takes `index` of a tensor of this shape; [`None`] where that has to be refused.
///
/// Meant for tensors of a few thousand elements.
///
/// # Examples
///
/// ```
/// use conformance::oracle;
/// use st_core::{Bounds, Dtype, Index};
///
/// let last_column = [Index::from(..), Index::Select(-1)];
/// let expected = oracle::slice(Dtype::I16, &[2, 3], &last_column, Bounds::Clamp).unwrap();
/// assert_eq!((expected.shape, expected.ranges), (vec![2], vec![4..6, 10..12]));
/// ```
#[must_use]
pub fn slice(dtype: Dtype, shape: &[usize], index: &[Index], bounds: Bounds) -> Option<Expected> {
    let index = expand(index, shape.len())?;
    let mut new_shape = Vec::new();
    // Numbers of the selected elements, outer dimensions first.
    let mut elements = vec![0u64];
    for (dim, size) in shape.iter().enumerate() {
        let places = match index.get(dim) {
            None => Some((0..*size).collect()),
            Some(index) => places(*index, *size, bounds),
        }?;
        if !matches!(index.get(dim), Some(Index::Select(_))) {
            new_shape.push(places.len());
        }
        elements = elements
            .iter()
            .flat_map(|outer| places.iter().map(move |place| outer * *size as u64 + *place as u64))
            .collect();
    }

    let bits = u64::from(dtype.bits());
    let mut runs: Vec<Range<u64>> = Vec::new();
    for element in elements {
        let run = element * bits..(element + 1) * bits;
        match runs.last_mut() {
            Some(last) if last.end == run.start => last.end = run.end,
            _ => runs.push(run),
        }
    }
    let whole = runs.iter().all(|run| run.start % 8 == 0 && run.end % 8 == 0);
    let ranges = runs.iter().map(|run| run.start / 8..run.end / 8).collect();
    whole.then_some(Expected { shape: new_shape, ranges })
}

/// Replaces the ellipsis by whole dimensions.
fn expand(index: &[Index], rank: usize) -> Option<Vec<Index>> {
    let ellipses = index.iter().filter(|index| **index == Index::Ellipsis).count();
    let missing = rank.checked_sub(index.len() - ellipses)?;
    if ellipses > 1 {
        return None;
    }
    let whole = |index: &Index| match index {
        Index::Ellipsis => vec![Index::from(..); missing],
        index => vec![*index],
    };
    Some(index.iter().flat_map(whole).collect())
}

fn places(index: Index, size: usize, bounds: Bounds) -> Option<Vec<usize>> {
    // Wide enough that nothing below can overflow.
    let size = size as i128;
    let from_end = |place: i64| if place < 0 { i128::from(place) + size } else { i128::from(place) };
    let (start, stop, step) = match index {
        Index::Select(place) => {
            let place = from_end(place);
            return (0..size).contains(&place).then(|| vec![place as usize]);
        }
        Index::Range { start, stop, step } => (start, stop, step),
        Index::Ellipsis => return None,
    };
    let (start, stop) = match bounds {
        Bounds::Exact => {
            let (start, stop) = (start.map_or(0, i128::from), stop.map_or(size, i128::from));
            if start < 0 || start >= size || stop > size || stop < start {
                return None;
            }
            (start, stop)
        }
        Bounds::Clamp => {
            let clamp = |place: i64| from_end(place).clamp(0, size);
            (start.map_or(0, clamp), stop.map_or(size, clamp))
        }
    };
    let step = i128::from(step.get());
    Some(
        (0..size)
            .filter(|place| *place >= start && *place < stop && (place - start) % step == 0)
            .map(|place| place as usize)
            .collect(),
    )
}
