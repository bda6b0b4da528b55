//! Subtracts the mean of each column.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::vector::Vector;

/// Which point of a table's columns becomes their zero.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'w> {
    /// The mean of the rows.
    Mean,
    /// The mean of the rows, each counted by its weight; not all weights are 0.
    WeightedMean(&'w [f64]),
    /// Zero itself.
    Zero,
}

impl Origin<'_> {
    fn weight(self, row: usize) -> f64 {
        match self {
            Self::WeightedMean(weights) => weights[row],
            Self::Mean | Self::Zero => 1.0,
        }
    }
}

/// Means of the columns of a table.
pub(crate) struct Centre {
    pub(crate) columns: Vec<Column>,
}

/// The mean of a column in two parts, and the column's size.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    /// The mean rounded to `f32`. Subtracting it from an `f32` is exact unless their magnitudes are very different, so
    /// that columns which differ by a constant stay equal and constant columns become zero.
    shift: f64,
    /// Mean of the rest.
    rest: f64,
    /// Sum of the squares of the values as given.
    squares: f64,
}

impl Column {
    pub(crate) fn mean(self) -> f64 {
        self.shift + self.rest
    }

    pub(crate) fn centred(self, value: f32) -> f64 {
        f64::from(value) - self.shift - self.rest
    }

    /// Sum of the squares of the values before centring.
    pub(crate) fn squares(self) -> f64 {
        self.squares
    }
}

impl Centre {
    pub(crate) fn of_features(x: &Matrix, origin: Origin<'_>) -> Result<Self, Error> {
        checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
        Ok(Self::of_finite(x.as_slice(), x.n_cols(), origin))
    }

    pub(crate) fn of_target(y: &Vector, origin: Origin<'_>) -> Result<Self, Error> {
        if let Some(row) = y.iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        Ok(Self::of_finite(y.as_slice(), 1, origin))
    }

    /// Sums of finite `f32` values and of their squares stay far below the largest `f64`.
    fn of_finite(values: &[f32], n_cols: usize, origin: Origin<'_>) -> Self {
        let n_rows = values.len() / n_cols;
        let mut columns = vec![Column { shift: 0.0, rest: 0.0, squares: 0.0 }; n_cols];
        for (row, values) in values.chunks_exact(n_cols).enumerate() {
            let weight = origin.weight(row);
            for (column, &value) in columns.iter_mut().zip(values) {
                let value = f64::from(value);
                column.shift += weight * value;
                column.squares += weight * value * value;
            }
        }
        let total = match origin {
            Origin::Mean => n_rows as f64,
            Origin::WeightedMean(weights) => weights.iter().sum(),
            Origin::Zero => {
                columns.iter_mut().for_each(|column| column.shift = 0.0);
                return Self { columns };
            }
        };
        for column in &mut columns {
            column.shift = f64::from((column.shift / total) as f32);
        }
        for (row, values) in values.chunks_exact(n_cols).enumerate() {
            let weight = origin.weight(row);
            for (column, &value) in columns.iter_mut().zip(values) {
                column.rest += weight * (f64::from(value) - column.shift);
            }
        }
        for column in &mut columns {
            column.rest /= total;
        }
        Self { columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_columns_become_exactly_zero() {
        for value in [0.1_f32, -3.3e38, 1e-45, 16_777_217.0] {
            let centre = Centre::of_finite(&[value; 1001], 1, Origin::Mean);
            assert_eq!(centre.columns[0].centred(value), 0.0, "{value}");
            assert_eq!(centre.columns[0].mean(), f64::from(value));
        }
    }

    #[test]
    fn columns_apart_by_a_constant_become_equal() {
        let values: Vec<f32> = (0..16_u8).flat_map(|t| [1947.0 + f32::from(t), f32::from(t)]).collect();
        let centre = Centre::of_finite(&values, 2, Origin::Mean);
        for row in values.chunks_exact(2) {
            assert_eq!(centre.columns[0].centred(row[0]), centre.columns[1].centred(row[1]));
        }
    }

    #[test]
    fn large_offset_keeps_small_differences() {
        let centre = Centre::of_finite(&[1e7, 1e7 + 1.0, 1e7 + 2.0, 1e7 + 4.0], 1, Origin::Mean);
        assert_eq!(centre.columns[0].mean(), 1e7 + 1.75);
    }

    #[test]
    fn a_weight_counts_as_that_many_rows() {
        let weighted = Centre::of_finite(&[1.0, 5.0, 3.0], 1, Origin::WeightedMean(&[2.0, 0.0, 1.0]));
        let repeated = Centre::of_finite(&[1.0, 1.0, 3.0], 1, Origin::Mean);
        assert_eq!(weighted.columns[0].mean(), repeated.columns[0].mean());
        assert_eq!(weighted.columns[0].squares(), repeated.columns[0].squares());
    }
}
