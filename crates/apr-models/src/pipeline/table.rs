//! Stored rows that samples are compared with: support vectors, neighbours.

use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::kernels::products::{self, SumOrder};
use crate::kernels::tiles::all_pairs;
use crate::pipeline::reals::{Reals, with_slice};
use crate::sparse::check_layout;

/// Rows that a step keeps, dense or sparse.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    n_rows: usize,
    n_cols: usize,
    /// Of a sparse table where each row begins in the lists, and where the last one ends; and the columns.
    sparse: Option<(Vec<usize>, Vec<u32>)>,
    values: Reals,
}

/// A sample on its way into a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowView<'r> {
    /// All of its values.
    Dense(&'r [f64]),
    /// Increasing columns and their values.
    Sparse(&'r [u32], &'r [f64]),
}

impl Table {
    /// Rows one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`](crate::ErrorKind::EmptyMatrix),
    /// [`ErrorKind::PartLength`](crate::ErrorKind::PartLength),
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn dense(n_rows: usize, values: Reals) -> Result<Self, Error> {
        let n_cols = values.len().checked_div(n_rows).unwrap_or(0);
        checks::expect_table("table", n_rows, n_cols, values.len())?;
        values.expect_finite("table")?;
        Ok(Self { n_rows, n_cols, sparse: None, values })
    }

    /// Rows of which most values are zero (CSR): row `r` has its values in the columns
    /// `columns[row_starts[r]..row_starts[r + 1]]`.
    ///
    /// # Errors
    ///
    /// As [`dense`](Self::dense), and [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if the starts do not run
    /// from 0 to the end without falling, or the columns of a row do not increase strictly below `n_cols`.
    pub fn sparse(
        n_cols: usize,
        row_starts: Vec<usize>,
        columns: Vec<u32>,
        values: Reals,
    ) -> Result<Self, Error> {
        let n_rows = row_starts.len().saturating_sub(1);
        if n_rows == 0 || n_cols == 0 {
            return Err(crate::ErrorKind::EmptyMatrix { n_rows, n_cols }.into());
        }
        values.expect_len("table", columns.len())?;
        values.expect_finite("table")?;
        check_layout(n_cols, &row_starts, &columns)?;
        Ok(Self { n_rows, n_cols, sparse: Some((row_starts, columns)), values })
    }

    /// Number of rows.
    #[must_use]
    pub const fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Values of a row.
    #[must_use]
    pub const fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Whether only the values that are not zero are kept.
    #[must_use]
    pub const fn is_sparse(&self) -> bool {
        self.sparse.is_some()
    }

    /// All values of a dense table, those that are kept of a sparse one.
    pub(crate) const fn values(&self) -> &Reals {
        &self.values
    }

    pub(crate) fn expect_width(&self, width: usize) -> Result<(), Error> {
        checks::expect_len("columns of the table", width, self.n_cols)
    }

    /// The sum of the products of a sample and a row of the table.
    pub(crate) fn dot(&self, idx: usize, sample: RowView<'_>) -> f64 {
        with_slice!(&self.values, values => match (self.row(idx, values), sample) {
            ((None, row), RowView::Dense(sample)) => products::dot(sample, row),
            ((Some(columns), row), RowView::Dense(sample)) => gathered(columns, row, sample),
            ((columns, row), RowView::Sparse(places, sample)) => {
                merged(columns, row, places, sample, |a, b| a * b)
            }
        })
    }

    /// The square of the Euclidean distance between a sample and a row of the table.
    pub(crate) fn squared_distance(&self, idx: usize, sample: RowView<'_>) -> f64 {
        let square = |a: f64, b: f64| (a - b) * (a - b);
        with_slice!(&self.values, values => match (self.row(idx, values), sample) {
            ((None, row), RowView::Dense(sample)) => products::squared_distance(sample, row),
            ((Some(columns), row), RowView::Dense(sample)) => filled(columns, row, sample, square),
            ((columns, row), RowView::Sparse(places, sample)) => merged(columns, row, places, sample, square),
        })
    }

    /// The square of the Euclidean distance between a sample and a row of the table if `distances`, else the sum of their products.
    pub(crate) fn compare(&self, idx: usize, sample: RowView<'_>, distances: bool) -> f64 {
        if distances { self.squared_distance(idx, sample) } else { self.dot(idx, sample) }
    }

    /// As [`compare`](Self::compare) for each of `samples` and each row of the table: `[n_samples, n_rows]`, row-major.
    pub(crate) fn compare_all(&self, samples: &[f64], distances: bool, out: &mut [f64]) {
        if self.is_sparse() {
            let samples = samples.chunks_exact(self.n_cols).zip(out.chunks_exact_mut(self.n_rows));
            for (sample, out) in samples {
                for (idx, place) in out.iter_mut().enumerate() {
                    *place = self.compare(idx, RowView::Dense(sample), distances);
                }
            }
            return;
        }
        with_slice!(&self.values, values => match distances {
            true => all_pairs(SumOrder::Lanes, samples, values, self.n_cols, |a, b| (a - b) * (a - b), out),
            false => all_pairs(SumOrder::Lanes, samples, values, self.n_cols, |a, b| a * b, out),
        });
    }

    /// The columns that a row keeps, `None` for all, and their values.
    fn row<'t, T>(&'t self, idx: usize, values: &'t [T]) -> (Option<&'t [u32]>, &'t [T]) {
        match &self.sparse {
            None => {
                let start = idx.saturating_mul(self.n_cols);
                (None, values.get(start..start.saturating_add(self.n_cols)).unwrap_or_default())
            }
            Some((starts, columns)) => {
                let (start, end) = match (starts.get(idx), starts.get(idx.saturating_add(1))) {
                    (Some(&start), Some(&end)) => (start, end),
                    _ => (0, 0),
                };
                let columns = columns.get(start..end).unwrap_or_default();
                (Some(columns), values.get(start..end).unwrap_or_default())
            }
        }
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        match &self.sparse {
            None => {
                out.variant(0)?;
                out.usize(self.n_rows)?;
            }
            Some((starts, columns)) => {
                out.variant(1)?;
                out.usize(self.n_cols)?;
                out.usizes(starts)?;
                out.u32s(columns)?;
            }
        }
        self.values.encode(out)
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        if input.variant(2)? == 0 {
            let n_rows = input.usize()?;
            return Ok(Self::dense(n_rows, Reals::decode(input)?)?);
        }
        let n_cols = input.usize()?;
        let (starts, columns) = (input.usizes()?, input.u32s()?);
        Ok(Self::sparse(n_cols, starts, columns, Reals::decode(input)?)?)
    }
}

/// The sum of the products in the columns that a row keeps.
fn gathered<T: Copy + Into<f64>>(columns: &[u32], row: &[T], sample: &[f64]) -> f64 {
    let terms = columns.iter().zip(row).map(|(&column, &value)| {
        let value: f64 = value.into();
        value * sample.get(column as usize).copied().unwrap_or_default()
    });
    terms.sum()
}

/// The sum over all columns of a sample; missing entries of the row are 0.
fn filled<T: Copy + Into<f64>>(
    columns: &[u32],
    row: &[T],
    sample: &[f64],
    term: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut stored = columns.iter().zip(row).peekable();
    let terms = sample.iter().enumerate().map(|(place, &value)| {
        let found = stored.next_if(|&(&column, _)| column as usize == place);
        term(found.map_or(0.0, |(_, &stored)| stored.into()), value)
    });
    terms.sum()
}

/// The sum over the columns that either of two rows has; missing entries are 0, and terms of two zeros are 0.
fn merged<T: Copy + Into<f64>>(
    columns: Option<&[u32]>,
    row: &[T],
    places: &[u32],
    sample: &[f64],
    term: impl Fn(f64, f64) -> f64,
) -> f64 {
    let Some(columns) = columns else {
        // A dense row has every column.
        let mut sample = places.iter().zip(sample).peekable();
        let terms = row.iter().enumerate().map(|(place, &value)| {
            let found = sample.next_if(|&(&column, _)| column as usize == place);
            term(value.into(), found.map_or(0.0, |(_, &value)| value))
        });
        return terms.sum();
    };
    let (mut left, mut right) = (columns.iter().zip(row).peekable(), places.iter().zip(sample).peekable());
    let mut sum = 0.0;
    loop {
        let (a, b) = (left.peek().map(|&(&column, _)| column), right.peek().map(|&(&column, _)| column));
        let Some(column) = a.into_iter().chain(b).min() else { return sum };
        let a = left.next_if(|&(&found, _)| found == column).map_or(0.0, |(_, &value)| value.into());
        let b = right.next_if(|&(&found, _)| found == column).map_or(0.0, |(_, &value)| value);
        sum += term(a, b);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn all_four_pairs_of_forms_agree() {
        let dense = Table::dense(2, vec![0.0_f64, 2.0, 0.0, 3.0, 1.5, 0.0, 0.1, 0.0].into()).unwrap();
        let sparse =
            Table::sparse(4, vec![0, 2, 4], vec![1, 3, 0, 2], vec![2.0_f64, 3.0, 1.5, 0.1].into()).unwrap();
        let sample = RowView::Dense(&[1.0, 2.0, 3.0, 0.0]);
        let same = RowView::Sparse(&[0, 1, 2], &[1.0, 2.0, 3.0]);
        for table in [&dense, &sparse] {
            for sample in [sample, same] {
                assert_eq!(table.dot(0, sample), 4.0);
                assert_eq!(table.squared_distance(0, sample), 1.0 + 9.0 + 9.0);
                assert!((table.dot(1, sample) - 1.8).abs() < 1e-15);
                assert!((table.squared_distance(1, sample) - (0.25 + 4.0 + 2.9 * 2.9)).abs() < 1e-14);
                assert_eq!(table.dot(2, sample), 0.0);
            }
        }
    }

    #[test]
    fn tables_that_cannot_be_are_refused() {
        let values = |count: usize| Reals::from(vec![1.0_f64; count]);
        assert_eq!(Table::dense(2, values(3)).unwrap_err().code(), "am-part-length");
        assert_eq!(Table::dense(0, values(0)).unwrap_err().code(), "am-empty-matrix");
        for (n_cols, starts, columns, code) in [
            (0, vec![0, 1], vec![0], "am-empty-matrix"),
            (4, vec![0], vec![], "am-empty-matrix"),
            (4, vec![], vec![], "am-empty-matrix"),
            (4, vec![0, 1], vec![4], "am-part"),
            (4, vec![0, 2], vec![1, 1], "am-part"),
            (4, vec![0, 2], vec![2, 1], "am-part"),
            (4, vec![1, 2], vec![2, 1], "am-part"),
            (4, vec![0, 3], vec![2, 1], "am-part"),
            (4, vec![0, 2, 1, 2], vec![0, 1], "am-part"),
        ] {
            let n_values = columns.len();
            let table = Table::sparse(n_cols, starts.clone(), columns, values(n_values));
            assert_eq!(table.unwrap_err().code(), code, "{starts:?}");
        }
        assert_eq!(Table::sparse(4, vec![0, 1], vec![0], values(2)).unwrap_err().code(), "am-part-length");
    }
}
