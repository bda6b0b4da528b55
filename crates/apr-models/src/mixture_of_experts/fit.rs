//! Training of mixtures by expectation and maximization.
//!
//! The model: each sample has one expert, drawn with the probabilities that the gate gives; its target is what the expert
//! predicts plus a normal error of the expert's own variance. Each round finds how probable it is for each sample that each
//! expert made it, then the experts by weighted least squares and the gate by weighted logistic regression (Jordan and Jacobs,
//! Neural Computation 6, 1994). No round lowers the likelihood.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{Cholesky, DMatrix, Dyn};

use super::{GatingNetwork, MixtureOfExperts, SoftmaxGating};
use crate::error::{Error, ErrorKind};
use crate::kmeans::KMeans;
use crate::least_squares;
use crate::linear_regression::LinearRegression;
use crate::matrix::Matrix;
use crate::model::Regressor;
use crate::rng::Rng;
use crate::vector::Vector;

/// A model that can be trained on samples that count differently.
pub trait WeightedRegressor: Regressor {
    /// Fits the model to samples `x` and their targets `y`, of which each counts as much as its weight. Weights are
    /// finite and not negative, and not all are 0.
    ///
    /// # Errors
    ///
    /// Errors of training data and options.
    fn fit_weighted(&mut self, x: &Matrix, y: &Vector, weights: &[f64]) -> Result<(), Error>;
}

impl WeightedRegressor for LinearRegression {
    fn fit_weighted(&mut self, x: &Matrix, y: &Vector, weights: &[f64]) -> Result<(), Error> {
        if weights.len() != x.n_rows() {
            let (expected, found) = (x.n_rows(), weights.len());
            return Err(ErrorKind::PartLength { part: "weights", expected, found }.into());
        }
        let are_weights = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        if !are_weights || weights.iter().sum::<f64>() <= 0.0 {
            let problem = "finite numbers of at least 0 are needed, one of them above";
            return Err(ErrorKind::PartInvalid { part: "weights", problem }.into());
        }
        self.set_plane(least_squares::fit_weighted(x, y, weights)?);
        Ok(())
    }
}

/// How a mixture is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoeTraining {
    /// Seed of the starts.
    pub seed: u64,
    /// Starts; the best result stays.
    pub restarts: usize,
    /// Most rounds of a start.
    pub max_iter: usize,
    /// A start ends when a round gains less than this much of the mean logarithm of the likelihood.
    pub tol: f64,
}

impl Default for MoeTraining {
    fn default() -> Self {
        Self { seed: 0, restarts: 5, max_iter: 200, tol: 1e-7 }
    }
}

/// Least variance of an expert's errors, as a share of the variance of the targets.
const LEAST_VARIANCE: f64 = 1e-8;

/// Minimum weight of a sample for every expert, so that no expert is without samples.
const LEAST_SHARE: f64 = 1e-9;

/// Steps of the gate in a round.
const GATE_STEPS: usize = 10;

/// Weight of the gate's penalty, as a share of the mean square of a feature: keeps its weights finite where experts can
/// be told apart without error.
const GATE_PENALTY: f64 = 1e-6;

impl<E: WeightedRegressor + Clone> MixtureOfExperts<E, SoftmaxGating> {
    /// Trains experts and gate together on samples `x` and their targets `y`. On an error the model stays as it was.
    ///
    /// Computed in `f64`; the same input and seed give the same bits on every platform. The result is the best of a few
    /// starts, not proven to be the best there is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureCount`], [`ErrorKind::TooFewSamples`] for fewer samples than
    /// experts, [`ErrorKind::FeatureNotFinite`], [`ErrorKind::TargetNotFinite`], and the errors of the experts.
    pub fn fit(&mut self, x: &Matrix, y: &Vector, training: &MoeTraining) -> Result<(), Error> {
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        if x.n_cols() != self.gating.n_features() {
            return Err(
                ErrorKind::FeatureCount { expected: self.gating.n_features(), found: x.n_cols() }.into()
            );
        }
        if let Some(row) = y.iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        let mut rng = Rng::new(training.seed);
        let mut best: Option<(f64, Self)> = None;
        for start in 0..training.restarts.max(1) {
            let shares = first_shares(x, self.n_experts(), start, &mut rng)?;
            let mut model = self.clone();
            let likelihood = model.improve(x, y, shares, training)?;
            if best.as_ref().is_none_or(|(best, _)| likelihood > *best) {
                best = Some((likelihood, model));
            }
        }
        if let Some((_, best)) = best {
            *self = best;
        }
        Ok(())
    }

    fn improve(
        &mut self,
        x: &Matrix,
        y: &Vector,
        mut shares: DMatrix<f64>,
        training: &MoeTraining,
    ) -> Result<f64, Error> {
        let n_experts = self.n_experts();
        let mut gate = Gate::new(x, &self.gating);
        let floor = variance(y) * LEAST_VARIANCE;
        let mut likelihood = f64::NEG_INFINITY;
        let mut predictions = vec![0.0_f32; x.n_rows()];
        let mut residuals = DMatrix::zeros(x.n_rows(), n_experts);
        for _ in 0..training.max_iter.max(1) {
            let mut variances = Vec::with_capacity(n_experts);
            for (idx, expert) in self.experts.iter_mut().enumerate() {
                let weights: Vec<f64> =
                    shares.column(idx).iter().map(|share| share.max(LEAST_SHARE)).collect();
                expert.fit_weighted(x, y, &weights)?;
                expert.predict_into(x.as_slice(), &mut predictions)?;
                let mut squares = 0.0;
                for (row, (&prediction, target)) in predictions.iter().zip(y).enumerate() {
                    let residual = f64::from(target) - f64::from(prediction);
                    residuals[(row, idx)] = residual;
                    squares += weights[row] * residual * residual;
                }
                variances.push((squares / weights.iter().sum::<f64>()).max(floor).max(f64::MIN_POSITIVE));
            }
            gate.approach(&shares);
            let reached = expect(&gate.log_shares(), &residuals, &variances, &mut shares);
            let gain = reached - likelihood;
            likelihood = reached;
            if gain <= training.tol || gain.is_nan() {
                break;
            }
        }
        self.gating = gate.finish(&self.gating)?;
        Ok(likelihood)
    }
}

/// Shares to start from: mostly those of clusters of the samples, at every second start mostly random.
fn first_shares(x: &Matrix, n_experts: usize, start: usize, rng: &mut Rng) -> Result<DMatrix<f64>, Error> {
    let mut clusters = KMeans::new(n_experts)?.with_random_state(rng.next_u64());
    clusters.fit_restarting(&in_units(x)?, 1)?;
    let labels = clusters.labels().unwrap_or_default();
    let certainty = if start.is_multiple_of(2) { 0.9 } else { 0.1 };
    let mut shares = DMatrix::from_fn(x.n_rows(), n_experts, |_, _| rng.unit());
    for (mut row, &label) in shares.row_iter_mut().zip(labels) {
        let sum = row.sum().max(f64::MIN_POSITIVE);
        row *= (1.0 - certainty) / sum;
        row[label] += certainty;
    }
    Ok(shares)
}

/// The samples with each feature divided by its standard deviation.
fn in_units(x: &Matrix) -> Result<Matrix, Error> {
    let deviations: Vec<f64> = (0..x.n_cols())
        .map(|col| libm::sqrt(variance_of(x.rows().map(|row| f64::from(row[col])))))
        .map(|deviation| if deviation > 0.0 { deviation } else { 1.0 })
        .collect();
    let scaled = x.rows().flat_map(|row| {
        row.iter().zip(&deviations).map(|(&value, deviation)| (f64::from(value) / deviation) as f32)
    });
    Matrix::from_vec(x.n_rows(), x.n_cols(), scaled.collect())
}

fn variance(y: &Vector) -> f64 {
    variance_of(y.iter().map(f64::from))
}

fn variance_of(values: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = values.len() as f64;
    let mean = values.clone().sum::<f64>() / count;
    values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / count
}

/// Finds the probability that each expert made each sample; the mean logarithm of the likelihood.
fn expect(
    log_shares: &DMatrix<f64>,
    residuals: &DMatrix<f64>,
    variances: &[f64],
    shares: &mut DMatrix<f64>,
) -> f64 {
    let mut total = 0.0;
    for row in 0..residuals.nrows() {
        let log = |idx: usize| {
            let (residual, variance) = (residuals[(row, idx)], variances[idx]);
            let log_density =
                libm::log(2.0 * core::f64::consts::PI * variance) + residual * residual / variance;
            log_shares[(row, idx)] - 0.5 * log_density
        };
        let greatest = (0..variances.len()).map(log).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..variances.len()).map(|idx| libm::exp(log(idx) - greatest)).sum();
        for idx in 0..variances.len() {
            shares[(row, idx)] = libm::exp(log(idx) - greatest) / sum;
        }
        total += greatest + libm::log(sum);
    }
    total / residuals.nrows() as f64
}

/// A gate in training.
struct Gate {
    samples: DMatrix<f64>,
    /// One row a feature, one column an expert; scores are not divided by the temperature.
    weights: DMatrix<f64>,
    /// Of half the samples' products and the penalty.
    factor: Cholesky<f64, Dyn>,
    penalty: f64,
}

impl Gate {
    fn new(x: &Matrix, gating: &SoftmaxGating) -> Self {
        let (n_features, n_experts) = (gating.n_features(), gating.n_experts());
        let samples = DMatrix::from_row_iterator(
            x.n_rows(),
            n_features,
            x.as_slice().iter().map(|&value| f64::from(value)),
        );
        let products = samples.tr_mul(&samples) * 0.5;
        let penalty = GATE_PENALTY * (2.0 * products.trace() / n_features as f64).max(f64::MIN_POSITIVE);
        let mut bound = products;
        (0..n_features).for_each(|idx| bound[(idx, idx)] += penalty);
        let factor = Cholesky::new(bound).expect("the penalty makes it positive definite");
        Self { samples, weights: DMatrix::zeros(n_features, n_experts), factor, penalty }
    }

    /// The logarithm of each expert's share for each sample.
    fn log_shares(&self) -> DMatrix<f64> {
        let mut scores = &self.samples * &self.weights;
        for mut row in scores.row_iter_mut() {
            let greatest = row.max();
            let sum: f64 = row.iter().map(|score| libm::exp(score - greatest)).sum();
            let log_sum = greatest + libm::log(sum);
            row.iter_mut().for_each(|score| *score -= log_sum);
        }
        scores
    }

    /// Steps towards the gate weights whose probabilities are nearest to `shares`.
    ///
    /// The curvature is at most half the samples' products for each expert (Boehning, Ann. Inst. Statist. Math. 44,
    /// 1992), so that a Newton step with that bound never goes too far.
    fn approach(&mut self, shares: &DMatrix<f64>) {
        for _ in 0..GATE_STEPS {
            let misses = shares - self.log_shares().map(libm::exp);
            let gradient = self.samples.tr_mul(&misses) - &self.weights * self.penalty;
            self.weights += self.factor.solve(&gradient);
        }
    }

    /// The gate with the weights rounded, and times the temperature that scores are divided by.
    fn finish(self, gating: &SoftmaxGating) -> Result<SoftmaxGating, Error> {
        let temperature = gating.temperature();
        let weights = self.weights.transpose() * f64::from(temperature);
        let weights = weights.iter().map(|&weight| weight as f32).collect();
        SoftmaxGating::from_parts(gating.n_features(), gating.n_experts(), temperature, weights)
    }
}
