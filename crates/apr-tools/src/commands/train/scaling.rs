//! Features in units of their deviations: for training alone, or as the first step of the model.

use alloc::borrow::Cow;

use apr_models::{Matrix, ShiftDivide, Step};
use clap::Args;

use super::algorithms::SETTINGS;
use super::data::Table;
use crate::error::Failure;

/// Deviations below this fraction of the mean are its rounding.
const ROUNDING: f64 = 1e-12;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct StandardizeArg {
    /// Bring features to mean 0 and standard deviation 1 first; the model takes them as they are in TABLE.
    #[arg(long, help_heading = SETTINGS)]
    pub(super) standardize: bool,
}

impl StandardizeArg {
    /// The samples to learn from, and how they were scaled.
    pub(super) fn samples(self, table: &Table) -> Result<(Option<Scale>, Cow<'_, Matrix>), Failure> {
        if !self.standardize {
            return Ok((None, Cow::Borrowed(&table.x)));
        }
        let (n_rows, n_cols) = table.x.shape();
        let scale = Scale::of(table.x.as_slice(), n_cols);
        let x = Matrix::from_vec(n_rows, n_cols, scale.apply(table.x.as_slice()))?;
        Ok((Some(scale), Cow::Owned(x)))
    }
}

/// Mean and deviation of columns.
pub(crate) struct Scale {
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Scale {
    /// Of a table; a constant column keeps the deviation 1.
    pub(crate) fn of(values: &[f32], n_cols: usize) -> Self {
        let n_rows = (values.len() / n_cols) as f64;
        let rows = || values.chunks_exact(n_cols);
        let sum = |of: &dyn Fn(usize, f64) -> f64| -> Vec<f64> {
            (0..n_cols)
                .map(|col| {
                    rows().filter_map(|row| row.get(col)).map(|&value| of(col, value.into())).sum::<f64>()
                        / n_rows
                })
                .collect()
        };
        let mean = sum(&|_, value| value);
        let squares = sum(&|col, value| mean.get(col).map_or(0.0, |mean| (value - mean).powi(2)));
        let deviations = squares.into_iter().map(f64::sqrt).zip(&mean);
        let deviation = deviations
            .map(|(deviation, mean)| if deviation > ROUNDING * mean.abs() { deviation } else { 1.0 })
            .collect();
        Self { mean, deviation }
    }

    /// Mean and deviation of each column.
    pub(super) fn columns(&self) -> impl Iterator<Item = (f64, f64)> {
        self.mean.iter().copied().zip(self.deviation.iter().copied())
    }

    pub(crate) fn apply(&self, values: &[f32]) -> Vec<f32> {
        let scales = self.columns().collect::<Vec<_>>();
        let scaled = values.iter().zip(scales.iter().cycle());
        scaled.map(|(&value, (mean, deviation))| ((f64::from(value) - mean) / deviation) as f32).collect()
    }

    /// The linear function of plain samples that is this one of scaled ones.
    pub(super) fn plain(&self, weights: impl Iterator<Item = f32>, constant: f32) -> (Vec<f32>, f32) {
        let mut constant = f64::from(constant);
        let weights = weights.zip(self.columns()).map(|(weight, (mean, deviation))| {
            let weight = (f64::from(weight) / deviation) as f32;
            // From the rounded weight, so that the mean sample keeps its value.
            constant -= f64::from(weight) * mean;
            weight
        });
        let weights = weights.collect();
        (weights, constant as f32)
    }

    /// The first step of a model that scales by itself.
    pub(super) fn step(&self) -> Result<Step, Failure> {
        let (shift, divisor) = (self.mean.as_slice().into(), self.deviation.as_slice().into());
        Ok(Step::ShiftDivide(ShiftDivide::new(Some(shift), Some(divisor))?))
    }
}
