//! What a split of several numbers at once improves: the sum of their variances.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::grow::criterion::Criterion;
use crate::matrix::Matrix;

/// The sum of the variances of the columns of a table. A cell is the number of rows, then the sum of each column.
pub(crate) struct Outputs {
    /// `[n_rows, n_outputs]`, less the mean of each column: squares of large sums would lose what differs.
    centred: Vec<f64>,
    n_outputs: usize,
}

impl Outputs {
    /// The rows of `y`: `[n_rows, n_outputs]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`] if they are not `n_rows`, [`ErrorKind::TargetNotFinite`].
    pub(crate) fn of(y: &Matrix, n_rows: usize) -> Result<Self, Error> {
        let n_outputs = y.n_cols();
        if y.n_rows() != n_rows {
            return Err(ErrorKind::TargetLength { n_rows, given: y.n_rows() }.into());
        }
        if let Some(row) = y.rows().position(|row| row.iter().any(|value| !value.is_finite())) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        let mut means = vec![0.0; n_outputs];
        y.rows().for_each(|row| means.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value)));
        means.iter_mut().for_each(|sum| *sum /= n_rows as f64);
        let centred =
            y.rows().flat_map(|row| row.iter().zip(&means).map(|(&value, mean)| f64::from(value) - mean));
        Ok(Self { centred: centred.collect(), n_outputs })
    }

    fn row(&self, row: u32) -> &[f64] {
        let start = row as usize * self.n_outputs;
        &self.centred[start..start + self.n_outputs]
    }
}

impl Criterion for Outputs {
    /// The row.
    type Item = u32;

    fn width(&self) -> usize {
        self.n_outputs + 1
    }

    fn item(&self, row: u32) -> u32 {
        row
    }

    fn add(&self, cells: &mut [f64], place: usize, row: u32) {
        let cell = &mut cells[place * self.width()..(place + 1) * self.width()];
        cell[0] += 1.0;
        cell[1..].iter_mut().zip(self.row(row)).for_each(|(sum, value)| *sum += value);
    }

    fn score(&self, cell: &[f64]) -> f64 {
        cell[1..].iter().map(|sum| sum * sum).sum::<f64>() / cell[0]
    }

    fn score_of_sides(&self, left: &[f64], total: &[f64]) -> f64 {
        let (mut left_squares, mut right_squares) = (0.0, 0.0);
        for (&left, &total) in left[1..].iter().zip(&total[1..]) {
            left_squares += left * left;
            right_squares += (total - left) * (total - left);
        }
        left_squares / left[0] + right_squares / (total[0] - left[0])
    }

    fn weight(&self, cell: &[f64]) -> f64 {
        cell[0]
    }

    fn impurity(&self, rows: &[u32], cell: &[f64]) -> f64 {
        let [count, sums @ ..] = cell else { return 0.0 };
        let apart = |row: u32| -> f64 {
            let values = self.row(row).iter().zip(sums);
            values.map(|(value, sum)| (value - sum / count) * (value - sum / count)).sum()
        };
        rows.iter().map(|&row| apart(row)).sum::<f64>() / count
    }

    fn is_pure(&self, rows: &[u32]) -> bool {
        rows.windows(2).all(|pair| self.row(pair[0]) == self.row(pair[1]))
    }
}
