//! Linear support vector machines: least squared hinge loss.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::kernels::products::dot;
use crate::matrix::Matrix;
use crate::newton::{Smooth, minimize};
use crate::standard::Standardized;
use crate::svm::{LinearParts, Svm};
use crate::weighting::{Balance, ClassWeight, Weights};

/// How to train a linear [`Svm`].
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSvmOptions {
    /// Weight of the errors against that of the penalty, scikit-learn's `C`: finite and above 0.
    pub c: f64,
    /// Most steps of Newton's method for a class.
    pub max_iter: usize,
    /// Norm of the gradient at which to stop, as a fraction of that before the first step.
    pub tol: f64,
    /// Weights of the classes, above 0. With more than two classes the weight of a class is that of its samples when it is the
    /// one against the rest; the rest has the weight 1, as in liblinear.
    pub class_weight: ClassWeight,
}

/// `c` 1, at most 1000 steps, a tolerance of 1e-5, equal weights.
impl Default for LinearSvmOptions {
    fn default() -> Self {
        Self { c: 1.0, max_iter: 1000, tol: 1e-5, class_weight: ClassWeight::Uniform }
    }
}

pub(super) fn fit(
    x: &Matrix,
    y: &[usize],
    weights: Option<&[f32]>,
    options: &LinearSvmOptions,
) -> Result<(Svm, Convergence), Error> {
    let &LinearSvmOptions { c, max_iter, tol, ref class_weight } = options;
    checks::expect("c", c.is_finite() && c > 0.0, "a finite number above 0 is needed")?;
    checks::expect("max_iter", max_iter > 0, "at least 1 is needed")?;
    checks::expect_not_negative("tol", tol)?;
    let (classes, places) = Classes::of_targets(x, y)?;
    let n_classes = classes.len();
    if n_classes < 2 {
        return Err(ErrorKind::PartLength { part: "classes", expected: 2, found: n_classes }.into());
    }
    let weights = Weights::new(classes.labels(), &places, weights, class_weight, Balance::Weights)?;
    weights.expect_all_classes(&places)?;
    let samples = Standardized::new(x)?;

    let n_planes = if n_classes == 2 { 1 } else { n_classes };
    let mut parts = LinearParts {
        classes: classes.labels().to_vec(),
        weights: Matrix::none(),
        intercepts: Vec::with_capacity(n_planes),
    };
    let mut table = Vec::new();
    let mut all = Convergence { iterations: 0, converged: true };
    for plane in 0..n_planes {
        // With two classes, the second one is the positive one.
        let positive = if n_classes == 2 { 1 } else { plane };
        let costs = places.iter().zip(&weights.samples).map(|(&place, &weight)| {
            let place = place as usize;
            let of_class = if n_classes == 2 || place == positive { weights.classes[place] } else { 1.0 };
            let signed = if place == positive { 1.0 } else { -1.0 };
            signed * c * weight * of_class
        });
        let mut loss = SquaredHinge::new(&samples, costs.collect());
        let mut point = vec![0.0; x.n_cols() + 1];
        let Convergence { iterations, converged } = minimize(&mut loss, &mut point, max_iter, tol);
        all = Convergence { iterations: all.iterations + iterations, converged: all.converged && converged };
        let (constant, weights) = point.split_last().expect("a constant follows the weights");
        let (weights, intercept) = samples.in_units_of_caller(weights, *constant)?;
        table.extend(weights);
        parts.intercepts.push(intercept);
    }
    parts.weights = Matrix::from_vec(n_planes, x.n_cols(), table)?;
    Ok((Svm::linear(parts)?, all))
}

/// `1/2 (|w|^2 + b^2) + sum(cost * max(0, 1 - sign * (w x + b))^2)`, scikit-learn's `LinearSVC`: the constant term has a
/// penalty too. A point is the weights of standardized features, then the constant.
struct SquaredHinge<'s> {
    samples: &'s Standardized,
    /// What the squared error of each sample costs; negative for samples of the negative class.
    costs: Vec<f64>,
    /// What a weight takes from the constant term in the units of the caller.
    offsets: Vec<f64>,
    /// Samples with an error at the point of the last loss, and those errors with the sign of the class.
    errors: Vec<(usize, f64)>,
}

impl<'s> SquaredHinge<'s> {
    fn new(samples: &'s Standardized, costs: Vec<f64>) -> Self {
        let offsets = samples.means.iter().zip(&samples.units).map(|(mean, unit)| mean / unit).collect();
        Self { samples, costs, offsets, errors: Vec::new() }
    }

    /// The constant term in the units of the caller.
    fn constant(&self, point: &[f64]) -> f64 {
        let (constant, weights) = point.split_last().unwrap_or((&0.0, &[]));
        constant - dot(weights, &self.offsets)
    }

    /// Adds the derivatives of the penalty.
    fn add_penalty(&self, point: &[f64], out: &mut [f64]) {
        let constant = self.constant(point);
        let units = self.samples.units.iter().zip(&self.offsets);
        for ((out, value), (unit, offset)) in out.iter_mut().zip(point).zip(units) {
            *out += value / (unit * unit) - constant * offset;
        }
        if let Some(out) = out.last_mut() {
            *out += constant;
        }
    }

    fn row(&self, idx: usize) -> &[f64] {
        self.samples.row(idx)
    }
}

fn value(row: &[f64], point: &[f64]) -> f64 {
    let (weights, constant) = point.split_at(row.len());
    dot(row, weights) + constant.first().copied().unwrap_or_default()
}

/// Adds a sample times a factor.
fn add(row: &[f64], factor: f64, out: &mut [f64]) {
    let (sums, constant) = out.split_at_mut(row.len());
    sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
    constant.iter_mut().for_each(|sum| *sum += factor);
}

impl Smooth for SquaredHinge<'_> {
    fn loss(&mut self, point: &[f64]) -> f64 {
        self.errors.clear();
        let mut sum = 0.0;
        for (idx, (row, &cost)) in self.samples.rows().zip(&self.costs).enumerate() {
            let sign = 1.0_f64.copysign(cost);
            let error = 1.0 - sign * value(row, point);
            if error > 0.0 && cost != 0.0 {
                sum += cost.abs() * error * error;
                self.errors.push((idx, sign * error));
            }
        }
        let weights = point.iter().zip(&self.samples.units).map(|(value, unit)| value / unit);
        let squares: f64 = weights.map(|weight| weight * weight).sum();
        let constant = self.constant(point);
        sum + 0.5 * (squares + constant * constant)
    }

    fn gradient(&mut self, point: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for &(idx, error) in &self.errors {
            add(self.row(idx), -2.0 * self.costs[idx].abs() * error, out);
        }
        self.add_penalty(point, out);
    }

    fn diagonal(&mut self, out: &mut [f64]) {
        out.fill(0.0);
        for &(idx, _) in &self.errors {
            let cost = 2.0 * self.costs[idx].abs();
            let (sums, constant) = out.split_at_mut(self.samples.n_features());
            sums.iter_mut().zip(self.row(idx)).for_each(|(sum, value)| *sum += cost * value * value);
            constant.iter_mut().for_each(|sum| *sum += cost);
        }
        let units = self.samples.units.iter().zip(&self.offsets);
        for (out, (unit, offset)) in out.iter_mut().zip(units) {
            *out += 1.0 / (unit * unit) + offset * offset;
        }
        if let Some(out) = out.last_mut() {
            *out += 1.0;
        }
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for &(idx, _) in &self.errors {
            let row = self.row(idx);
            add(row, 2.0 * self.costs[idx].abs() * value(row, direction), out);
        }
        self.add_penalty(direction, out);
    }
}
