//! Multinomial logistic regression: one softmax layer, fitted to its minimum.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::kernels::exponential::exp_all;
use crate::kernels::products::SumOrder;
use crate::kernels::training::{add_scaled, vectorized};
use crate::matrix::Matrix;
use crate::neural::{Activation, Dense, NeuralSequential};
use crate::newton::{Smooth, minimize};
use crate::standard::Standardized;
use crate::weighting::{Balance, ClassWeight, Weights};

/// How to train a softmax regression.
#[derive(Clone, Debug, PartialEq)]
pub struct SoftmaxOptions {
    /// Weight of the errors against that of the penalty, scikit-learn's `C`: above 0, infinite for no penalty.
    pub c: f64,
    /// Most steps of Newton's method.
    pub max_iter: usize,
    /// Norm of the gradient at which to stop, as a fraction of that before the first step.
    pub tol: f64,
    /// Weights of the classes, above 0.
    pub class_weight: ClassWeight,
}

/// `c` 1, at most 100 steps, a tolerance of 1e-5, equal weights.
impl Default for SoftmaxOptions {
    fn default() -> Self {
        Self { c: 1.0, max_iter: 100, tol: 1e-5, class_weight: ClassWeight::Uniform }
    }
}

pub(super) fn fit(
    x: &Matrix,
    y: &[usize],
    weights: Option<&[f32]>,
    options: &SoftmaxOptions,
) -> Result<(NeuralSequential, Convergence), Error> {
    let &SoftmaxOptions { c, max_iter, tol, ref class_weight } = options;
    checks::expect("c", c > 0.0, "a number above 0 is needed")?;
    checks::expect("max_iter", max_iter > 0, "at least 1 is needed")?;
    checks::expect_not_negative("tol", tol)?;
    let (classes, places) = Classes::of_targets(x, y)?;
    let n_classes = classes.len();
    if n_classes < 2 {
        return Err(ErrorKind::PartLength { part: "classes", expected: 2, found: n_classes }.into());
    }
    if let Some(row) = y.iter().position(|&label| label >= n_classes) {
        return Err(ErrorKind::Label { row, problem: "classes must be numbered from 0 without gaps" }.into());
    }
    let weights = Weights::new(classes.labels(), &places, weights, class_weight, Balance::Weights)?;
    weights.expect_all_classes(&places)?;
    let weights = weights.products(&places);
    let samples = Standardized::new(x)?;
    // Of two classes only the difference of their coefficients matters. Twice the penalty makes that the
    // coefficients of scikit-learn, which has a single row of them.
    let strength = if n_classes == 2 { 2.0 / c } else { 1.0 / c };
    let penalties = samples.units.iter().map(|unit| strength / (unit * unit)).collect();
    let mut loss = SoftmaxLoss {
        samples: &samples,
        places: &places,
        weights: &weights,
        total: weights.iter().sum(),
        penalties,
        n_classes,
        shares: vec![0.0; places.len() * n_classes],
    };
    let mut point = vec![0.0; n_classes * (x.n_cols() + 1)];
    let convergence = minimize(&mut loss, &mut point, max_iter, tol);
    Ok((loss.network(&point)?, convergence))
}

/// The mean weighted negative logarithm of the probability of the right class, plus penalty. A point has for each class
/// its coefficients, then its constant.
struct SoftmaxLoss<'s> {
    samples: &'s Standardized,
    places: &'s [u32],
    weights: &'s [f64],
    /// Their sum.
    total: f64,
    /// What half the square of a coefficient costs, times `total`.
    penalties: Vec<f64>,
    n_classes: usize,
    /// `[n_samples, n_classes]`: probabilities at the point of the last loss.
    shares: Vec<f64>,
}

impl SoftmaxLoss<'_> {
    /// Places of a class in a point.
    fn width(&self) -> usize {
        self.samples.n_features() + 1
    }

    /// Adds to `out` each sample times a factor for each class. `factors` turns a row of values into them.
    fn add_samples(
        &self,
        values: &[f64],
        mut factors: impl FnMut(usize, &[f64], &mut [f64]),
        out: &mut [f64],
    ) {
        let width = self.width();
        let mut row_factors = vec![0.0; self.n_classes];
        vectorized(
            #[inline(always)]
            || {
                let rows = self.samples.rows().zip(values.chunks_exact(self.n_classes));
                for (idx, (row, values)) in rows.enumerate() {
                    factors(idx, values, &mut row_factors);
                    for (sums, &factor) in out.chunks_exact_mut(width).zip(&row_factors) {
                        let Some((constant, sums)) = sums.split_last_mut() else { continue };
                        add_scaled(row, factor, sums);
                        *constant += factor;
                    }
                }
            },
        );
    }

    fn add_penalties(&self, point: &[f64], out: &mut [f64]) {
        for (point, out) in point.chunks_exact(self.width()).zip(out.chunks_exact_mut(self.width())) {
            for ((value, out), penalty) in point.iter().zip(out).zip(&self.penalties) {
                *out += penalty * value;
            }
        }
    }

    fn scale(&self, out: &mut [f64]) {
        out.iter_mut().for_each(|value| *value /= self.total);
    }

    fn network(&self, point: &[f64]) -> Result<NeuralSequential, Error> {
        let (n_features, k) = (self.samples.n_features(), self.n_classes);
        let mut weights = vec![0.0; n_features * k];
        let mut bias = Vec::with_capacity(k);
        for (class, point) in point.chunks_exact(self.width()).enumerate() {
            let (constant, coefficients) = point.split_last().expect("a constant follows the coefficients");
            let (coefficients, intercept) = self.samples.in_units_of_caller(coefficients, *constant)?;
            weights
                .iter_mut()
                .skip(class)
                .step_by(k)
                .zip(coefficients)
                .for_each(|(place, value)| *place = value);
            bias.push(intercept);
        }
        let layer = Dense::new(Matrix::from_vec(n_features, k, weights)?, bias, Activation::Softmax)?;
        NeuralSequential::from_layers(vec![layer])
    }
}

/// The value of each class's linear function, for each sample.
fn scores(samples: &Standardized, point: &[f64], n_classes: usize, out: &mut [f64]) {
    let n_features = samples.n_features();
    vectorized(
        #[inline(always)]
        || {
            for (row, out) in samples.rows().zip(out.chunks_exact_mut(n_classes)) {
                for (out, point) in out.iter_mut().zip(point.chunks_exact(n_features + 1)) {
                    let (coefficients, constant) = point.split_at(n_features);
                    *out = SumOrder::Lanes.dot(row, coefficients)
                        + constant.first().copied().unwrap_or_default();
                }
            }
        },
    );
}

impl Smooth for SoftmaxLoss<'_> {
    fn loss(&mut self, point: &[f64]) -> f64 {
        let mut sum = 0.0;
        scores(self.samples, point, self.n_classes, &mut self.shares);
        for (shares, (&place, weight)) in
            self.shares.chunks_exact_mut(self.n_classes).zip(self.places.iter().zip(self.weights))
        {
            let greatest = shares.iter().fold(f64::NEG_INFINITY, |greatest, &score| greatest.max(score));
            sum -= weight * (shares[place as usize] - greatest);
            shares.iter_mut().for_each(|share| *share -= greatest);
        }
        exp_all(&mut self.shares);
        for (shares, weight) in self.shares.chunks_exact_mut(self.n_classes).zip(self.weights) {
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            sum += weight * libm::log(total);
        }
        for point in point.chunks_exact(self.width()) {
            let terms = point.iter().zip(&self.penalties);
            sum += terms.map(|(value, penalty)| 0.5 * penalty * value * value).sum::<f64>();
        }
        sum / self.total
    }

    fn gradient(&mut self, point: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let factors = |idx: usize, shares: &[f64], factors: &mut [f64]| {
            let weight = self.weights[idx];
            factors.iter_mut().zip(shares).for_each(|(factor, share)| *factor = weight * share);
            factors[self.places[idx] as usize] -= weight;
        };
        self.add_samples(&self.shares, factors, out);
        self.add_penalties(point, out);
        self.scale(out);
    }

    fn diagonal(&mut self, out: &mut [f64]) {
        out.fill(0.0);
        let width = self.width();
        let rows = self.samples.rows().zip(self.shares.chunks_exact(self.n_classes)).zip(self.weights);
        for ((row, shares), weight) in rows {
            for (sums, share) in out.chunks_exact_mut(width).zip(shares) {
                let curvature = weight * share * (1.0 - share);
                let Some((constant, sums)) = sums.split_last_mut() else { continue };
                sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += curvature * value * value);
                *constant += curvature;
            }
        }
        for out in out.chunks_exact_mut(width) {
            out.iter_mut().zip(&self.penalties).for_each(|(out, penalty)| *out += penalty);
        }
        self.scale(out);
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let mut along = vec![0.0; self.shares.len()];
        scores(self.samples, direction, self.n_classes, &mut along);
        let factors = |idx: usize, along: &[f64], factors: &mut [f64]| {
            let shares = &self.shares[idx * self.n_classes..(idx + 1) * self.n_classes];
            let mean: f64 = along.iter().zip(shares).map(|(along, share)| along * share).sum();
            for ((factor, along), share) in factors.iter_mut().zip(along).zip(shares) {
                *factor = self.weights[idx] * share * (along - mean);
            }
        };
        self.add_samples(&along, factors, out);
        self.add_penalties(direction, out);
        self.scale(out);
    }
}
