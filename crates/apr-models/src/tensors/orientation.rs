//! Matrices that a file stores transposed.

use alloc::vec::Vec;

use super::{Stored, Tensors};
use crate::error::Error;

/// Key of the metadata entry with the names of matrices that are stored transposed, separated by commas. Blocks run along rows: where the
/// rows of a model are too short for one, its columns may not be.
pub const TRANSPOSED_KEY: &str = "apr.transposed";

impl Tensors {
    /// Turns the matrices that [`TRANSPOSED_KEY`] names back, and removes the entry.
    ///
    /// ```
    /// use apr_models::{TRANSPOSED_KEY, Tensors};
    ///
    /// let mut tensors = Tensors::new();
    /// tensors.push_f32("w", &[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])?;
    /// tensors.set_metadata(TRANSPOSED_KEY, "w");
    /// tensors.orient()?;
    /// assert_eq!(tensors.matrix("w")?.row(0), Some(&[0.0, 3.0][..]));
    /// assert_eq!(tensors.metadata(TRANSPOSED_KEY), None);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorShape`](crate::ErrorKind::TensorShape) if one of them is not a matrix.
    pub fn orient(&mut self) -> Result<(), Error> {
        let Ok(place) = self.place_of(TRANSPOSED_KEY) else { return Ok(()) };
        let (_, names) = self.metadata.remove(place);
        names.split(',').try_for_each(|name| match self.tensors.get_mut(name) {
            Some(stored) => stored.transpose(name),
            None => Ok(()),
        })
    }
}

impl Stored {
    fn transpose(&mut self, name: &str) -> Result<(), Error> {
        let [n_rows, n_cols] = self.shape[..] else {
            return Err(self.wrong_shape(name, "a matrix, as the entry apr.transposed says"));
        };
        self.data = transposed(&self.data, n_rows, n_cols);
        self.shape = [n_cols, n_rows].into();
        Ok(())
    }
}

/// The elements of a matrix of `n_rows` rows, column by column.
#[must_use]
pub fn transposed(data: &[u8], n_rows: usize, n_cols: usize) -> Vec<u8> {
    let width = data.len().checked_div(n_rows * n_cols).unwrap_or(0);
    let mut out = Vec::with_capacity(data.len());
    for col in 0..n_cols {
        for row in 0..n_rows {
            let begin = (row * n_cols + col) * width;
            out.extend_from_slice(data.get(begin..begin + width).unwrap_or_default());
        }
    }
    out
}
