//! Sparse rows.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;

/// A table that stores only the values that are not zero, row by row (CSR); `f32`, or `f64` as output of a [`Pipeline`](crate::Pipeline).
///
/// ```
/// use apr_models::SparseRows;
///
/// let mut rows: SparseRows = SparseRows::new(1000);
/// rows.push_row(&[(3, 0.5), (700, 1.0)])?;
/// rows.push_row(&[])?;
/// assert_eq!((rows.n_rows(), rows.n_cols(), rows.n_stored()), (2, 1000, 2));
/// assert_eq!(rows.row(0).and_then(|row| row.get(700)), Some(1.0));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows<T = f32> {
    n_cols: usize,
    /// Where each row begins in the two lists, and where the last one ends.
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// One row of [`SparseRows`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseRow<'r, T = f32> {
    columns: &'r [u32],
    values: &'r [T],
}

impl<T> SparseRows<T> {
    /// No rows yet, of `n_cols` columns; columns from 2^32 on cannot be stored.
    #[must_use]
    pub fn new(n_cols: usize) -> Self {
        Self { n_cols, starts: vec![0], columns: Vec::new(), values: Vec::new() }
    }

    /// Adds a row that is valid by construction.
    pub(crate) fn extend_row(&mut self, row: impl Iterator<Item = (u32, T)>) {
        row.for_each(|(column, value)| self.push(column, value));
        self.end_row();
    }

    /// Adds a value to the current row, in a column after its others.
    pub(crate) fn push(&mut self, column: u32, value: T) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends a row.
    pub(crate) fn end_row(&mut self) {
        self.starts.push(self.columns.len());
    }

    /// Forgets the rows and keeps their memory; later ones have `n_cols` columns.
    pub fn clear(&mut self, n_cols: usize) {
        self.n_cols = n_cols;
        self.starts.truncate(1);
        self.columns.clear();
        self.values.clear();
    }

    /// Number of rows.
    #[must_use]
    pub const fn n_rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of columns.
    #[must_use]
    pub const fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of values that are stored.
    #[must_use]
    pub const fn n_stored(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins in [`columns`](Self::columns) and [`values`](Self::values), and where the last one ends.
    #[must_use]
    pub const fn row_starts(&self) -> &[usize] {
        self.starts.as_slice()
    }

    /// The columns of all rows, increasing within each.
    #[must_use]
    pub const fn columns(&self) -> &[u32] {
        self.columns.as_slice()
    }

    /// The values of all rows.
    #[must_use]
    pub const fn values(&self) -> &[T] {
        self.values.as_slice()
    }

    /// One row, `None` past the last.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<SparseRow<'_, T>> {
        let span = *self.starts.get(row)?..*self.starts.get(row.checked_add(1)?)?;
        Some(SparseRow { columns: self.columns.get(span.clone())?, values: self.values.get(span)? })
    }

    /// Columns and values of a row, none past the last.
    pub(crate) fn lists(&self, row: usize) -> (&[u32], &[T]) {
        self.row(row).map(|row| (row.columns, row.values)).unwrap_or_default()
    }

    /// The rows in order.
    pub fn rows(&self) -> impl Iterator<Item = SparseRow<'_, T>> {
        (0..self.n_rows()).filter_map(|row| self.row(row))
    }

    /// The rows in order, their values to be changed.
    pub(crate) fn for_each_row_mut(&mut self, mut work: impl FnMut(&[u32], &mut [T])) {
        for bounds in self.starts.windows(2) {
            if let &[start, end] = bounds
                && let (Some(columns), Some(values)) =
                    (self.columns.get(start..end), self.values.get_mut(start..end))
            {
                work(columns, values);
            }
        }
    }
}

impl SparseRows {
    /// Takes the lists of a CSR table: row `r` has its values in the columns `columns[starts[r]..starts[r + 1]]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] if there is not one value for each column, [`ErrorKind::PartInvalid`] if the starts
    /// do not run from 0 to the end without falling, or the columns of a row do not increase strictly below `n_cols`;
    /// [`ErrorKind::PartNotFinite`].
    pub fn from_parts(
        n_cols: usize,
        starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f32>,
    ) -> Result<Self, Error> {
        checks::expect_len("values", columns.len(), values.len())?;
        checks::expect_finite("values", &values)?;
        check_layout(n_cols, &starts, &columns)?;
        Ok(Self { n_cols, starts, columns, values })
    }

    /// Adds a row of columns, strictly increasing, and their values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`], [`ErrorKind::PartNotFinite`]; the rows stay as they were.
    pub fn push_row(&mut self, row: &[(u32, f32)]) -> Result<(), Error> {
        let increasing = row.is_sorted_by(|a, b| a.0 < b.0);
        let inside = row.last().is_none_or(|&(column, _)| (column as usize) < self.n_cols);
        checks::expect("columns", increasing && inside, COLUMNS)?;
        if let Some(idx) = row.iter().position(|(_, value)| !value.is_finite()) {
            return Err(ErrorKind::PartNotFinite { part: "values", idx }.into());
        }
        self.extend_row(row.iter().copied());
        Ok(())
    }

    /// The same table with its zeros.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`], [`ErrorKind::MatrixTooLarge`].
    pub fn to_matrix(&self) -> Result<Matrix, Error> {
        let (n_rows, n_cols) = (self.n_rows(), self.n_cols);
        let too_large = || Error::from(ErrorKind::MatrixTooLarge { n_rows, n_cols });
        let len = n_rows.checked_mul(n_cols).ok_or_else(too_large)?;
        let mut values = Vec::new();
        values.try_reserve_exact(len).map_err(|_| too_large())?;
        values.resize(len, 0.0);
        for (row, dense) in self.rows().zip(values.chunks_exact_mut(n_cols.max(1))) {
            for (column, value) in row.iter() {
                if let Some(place) = dense.get_mut(column) {
                    *place = value;
                }
            }
        }
        Matrix::from_vec(n_rows, n_cols, values)
    }
}

const COLUMNS: &str = "must increase strictly within a row and be those of the table";

/// Proves that these lists describe the rows of a CSR table: where each row begins and the last one ends, and the columns of all.
pub(crate) fn check_layout(n_cols: usize, starts: &[usize], columns: &[u32]) -> Result<(), Error> {
    let whole = starts.first() == Some(&0) && starts.last() == Some(&columns.len()) && starts.is_sorted();
    checks::expect("row starts", whole, "must run from 0 to the number of values without falling")?;
    let sound = starts.windows(2).all(|bounds| {
        let row = columns.get(bounds[0]..bounds[1]).unwrap_or_default();
        row.is_sorted_by(|a, b| a < b) && row.last().is_none_or(|&column| (column as usize) < n_cols)
    });
    checks::expect("columns", sound, COLUMNS)
}

impl<'r, T: Copy> SparseRow<'r, T> {
    /// The columns whose values are stored, increasing.
    #[must_use]
    pub const fn columns(&self) -> &'r [u32] {
        self.columns
    }

    /// Their values.
    #[must_use]
    pub const fn values(&self) -> &'r [T] {
        self.values
    }

    /// Columns and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, T)> + use<'r, T> {
        self.columns.iter().map(|&column| column as usize).zip(self.values.iter().copied())
    }
}

impl SparseRow<'_> {
    /// The value in that column, `None` if none is stored.
    #[must_use]
    pub fn get(&self, column: usize) -> Option<f32> {
        let place = self.columns.binary_search(&u32::try_from(column).ok()?).ok()?;
        self.values.get(place).copied()
    }

    /// Sum of the products with another row's values, in `f64`.
    #[must_use]
    pub fn dot(&self, other: &SparseRow<'_>) -> f64 {
        let (mut a, mut b) = (self.iter().peekable(), other.iter().peekable());
        let mut sum = 0.0;
        while let (Some(&(in_a, value_a)), Some(&(in_b, value_b))) = (a.peek(), b.peek()) {
            if in_a == in_b {
                sum += f64::from(value_a) * f64::from(value_b);
            }
            if in_a <= in_b {
                a.next();
            }
            if in_b <= in_a {
                b.next();
            }
        }
        sum
    }

    /// Sum of the products with the values of a dense row, in `f64`; columns it does not have count as 0.
    #[must_use]
    pub fn dot_dense(&self, dense: &[f32]) -> f64 {
        self.iter()
            .filter_map(|(column, value)| Some(f64::from(value) * f64::from(*dense.get(column)?)))
            .sum()
    }

    /// Euclidean length, in `f64`.
    #[must_use]
    pub fn norm(&self) -> f64 {
        libm::sqrt(self.values.iter().map(|&value| f64::from(value) * f64::from(value)).sum())
    }
}
