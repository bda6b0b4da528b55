//! Gaussian log-densities: naive Bayes and Gaussian mixtures.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::gaussian::{by_precision_factor, by_variances};
use crate::pipeline::reals::{Reals, with_slice};
use crate::pipeline::rows::Block;
use crate::scratch::with_scratch;

/// Number of columns whose distances are kept on the stack.
const COLUMNS_ON_STACK: usize = 64;

/// Natural logarithms of weighted normal densities, one for each distribution: its peak minus half the squared
/// Mahalanobis distance from its mean. scikit-learn 1.9.1's `GaussianNB` and `GaussianMixture`.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianLogDensity {
    peak: Reals,
    means: Reals,
    spread: Covariance,
}

/// Covariances of the distributions.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Covariance {
    /// The variance of each column in each distribution, a row for each: `sum((x - mean)^2 / variance)`.
    Variances(Reals),
    /// Upper triangular factors of the precision matrices (scikit-learn's `precisions_cholesky_`), one for each
    /// distribution or one for all: `|(x - mean) F|^2`. Values below the diagonal are not read.
    PrecisionFactors(Reals),
}

impl GaussianLogDensity {
    /// The values at the means, which may be negative infinity, and a row of means for each distribution.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::EmptyMatrix`], [`ErrorKind::PartLength`], [`ErrorKind::PartNotFinite`], [`ErrorKind::PartInvalid`]
    /// for variances that are not above 0.
    pub fn new(peak: Reals, means: Reals, spread: Covariance) -> Result<Self, Error> {
        let k = peak.len();
        let width = means.len().checked_div(k).unwrap_or(0);
        checks::expect_table("means", k, width, means.len())?;
        let impossible = peak.iter().position(|value| value.is_nan() || value == f64::INFINITY);
        if let Some(idx) = impossible {
            return Err(ErrorKind::PartNotFinite { part: "peak", idx }.into());
        }
        means.expect_finite("means")?;
        match &spread {
            Covariance::Variances(variances) => {
                variances.expect_len("variances", means.len())?;
                variances.expect_finite("variances")?;
                checks::expect("variances", variances.iter().all(|value| value > 0.0), "must be above 0")?;
            }
            Covariance::PrecisionFactors(factors) => {
                let n_factors = factors.len() / width / width;
                let n_factors = if n_factors == 1 { 1 } else { k };
                let n_rows = n_factors.checked_mul(width);
                let n_rows = n_rows.ok_or(ErrorKind::MatrixTooLarge { n_rows: n_factors, n_cols: width })?;
                checks::expect_table("factors", n_rows, width, factors.len())?;
                factors.expect_finite("factors")?;
            }
        }
        Ok(Self { peak, means, spread })
    }

    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        checks::expect_table("means", self.peak.len(), width, self.means.len())?;
        Ok(self.peak.len())
    }

    pub(crate) fn run(&self, rows: &mut Block<'_>) {
        match &self.spread {
            Covariance::Variances(variances) => {
                with_slice!(variances, variances => with_slice!(&self.means, means => {
                    self.run_variances(means, variances, rows);
                }));
            }
            Covariance::PrecisionFactors(factors) => {
                with_scratch::<f64, COLUMNS_ON_STACK, _>(rows.width(), |sums| {
                    with_slice!(factors, factors => with_slice!(&self.means, means => {
                        self.run_factors(means, factors, sums, rows);
                    }));
                });
            }
        }
    }

    fn run_variances<M: Copy + Into<f64>, V: Copy + Into<f64>>(
        &self,
        means: &[M],
        variances: &[V],
        rows: &mut Block<'_>,
    ) {
        let width = rows.width().max(1);
        rows.replace_rows(self.peak.len(), |row, out| {
            let distributions = means.chunks_exact(width).zip(variances.chunks_exact(width));
            for ((place, peak), (means, variances)) in out.iter_mut().zip(self.peak.iter()).zip(distributions)
            {
                *place = peak - 0.5 * by_variances(row, means, variances);
            }
        });
    }

    fn run_factors<M: Copy + Into<f64>, F: Copy + Into<f64>>(
        &self,
        means: &[M],
        factors: &[F],
        sums: &mut [f64],
        rows: &mut Block<'_>,
    ) {
        let width = rows.width().max(1);
        // A single factor is everyone's.
        let factors = factors.chunks_exact(width * width).cycle();
        rows.replace_rows(self.peak.len(), |row, out| {
            let distributions = means.chunks_exact(width).zip(factors.clone());
            for ((place, peak), (means, factor)) in out.iter_mut().zip(self.peak.iter()).zip(distributions) {
                *place = peak - 0.5 * by_precision_factor(row, means, factor, sums);
            }
        });
    }

    /// Factors there are, if that is how it is measured.
    fn n_factors(&self, factors: &Reals) -> usize {
        let width = self.means.len() / self.peak.len();
        factors.len() / width / width
    }

    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.peak.encode(out)?;
        self.means.encode(out)?;
        match &self.spread {
            Covariance::Variances(variances) => {
                out.variant(0)?;
                variances.encode(out)
            }
            Covariance::PrecisionFactors(factors) => {
                out.variant(1)?;
                out.usize(self.n_factors(factors))?;
                factors.encode(out)
            }
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let (peak, means) = (Reals::decode(input)?, Reals::decode(input)?);
        if input.variant(2)? == 0 {
            return Ok(Self::new(peak, means, Covariance::Variances(Reals::decode(input)?))?);
        }
        let n_factors = input.usize()?;
        let factors = Reals::decode(input)?;
        let step = Self::new(peak, means, Covariance::PrecisionFactors(factors))?;
        if let Covariance::PrecisionFactors(factors) = &step.spread {
            checks::expect_len("factors", n_factors, step.n_factors(factors))?;
        }
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn run(step: &GaussianLogDensity, row: &[f64]) -> Vec<f64> {
        let mut values = [row, &[0.0; 4]].concat();
        let mut spare = vec![f64::NAN; values.len()];
        let mut block = Block::dense(1, row.len(), &mut values, &mut spare);
        step.run(&mut block);
        block.values().to_vec()
    }

    #[test]
    fn distances_are_measured_by_variances_or_factors() {
        let peak = || Reals::from(vec![0.0_f64, f64::NEG_INFINITY, 1.0]);
        let means = || Reals::from(vec![0.0_f64, 0.0, 1.0, 1.0, 2.0, 0.0]);
        let variances = vec![1.0_f64, 4.0, 1.0, 1.0, 0.1, 2.0].into();
        let step = GaussianLogDensity::new(peak(), means(), Covariance::Variances(variances)).unwrap();
        let expected = [-0.5 * (1.0 + 4.0 / 4.0), f64::NEG_INFINITY, 1.0 - 0.5 * (1.0 / 0.1 + 4.0 / 2.0)];
        assert_eq!(run(&step, &[1.0, 2.0]), expected);
        // Below the diagonal stands what must not count.
        let shared = vec![1.0_f64, 0.5, 99.0, 2.0].into();
        let step = GaussianLogDensity::new(peak(), means(), Covariance::PrecisionFactors(shared)).unwrap();
        let expected = [-0.5 * (1.0 + 4.5 * 4.5), f64::NEG_INFINITY, 1.0 - 0.5 * (1.0 + 3.5 * 3.5)];
        assert_eq!(run(&step, &[1.0, 2.0]), expected);
        let own = vec![1.0_f64, 0.5, 0.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0].into();
        let step = GaussianLogDensity::new(peak(), means(), Covariance::PrecisionFactors(own)).unwrap();
        let expected = [-0.5 * (1.0 + 4.5 * 4.5), f64::NEG_INFINITY, 1.0 - 0.5 * 4.0];
        assert_eq!(run(&step, &[1.0, 2.0]), expected);
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let code = |peak: &[f64], means: &[f64], spread| {
            GaussianLogDensity::new(peak.into(), means.into(), spread).unwrap_err().code()
        };
        let variances = |values: &[f64]| Covariance::Variances(values.into());
        let factors = |count| Covariance::PrecisionFactors(vec![1.0_f64; count].into());
        assert_eq!(code(&[], &[], variances(&[])), "am-empty-matrix");
        assert_eq!(code(&[0.0], &[], variances(&[])), "am-empty-matrix");
        assert_eq!(code(&[0.0, 0.0], &[1.0; 3], variances(&[1.0; 3])), "am-part-length");
        assert_eq!(code(&[0.0], &[1.0; 3], variances(&[1.0; 2])), "am-part-length");
        assert_eq!(code(&[0.0], &[1.0], variances(&[0.0])), "am-part");
        assert_eq!(code(&[f64::INFINITY], &[1.0], variances(&[1.0])), "am-part-not-finite");
        assert_eq!(code(&[f64::NAN], &[1.0], variances(&[1.0])), "am-part-not-finite");
        assert_eq!(code(&[0.0], &[f64::NAN], variances(&[1.0])), "am-part-not-finite");
        assert_eq!(code(&[0.0, 0.0, 0.0], &[1.0; 6], factors(8)), "am-part-length");
        assert_eq!(code(&[0.0, 0.0, 0.0], &[1.0; 6], factors(7)), "am-part-length");
        assert_eq!(code(&[0.0, 0.0, 0.0], &[1.0; 6], factors(0)), "am-part-length");
    }
}
