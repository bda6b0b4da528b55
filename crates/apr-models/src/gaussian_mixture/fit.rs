//! Fits a mixture by expectation and maximization.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{Cholesky, DMatrix};

use crate::checks;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind};
use crate::gaussian_mixture::{CovarianceType, GaussianMixture};
use crate::kernels::exponential::exp_all;
use crate::kernels::training::{add_scaled, vectorized};
use crate::kmeans::KMeans;
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::workers::Workers;

/// How to train a [`GaussianMixture`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianMixtureOptions {
    /// Number of components.
    pub n_components: usize,
    /// Constraint on the covariance matrices.
    pub covariance_type: CovarianceType,
    /// Most rounds of expectation and maximization of a start.
    pub max_iter: usize,
    /// Gain of the mean log density in a round at which to stop.
    pub tol: f32,
    /// Added to every variance.
    pub reg_covar: f64,
    /// Number of starts; the best result is kept.
    pub restarts: usize,
    /// Seed of the random number generator.
    pub seed: u64,
}

impl GaussianMixtureOptions {
    /// Full covariance matrices, at most 100 rounds, a tolerance of 1e-3, 1e-6 added to variances, one start, seed 0: as
    /// scikit-learn.
    #[must_use]
    pub const fn new(n_components: usize) -> Self {
        Self {
            n_components,
            covariance_type: CovarianceType::Full,
            max_iter: 100,
            tol: 1e-3,
            reg_covar: 1e-6,
            restarts: 1,
            seed: 0,
        }
    }

    fn check(&self, x: &Matrix) -> Result<(), Error> {
        checks::expect("n_components", self.n_components > 0, "at least one is needed")?;
        checks::expect("max_iter", self.max_iter > 0, "at least 1 is needed")?;
        checks::expect_not_negative("tol", self.tol.into())?;
        checks::expect_not_negative("reg_covar", self.reg_covar)?;
        checks::expect("restarts", self.restarts > 0, "at least 1 is needed")?;
        if x.n_rows() < self.n_components {
            return Err(ErrorKind::TooFewSamples { needed: self.n_components, given: x.n_rows() }.into());
        }
        checks::expect_finite_rows(x.as_slice(), x.n_cols())
    }
}

pub(super) fn fit(
    workers: &dyn Workers,
    x: &Matrix,
    options: &GaussianMixtureOptions,
) -> Result<(GaussianMixture, Convergence), Error> {
    options.check(x)?;
    let mut rng = Rng::new(options.seed);
    let mut best: Option<(Mixture<'_>, f64, Convergence)> = None;
    workers.expect(options.restarts);
    // As many starts at once as there are workers; not all, because each holds as much as there are samples.
    for begin in (0..options.restarts).step_by(workers.count()) {
        let count = workers.count().min(options.restarts - begin);
        let seeds: Vec<u64> = (0..count).map(|_| rng.next_u64()).collect();
        let starts = workers.map(count, |start| {
            let mut clusters = KMeans::new(options.n_components)?.with_random_state(seeds[start]);
            clusters.fit_restarting(x, 1)?;
            let mut mixture = Mixture::new(x, options, clusters.labels().unwrap_or_default())?;
            let (mean_log, convergence) = mixture.run(options)?;
            workers.advance();
            Ok::<_, Error>((mixture, mean_log, convergence))
        });
        for start in starts {
            let start = start?;
            if best.as_ref().is_none_or(|(_, best, _)| start.1 > *best) {
                best = Some(start);
            }
        }
    }
    let (mixture, _, convergence) = best.expect("there is at least one start");
    Ok((mixture.model(options)?, convergence))
}

/// A mixture in training.
struct Mixture<'x> {
    x: &'x Matrix,
    covariance_type: CovarianceType,
    reg_covar: f64,
    /// Mean of all samples. Sums are relative to it, so that a large offset costs no digits.
    origin: Vec<f64>,
    weights: Vec<f64>,
    /// Relative to the origin: `[n_components, n_features]`.
    means: Vec<f64>,
    /// A square matrix for each component, or its diagonal; tied: one of all.
    covariances: Vec<Vec<f64>>,
    /// `[n_samples, n_components]`: how probable it is that the component made the sample.
    shares: Vec<f64>,
}

impl<'x> Mixture<'x> {
    /// Begins with clusters: each sample was made by the component of its label.
    fn new(x: &'x Matrix, options: &GaussianMixtureOptions, labels: &[usize]) -> Result<Self, Error> {
        let (n_components, n_features) = (options.n_components, x.n_cols());
        let (n_rows, n_cols) = (x.n_rows(), n_components);
        let len = n_rows.checked_mul(n_cols).ok_or(ErrorKind::MatrixTooLarge { n_rows, n_cols })?;
        let mut shares = vec![0.0; len];
        for (row, &label) in shares.chunks_exact_mut(n_components).zip(labels) {
            row[label] = 1.0;
        }
        let mut origin = vec![0.0; n_features];
        for row in x.rows() {
            origin.iter_mut().zip(row).for_each(|(mean, &value)| *mean += f64::from(value));
        }
        origin.iter_mut().for_each(|mean| *mean /= n_rows as f64);
        let mut mixture = Self {
            x,
            covariance_type: options.covariance_type,
            reg_covar: options.reg_covar,
            origin,
            weights: vec![0.0; n_components],
            means: vec![0.0; n_components * n_features],
            covariances: Vec::new(),
            shares,
        };
        mixture.maximize();
        Ok(mixture)
    }

    /// Rounds until the mean log density gains little; that density.
    fn run(&mut self, options: &GaussianMixtureOptions) -> Result<(f64, Convergence), Error> {
        let mut before = f64::NEG_INFINITY;
        for iterations in 1..=options.max_iter {
            let mean_log = self.expect()?;
            self.maximize();
            let gain = mean_log - before;
            before = mean_log;
            if gain.abs() < f64::from(options.tol) {
                return Ok((mean_log, Convergence { iterations, converged: true }));
            }
        }
        Ok((before, Convergence { iterations: options.max_iter, converged: false }))
    }

    /// Writes the row of the sample relative to the origin.
    fn relative(&self, row: &[f32], out: &mut [f64]) {
        for ((out, &value), origin) in out.iter_mut().zip(row).zip(&self.origin) {
            *out = f64::from(value) - origin;
        }
    }

    /// Finds how probable it is that each component made each sample; the mean log density of the samples.
    fn expect(&mut self) -> Result<f64, Error> {
        let (n_features, n_components) = (self.x.n_cols(), self.weights.len());
        let factors = self.factors()?;
        let log_scale = 0.5 * n_features as f64 * libm::log(2.0 * core::f64::consts::PI);
        let mut shares = core::mem::take(&mut self.shares);
        let is_diagonal = self.covariance_type.is_diagonal();
        let (mut block, mut solved) = (vec![[0.0; LANES]; n_features], vec![[0.0; LANES]; n_features]);
        vectorized(
            #[inline(always)]
            || {
                let rows = self.x.as_slice().chunks(LANES * n_features);
                for (rows, shares) in rows.zip(shares.chunks_mut(LANES * n_components)) {
                    for (lane, row) in rows.chunks_exact(n_features).enumerate() {
                        for ((place, &value), origin) in block.iter_mut().zip(row).zip(&self.origin) {
                            place[lane] = f64::from(value) - origin;
                        }
                    }
                    for (idx, mean) in self.means.chunks_exact(n_features).enumerate() {
                        let factor = &factors[if factors.len() == 1 { 0 } else { idx }];
                        let norms = factor.norms(&block, mean, is_diagonal, &mut solved);
                        let places = shares.iter_mut().skip(idx).step_by(n_components);
                        places.zip(norms).for_each(|(place, norm)| *place = norm);
                    }
                }
            },
        );
        let mut sum = 0.0;
        for shares in shares.chunks_exact_mut(n_components) {
            for (idx, (share, weight)) in shares.iter_mut().zip(&self.weights).enumerate() {
                let factor = &factors[if factors.len() == 1 { 0 } else { idx }];
                *share = libm::log(*weight) - factor.half_log_det - log_scale - 0.5 * *share;
            }
            let greatest = shares.iter().fold(f64::NEG_INFINITY, |greatest, &log| greatest.max(log));
            shares.iter_mut().for_each(|share| *share -= greatest);
            sum += greatest;
        }
        exp_all(&mut shares);
        for shares in shares.chunks_exact_mut(n_components) {
            let total: f64 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            sum += libm::log(total);
        }
        self.shares = shares;
        Ok(sum / self.x.n_rows() as f64)
    }

    /// The components that make the samples most likely, given the shares.
    fn maximize(&mut self) {
        let (n_features, n_components) = (self.x.n_cols(), self.weights.len());
        let mut counts = vec![0.0; n_components];
        let mut means = vec![0.0; n_components * n_features];
        let mut sample = vec![0.0; n_features];
        for (row, shares) in self.x.rows().zip(self.shares.chunks_exact(n_components)) {
            self.relative(row, &mut sample);
            for ((count, &share), mean) in
                counts.iter_mut().zip(shares).zip(means.chunks_exact_mut(n_features))
            {
                *count += share;
                mean.iter_mut().zip(&sample).for_each(|(mean, value)| *mean += share * value);
            }
        }
        // As scikit-learn: a component without samples keeps a mean.
        counts.iter_mut().for_each(|count| *count += 10.0 * f64::EPSILON);
        for (mean, count) in means.chunks_exact_mut(n_features).zip(&counts) {
            mean.iter_mut().for_each(|mean| *mean /= count);
        }
        self.means = means;
        self.covariances = self.spreads(&counts);
        let total: f64 = counts.iter().sum();
        self.weights = counts.iter().map(|count| count / total).collect();
    }

    /// The covariances, of the kind asked for.
    fn spreads(&self, counts: &[f64]) -> Vec<Vec<f64>> {
        let n_features = self.x.n_cols();
        let is_diagonal = self.covariance_type.is_diagonal();
        let size = if is_diagonal { n_features } else { n_features * n_features };
        let is_tied = self.covariance_type == CovarianceType::Tied;
        let mut spreads = vec![vec![0.0; size]; if is_tied { 1 } else { counts.len() }];
        let (mut sample, mut apart) = (vec![0.0; n_features], vec![0.0; n_features]);
        vectorized(
            #[inline(always)]
            || {
                for (row, shares) in self.x.rows().zip(self.shares.chunks_exact(counts.len())) {
                    self.relative(row, &mut sample);
                    let components = shares.iter().zip(self.means.chunks_exact(n_features)).enumerate();
                    for (idx, (&share, mean)) in components.filter(|(_, (share, _))| **share > 0.0) {
                        for ((apart, value), mean) in apart.iter_mut().zip(&sample).zip(mean) {
                            *apart = value - mean;
                        }
                        let spread = &mut spreads[if is_tied { 0 } else { idx }];
                        if is_diagonal {
                            let places = spread.iter_mut().zip(&apart);
                            places.for_each(|(sum, apart)| *sum += share * apart * apart);
                            continue;
                        }
                        // The lower triangle.
                        for (row, sums) in spread.chunks_exact_mut(n_features).enumerate() {
                            add_scaled(&apart[..=row], share * apart[row], sums);
                        }
                    }
                }
            },
        );
        let total: f64 = counts.iter().sum();
        for (idx, spread) in spreads.iter_mut().enumerate() {
            let count = if is_tied { total } else { counts[idx] };
            spread.iter_mut().for_each(|sum| *sum /= count);
            if self.covariance_type == CovarianceType::Spherical {
                let mean = spread.iter().sum::<f64>() / n_features as f64;
                spread.fill(mean);
            }
            let step = if is_diagonal { 1 } else { n_features + 1 };
            spread.iter_mut().step_by(step).for_each(|variance| *variance += self.reg_covar);
        }
        spreads
    }

    /// The triangles of Cholesky, or deviations, of the covariances.
    fn factors(&self) -> Result<Vec<Factor>, Error> {
        let n_features = self.x.n_cols();
        checks::all(self.covariances.iter().map(|covariance| {
            let values: Vec<f64> = match self.covariance_type.is_diagonal() {
                true => {
                    checks::expect(REG_COVAR, covariance.iter().all(|&variance| variance > 0.0), TOO_FLAT)?;
                    covariance.iter().map(|&variance| libm::sqrt(variance)).collect()
                }
                false => {
                    // Only the lower triangle is read, which of a row-major matrix is the upper one by columns.
                    let matrix = DMatrix::from_row_slice(n_features, n_features, covariance);
                    let Some(cholesky) = Cholesky::new(matrix) else {
                        return Err(ErrorKind::PartInvalid { part: REG_COVAR, problem: TOO_FLAT }.into());
                    };
                    let triangle = cholesky.l_dirty();
                    let places = (0..n_features).flat_map(|row| (0..=row).map(move |col| (row, col)));
                    places.map(|place| triangle[place]).collect()
                }
            };
            let mut values = values;
            let mut half_log_det = 0.0;
            let mut place = 0;
            for idx in 0..n_features {
                half_log_det += libm::log(values[place]);
                values[place] = 1.0 / values[place];
                place += if self.covariance_type.is_diagonal() { 1 } else { idx + 2 };
            }
            Ok::<_, Error>(Factor { values, half_log_det })
        }))
    }

    /// The mixture rounded to `f32`.
    fn model(mut self, options: &GaussianMixtureOptions) -> Result<GaussianMixture, Error> {
        let (n_features, n_components) = (self.x.n_cols(), self.weights.len());
        let origins = self.origin.iter().cycle();
        let means = self.means.iter().zip(origins).map(|(mean, origin)| (mean + origin) as f32).collect();
        let covariances = (0..n_components).map(|idx| {
            let spread = self.covariances.get(idx).or(self.covariances.first()).expect("there is one");
            let places = (0..n_features).flat_map(|row| (0..n_features).map(move |col| (row, col)));
            let values = places.map(|(row, col)| match self.covariance_type.is_diagonal() {
                true if row == col => spread[row] as f32,
                true => 0.0,
                false => spread[row.max(col) * n_features + row.min(col)] as f32,
            });
            Matrix::from_vec(n_features, n_features, values.collect())
        });
        let covariances = checks::all(covariances)?;
        let means = Matrix::from_vec(n_components, n_features, means)?;
        let weights = self.weights.iter().map(|&weight| weight as f32).collect();
        let model = GaussianMixture::from_parts(self.covariance_type, means, covariances, weights).map_err(
            |error| match error.kind() {
                // Rounding took what is left of a direction.
                ErrorKind::PartInvalid { part: "covariances", .. } => {
                    ErrorKind::PartInvalid { part: REG_COVAR, problem: TOO_FLAT }.into()
                }
                _ => error,
            },
        )?;
        self.shares.clear();
        let labels = crate::model::Classifier::try_predict(&model, self.x)?;
        let mut model = model.with_training(options.max_iter, options.tol, Some(options.seed));
        model.labels = Some(labels);
        Ok(model)
    }
}

struct Factor {
    /// Rows of the lower triangle one after the other, or the deviations of a diagonal matrix; instead of what is divided
    /// by, its inverse.
    values: Vec<f64>,
    half_log_det: f64,
}

impl Factor {
    /// Squared Mahalanobis norms of some samples, one in each lane.
    #[inline(always)]
    fn norms(
        &self,
        block: &[[f64; LANES]],
        mean: &[f64],
        is_diagonal: bool,
        solved: &mut [[f64; LANES]],
    ) -> [f64; LANES] {
        let mut norms = [0.0; LANES];
        let mut rest = self.values.as_slice();
        for (idx, (values, mean)) in block.iter().zip(mean).enumerate() {
            let mut apart = values.map(|value| value - mean);
            let Some((row, after)) = rest.split_at_checked(if is_diagonal { 1 } else { idx + 1 }) else {
                break;
            };
            rest = after;
            let Some((inverse, row)) = row.split_last() else { break };
            for (factor, known) in row.iter().zip(&*solved) {
                for lane in 0..LANES {
                    apart[lane] -= factor * known[lane];
                }
            }
            for lane in 0..LANES {
                apart[lane] *= inverse;
                norms[lane] += apart[lane] * apart[lane];
            }
            solved[idx] = apart;
        }
        norms
    }
}

/// Samples whose densities are computed together.
const LANES: usize = 8;

const REG_COVAR: &str = "reg_covar";
const TOO_FLAT: &str = "a component has a direction without variance: a larger number, fewer components or diagonal \
    covariances are needed";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workers::Alone;

    const KINDS: [CovarianceType; 4] = CovarianceType::ALL;

    fn options(n_components: usize, covariance_type: CovarianceType) -> GaussianMixtureOptions {
        GaussianMixtureOptions { covariance_type, ..GaussianMixtureOptions::new(n_components) }
    }

    #[test]
    fn one_component_is_the_normal_distribution_of_the_samples() {
        let x = Matrix::from_vec(4, 2, vec![1e6, 0.0, 1e6 + 2.0, 0.0, 1e6, 2.0, 1e6 + 2.0, 4.0]).unwrap();
        for kind in KINDS {
            let (model, convergence) = fit(&Alone, &x, &options(1, kind)).unwrap();
            assert!(convergence.converged);
            assert_eq!(model.weights().unwrap(), [1.0]);
            assert_eq!(model.means().unwrap().as_slice(), [1e6 + 1.0, 1.5]);
            let expected = match kind {
                CovarianceType::Full | CovarianceType::Tied => [1.0, 0.5, 0.5, 2.75],
                CovarianceType::Diag => [1.0, 0.0, 0.0, 2.75],
                CovarianceType::Spherical => [1.875, 0.0, 0.0, 1.875],
            };
            let found = model.covariances().unwrap()[0].as_slice();
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{kind:?} {found:?}");
        }
    }

    #[test]
    fn equal_samples_and_constant_features_have_the_least_variance() {
        let x = Matrix::from_vec(5, 2, vec![3.0; 10]).unwrap();
        for kind in KINDS {
            let (model, _) = fit(&Alone, &x, &options(1, kind)).unwrap();
            assert!(model.covariances().unwrap()[0].get(0, 0).unwrap() < 2e-6, "{kind:?}");
            let none = GaussianMixtureOptions { reg_covar: 0.0, ..options(1, kind) };
            let error = fit(&Alone, &x, &none).err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::PartInvalid { part: REG_COVAR, .. }), "{error}");
        }
    }

    #[test]
    fn settings_are_refused_by_name() {
        let x = Matrix::from_vec(3, 1, vec![1.0, 2.0, 4.0]).unwrap();
        let good = GaussianMixtureOptions::new(2);
        for (options, part) in [
            (GaussianMixtureOptions { n_components: 0, ..good }, "n_components"),
            (GaussianMixtureOptions { max_iter: 0, ..good }, "max_iter"),
            (GaussianMixtureOptions { tol: f32::NAN, ..good }, "tol"),
            (GaussianMixtureOptions { reg_covar: -1.0, ..good }, "reg_covar"),
            (GaussianMixtureOptions { restarts: 0, ..good }, "restarts"),
        ] {
            let error = fit(&Alone, &x, &options).err().unwrap();
            assert!(
                matches!(error.kind(), ErrorKind::PartInvalid { part: found, .. } if *found == part),
                "{error}"
            );
        }
        assert_eq!(
            fit(&Alone, &x, &GaussianMixtureOptions::new(4)).err().unwrap().code(),
            "am-too-few-samples"
        );
        let x = Matrix::from_vec(2, 1, vec![1.0, f32::NAN]).unwrap();
        assert_eq!(fit(&Alone, &x, &good).err().unwrap().code(), "am-feature-not-finite");
    }
}
