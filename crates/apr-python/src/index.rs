//! Python indices, checked against a shape: integers, slices and an ellipsis, as numpy accepts them.

use core::fmt;
use core::num::NonZeroU64;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyEllipsis, PyList, PySlice, PyTuple};
use st_core::Index;

use crate::error::refused;

/// The parts of an index, one for each dimension it names; an ellipsis is written out.
pub(crate) struct Indices(Vec<Item>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    /// From the start, inside the dimension.
    Place(usize),
    Range {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
}

impl Item {
    const ALL: Self = Self::Range { start: None, stop: None, step: 1 };
}

impl Indices {
    pub(crate) fn new(key: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Self> {
        let parts: Vec<Bound<'_, PyAny>> = if let Ok(tuple) = key.cast::<PyTuple>() {
            tuple.iter().collect()
        } else if let Ok(list) = key.cast::<PyList>() {
            if !list.is_empty() {
                return Err(refused("Non empty lists are not implemented"));
            }
            return Ok(Self(vec![Item::Range { start: Some(0), stop: Some(0), step: 1 }]));
        } else {
            vec![key.clone()]
        };
        let ellipses = parts.iter().filter(|part| part.is_instance_of::<PyEllipsis>()).count();
        if ellipses > 1 {
            return Err(refused("Only one ellipsis (...) is allowed in slice index"));
        }
        let named = parts.len() - ellipses;
        let mut items = Vec::with_capacity(shape.len());
        for part in &parts {
            if part.is_instance_of::<PyEllipsis>() {
                items.resize(items.len() + shape.len().saturating_sub(named), Item::ALL);
            } else {
                items.push(item(part, items.len(), shape)?);
            }
        }
        let indices = Self(items);
        indices.check(shape)?;
        Ok(indices)
    }

    /// Refuses what leaves the tensor; ends of ranges may.
    fn check(&self, shape: &[usize]) -> PyResult<()> {
        let problem =
            |problem: String| refused(format!("Error during slicing {self} with shape {shape:?}: {problem}"));
        if self.0.len() > shape.len() {
            return Err(problem("more slicing indexes than dimensions in tensor".into()));
        }
        for (dim, (item, &len)) in self.0.iter().zip(shape).enumerate() {
            if let Item::Place(place) = *item
                && place >= len
            {
                return Err(problem(format!(
                    "index {place} out of bounds for tensor dimension #{dim} of size {len}"
                )));
            }
        }
        Ok(())
    }

    /// The same for numpy, which gives arrays even where one element is left.
    pub(crate) fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let mut parts = Vec::with_capacity(self.0.len() + 1);
        for item in &self.0 {
            parts.push(match *item {
                Item::Place(place) => place.into_pyobject(py)?.into_any(),
                Item::Range { start, stop, step } => py.get_type::<PySlice>().call1((start, stop, step))?,
            });
        }
        parts.push(PyEllipsis::get(py).to_owned().into_any());
        PyTuple::new(py, parts)
    }

    /// The same for a plan, which only goes forward, and the dimensions of its result that are the wrong way round.
    pub(crate) fn forward(&self, shape: &[usize]) -> (Vec<Index>, Vec<usize>) {
        let (mut forward, mut reversed) = (Vec::with_capacity(self.0.len()), Vec::new());
        let mut kept = 0;
        for (item, &len) in self.0.iter().zip(shape) {
            match *item {
                Item::Place(place) => {
                    forward.push(place.into());
                    continue;
                }
                Item::Range { start, stop, step } if step > 0 => forward.push(Index::Range {
                    start,
                    stop,
                    step: NonZeroU64::new(step.unsigned_abs()).unwrap_or(NonZeroU64::MIN),
                }),
                Item::Range { start, stop, step } => {
                    let (first, last, count) = backward(start, stop, step.unsigned_abs(), len);
                    reversed.push(kept);
                    forward.push(Index::Range {
                        start: Some(if count == 0 { 0 } else { last }),
                        stop: Some(if count == 0 { 0 } else { first + 1 }),
                        step: NonZeroU64::new(step.unsigned_abs()).unwrap_or(NonZeroU64::MIN),
                    });
                }
            }
            kept += 1;
        }
        (forward, reversed)
    }
}

/// First and last place and number of places of a range that goes backward.
fn backward(start: Option<i64>, stop: Option<i64>, step: u64, len: usize) -> (i64, i64, i64) {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let clamp = |place: i64| if place < 0 { place.saturating_add(len).max(-1) } else { place.min(len - 1) };
    let first = start.map_or(len - 1, clamp);
    let stop = stop.map_or(-1, clamp);
    let count = if first > stop { (first - stop - 1) / step + 1 } else { 0 };
    (first, first - (count - 1).max(0) * step, count)
}

fn item(part: &Bound<'_, PyAny>, dim: usize, shape: &[usize]) -> PyResult<Item> {
    if let Ok(slice) = part.cast::<PySlice>() {
        let step = bound(slice, "step")?.unwrap_or(1);
        if step == 0 {
            return Err(refused("Slice step must be a positive integer, got 0"));
        }
        return Ok(Item::Range { start: bound(slice, "start")?, stop: bound(slice, "stop")?, step });
    }
    let unsupported =
        || refused(format!("Unsupported slice index at position {dim}: expected slice, int, or ellipsis"));
    if part.is_instance_of::<PyBool>() {
        return Err(unsupported());
    }
    let number = whole(part).map_err(|_| unsupported())?;
    let len = shape.get(dim).copied().unwrap_or_default();
    let place = if number < 0 {
        usize::try_from(number.unsigned_abs()).ok().and_then(|back| len.checked_sub(back))
    } else {
        usize::try_from(number).ok()
    };
    place
        .map(Item::Place)
        .ok_or_else(|| refused(format!("Invalid index {number} for dimension {dim} of size {len}")))
}

fn bound(slice: &Bound<'_, PySlice>, name: &str) -> PyResult<Option<i64>> {
    let value = slice.getattr(name)?;
    if value.is_none() { Ok(None) } else { whole(&value).map(Some) }
}

/// A whole number, or the nearest one of 64 bits: no tensor reaches that far.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let value = value.call_method0("__index__")?;
    value.extract().or_else(|_| Ok(if value.lt(0)? { i64::MIN + 1 } else { i64::MAX }))
}

impl fmt::Display for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |bound: Option<i64>| bound.map(|bound| bound.to_string()).unwrap_or_default();
        f.write_str("[")?;
        for (idx, item) in self.0.iter().enumerate() {
            if idx > 0 {
                f.write_str(", ")?;
            }
            match *item {
                Item::Place(place) => write!(f, "{place}")?,
                Item::Range { start, stop, step } => {
                    write!(f, "{}:{}", shown(start), shown(stop))?;
                    if step != 1 {
                        write!(f, ":{step}")?;
                    }
                }
            }
        }
        f.write_str("]")
    }
}
