//! Newton's method for the mean logistic loss with a quadratic penalty.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{Cholesky, DMatrix, DVector};

use super::sigmoid;
use crate::checks;
use crate::error::{Error, ErrorKind, Parameter};
use crate::kernels::products::SumOrder;
use crate::linear::Plane;
use crate::matrix::Matrix;
use crate::vector::Vector;
use crate::weighting::{self, CLASS_WEIGHT, ClassWeight};

pub(super) struct Settings<'s> {
    pub(super) max_iter: usize,
    pub(super) tol: f64,
    pub(super) l2_penalty: f64,
    pub(super) class_weight: &'s ClassWeight,
}

/// Required decrease of a step as a fraction of that predicted by the slope (Armijo condition).
const GAIN: f64 = 1e-4;

/// Halvings of a step before rounding is all there is to gain.
const HALVINGS: u32 = 40;

pub(super) fn fit(
    x: &Matrix,
    y: &[usize],
    weights: Option<&[f32]>,
    settings: &Settings<'_>,
) -> Result<Plane, Error> {
    let problem = Problem::new(x, y, weights, settings)?;
    let mut weights = DVector::zeros(x.n_cols() + 1);
    let mut loss = problem.loss(&weights);
    for _ in 0..settings.max_iter {
        let (gradient, hessian) = problem.derivatives(&weights);
        if gradient.amax() <= settings.tol {
            break;
        }
        let Some(step) = Cholesky::new(hessian).map(|cholesky| cholesky.solve(&gradient)) else { break };
        let slope = gradient.dot(&step);
        let mut length = 1.0;
        let mut better = None;
        for _ in 0..HALVINGS {
            let tried = &weights - &step * length;
            let tried_loss = problem.loss(&tried);
            if tried_loss <= loss - GAIN * length * slope {
                better = Some((tried, tried_loss));
                break;
            }
            length *= 0.5;
        }
        // Nothing to gain but rounding: this is the minimum.
        let Some((tried, tried_loss)) = better else { break };
        weights = tried;
        loss = tried_loss;
    }
    problem.plane(&weights)
}

/// Samples in units in which every feature has the mean 0 and the standard deviation 1.
struct Problem<'x> {
    x: &'x Matrix,
    y: &'x [usize],
    means: Vec<f64>,
    /// Standard deviations; 1 for a constant feature.
    units: Vec<f64>,
    /// What each sample counts.
    sample_weights: Vec<f64>,
    l2_penalty: f64,
}

impl<'x> Problem<'x> {
    fn new(
        x: &'x Matrix,
        y: &'x [usize],
        weights: Option<&[f32]>,
        settings: &Settings<'_>,
    ) -> Result<Self, Error> {
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        checks::expect_finite_rows(x.as_slice(), x.n_cols())?;
        if let Some(row) = y.iter().position(|&class| class > 1) {
            return Err(ErrorKind::Label { row, problem: "0 or 1 is needed" }.into());
        }
        let n_ones = y.iter().sum::<usize>() as f64;
        let counts = [y.len() as f64 - n_ones, n_ones];
        let class_weights = [0, 1].map(|class| match settings.class_weight {
            ClassWeight::Balanced if counts[0] > 0.0 && counts[1] > 0.0 => {
                libm::sqrt(y.len() as f64 / (2.0 * counts[class]))
            }
            ClassWeight::Uniform | ClassWeight::Balanced => 1.0,
            ClassWeight::Manual(weights) => weights.get(class).map_or(1.0, |&weight| weight.into()),
        });
        let parts = class_weights.map(|weight| (CLASS_WEIGHT, weight));
        for (part, value) in parts.into_iter().chain([("l2_penalty", settings.l2_penalty)]) {
            checks::expect_not_negative(part, value)?;
        }
        let mut sample_weights = weighting::of_samples(y.len(), weights)?;
        sample_weights.iter_mut().zip(y).for_each(|(weight, &class)| *weight *= class_weights[class]);

        let n_rows = x.n_rows() as f64;
        let mut means = vec![0.0; x.n_cols()];
        for row in x.rows() {
            means.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value) / n_rows);
        }
        let mut squares = vec![0.0; x.n_cols()];
        for row in x.rows() {
            for ((square, &value), mean) in squares.iter_mut().zip(row).zip(&means) {
                let difference = f64::from(value) - mean;
                *square += difference * difference / n_rows;
            }
        }
        let unit = |(square, mean): (&f64, &f64)| {
            let deviation = libm::sqrt(*square);
            // What is within the rounding of the mean is no deviation.
            if deviation > 1e-12 * mean.abs() { deviation } else { 1.0 }
        };
        let units = squares.iter().zip(&means).map(unit).collect();
        Ok(Self { x, y, means, units, sample_weights, l2_penalty: settings.l2_penalty })
    }

    /// The samples in units, each with a 1 for the intercept, with class and weight.
    fn for_each(&self, mut visit: impl FnMut(&[f64], usize, f64)) {
        let mut sample = vec![1.0; self.x.n_cols() + 1];
        for ((row, &class), &weight) in self.x.rows().zip(self.y).zip(&self.sample_weights) {
            let scaled = row.iter().zip(&self.means).zip(&self.units);
            for (place, ((&value, mean), unit)) in sample.iter_mut().zip(scaled) {
                *place = (f64::from(value) - mean) / unit;
            }
            visit(&sample, class, weight);
        }
    }

    /// What half the square of a coefficient, in units, costs.
    fn penalty(&self, feature: usize) -> f64 {
        self.l2_penalty / (self.units[feature] * self.units[feature])
    }

    fn loss(&self, weights: &DVector<f64>) -> f64 {
        let mut loss = 0.0;
        self.for_each(|sample, class, weight| {
            let z = SumOrder::InOrder.dot(sample, weights.as_slice());
            // ln(1 + exp(-m)) for the margin m, without overflow.
            let margin = if class == 1 { z } else { -z };
            loss += weight * (libm::log1p(libm::exp(-margin.abs())) - margin.min(0.0));
        });
        let penalty: f64 =
            (0..self.units.len()).map(|idx| 0.5 * self.penalty(idx) * weights[idx] * weights[idx]).sum();
        loss / self.y.len() as f64 + penalty
    }

    fn derivatives(&self, weights: &DVector<f64>) -> (DVector<f64>, DMatrix<f64>) {
        let size = weights.len();
        let mut gradient = DVector::zeros(size);
        let mut hessian = DMatrix::zeros(size, size);
        self.for_each(|sample, class, weight| {
            let z = SumOrder::InOrder.dot(sample, weights.as_slice());
            let (p, q) = (sigmoid(z), sigmoid(-z));
            let slope = weight * if class == 1 { -q } else { p };
            let curvature = weight * p * q;
            for (col, &value) in sample.iter().enumerate() {
                gradient[col] += slope * value;
                let scaled = curvature * value;
                for (row, &other) in sample.iter().enumerate().skip(col) {
                    hessian[(row, col)] += scaled * other;
                }
            }
        });
        let n_rows = self.y.len() as f64;
        gradient /= n_rows;
        hessian /= n_rows;
        for idx in 0..size - 1 {
            gradient[idx] += self.penalty(idx) * weights[idx];
            hessian[(idx, idx)] += self.penalty(idx);
        }
        // Features that repeat each other leave directions without curvature. The step stays finite, and no loss is
        // changed by it.
        let floor = hessian.diagonal().amax().max(f64::MIN_POSITIVE) * 1e-12;
        for idx in 0..size {
            hessian[(idx, idx)] += floor;
        }
        (gradient, hessian)
    }

    /// Back to the units of the caller, rounded.
    fn plane(&self, weights: &DVector<f64>) -> Result<Plane, Error> {
        let n_features = self.units.len();
        let mut coefficients = Vec::with_capacity(n_features);
        let mut intercept = weights[n_features];
        for feature in 0..n_features {
            let value = weights[feature] / self.units[feature];
            let rounded = value as f32;
            if !rounded.is_finite() {
                return Err(
                    ErrorKind::OutOfRange { parameter: Parameter::Coefficient(feature), value }.into()
                );
            }
            // From the rounded coefficient, so that the mean sample keeps its probability.
            intercept -= f64::from(rounded) * self.means[feature];
            coefficients.push(rounded);
        }
        if !(intercept as f32).is_finite() {
            return Err(ErrorKind::OutOfRange { parameter: Parameter::Intercept, value: intercept }.into());
        }
        Plane::from_parts(Vector::from_vec(coefficients), intercept as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn settings(l2_penalty: f64) -> Settings<'static> {
        Settings { max_iter: 100, tol: 1e-10, l2_penalty, class_weight: &ClassWeight::Uniform }
    }

    #[test]
    fn gradient_vanishes_at_the_solution() {
        let mut rng = Rng::new(11);
        let values: Vec<f32> = (0..300).map(|idx| 1e3 * (idx % 3) as f32 + rng.normal() as f32).collect();
        let x = Matrix::from_vec(100, 3, values).expect("whole rows");
        let y: Vec<usize> = x.rows().map(|row| usize::from(f64::from(row[0]) + rng.normal() > 0.0)).collect();
        for penalty in [0.0, 1e-3, 1.0] {
            let plane = fit(&x, &y, None, &settings(penalty)).expect("well posed");
            let mut slopes = [0.0; 4];
            for (row, &class) in x.rows().zip(&y) {
                let miss = sigmoid(plane.value(row).expect("three features")) - class as f64;
                let features = row.iter().map(|&value| f64::from(value)).chain([1.0]);
                slopes.iter_mut().zip(features).for_each(|(slope, value)| *slope += miss * value / 100.0);
            }
            for (slope, coefficient) in slopes.iter().zip(plane.coefficients()) {
                assert!((slope + penalty * f64::from(coefficient)).abs() < 1e-3, "{penalty} {slopes:?}");
            }
            assert!(slopes[3].abs() < 1e-6, "{penalty} {slopes:?}");
        }
    }

    #[test]
    fn separable_repeated_and_constant_features_end_with_finite_weights() {
        let x = Matrix::from_vec(4, 3, vec![1.0, 1.0, 7.0, 2.0, 2.0, 7.0, 3.0, 3.0, 7.0, 4.0, 4.0, 7.0])
            .expect("whole rows");
        let plane = fit(&x, &[0, 0, 1, 1], None, &settings(0.0)).expect("bounded");
        assert!(plane.value(&[2.4, 2.4, 7.0]).expect("three") < 0.0);
        assert!(plane.value(&[2.6, 2.6, 7.0]).expect("three") > 0.0);
        let (first, second) = (plane.coefficients()[0], plane.coefficients()[1]);
        assert!((first - second).abs() < 1e-3 * first.abs(), "{first} {second}");
        // One class alone: only the constant term has anything to say.
        let plane = fit(&x, &[1; 4], None, &settings(0.1)).expect("bounded");
        assert!(plane.value(&[0.0, 0.0, 0.0]).expect("three") > 5.0);
    }
}
