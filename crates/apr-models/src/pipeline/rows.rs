//! Rows before, between and after the steps of a pipeline.

use core::mem;

use crate::error::{Error, ErrorKind};
use crate::sparse::SparseRows;

/// Samples to predict.
#[derive(Clone, Copy, Debug)]
pub enum Samples<'r> {
    /// Rows of 64-bit floats: `[n_samples, n_features]`, row-major.
    F64(&'r [f64]),
    /// Rows of 32-bit floats: `[n_samples, n_features]`, row-major; pipelines widen them.
    F32(&'r [f32]),
    /// Strings: `[n_samples]`.
    Text(&'r [&'r str]),
}

impl Samples<'_> {
    /// Values, or texts.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::F64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::Text(texts) => texts.len(),
        }
    }

    /// Copies the values from `start` on; strings have none.
    pub(crate) fn copy_to(&self, start: usize, out: &mut [f64]) {
        match self {
            Self::F64(values) => {
                let values = values.get(start..).unwrap_or_default();
                out.iter_mut().zip(values).for_each(|(place, &value)| *place = value);
            }
            Self::F32(values) => {
                let values = values.get(start..).unwrap_or_default();
                out.iter_mut().zip(values).for_each(|(place, &value)| *place = f64::from(value));
            }
            Self::Text(_) => {}
        }
    }
}

/// Rows between two steps, which change or replace them.
///
/// They are dense, except for those of strings, which stay sparse until a step needs all of their values.
#[derive(Debug)]
pub(crate) struct Block<'s> {
    n_rows: usize,
    width: usize,
    /// Both hold the rows before and after each step.
    values: &'s mut [f64],
    spare: &'s mut [f64],
    sparse: Option<&'s mut SparseRows<f64>>,
}

impl<'s> Block<'s> {
    /// Dense rows, stored in `values`. Both slices hold the rows at their widest.
    pub(crate) const fn dense(
        n_rows: usize,
        width: usize,
        values: &'s mut [f64],
        spare: &'s mut [f64],
    ) -> Self {
        Self { n_rows, width, values, spare, sparse: None }
    }

    /// Sparse rows; the slices hold the dense rows that steps compute from them.
    pub(crate) const fn sparse(
        rows: &'s mut SparseRows<f64>,
        values: &'s mut [f64],
        spare: &'s mut [f64],
    ) -> Self {
        Self { n_rows: rows.n_rows(), width: rows.n_cols(), values, spare, sparse: Some(rows) }
    }

    /// Values of a row.
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// The rows of a dense block, one after the other.
    pub(crate) fn values(&self) -> &[f64] {
        self.values.get(..self.n_rows * self.width).unwrap_or_default()
    }

    /// As [`values`](Self::values), to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [f64] {
        self.values.get_mut(..self.n_rows * self.width).unwrap_or_default()
    }

    /// The rows of a sparse block.
    pub(crate) fn sparse_rows(&mut self) -> Option<&mut SparseRows<f64>> {
        self.sparse.as_deref_mut()
    }

    /// Replaces all rows by rows of `width` values: `work` gets the rows of a dense block, and where to write the
    /// others, which hold anything.
    pub(crate) fn replace(&mut self, width: usize, work: impl FnOnce(&[f64], &mut [f64])) {
        let before = self.values.get(..self.n_rows * self.width).unwrap_or_default();
        work(before, self.spare.get_mut(..self.n_rows * width).unwrap_or_default());
        mem::swap(&mut self.values, &mut self.spare);
        self.width = width;
    }

    /// As [`replace`](Self::replace), row by row.
    pub(crate) fn replace_rows(&mut self, width: usize, mut work: impl FnMut(&[f64], &mut [f64])) {
        match cfg!(apr_small) {
            true => self.replace_each(width, &mut work as &mut dyn FnMut(&[f64], &mut [f64])),
            false => self.replace_each(width, &mut work),
        }
    }

    /// As [`replace_rows`](Self::replace_rows), compiled for each type of work.
    fn replace_each<F: FnMut(&[f64], &mut [f64]) + ?Sized>(&mut self, width: usize, work: &mut F) {
        let before = self.width.max(1);
        self.replace(width, |rows, out| {
            for (row, out) in rows.chunks_exact(before).zip(out.chunks_exact_mut(width.max(1))) {
                work(row, out);
            }
        });
    }

    /// Replaces sparse rows by dense rows of `width` values; a dense block stays as it is.
    pub(crate) fn replace_sparse(&mut self, width: usize, work: impl FnOnce(&SparseRows<f64>, &mut [f64])) {
        if let Some(rows) = self.sparse.take() {
            work(rows, self.values.get_mut(..self.n_rows * width).unwrap_or_default());
            self.width = width;
        }
    }

    /// Writes the zeros of sparse rows out.
    pub(crate) fn make_dense(&mut self) {
        let width = self.width;
        self.replace_sparse(width, |rows, out| {
            out.fill(0.0);
            for (idx, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                let (columns, values) = rows.lists(idx);
                for (&column, &value) in columns.iter().zip(values) {
                    if let Some(place) = out.get_mut(column as usize) {
                        *place = value;
                    }
                }
            }
        });
    }
}

/// Rows that `len` values are, if there are `n_results` results of `n_outputs` a row.
pub(crate) fn n_rows_of(
    len: usize,
    n_features: usize,
    n_results: usize,
    n_outputs: usize,
) -> Result<usize, Error> {
    let n_rows = match n_results.checked_rem(n_outputs) {
        Some(0) => n_results / n_outputs,
        _ => {
            let n_rows = len / n_features.max(1);
            let needed = n_rows.saturating_mul(n_outputs);
            return Err(ErrorKind::OutputLength { needed, given: n_results }.into());
        }
    };
    match len.checked_rem(n_rows) {
        None if len == 0 => Ok(0),
        Some(0) if len / n_rows == n_features => Ok(n_rows),
        Some(0) => Err(ErrorKind::FeatureCount { expected: n_features, found: len / n_rows }.into()),
        _ => Err(ErrorKind::InputLength { n_rows, given: len }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_replace_rows_of_any_width() {
        let (mut values, mut spare) = ([1.0, 2.0, 3.0, 4.0, 0.0, 0.0], [0.0; 6]);
        let mut block = Block::dense(2, 2, &mut values, &mut spare);
        block.replace_rows(3, |row, out| out.copy_from_slice(&[row[0], row[1], row[0] + row[1]]));
        assert_eq!((block.width(), block.values()), (3, &[1.0, 2.0, 3.0, 3.0, 4.0, 7.0][..]));
        block.replace_rows(1, |row, out| out[0] = row[2]);
        block.values_mut()[0] *= 2.0;
        assert_eq!((block.width(), block.values()), (1, &[6.0, 7.0][..]));
    }

    #[test]
    fn sparse_rows_become_dense_once() {
        let mut rows = SparseRows::new(3);
        rows.push(2, 5.0);
        rows.end_row();
        rows.end_row();
        rows.push(0, 1.0);
        rows.push(1, -1.0);
        rows.end_row();
        rows.for_each_row_mut(|_, values| values.iter_mut().for_each(|value| *value *= 2.0));
        let (mut values, mut spare) = ([7.0; 9], [7.0; 9]);
        let mut block = Block::sparse(&mut rows, &mut values, &mut spare);
        block.make_dense();
        block.make_dense();
        assert!(block.sparse_rows().is_none());
        assert_eq!(block.values(), [0.0, 0.0, 10.0, 0.0, 0.0, 0.0, 2.0, -2.0, 0.0]);
    }

    #[test]
    fn lengths_that_do_not_fit_are_told_apart() {
        let code = |len, n_features, n_results, n_outputs| {
            n_rows_of(len, n_features, n_results, n_outputs).map_err(|error| error.code())
        };
        assert_eq!(code(6, 2, 3, 1), Ok(3));
        assert_eq!(code(6, 2, 9, 3), Ok(3));
        assert_eq!(code(0, 2, 0, 3), Ok(0));
        assert_eq!(code(6, 2, 8, 3), Err("am-output-length"));
        assert_eq!(code(6, 2, 2, 1), Err("am-feature-count"));
        assert_eq!(code(6, 2, 4, 1), Err("am-input-length"));
        assert_eq!(code(6, 2, 0, 1), Err("am-input-length"));
    }
}
