//! Strided views of tensors: every change of an architecture that moves values is one.

use alloc::vec;
use alloc::vec::Vec;

/// A dimension of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Number of elements.
    pub len: u64,
    /// Elements of the source between neighbours.
    pub stride: u64,
}

/// Elements of a source in another order, or some of them: the slowest axis first.
///
/// Every element is within the source: constructors take whole sources, and what changes a view keeps it inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    source: usize,
    offset: u64,
    axes: Vec<Axis>,
}

impl View {
    /// A whole source, by its number, with a shape whose product does not overflow.
    pub(crate) fn new(source: usize, shape: &[u64]) -> Self {
        let mut axes: Vec<Axis> = shape.iter().map(|&len| Axis { len, stride: 1 }).collect();
        let mut stride = 1_u64;
        for axis in axes.iter_mut().rev() {
            axis.stride = stride;
            stride = stride.saturating_mul(axis.len);
        }
        Self { source, offset: 0, axes }
    }

    /// Elements of a source, which all have to be within it.
    pub(crate) const fn strided(source: usize, offset: u64, axes: Vec<Axis>) -> Self {
        Self { source, offset, axes }
    }

    /// Number of the source.
    #[must_use]
    pub const fn source(&self) -> usize {
        self.source
    }

    /// Element of the source that is the first of the view.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The axes, the slowest first.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The shape, the slowest dimension first.
    pub(crate) fn shape(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.len).collect()
    }

    /// Number of elements.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.axes.iter().fold(1, |count, axis| count.saturating_mul(axis.len))
    }

    /// One axis as several, with these lengths; `None` if their product is another.
    pub(crate) fn split(mut self, axis: usize, lens: &[u64]) -> Option<Self> {
        let old = *self.axes.get(axis)?;
        let product = lens.iter().try_fold(1_u64, |product, len| product.checked_mul(*len))?;
        if product != old.len {
            return None;
        }
        let mut stride = old.stride;
        let mut parts = vec![old; lens.len()];
        for (part, &len) in parts.iter_mut().zip(lens).rev() {
            *part = Axis { len, stride };
            stride = stride.saturating_mul(len);
        }
        self.axes.splice(axis..=axis, parts);
        Some(self)
    }

    /// Two axes exchanged; `None` if there are no such axes.
    pub(crate) fn swap(mut self, a: usize, b: usize) -> Option<Self> {
        if a.max(b) >= self.axes.len() {
            return None;
        }
        self.axes.swap(a, b);
        Some(self)
    }

    /// Elements `begin..end` of an axis; `None` if they are not all there.
    pub(crate) fn slice(mut self, axis: usize, begin: u64, end: u64) -> Option<Self> {
        let place = self.axes.get_mut(axis)?;
        if begin > end || end > place.len {
            return None;
        }
        self.offset += begin * place.stride;
        place.len = end - begin;
        Some(self)
    }

    /// Without an axis of one element; `None` if it has others.
    pub(crate) fn without(mut self, axis: usize) -> Option<Self> {
        if self.axes.get(axis)?.len != 1 {
            return None;
        }
        self.axes.remove(axis);
        Some(self)
    }

    /// The axes with neighbours joined where the elements of the source follow each other, and without those of one element.
    pub(crate) fn joined(&self) -> Vec<Axis> {
        let mut joined: Vec<Axis> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().filter(|axis| axis.len != 1) {
            match joined.last_mut() {
                Some(last) if last.stride == axis.stride.saturating_mul(axis.len) => {
                    *last = Axis { len: last.len.saturating_mul(axis.len), stride: axis.stride };
                }
                _ => joined.push(*axis),
            }
        }
        if joined.is_empty() {
            joined.push(Axis { len: self.count(), stride: 1 });
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The elements of the source, in the order of the view.
    fn elements(view: &View) -> Vec<u64> {
        let mut all = vec![view.offset];
        for axis in view.joined() {
            all = all.iter().flat_map(|at| (0..axis.len).map(move |idx| at + idx * axis.stride)).collect();
        }
        all
    }

    #[test]
    fn a_permutation_interleaves_the_halves_of_heads() {
        // Two heads of four rows of one element.
        let view = View::new(0, &[8, 1]).split(0, &[2, 2, 2]).unwrap().swap(1, 2).unwrap();
        assert_eq!(elements(&view), [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    #[test]
    fn transposed_sliced_and_whole_views() {
        let view = View::new(0, &[2, 3]);
        assert_eq!(view.joined(), [Axis { len: 6, stride: 1 }]);
        assert_eq!(elements(&view.clone().swap(0, 1).unwrap()), [0, 3, 1, 4, 2, 5]);
        assert_eq!(elements(&view.clone().slice(1, 1, 3).unwrap()), [1, 2, 4, 5]);
        assert_eq!(elements(&view.clone().slice(0, 1, 2).unwrap()), [3, 4, 5]);
        assert_eq!((view.clone().slice(0, 1, 3), view.clone().swap(0, 2)), (None, None));
        assert_eq!(view.split(1, &[2, 2]), None);
        assert_eq!(elements(&View::new(0, &[])), [0]);
        assert!(elements(&View::new(0, &[0, 4])).is_empty());
    }
}
