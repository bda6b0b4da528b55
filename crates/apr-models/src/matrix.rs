//! Matrices.

use alloc::vec;
use alloc::vec::Vec;
use core::slice::ChunksExact;

use crate::error::{Error, ErrorKind};

/// A matrix of `f32`, row-major: `[n_rows, n_cols]`, at least one of each. Of samples: `[n_samples, n_features]`.
///
/// ```
/// use apr_models::Matrix;
///
/// let x = Matrix::from_vec(2, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// assert_eq!(x.shape(), (2, 3));
/// assert_eq!(x.row(1), Some(&[4.0, 5.0, 6.0][..]));
/// assert_eq!(x.get(0, 2), Some(3.0));
/// assert!(Matrix::from_vec(2, 2, vec![1.0]).is_err());
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    n_rows: usize,
    n_cols: usize,
    /// `n_rows * n_cols` values.
    values: Vec<f32>,
}

impl Matrix {
    /// Makes a matrix of `values` in row-major order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`] without a row or without a column, [`ErrorKind::MatrixTooLarge`] if the number of
    /// values overflows, [`ErrorKind::MatrixLength`] if `values` holds another number of them.
    pub fn from_vec(n_rows: usize, n_cols: usize, values: Vec<f32>) -> Result<Self, Error> {
        check_shape(n_rows, n_cols, values.len())?;
        Ok(Self { n_rows, n_cols, values })
    }

    /// Placeholder for a matrix that could not be read; it is dropped with the rest of its model. It has no rows.
    pub(crate) const fn none() -> Self {
        Self { n_rows: 0, n_cols: 0, values: Vec::new() }
    }

    /// Number of samples.
    #[must_use]
    pub const fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of features.
    #[must_use]
    pub const fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of rows and number of columns.
    #[must_use]
    pub const fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    /// The rows in order.
    pub fn rows(&self) -> Rows<'_> {
        self.values.chunks_exact(self.n_cols)
    }

    /// One row, `None` past the last.
    #[must_use]
    pub fn row(&self, row: usize) -> Option<&[f32]> {
        self.rows().nth(row)
    }

    /// One value, `None` outside the table.
    #[must_use]
    pub fn get(&self, row: usize, col: usize) -> Option<f32> {
        self.row(row)?.get(col).copied()
    }

    /// All values, row-major.
    #[must_use]
    pub const fn as_slice(&self) -> &[f32] {
        self.values.as_slice()
    }

    pub(crate) const fn as_mut_slice(&mut self) -> &mut [f32] {
        self.values.as_mut_slice()
    }

    /// Returns the values, row-major.
    #[must_use]
    pub fn into_vec(self) -> Vec<f32> {
        self.values
    }
}

/// Proves that so many values are a table of this shape.
pub(crate) fn check_shape(n_rows: usize, n_cols: usize, given: usize) -> Result<(), Error> {
    if n_rows == 0 || n_cols == 0 {
        return Err(ErrorKind::EmptyMatrix { n_rows, n_cols }.into());
    }
    match n_rows.checked_mul(n_cols) {
        None => Err(ErrorKind::MatrixTooLarge { n_rows, n_cols }.into()),
        Some(needed) if needed != given => Err(ErrorKind::MatrixLength { n_rows, n_cols, given }.into()),
        Some(_) => Ok(()),
    }
}

/// The zeros of a table of this shape, which may have no rows or columns.
pub(crate) fn zeros<T: Clone + Default>(n_rows: usize, n_cols: usize) -> Result<Vec<T>, Error> {
    let len = n_rows.checked_mul(n_cols).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols })?;
    Ok(vec![T::default(); len])
}

/// A table of `n_cols` values for each sample that `fill` fills.
pub(crate) fn table(
    x: &Matrix,
    n_cols: usize,
    fill: impl FnOnce(&[f32], &mut [f32]) -> Result<(), Error>,
) -> Result<Matrix, Error> {
    let mut out = zeros(x.n_rows(), n_cols)?;
    fill(x.as_slice(), &mut out)?;
    Matrix::from_vec(x.n_rows(), n_cols, out)
}

/// Iterator over the rows of a [`Matrix`].
pub type Rows<'m> = ChunksExact<'m, f32>;
