//! Gaussian naive Bayes.

mod stored;
mod fit;

use alloc::vec::Vec;

use crate::checks;
use crate::classes::{Classes, largest};
use crate::error::{Error, ErrorKind};
use crate::kernels::gaussian::by_variances;
use crate::matrix::{Matrix, table};
use crate::model::{self, Classifier};
use crate::probability::{self, check_outputs};
use crate::scratch::with_scratch;

/// Number of classes whose scores are kept on the stack.
const CLASSES_ON_STACK: usize = 64;

/// Gaussian naive Bayes: a normal distribution for each feature in each class, fitted and smoothed as by
/// scikit-learn 1.9.1's `GaussianNB`.
///
/// All numbers are `f64`: the logarithms of tiny densities decide between classes.
///
/// ```
/// use apr_models::{Classifier, Matrix, NaiveBayes, NaiveBayesOptions};
///
/// let x = Matrix::from_vec(4, 1, vec![1.0, 1.2, 5.0, 5.4])?;
/// let model = NaiveBayes::fit(&x, &[3, 3, 8, 8], &NaiveBayesOptions::default())?;
/// let unseen = Matrix::from_vec(2, 1, vec![0.9, 6.0])?;
/// assert_eq!(model.predict(&unseen), [3, 8]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveBayes {
    classes: Classes,
    n_features: usize,
    prior: Vec<f64>,
    /// Tables of a row for each class.
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// For each class its score at the mean: the logarithms of the prior and of the highest density.
    peak: Vec<f64>,
}

/// Parameters of a [`NaiveBayes`]; tables have a row for each class and are row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct NaiveBayesParts {
    /// Labels, strictly increasing.
    pub classes: Vec<usize>,
    /// Probability of each class before anything is known of a sample.
    pub prior: Vec<f64>,
    /// Mean of each feature in each class.
    pub mean: Vec<f64>,
    /// Variance of each feature in each class, smoothing included.
    pub variance: Vec<f64>,
}

/// How to train a [`NaiveBayes`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NaiveBayesOptions {
    /// Share of the largest variance of a feature that is added to all variances. Default 1e-9.
    pub var_smoothing: f64,
}

impl Default for NaiveBayesOptions {
    fn default() -> Self {
        Self { var_smoothing: 1e-9 }
    }
}

impl NaiveBayes {
    /// Makes a model of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] for lists that do not fit together, [`ErrorKind::PartNotFinite`],
    /// [`ErrorKind::PartInvalid`] for labels that do not increase, priors outside 0 to 1, variances that are not above
    /// 0.
    pub fn from_parts(parts: NaiveBayesParts) -> Result<Self, Error> {
        let NaiveBayesParts { classes, prior, mean, variance } = parts;
        let classes = Classes::from_labels(classes, 1)?;
        let n_features = mean.len() / classes.len();
        checks::expect_table("mean", classes.len(), n_features, mean.len())?;
        checks::expect_len("variance", mean.len(), variance.len())?;
        checks::expect_len("prior", classes.len(), prior.len())?;
        checks::expect_finite("mean", &mean)?;
        checks::expect_finite("variance", &variance)?;
        checks::expect("variance", variance.iter().all(|&value| value > 0.0), "must be above 0")?;
        let possible = prior.iter().all(|&value| value > 0.0 && value <= 1.0);
        checks::expect("prior", possible, "must be above 0 and at most 1")?;
        let peak = prior.iter().zip(variance.chunks_exact(n_features)).map(|(&prior, variances)| {
            let widths = variances.iter().map(|variance| libm::log(core::f64::consts::TAU * variance));
            libm::log(prior) - 0.5 * widths.sum::<f64>()
        });
        let peak = peak.collect();
        Ok(Self { classes, n_features, prior, mean, variance, peak })
    }

    /// Learns from samples and their labels; any labels, each that occurs is a class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::PartInvalid`] for a smoothing that is
    /// negative or not finite, and if a variance is 0 although smoothed: all features are constant, or nothing was
    /// added.
    pub fn fit(x: &Matrix, y: &[usize], options: &NaiveBayesOptions) -> Result<Self, Error> {
        fit::fit(x, y, options)
    }

    /// Returns the parts.
    #[must_use]
    pub fn to_parts(&self) -> NaiveBayesParts {
        NaiveBayesParts {
            classes: self.classes.labels().to_vec(),
            prior: self.prior.clone(),
            mean: self.mean.clone(),
            variance: self.variance.clone(),
        }
    }

    /// Labels, strictly increasing.
    #[must_use]
    pub const fn classes(&self) -> &[usize] {
        self.classes.labels()
    }

    /// Probability of each class before anything is known of a sample.
    #[must_use]
    pub const fn prior(&self) -> &[f64] {
        self.prior.as_slice()
    }

    /// Mean of each feature in each class, a row for each class.
    #[must_use]
    pub const fn mean(&self) -> &[f64] {
        self.mean.as_slice()
    }

    /// Variance of each feature in each class, a row for each class.
    #[must_use]
    pub const fn variance(&self) -> &[f64] {
        self.variance.as_slice()
    }

    /// The logarithm of each class's joint density with a sample at its means.
    pub(crate) const fn peak(&self) -> &[f64] {
        self.peak.as_slice()
    }

    /// The logarithm of each class's joint density with the sample `row`: a value for each class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::OutputLength`].
    pub fn joint_log_likelihood_into(&self, row: &[f32], out: &mut [f64]) -> Result<(), Error> {
        model::check_rows(row, 1, self.n_features)?;
        if out.len() != self.classes.len() {
            return Err(ErrorKind::OutputLength { needed: self.classes.len(), given: out.len() }.into());
        }
        out.iter_mut().zip(self.scores(row)).for_each(|(place, score)| *place = score);
        Ok(())
    }

    /// The probability of each class for each row of `rows` (`[n_samples, n_features]`, row-major) into `out`
    /// (`[n_samples, n_classes]`, row-major). Allocates nothing for up to 64 classes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if the lengths do not
    /// fit each other and the model.
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let n_classes = self.classes.len();
        check_outputs(rows, out.len(), self.n_features, n_classes)?;
        with_scratch::<f64, CLASSES_ON_STACK, _>(n_classes, |scores| {
            for (row, out) in rows.chunks_exact(self.n_features).zip(out.chunks_exact_mut(n_classes)) {
                scores.iter_mut().zip(self.scores(row)).for_each(|(place, score)| *place = score);
                probability::softmax(scores, out);
            }
        });
        Ok(())
    }

    /// The probability of each class for each sample: a row for each sample, a column for each class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`].
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        table(x, self.classes.len(), |rows, out| self.predict_proba_into(rows, out))
    }

    fn scores(&self, row: &[f32]) -> impl Iterator<Item = f64> {
        let classes =
            self.mean.chunks_exact(self.n_features).zip(self.variance.chunks_exact(self.n_features));
        self.peak
            .iter()
            .zip(classes)
            .map(move |(peak, (means, variances))| peak - 0.5 * by_variances(row, means, variances))
    }
}

/// Of classes that are equally likely the one of the smallest label is predicted.
impl Classifier for NaiveBayes {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        model::check_rows(rows, out.len(), self.n_features)?;
        for (row, place) in rows.chunks_exact(self.n_features).zip(out) {
            *place = self.classes.label(largest(self.scores(row)));
        }
        Ok(())
    }
}
