//! Least squares: ordinary, weighted, and with a penalty on the coefficients.
//!
//! The intercept is taken out by centring, the centred table is reduced to a small triangle by orthogonal
//! transformations, and a pivoted factorization of the triangle tells features that carry information from features
//! that repeat others. Everything happens in `f64` on columns in the caller's units; only a penalty on absolute values
//! needs iterations, on the triangle. `docs/models.md` explains the choices.

use alloc::vec::Vec;

use nalgebra::DMatrix;

use crate::error::{Error, ErrorKind, Parameter};
use crate::least_squares::centre::{Centre, Origin};
use crate::least_squares::pivoted::{Pivoted, Solution};
use crate::linear::{Intercept, Plane};
use crate::matrix::Matrix;
use crate::vector::Vector;

mod centre;
mod descent;
mod pivoted;
mod reduce;

pub(crate) use self::descent::{Settings as L1Settings, fit_l1};

/// Fraction of a penalized feature's norm below which its residual is rounding error.
const RIDGE_ROUNDING: f64 = 1e-13;

/// Largest relative error of rounding a number to `f32`.
const F32_ROUNDING: f64 = 1.0 / (1_u64 << 24) as f64;

/// Finds the coefficients with the least sum of squared residuals, and among those the ones with the least norm.
pub(crate) fn fit(x: &Matrix, y: &Vector, rule: Intercept) -> Result<Plane, Error> {
    let (problem, table) = Problem::new(x, y, origin(rule), None)?;
    let solution = Pivoted::new(table, &problem.features).minimum_norm();
    problem.plane(&solution)
}

/// As [`fit`], each squared residual times the weight of its row. Weights are finite, not negative, and not all 0.
pub(crate) fn fit_weighted(x: &Matrix, y: &Vector, weights: &[f64]) -> Result<Plane, Error> {
    let (problem, table) = Problem::new(x, y, Origin::WeightedMean(weights), Some(weights))?;
    let solution = Pivoted::new(table, &problem.features).minimum_norm();
    problem.plane(&solution)
}

/// Finds the plane with the least sum of squared residuals plus `alpha` times the squared norm of the coefficients.
pub(crate) fn fit_ridge(x: &Matrix, y: &Vector, rule: Intercept, alpha: f64) -> Result<Plane, Error> {
    let (problem, samples) = Problem::new(x, y, origin(rule), None)?;
    // The penalty is what rows of the root of `alpha` times the unit matrix with targets of 0 add.
    let (n_rows, n_features) = (samples.nrows(), x.n_cols());
    let root = libm::sqrt(alpha);
    let mut table = DMatrix::zeros(n_rows + n_features, n_features + 1);
    table.rows_mut(0, n_rows).copy_from(&samples);
    (0..n_features).for_each(|feature| table[(n_rows + feature, feature)] = root);

    let column_norms: Vec<f64> = table.column_iter().take(n_features).map(|column| column.norm()).collect();
    let triangle = table.clone().qr().unpack_r();
    let independent =
        |(feature, norm): (usize, &f64)| triangle[(feature, feature)].abs() > RIDGE_ROUNDING * norm;
    if !column_norms.iter().enumerate().all(independent) {
        // A penalty lost in the rounding of the features: its limit is the shortest solution.
        let solution = Pivoted::new(table, &problem.features).minimum_norm();
        return problem.plane(&solution);
    }
    let mut values = triangle.view((0, n_features), (n_features, 1)).column(0).clone_owned();
    let solved = triangle.view((0, 0), (n_features, n_features)).solve_upper_triangular_mut(&mut values);
    debug_assert!(solved, "no diagonal value is 0");
    problem.plane(&Solution { values: values.iter().copied().collect(), column_norms })
}

fn origin(rule: Intercept) -> Origin<'static> {
    match rule {
        Intercept::Fitted => Origin::Mean,
        Intercept::Zero => Origin::Zero,
    }
}

/// Means and scales for evaluating a solution and converting it to coefficients.
struct Problem {
    features: Centre,
    target: Centre,
    target_norm: f64,
}

impl Problem {
    /// With the table, ready to be factorized.
    fn new(
        x: &Matrix,
        y: &Vector,
        origin: Origin<'_>,
        weights: Option<&[f64]>,
    ) -> Result<(Self, DMatrix<f64>), Error> {
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        let features = Centre::of_features(x, origin)?;
        let target = Centre::of_target(y, origin)?;
        let table = reduce::centred_table(x, y, &features, &target, weights)?;
        let target_norm = table.column(x.n_cols()).norm();
        Ok((Self { features, target, target_norm }, table))
    }

    /// Rounds the coefficients and finds the intercept.
    fn plane(&self, solution: &Solution) -> Result<Plane, Error> {
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
                    && value.abs() * column_norm > F32_ROUNDING * self.target_norm;
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
            .zip(&self.features.columns)
            .fold(self.target.columns[0].mean(), |sum, (&coefficient, column)| {
                sum - f64::from(coefficient) * column.mean()
            });
        if !(intercept as f32).is_finite() {
            return Err(ErrorKind::OutOfRange { parameter: Parameter::Intercept, value: intercept }.into());
        }
        Plane::from_parts(Vector::from_vec(coefficients), intercept as f32)
    }
}
