//! Metrics: how well predictions agree with what was expected.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};

/// What a classifier says of samples besides their classes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum ClassScores<'s> {
    /// Nothing.
    #[default]
    None,
    /// The probability of each class, row-major: `[n_samples, n_classes]`.
    Probabilities(&'s [f64]),
    /// A decision value of two classes, greater for the second one: `[n_samples]`.
    Decisions(&'s [f64]),
}

/// Metrics of a classifier, collected batch by batch.
///
/// ```
/// use apr_models::{ClassScores, ClassificationScorer};
///
/// let mut scorer = ClassificationScorer::new(2);
/// scorer.add(&[0, 1, 1, 0], &[0, 1, 0, 0], ClassScores::Decisions(&[-2.0, 1.5, -0.5, -1.0]))?;
/// let metrics = scorer.metrics();
/// assert_eq!((metrics.accuracy, metrics.roc_auc, metrics.log_loss), (0.75, Some(1.0), None));
/// assert_eq!((metrics.classes[1].precision, metrics.classes[1].recall), (1.0, 0.5));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClassificationScorer {
    n_classes: usize,
    /// `[expected, found]`, row-major.
    confusion: Vec<u64>,
    expected: Vec<u32>,
    log_loss: f64,
    given: Given,
    /// Of the ROC curves: `[n_samples]` for two classes, else `[n_samples, n_classes]`.
    scores: Vec<f64>,
}

/// Which scores came with the batches so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    NoBatch,
    Nothing,
    Probabilities,
    Decisions,
}

/// Metrics of a classifier; the definitions are those of scikit-learn's functions of the same names.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClassificationMetrics {
    /// Number of samples.
    pub n_samples: usize,
    /// Fraction of samples whose class was found.
    pub accuracy: f64,
    /// Mean of the F1 scores of the classes that are expected or found in some sample.
    pub f1_macro: f64,
    /// Mean negative logarithm of the probability given to the expected class, at least 2^-52 and at most 1 - 2^-52; `None` without
    /// probabilities.
    pub log_loss: Option<f64>,
    /// Area under the ROC curve; for more than two classes the mean of those of each class against the others. `None` without
    /// scores, or if a class has no samples.
    pub roc_auc: Option<f64>,
    /// Of each class.
    pub classes: Vec<ClassMetrics>,
    /// Number of samples by expected and found class, row-major: `[n_classes, n_classes]`.
    pub confusion: Vec<u64>,
}

/// Metrics of one class. Where a denominator is 0, so is the metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ClassMetrics {
    /// Samples of the class.
    pub n_samples: u64,
    /// Fraction of the samples found to be of the class that are of it.
    pub precision: f64,
    /// Fraction of the samples of the class that were found to be of it.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
}

impl ClassificationScorer {
    /// A scorer without samples, for classes `0..n_classes`.
    #[must_use]
    pub fn new(n_classes: usize) -> Self {
        Self {
            n_classes,
            confusion: vec![0; n_classes * n_classes],
            expected: Vec::new(),
            log_loss: 0.0,
            given: Given::NoBatch,
            scores: Vec::new(),
        }
    }

    /// Adds samples: their expected classes, those found, and the scores that every batch comes with: `[n_samples]` each.
    ///
    /// Scores are kept for the ROC curves: 8 bytes a sample for two classes, for more 8 bytes a sample and class.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`] if the lengths differ; [`ErrorKind::Label`] for a class that is not less than the number of classes;
    /// [`ErrorKind::OutputLength`] for scores that do not fit the samples. Nothing is added then.
    pub fn add(&mut self, expected: &[usize], found: &[usize], scores: ClassScores<'_>) -> Result<(), Error> {
        let (n_samples, n_classes) = (expected.len(), self.n_classes);
        if found.len() != n_samples {
            return Err(ErrorKind::TargetLength { n_rows: found.len(), given: n_samples }.into());
        }
        let unknown = |(&expected, &found): (&usize, &usize)| expected.max(found) >= n_classes;
        if let Some(row) = expected.iter().zip(found).position(unknown) {
            return Err(ErrorKind::Label { row, problem: "it is not among the classes" }.into());
        }
        let (given, values, width) = match scores {
            ClassScores::None => (Given::Nothing, &[][..], 0),
            ClassScores::Probabilities(values) => (Given::Probabilities, values, n_classes),
            ClassScores::Decisions(values) => (Given::Decisions, values, 1),
        };
        if values.len() != n_samples * width {
            return Err(ErrorKind::OutputLength { needed: n_samples * width, given: values.len() }.into());
        }
        let is_first = self.given == Given::NoBatch;
        self.given = if is_first || self.given == given { given } else { Given::Nothing };

        for (&expected, &found) in expected.iter().zip(found) {
            if let Some(count) = self.confusion.get_mut(expected * n_classes + found) {
                *count += 1;
            }
            self.expected.push(expected as u32);
        }
        match self.given {
            Given::NoBatch | Given::Nothing => self.scores.clear(),
            Given::Decisions => self.scores.extend(values),
            Given::Probabilities => {
                for (row, &expected) in values.chunks_exact(n_classes.max(1)).zip(expected) {
                    let probability = row.get(expected).copied().unwrap_or_default();
                    self.log_loss -= libm::log(probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON));
                    match row {
                        &[_, second] => self.scores.push(second),
                        row => self.scores.extend(row),
                    }
                }
            }
        }
        Ok(())
    }

    /// The metrics of the samples so far.
    #[must_use]
    pub fn metrics(&self) -> ClassificationMetrics {
        let (n_samples, n_classes) = (self.expected.len(), self.n_classes);
        let count = |expected: usize, found: usize| -> u64 {
            self.confusion.get(expected * n_classes + found).copied().unwrap_or_default()
        };
        // A class that is neither expected nor found has no score, and does not lower the mean.
        let mut n_occurring = 0_usize;
        let class = |class: usize| {
            let right = count(class, class);
            let of_it: u64 = (0..n_classes).map(|found| count(class, found)).sum();
            let as_it: u64 = (0..n_classes).map(|expected| count(expected, class)).sum();
            n_occurring += usize::from(of_it + as_it > 0);
            ClassMetrics {
                n_samples: of_it,
                precision: share(right, as_it),
                recall: share(right, of_it),
                f1: share(2 * right, of_it + as_it),
            }
        };
        let classes: Vec<ClassMetrics> = (0..n_classes).map(class).collect();
        let right = (0..n_classes).map(|class| count(class, class)).sum();
        let has_losses = self.given == Given::Probabilities && n_samples > 0;
        ClassificationMetrics {
            n_samples,
            accuracy: share(right, n_samples as u64),
            f1_macro: classes.iter().map(|class| class.f1).sum::<f64>() / n_occurring.max(1) as f64,
            log_loss: has_losses.then(|| self.log_loss / n_samples as f64),
            roc_auc: self.roc_auc(),
            classes,
            confusion: self.confusion.clone(),
        }
    }

    fn roc_auc(&self) -> Option<f64> {
        let n_curves = match (self.given, self.n_classes) {
            (Given::Probabilities | Given::Decisions, 2) => 1,
            (Given::Probabilities, n_classes) => n_classes,
            _ => return None,
        };
        let mut sum = 0.0;
        for curve in 0..n_curves {
            let positive = if n_curves == 1 { 1 } else { curve as u32 };
            let scores = self.scores.iter().skip(curve).step_by(n_curves);
            let ranked = scores.zip(&self.expected).map(|(&score, &class)| (score, class == positive));
            sum += area_under_curve(ranked.collect())?;
        }
        Some(sum / n_curves as f64)
    }
}

/// `part / whole`, or 0.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The probability that a positive sample scores more than a negative one, half of it for equal scores (Mann and Whitney, Annals of
/// Mathematical Statistics 18, 1947); `None` if one of both is missing, or a score is not a number.
fn area_under_curve(mut ranked: Vec<(f64, bool)>) -> Option<f64> {
    if ranked.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    ranked.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    let (mut n_positive, mut n_negative) = (0_u64, 0_u64);
    // Twice the number of pairs in order, so that it is whole.
    let mut in_order = 0_u128;
    for equal in ranked.chunk_by(|(a, _), (b, _)| a == b) {
        let positive = equal.iter().filter(|(_, is_positive)| *is_positive).count() as u64;
        let negative = equal.len() as u64 - positive;
        in_order += u128::from(positive) * u128::from(2 * n_negative + negative);
        n_positive += positive;
        n_negative += negative;
    }
    let pairs = u128::from(n_positive) * u128::from(n_negative);
    (pairs > 0).then(|| in_order as f64 / (2 * pairs) as f64)
}

/// Metrics of predicted values, collected batch by batch.
///
/// ```
/// use apr_models::RegressionScorer;
///
/// let mut scorer = RegressionScorer::default();
/// scorer.add(&[3.0, -0.5, 2.0, 7.0], &[2.5, 0.0, 2.0, 8.0])?;
/// let metrics = scorer.metrics();
/// assert_eq!((metrics.mae, metrics.mse), (0.5, 0.375));
/// assert!(metrics.r2.is_some_and(|r2| (r2 - 0.948_608_137).abs() < 1e-9));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RegressionScorer {
    n_samples: usize,
    /// The first expected value: others are taken relative to it, so that a large offset costs no digits.
    origin: f64,
    mean: f64,
    /// Sum of squared differences from the mean.
    spread: f64,
    squared: f64,
    absolute: f64,
}

/// Metrics of predicted values; the definitions are those of scikit-learn.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct RegressionMetrics {
    /// Number of samples.
    pub n_samples: usize,
    /// Coefficient of determination: 1 for perfect predictions, 0 for those no better than the mean; `None` if all expected values
    /// are equal.
    pub r2: Option<f64>,
    /// Mean squared error.
    pub mse: f64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
}

impl RegressionScorer {
    /// Adds samples: `[n_samples]` each.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`] if the lengths differ.
    pub fn add(&mut self, expected: &[f64], found: &[f64]) -> Result<(), Error> {
        if expected.len() != found.len() {
            return Err(ErrorKind::TargetLength { n_rows: found.len(), given: expected.len() }.into());
        }
        for (&expected, &found) in expected.iter().zip(found) {
            if self.n_samples == 0 {
                self.origin = expected;
            }
            self.n_samples += 1;
            // Welford, Technometrics 4, 1962.
            let value = expected - self.origin;
            let before = value - self.mean;
            self.mean += before / self.n_samples as f64;
            self.spread += before * (value - self.mean);
            let miss = found - expected;
            self.squared += miss * miss;
            self.absolute += miss.abs();
        }
        Ok(())
    }

    /// The metrics of the samples so far.
    #[must_use]
    pub fn metrics(&self) -> RegressionMetrics {
        let count = self.n_samples.max(1) as f64;
        let mse = self.squared / count;
        RegressionMetrics {
            n_samples: self.n_samples,
            r2: (self.spread > 0.0).then(|| 1.0 - self.squared / self.spread),
            mse,
            rmse: libm::sqrt(mse),
            mae: self.absolute / count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-14 * expected.abs().max(1.0))
    }

    /// Expected values by scikit-learn 1.9.1.
    #[test]
    fn metrics_of_three_classes_equal_scikit_learns() {
        let (expected, found) = ([0, 1, 2, 2, 1, 0, 1, 2], [0, 2, 2, 2, 1, 1, 1, 0]);
        #[rustfmt::skip]
        let probabilities = [
            0.7, 0.2, 0.1,  0.1, 0.4, 0.5,  0.2, 0.2, 0.6,  0.0, 0.0, 1.0,
            0.25, 0.5, 0.25,  0.25, 0.5, 0.25,  0.125, 0.75, 0.125,  0.5, 0.25, 0.25,
        ];
        let mut scorer = ClassificationScorer::new(3);
        // In two batches.
        scorer.add(&expected[..3], &found[..3], ClassScores::Probabilities(&probabilities[..9])).unwrap();
        scorer.add(&expected[3..], &found[3..], ClassScores::Probabilities(&probabilities[9..])).unwrap();
        let metrics = scorer.metrics();
        assert_eq!((metrics.n_samples, metrics.accuracy), (8, 0.625));
        assert_eq!(metrics.confusion, [1, 1, 0, 0, 2, 1, 1, 0, 2]);
        assert!(close(Some(metrics.f1_macro), 0.611_111_111_111_111));
        assert!(close(metrics.log_loss, 0.692_151_159_353_798_2));
        assert!(close(metrics.roc_auc, 0.880_555_555_555_555_5));
        for (class, value) in metrics.classes.iter().zip([0.5, 2.0 / 3.0, 2.0 / 3.0]) {
            assert_eq!((class.precision, class.recall, class.f1), (value, value, value));
        }
    }

    /// `f1_score(average="macro")` takes the labels that occur.
    #[test]
    fn classes_that_do_not_occur_do_not_lower_the_mean() {
        let mut scorer = ClassificationScorer::new(5);
        scorer.add(&[0, 1, 3, 1], &[0, 1, 1, 1], ClassScores::None).unwrap();
        assert!(close(Some(scorer.metrics().f1_macro), 0.6));
        assert_eq!(ClassificationScorer::new(2).metrics().f1_macro, 0.0);
    }

    #[test]
    fn metrics_of_two_classes_equal_scikit_learns() {
        let (expected, found) = ([0, 1, 1, 0, 1], [0, 1, 0, 1, 1]);
        let mut scorer = ClassificationScorer::new(2);
        scorer.add(&expected, &found, ClassScores::Decisions(&[-1.0, 0.5, 0.5, 0.5, 2.0])).unwrap();
        let metrics = scorer.metrics();
        assert!(close(metrics.roc_auc, 0.833_333_333_333_333_3) && metrics.log_loss.is_none());

        // Certainty that is wrong has a finite loss.
        let mut scorer = ClassificationScorer::new(2);
        let probabilities = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.5, 0.5, 0.25, 0.75];
        scorer.add(&expected, &found, ClassScores::Probabilities(&probabilities)).unwrap();
        let metrics = scorer.metrics();
        assert!(close(metrics.log_loss, 7.404_896_528_425_776) && close(metrics.roc_auc, 0.75));
    }

    #[test]
    fn what_is_undefined_is_absent() {
        let mut scorer = ClassificationScorer::new(2);
        assert_eq!((scorer.metrics().accuracy, scorer.metrics().roc_auc), (0.0, None));
        scorer.add(&[1, 1], &[1, 0], ClassScores::Decisions(&[1.0, 0.0])).unwrap();
        assert_eq!(scorer.metrics().roc_auc, None, "one class alone");
        scorer.add(&[0], &[0], ClassScores::Decisions(&[f64::NAN])).unwrap();
        assert_eq!(scorer.metrics().roc_auc, None, "a score that is no number");
        scorer.add(&[0], &[0], ClassScores::None).unwrap();
        let metrics = scorer.metrics();
        assert_eq!((metrics.n_samples, metrics.accuracy, metrics.roc_auc), (4, 0.75, None));

        let mut scorer = RegressionScorer::default();
        scorer.add(&[1e9, 1e9], &[1e9, 1e9 + 2.0]).unwrap();
        let metrics = scorer.metrics();
        assert_eq!((metrics.r2, metrics.mae, metrics.mse), (None, 1.0, 2.0));
    }

    #[test]
    fn what_does_not_fit_is_refused_and_not_added() {
        let mut scorer = ClassificationScorer::new(2);
        for (expected, found, scores) in [
            (&[0, 1][..], &[0][..], ClassScores::None),
            (&[2], &[0], ClassScores::None),
            (&[0], &[2], ClassScores::None),
            (&[0], &[0], ClassScores::Probabilities(&[1.0])),
            (&[0], &[0], ClassScores::Decisions(&[])),
        ] {
            scorer.add(expected, found, scores).unwrap_err();
        }
        assert_eq!(scorer.metrics().n_samples, 0);
        RegressionScorer::default().add(&[1.0], &[]).unwrap_err();
    }
}
