//! Multinomial logistic regression: one softmax layer, fitted to its minimum.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::kernels::exponential::exp_all;
use crate::kernels::products::SumOrder;
use crate::kernels::tiles::all_pairs;
use crate::kernels::weighted::WeightedRows;
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
        factors: vec![0.0; places.len() * n_classes],
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
    /// `[n_samples, n_classes]`: what samples count in a sum.
    factors: Vec<f64>,
}

impl SoftmaxLoss<'_> {
    /// Places of a class in a point.
    fn width(&self) -> usize {
        self.samples.n_features() + 1
    }

    /// Writes the sums over the samples of a term of the factor for each class and each value; for a constant the value is 1.
    fn sum_samples(&self, term: impl Fn(f64, f64) -> f64 + Copy, out: &mut [f64]) {
        let (n_features, k) = (self.samples.n_features(), self.n_classes);
        let mut sums = vec![0.0; k * n_features];
        let (rows, factors) = (self.samples.values(), &self.factors);
        WeightedRows { rows, factors, width: n_features, n_sums: k }.add_to(term, &mut sums);
        let of_classes = out.chunks_exact_mut(self.width()).zip(sums.chunks_exact(n_features)).enumerate();
        for (class, (out, sums)) in of_classes {
            let Some((constant, out)) = out.split_last_mut() else { continue };
            out.copy_from_slice(sums);
            *constant = 0.0;
            self.factors.iter().skip(class).step_by(k).for_each(|factor| *constant += factor);
        }
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
    let mut coefficients = Vec::with_capacity(n_classes * n_features);
    let mut constants = Vec::with_capacity(n_classes);
    for point in point.chunks_exact(n_features + 1) {
        let (of_class, constant) = point.split_at(n_features);
        coefficients.extend_from_slice(of_class);
        constants.extend_from_slice(constant);
    }
    all_pairs(SumOrder::Lanes, samples.values(), &coefficients, n_features, |a, b| a * b, out);
    for out in out.chunks_exact_mut(n_classes) {
        out.iter_mut().zip(&constants).for_each(|(out, constant)| *out += constant);
    }
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
        let (k, samples) = (self.n_classes, self.places.iter().zip(self.weights));
        let rows = self.factors.chunks_exact_mut(k).zip(self.shares.chunks_exact(k));
        for ((factors, shares), (&place, weight)) in rows.zip(samples) {
            factors.iter_mut().zip(shares).for_each(|(factor, share)| *factor = weight * share);
            factors[place as usize] -= weight;
        }
        self.sum_samples(|factor, value| factor * value, out);
        self.add_penalties(point, out);
        self.scale(out);
    }

    fn diagonal(&mut self, out: &mut [f64]) {
        let k = self.n_classes;
        let rows = self.factors.chunks_exact_mut(k).zip(self.shares.chunks_exact(k));
        for ((factors, shares), weight) in rows.zip(self.weights) {
            let of_classes = factors.iter_mut().zip(shares);
            of_classes.for_each(|(factor, share)| *factor = weight * share * (1.0 - share));
        }
        self.sum_samples(|factor, value| factor * value * value, out);
        for out in out.chunks_exact_mut(self.width()) {
            out.iter_mut().zip(&self.penalties).for_each(|(out, penalty)| *out += penalty);
        }
        self.scale(out);
    }

    fn hessian_times(&mut self, direction: &[f64], out: &mut [f64]) {
        let k = self.n_classes;
        scores(self.samples, direction, k, &mut self.factors);
        let rows = self.factors.chunks_exact_mut(k).zip(self.shares.chunks_exact(k));
        for ((along, shares), weight) in rows.zip(self.weights) {
            let mean: f64 = along.iter().zip(shares).map(|(along, share)| along * share).sum();
            for (along, share) in along.iter_mut().zip(shares) {
                *along = weight * share * (*along - mean);
            }
        }
        self.sum_samples(|factor, value| factor * value, out);
        self.add_penalties(direction, out);
        self.scale(out);
    }
}
