//! Slices of tensors, as byte ranges.
//!
//! The same ranges apply to a buffer, a mapped file, positioned reads and HTTP range requests.

use alloc::vec::Vec;
use core::num::NonZeroU64;
use core::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::dtype::byte_len;
use crate::error::{Error, ErrorKind};
use tensor_dtype::Dtype;

/// What to take of one dimension.
///
/// Made from a `usize` or any range of `usize`; dimensions without an index are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// One index; the result loses the dimension. Negative indices count from the end.
    Select(i64),
    /// Every `step`-th place from `start` up to, not including, `stop`.
    Range {
        /// First place; the beginning if `None`.
        start: Option<i64>,
        /// One past the last place; the end if `None`.
        stop: Option<i64>,
        /// Distance between places.
        step: NonZeroU64,
    },
    /// As many whole dimensions as the other indices leave.
    Ellipsis,
}

impl Index {
    /// A whole dimension.
    pub const ALL: Self = Self::Range { start: None, stop: None, step: NonZeroU64::MIN };

    fn range(start: Option<usize>, stop: Option<usize>) -> Self {
        Self::Range { start: start.map(saturate), stop: stop.map(saturate), step: NonZeroU64::MIN }
    }
}

/// Beyond every dimension a tensor with data can have.
fn saturate(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl From<usize> for Index {
    fn from(place: usize) -> Self {
        Self::Select(saturate(place))
    }
}

impl From<Range<usize>> for Index {
    fn from(range: Range<usize>) -> Self {
        Self::range(Some(range.start), Some(range.end))
    }
}

impl From<RangeFrom<usize>> for Index {
    fn from(range: RangeFrom<usize>) -> Self {
        Self::range(Some(range.start), None)
    }
}

impl From<RangeTo<usize>> for Index {
    fn from(range: RangeTo<usize>) -> Self {
        Self::range(None, Some(range.end))
    }
}

impl From<RangeInclusive<usize>> for Index {
    fn from(range: RangeInclusive<usize>) -> Self {
        Self::range(Some(*range.start()), Some(range.end().saturating_add(1)))
    }
}

impl From<RangeToInclusive<usize>> for Index {
    fn from(range: RangeToInclusive<usize>) -> Self {
        Self::range(None, Some(range.end.saturating_add(1)))
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Self {
        Self::ALL
    }
}

/// What to do with ranges that leave their dimension.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bounds {
    /// Refuse them, as the `safetensors` crate 0.8.0 does: a range begins inside its dimension, is not
    /// negative and does not end before it begins (where that crate panics).
    #[default]
    Exact,
    /// Clamp them, as `NumPy` does: negative ends count from the end of the dimension, and a range may be
    /// empty. A single place outside its dimension is refused all the same.
    Clamp,
}

/// The byte ranges of a part of a tensor, found without its data.
///
/// ```
/// use st_core::{Bounds, Dtype, Index, SlicePlan};
///
/// // Two of four columns: one range a row.
/// let plan = SlicePlan::new(Dtype::F32, &[3, 4], &[Index::ALL, (1..3).into()], Bounds::Exact)?;
/// assert_eq!(plan.shape(), [3, 2]);
/// assert_eq!(plan.ranges().collect::<Vec<_>>(), [4..12, 20..28, 36..44]);
/// // Two of three rows: one range.
/// let plan = SlicePlan::new(Dtype::F32, &[3, 4], &[(1..).into()], Bounds::Exact)?;
/// assert!(plan.ranges().eq([16..48]));
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    shape: Vec<usize>,
    /// Outermost first; each with more than one turn.
    loops: Vec<Loop>,
    /// First byte.
    start: u64,
    /// Bytes without a gap in each turn of the innermost loop; 0 if the slice is empty.
    run: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loop {
    count: u64,
    /// Bytes from one turn to the next.
    stride: u64,
}

impl SlicePlan {
    /// Plans to take `index` of a tensor of this type and shape.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooManyIndices`], [`ErrorKind::SecondEllipsis`], [`ErrorKind::IndexOutOfRange`] and
    /// [`ErrorKind::ReversedRange`] name the dimension; [`ErrorKind::SliceInsideByte`] if a run of elements
    /// of a sub-byte type begins or ends inside a byte; the errors of [`byte_len`].
    pub fn new(dtype: Dtype, shape: &[usize], index: &[Index], bounds: Bounds) -> Result<Self, Error> {
        let byte_len = byte_len(dtype, shape)?;
        let places = resolve(shape, index, bounds)?;
        let new_shape = places.iter().filter(|places| places.kept).map(|places| places.count).collect();
        let mut plan = Self { shape: new_shape, loops: Vec::new(), start: 0, run: 0 };
        if byte_len == 0 || places.iter().any(|places| places.count == 0) {
            return Ok(plan);
        }

        // In bits from here on. Nothing overflows: the whole tensor's bits fit 64 bits.
        let mut stride = u64::from(dtype.bits());
        let mut run = stride;
        let mut start = 0;
        for (&dim, places) in shape.iter().zip(&places).rev() {
            start += places.start as u64 * stride;
            let count = places.count as u64;
            if count > 1 && places.step == 1 && run == stride {
                run *= count;
            } else if count > 1 {
                plan.loops.push(Loop { count, stride: stride * places.step });
            }
            // A run stays extensible only if it fills the dimension.
            stride *= dim as u64;
        }
        plan.loops.reverse();

        plan.start = whole_bytes(start)?;
        plan.run = whole_bytes(run)?;
        for l in &mut plan.loops {
            l.stride = whole_bytes(l.stride)?;
        }
        Ok(plan)
    }

    /// Dimensions of the part.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Size of the part in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.loops.iter().map(|l| l.count).product::<u64>() * self.run
    }

    /// The ranges, in bytes from the tensor's first: ascending, and no two touch. Joined they are the part
    /// in row-major order. Memory does not depend on their number.
    #[must_use]
    pub fn ranges(&self) -> Ranges<'_> {
        let turns = self.loops.iter().map(|_| 0).collect();
        Ranges { plan: self, turns, next: (self.run != 0).then_some(self.start) }
    }
}

fn whole_bytes(bits: u64) -> Result<u64, Error> {
    if bits.is_multiple_of(8) { Ok(bits / 8) } else { Err(ErrorKind::SliceInsideByte.into()) }
}

/// Places taken of a dimension; `start + step * n` for `n < count` are inside it.
struct Places {
    start: usize,
    count: usize,
    step: u64,
    kept: bool,
}

fn resolve(shape: &[usize], index: &[Index], bounds: Bounds) -> Result<Vec<Places>, Error> {
    let rank = shape.len();
    let ellipses = index.iter().filter(|index| **index == Index::Ellipsis).count();
    if ellipses > 1 {
        return Err(ErrorKind::SecondEllipsis.into());
    }
    let given = index.len() - ellipses;
    let Some(unnamed) = rank.checked_sub(given) else {
        return Err(ErrorKind::TooManyIndices { given, rank }.into());
    };
    let mut places = Vec::with_capacity(rank);
    for &index in index {
        let repeat = if index == Index::Ellipsis { unnamed } else { 1 };
        for _ in 0..repeat {
            let dim = places.len();
            places.push(of_dim(dim, shape[dim], index, bounds)?);
        }
    }
    for &size in &shape[places.len()..] {
        places.push(Places { start: 0, count: size, step: 1, kept: true });
    }
    Ok(places)
}

fn of_dim(dim: usize, size: usize, index: Index, bounds: Bounds) -> Result<Places, Error> {
    let out_of_range = |index| Error::from(ErrorKind::IndexOutOfRange { dim, index, size });
    let (start, stop, step) = match index {
        Index::Select(place) => {
            let distance = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
            let start = if place < 0 { size.checked_sub(distance) } else { Some(distance) };
            let start = start.filter(|&start| start < size).ok_or_else(|| out_of_range(place))?;
            return Ok(Places { start, count: 1, step: 1, kept: false });
        }
        Index::Range { start, stop, step } => (start, stop, step.get()),
        Index::Ellipsis => (None, None, 1),
    };
    let (first, end) = match bounds {
        Bounds::Exact => {
            let first =
                start.map_or(Ok(0), |start| usize::try_from(start).map_err(|_| out_of_range(start)))?;
            let end = stop.map_or(Ok(size), |stop| usize::try_from(stop).map_err(|_| out_of_range(stop)))?;
            if first >= size {
                return Err(out_of_range(saturate(first)));
            }
            if end > size {
                return Err(out_of_range(saturate(end - 1)));
            }
            if end < first {
                return Err(
                    ErrorKind::ReversedRange { dim, start: saturate(first), stop: saturate(end) }.into()
                );
            }
            (first, end)
        }
        Bounds::Clamp => {
            let clamp = |place: i64| {
                let distance = usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX);
                if place < 0 { size.saturating_sub(distance) } else { distance.min(size) }
            };
            let first = start.map_or(0, clamp);
            (first, stop.map_or(size, clamp).max(first))
        }
    };
    let count = (end - first) as u64;
    Ok(Places { start: first, count: count.div_ceil(step) as usize, step, kept: true })
}

/// The ranges of a [`SlicePlan`].
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    plan: &'a SlicePlan,
    /// Turns each loop has finished.
    turns: Vec<u64>,
    /// Where the next run begins.
    next: Option<u64>,
}

impl Ranges<'_> {
    fn advance(&mut self, mut at: u64) -> Option<u64> {
        for (turn, l) in self.turns.iter_mut().zip(&self.plan.loops).rev() {
            *turn += 1;
            if *turn < l.count {
                return Some(at + l.stride);
            }
            *turn = 0;
            at -= l.stride * (l.count - 1);
        }
        None
    }
}

impl Iterator for Ranges<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let start = self.next?;
        let mut last = start;
        loop {
            self.next = self.advance(last);
            match self.next {
                Some(next) if next == last + self.plan.run => last = next,
                _ => return Some(start..last + self.plan.run),
            }
        }
    }
}

/// Part of a tensor in memory.
#[derive(Clone, Debug)]
pub struct Slice<'data> {
    plan: SlicePlan,
    data: &'data [u8],
}

impl<'data> Slice<'data> {
    pub(crate) const fn new(plan: SlicePlan, data: &'data [u8]) -> Self {
        Self { plan, data }
    }

    /// Dimensions of the part.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.plan.shape()
    }

    /// Size of the part in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.plan.byte_len()
    }

    /// The pieces that make up the part.
    pub fn pieces(&self) -> impl Iterator<Item = &'data [u8]> {
        let data = self.data;
        self.plan.ranges().map(move |range| &data[range.start as usize..range.end as usize])
    }

    /// The pieces joined: a dense row-major tensor of [`shape`](Self::shape).
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.byte_len() as usize);
        self.pieces().for_each(|piece| out.extend_from_slice(piece));
        out
    }
}
