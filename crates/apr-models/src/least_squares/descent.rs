//! Least squares with an L1 penalty, by cyclic coordinate descent (Friedman, Hastie and Tibshirani, *Regularization paths
//! for generalized linear models via coordinate descent*, J. Stat. Softw. 33, 2010).
//!
//! It ends by the duality gap, which bounds how far the objective is above its minimum (Kim et al., *An interior-point
//! method for large-scale l1-regularized least squares*, IEEE J. Sel. Top. Signal Process. 1, 2007), as in scikit-learn
//! 1.9.1.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::DMatrix;

use crate::convergence::Convergence;
use crate::error::Error;
use crate::kernels::products::dot;
use crate::least_squares::pivoted::Solution;
use crate::least_squares::{Problem, fit, fit_ridge, origin};
use crate::linear::{Intercept, Plane};
use crate::matrix::Matrix;
use crate::vector::Vector;

/// What coefficients cost, and when to stop.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// Factor of the penalty.
    pub(crate) alpha: f64,
    /// Fraction of the penalty that is on absolute values, 0 to 1.
    pub(crate) l1_ratio: f64,
    /// Most passes over the coefficients.
    pub(crate) max_iter: usize,
    /// The gap at which to stop as a fraction of the squared norm of the target.
    pub(crate) tol: f64,
}

/// Minimizes `|y - x b|^2 / (2 n) + alpha * l1_ratio * |b|_1 + alpha * (1 - l1_ratio) / 2 * |b|^2`.
pub(crate) fn fit_l1(
    x: &Matrix,
    y: &Vector,
    rule: Intercept,
    settings: Settings,
) -> Result<(Plane, Convergence), Error> {
    let n_rows = x.n_rows() as f64;
    // Without absolute values the minimum has a closed form.
    if settings.alpha == 0.0 || settings.l1_ratio == 0.0 {
        let plane = match settings.alpha {
            0.0 => fit(x, y, rule)?,
            alpha => fit_ridge(x, y, rule, alpha * n_rows)?,
        };
        return Ok((plane, Convergence { iterations: 0, converged: true }));
    }
    let (problem, table) = Problem::new(x, y, origin(rule), None)?;
    let penalty = settings.alpha * n_rows;
    let mut descent = Descent::new(&table, x.n_cols(), penalty, settings.l1_ratio);
    let convergence = descent.run(settings.max_iter, settings.tol);
    let column_norms = descent.squares.iter().map(|&square| libm::sqrt(square)).collect();
    let plane = problem.plane(&Solution { values: descent.values, column_norms })?;
    Ok((plane, convergence))
}

struct Descent<'t> {
    /// One column after the other.
    columns: Vec<&'t [f64]>,
    target: &'t [f64],
    /// Squared norm of each column.
    squares: Vec<f64>,
    l1: f64,
    l2: f64,
    values: Vec<f64>,
    /// The target minus what the coefficients predict.
    residual: Vec<f64>,
}

impl<'t> Descent<'t> {
    fn new(table: &'t DMatrix<f64>, n_features: usize, penalty: f64, l1_ratio: f64) -> Self {
        let mut columns: Vec<&[f64]> = table.as_slice().chunks_exact(table.nrows()).collect();
        let target = columns.pop().unwrap_or_default();
        let squares = columns.iter().map(|column| dot(column, column)).collect();
        let (l1, l2) = (penalty * l1_ratio, penalty * (1.0 - l1_ratio));
        let values = vec![0.0; n_features];
        Self { columns, target, squares, l1, l2, values, residual: target.to_vec() }
    }

    fn run(&mut self, max_iter: usize, tol: f64) -> Convergence {
        let bound = tol * dot(self.target, self.target);
        for iteration in 1..=max_iter {
            let (change, largest) = self.pass();
            // The gap costs as much as half a pass.
            let may_end = change <= tol * largest || iteration == max_iter;
            if may_end && self.gap() <= bound {
                return Convergence { iterations: iteration, converged: true };
            }
        }
        Convergence { iterations: max_iter, converged: false }
    }

    /// Minimizes along each coefficient; the largest change and the largest coefficient.
    fn pass(&mut self) -> (f64, f64) {
        let (mut change, mut largest) = (0.0_f64, 0.0_f64);
        let places = self.values.iter_mut().zip(&self.columns).zip(&self.squares);
        for ((value, column), &square) in places {
            // A constant feature.
            if square == 0.0 {
                continue;
            }
            let slope = dot(column, &self.residual) + square * *value;
            let above = slope.abs() - self.l1;
            let next = if above > 0.0 { above.copysign(slope) / (square + self.l2) } else { 0.0 };
            let step = next - *value;
            if step != 0.0 {
                self.residual.iter_mut().zip(*column).for_each(|(rest, x)| *rest -= step * x);
                *value = next;
            }
            change = change.max(step.abs());
            largest = largest.max(next.abs());
        }
        (change, largest)
    }

    /// How far the objective, times the number of samples, may be above its minimum.
    fn gap(&self) -> f64 {
        let slopes = self.columns.iter().zip(&self.values);
        let steepest = slopes.fold(0.0_f64, |steepest, (column, value)| {
            steepest.max((dot(column, &self.residual) - self.l2 * value).abs())
        });
        // Scales the residual to a feasible point of the dual problem.
        let scale = if steepest > self.l1 { self.l1 / steepest } else { 1.0 };
        let rest = dot(&self.residual, &self.residual);
        let absolute: f64 = self.values.iter().map(|value| value.abs()).sum();
        0.5 * rest * (1.0 + scale * scale) + self.l1 * absolute - scale * dot(&self.residual, self.target)
            + 0.5 * self.l2 * (1.0 + scale * scale) * dot(&self.values, &self.values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn samples(n_rows: usize, n_cols: usize, seed: u64) -> (Matrix, Vector) {
        let mut rng = Rng::new(seed);
        let x = (0..n_rows * n_cols).map(|_| rng.normal() as f32).collect();
        let x = Matrix::from_vec(n_rows, n_cols, x).expect("whole rows");
        let y = x.rows().map(|row| 3.0 * row[0] - 2.0 * row[1] + rng.normal() as f32).collect();
        (x, y)
    }

    fn settings(alpha: f64, l1_ratio: f64) -> Settings {
        Settings { alpha, l1_ratio, max_iter: 10_000, tol: 1e-12 }
    }

    /// The conditions of Karush, Kuhn and Tucker: the slope of the squares is the penalty's where a coefficient is not 0, and
    /// not larger elsewhere.
    #[test]
    fn solution_satisfies_the_optimality_conditions() {
        for (n_rows, n_cols) in [(60, 5), (3000, 6), (10, 30)] {
            let (x, y) = samples(n_rows, n_cols, 1);
            for (alpha, l1_ratio) in [(0.05, 1.0), (0.5, 1.0), (0.2, 0.5), (0.01, 0.1)] {
                let (plane, convergence) =
                    fit_l1(&x, &y, Intercept::Fitted, settings(alpha, l1_ratio)).expect("well posed");
                assert!(convergence.converged, "{n_rows} {alpha} {l1_ratio}");
                for (feature, b) in plane.coefficients().iter().enumerate() {
                    let products = x.rows().zip(&y).map(|(row, y)| {
                        (f64::from(y) - plane.value(row).expect("fits")) * f64::from(row[feature])
                    });
                    let slope =
                        products.sum::<f64>() / n_rows as f64 - alpha * (1.0 - l1_ratio) * f64::from(b);
                    let bound = alpha * l1_ratio;
                    let missed = match b {
                        0.0 => slope.abs() - bound,
                        b => (slope - bound.copysign(b.into())).abs(),
                    };
                    assert!(missed < 2e-5, "{n_rows} {alpha} {l1_ratio} {feature} {b} {slope}");
                }
            }
        }
    }

    #[test]
    fn limits_are_least_squares_and_ridge() {
        let (x, y) = samples(50, 4, 2);
        let (plane, _) = fit_l1(&x, &y, Intercept::Fitted, settings(0.0, 1.0)).expect("well posed");
        assert_eq!(plane, fit(&x, &y, Intercept::Fitted).expect("well posed"));
        let (plane, _) = fit_l1(&x, &y, Intercept::Zero, settings(0.1, 0.0)).expect("well posed");
        assert_eq!(plane, fit_ridge(&x, &y, Intercept::Zero, 5.0).expect("well posed"));
        // Beyond the largest slope every coefficient is 0, and the gap says so at once.
        let (plane, convergence) = fit_l1(&x, &y, Intercept::Fitted, settings(1e3, 1.0)).expect("well posed");
        assert!(plane.coefficients().iter().all(|value| value == 0.0));
        assert_eq!(convergence, Convergence { iterations: 1, converged: true });
    }

    #[test]
    fn constant_and_repeated_features_and_targets_end() {
        let x = Matrix::from_vec(4, 3, vec![1.0, 1.0, 7.0, 2.0, 2.0, 7.0, 3.0, 3.0, 7.0, 4.0, 4.0, 7.0])
            .expect("whole rows");
        let y = Vector::from_vec(vec![2.0, 4.0, 6.0, 8.0]);
        let (plane, convergence) =
            fit_l1(&x, &y, Intercept::Fitted, Settings { tol: 1e-5, ..settings(1e-3, 0.5) })
                .expect("well posed");
        assert!(convergence.converged);
        let (a, b, c) = (plane.coefficients()[0], plane.coefficients()[1], plane.coefficients()[2]);
        assert!((a + b - 2.0).abs() < 0.01 && (a - b).abs() < 0.2 && c == 0.0, "{a} {b} {c}");
        let y = Vector::from_vec(vec![5.0; 4]);
        let (plane, convergence) =
            fit_l1(&x, &y, Intercept::Fitted, settings(1e-3, 1.0)).expect("well posed");
        assert!(convergence.converged && plane.intercept() == 5.0);
    }
}
