//! Ordinary least squares with an intercept.
//!
//! The intercept is taken out by centring, the centred table is reduced to a small triangle by orthogonal
//! transformations, and a pivoted factorization of the triangle tells features that carry information from features
//! that repeat others. Everything happens in `f64` on columns in the caller's units; nothing iterates, so nothing can
//! fail to converge. `docs/models.md` explains the choices.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind, Parameter};
use crate::least_squares::centre::Centre;
use crate::least_squares::pivoted::Pivoted;
use crate::matrix::Matrix;
use crate::vector::Vector;

mod centre;
mod pivoted;
mod reduce;

/// Largest relative error of rounding a number to `f32`.
const F32_ROUNDING: f64 = 1.0 / (1_u64 << 24) as f64;

/// A fitted hyperplane.
pub(crate) struct Plane {
    pub(crate) coefficients: Vec<f32>,
    pub(crate) intercept: f32,
}

/// Finds the plane with the least sum of squared residuals, of those the one whose coefficients have the least norm.
pub(crate) fn fit(x: &Matrix, y: &Vector) -> Result<Plane, Error> {
    if y.len() != x.n_rows() {
        return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
    }
    let features = Centre::of_features(x)?;
    let target = Centre::of_target(y)?;
    let table = reduce::centred_table(x, y, &features, &target)?;
    let target_norm = table.column(x.n_cols()).norm();
    let solution = Pivoted::new(table, &features).minimum_norm();

    let coefficients = solution
        .values
        .iter()
        .zip(&solution.column_norms)
        .enumerate()
        .map(|(feature, (&value, column_norm))| {
            let rounded = value as f32;
            // A coefficient too small for a normal f32 loses digits; that matters only if the feature has a say.
            let lost = value != 0.0
                && !rounded.is_normal()
                && value.abs() * column_norm > F32_ROUNDING * target_norm;
            if !rounded.is_finite() || lost {
                return Err(
                    ErrorKind::OutOfRange { parameter: Parameter::Coefficient(feature), value }.into()
                );
            }
            Ok(rounded)
        })
        .collect::<Result<Vec<f32>, Error>>()?;

    // From the rounded coefficients, so that the plane still passes through the mean of the data.
    let intercept = coefficients
        .iter()
        .zip(&features.columns)
        .fold(target.columns[0].mean(), |sum, (&coefficient, column)| {
            sum - f64::from(coefficient) * column.mean()
        });
    if !(intercept as f32).is_finite() {
        return Err(ErrorKind::OutOfRange { parameter: Parameter::Intercept, value: intercept }.into());
    }
    Ok(Plane { coefficients, intercept: intercept as f32 })
}
