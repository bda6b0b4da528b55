//! Samples in units in which every feature has the mean 0 and the standard deviation 1.
//!
//! Trainings of linear functions compute in these units, in which iterations converge, and charge their penalties in the
//! units of the caller.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind, Parameter};
use crate::matrix::Matrix;

/// Deviations below this fraction of the mean are its rounding.
const ROUNDING: f64 = 1e-12;

/// A table of samples in units of its deviations.
pub(crate) struct Standardized {
    /// `[n_samples, n_features]`, row-major.
    values: Vec<f64>,
    pub(crate) means: Vec<f64>,
    /// Standard deviations; 1 for a constant feature.
    pub(crate) units: Vec<f64>,
}

impl Standardized {
    /// Checks that all values are finite.
    pub(crate) fn new(x: &Matrix) -> Result<Self, Error> {
        checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
        let (n_rows, n_cols) = (x.n_rows() as f64, x.n_cols());
        let mut means = vec![0.0; n_cols];
        for row in x.rows() {
            means.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value));
        }
        means.iter_mut().for_each(|mean| *mean /= n_rows);
        let mut units = vec![0.0; n_cols];
        for row in x.rows() {
            for ((square, &value), mean) in units.iter_mut().zip(row).zip(&means) {
                let apart = f64::from(value) - mean;
                *square += apart * apart;
            }
        }
        for (unit, mean) in units.iter_mut().zip(&means) {
            let deviation = libm::sqrt(*unit / n_rows);
            *unit = if deviation > ROUNDING * mean.abs() { deviation } else { 1.0 };
        }
        let mut values = Vec::with_capacity(x.as_slice().len());
        for row in x.rows() {
            let scaled = row.iter().zip(&means).zip(&units);
            values.extend(scaled.map(|((&value, mean), unit)| (f64::from(value) - mean) / unit));
        }
        Ok(Self { values, means, units })
    }

    pub(crate) const fn n_features(&self) -> usize {
        self.means.len()
    }

    /// All rows, one after the other.
    pub(crate) const fn values(&self) -> &[f64] {
        self.values.as_slice()
    }

    /// One row, which must be there.
    pub(crate) fn row(&self, idx: usize) -> &[f64] {
        &self.values[idx * self.n_features()..(idx + 1) * self.n_features()]
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.n_features())
    }

    /// Coefficients of features as they were given, rounded, and the constant term that goes with them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if a value does not fit `f32`.
    pub(crate) fn in_units_of_caller(
        &self,
        weights: &[f64],
        constant: f64,
    ) -> Result<(Vec<f32>, f32), Error> {
        let mut coefficients = Vec::with_capacity(weights.len());
        let mut intercept = constant;
        for (feature, ((weight, mean), unit)) in weights.iter().zip(&self.means).zip(&self.units).enumerate()
        {
            let value = weight / unit;
            let rounded = value as f32;
            if !rounded.is_finite() {
                return Err(
                    ErrorKind::OutOfRange { parameter: Parameter::Coefficient(feature), value }.into()
                );
            }
            // From the rounded coefficient, so that the mean sample keeps its value.
            intercept -= f64::from(rounded) * mean;
            coefficients.push(rounded);
        }
        match (intercept as f32).is_finite() {
            true => Ok((coefficients, intercept as f32)),
            false => Err(ErrorKind::OutOfRange { parameter: Parameter::Intercept, value: intercept }.into()),
        }
    }
}
