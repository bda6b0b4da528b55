//! Values of leaves, and their sums.

use alloc::vec::Vec;

use crate::kernels::trees::arena::{Arena, Number, Routes};
use crate::kernels::trees::walk::for_each_leaf;

/// Rows of numbers, one for each different leaf.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeafRows {
    /// One number a row. It counts for one output; which one, the tree says.
    Single(Vec<f64>),
    /// Rows of as many numbers as there are outputs, of which all but one are 0: the column of that one, and itself. Trees
    /// that were grown until each leaf has one class have such rows: one addition instead of ten for ten classes.
    OneHot(Vec<(u32, f64)>),
    /// Rows of as many numbers as there are outputs.
    Whole(Vec<f64>),
}

impl LeafRows {
    /// Rows of `width` numbers each.
    pub(super) fn new(values: Vec<f64>, width: usize) -> Self {
        if width == 1 {
            return Self::Single(values);
        }
        let one_hot = |row: &[f64]| {
            // A zero with a sign is kept as it is.
            let mut others = row.iter().enumerate().filter(|(_, value)| value.to_bits() != 0);
            let (column, value) = others.next().unwrap_or((0, &0.0));
            others.next().is_none().then_some((u32::try_from(column).ok()?, *value))
        };
        let mut rows = Vec::new();
        for row in values.chunks_exact(width.max(1)) {
            let Some(row) = one_hot(row) else { return Self::Whole(values) };
            rows.push(row);
        }
        Self::OneHot(rows)
    }

    /// All numbers, row by row, of rows of `width`.
    pub(super) fn to_values(&self, width: usize) -> Vec<f64> {
        match self {
            Self::Single(values) | Self::Whole(values) => values.clone(),
            Self::OneHot(rows) => {
                let mut values = alloc::vec![0.0; rows.len() * width];
                for (&(hot, value), row) in rows.iter().zip(values.chunks_exact_mut(width.max(1))) {
                    if let Some(place) = row.get_mut(hot as usize) {
                        *place = value;
                    }
                }
                values
            }
        }
    }

    /// Adds the row of a leaf to a row of sums; `column` is where single numbers go.
    #[inline]
    fn add(&self, leaf: usize, column: usize, sums: &mut [f64]) {
        match self {
            Self::Single(values) => {
                if let (Some(sum), Some(value)) = (sums.get_mut(column), values.get(leaf)) {
                    *sum += value;
                }
            }
            Self::OneHot(rows) => {
                if let Some(&(column, value)) = rows.get(leaf)
                    && let Some(sum) = sums.get_mut(column as usize)
                {
                    *sum += value;
                }
            }
            Self::Whole(values) => {
                let row = values.get(leaf * sums.len()..).unwrap_or_default();
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            }
        }
    }
}

/// Trees and what their leaves say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Forest<T> {
    pub(super) arena: Arena<T>,
    pub(super) leaves: LeafRows,
}

impl<T: Number> Forest<T> {
    /// Adds, for each of `rows` of `width` values, what its leaf in every tree says to a row of `n_outputs` sums, in the
    /// order of the trees.
    pub(super) fn add_to(&self, rows: &[T], width: usize, sums: &mut [f64], n_outputs: usize) {
        // A division that the loop over rows does not repeat.
        let n_outputs = n_outputs.max(1);
        let add = |row: usize, number: usize, leaf: u32| {
            if let Some(sums) = sums.get_mut(row * n_outputs..(row + 1) * n_outputs) {
                self.leaves.add(self.arena.leaf(leaf), number % n_outputs, sums);
            }
        };
        match rows.iter().any(|value| value.is_nan()) {
            true => for_each_leaf(&Routes::<_, true>(&self.arena), rows, width, add),
            false => for_each_leaf(&Routes::<_, false>(&self.arena), rows, width, add),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn rows_keep_their_values_in_every_form() {
        for (values, width) in [
            (vec![0.5, -1.0], 1),
            (vec![0.0, 2.0, 0.0, 0.0, 3.0, 0.0], 3),
            (vec![0.0, -0.0, -0.0, 0.0], 2),
            (vec![0.25, 0.75, 1.0, 0.0], 2),
            (vec![], 2),
        ] {
            let rows = LeafRows::new(values.clone(), width);
            let kept: Vec<u64> = rows.to_values(width).into_iter().map(f64::to_bits).collect();
            assert_eq!(kept, values.iter().map(|value| value.to_bits()).collect::<Vec<_>>());
            for (leaf, row) in values.chunks_exact(width).enumerate() {
                let mut sums = vec![1.0; width];
                rows.add(leaf, 0, &mut sums);
                assert_eq!(sums, row.iter().map(|value| 1.0 + value).collect::<Vec<_>>());
            }
        }
        assert!(matches!(LeafRows::new(vec![0.0, 2.0, 1.0, 0.0], 2), LeafRows::OneHot(_)));
        assert!(matches!(LeafRows::new(vec![0.5, 2.0, 1.0, 0.0], 2), LeafRows::Whole(_)));
    }
}
