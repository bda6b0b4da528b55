//! Fits the means and variances of the classes.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::classes::Classes;
use crate::error::Error;
use crate::matrix::Matrix;
use crate::naive_bayes::{NaiveBayes, NaiveBayesOptions, NaiveBayesParts};

pub(crate) fn fit(x: &Matrix, y: &[usize], options: &NaiveBayesOptions) -> Result<NaiveBayes, Error> {
    let smoothing = options.var_smoothing;
    checks::expect(
        "smoothing",
        smoothing.is_finite() && smoothing >= 0.0,
        "must be finite and not negative",
    )?;
    let (classes, places) = Classes::of_targets(x, y)?;
    checks::expect_finite_rows(x.as_slice(), x.n_cols())?;

    let (counts, mean, mut variance) = moments(x, &places, classes.len());
    let one_class = vec![0; x.n_rows()];
    let (_, _, overall) = moments(x, &one_class, 1);
    let added = smoothing * overall.iter().copied().fold(0.0, f64::max);
    variance.iter_mut().for_each(|value| *value += added);
    NaiveBayes::from_parts(NaiveBayesParts {
        classes: classes.labels().to_vec(),
        prior: counts.iter().map(|count| count / x.n_rows() as f64).collect(),
        mean,
        variance,
    })
}

/// Samples of each class, means and variances (over the number of samples) of its features: two passes, each sum
/// relative to what is known by then.
fn moments(x: &Matrix, places: &[u32], n_classes: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let n_features = x.n_cols();
    let mut counts = vec![0.0_f64; n_classes];
    let mut mean = vec![0.0_f64; n_classes * n_features];
    let mut variance = mean.clone();
    let span = |place: u32| place as usize * n_features..(place as usize + 1) * n_features;
    for (row, &place) in x.rows().zip(places) {
        counts[place as usize] += 1.0;
        mean[span(place)].iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    for (means, count) in mean.chunks_exact_mut(n_features).zip(&counts) {
        means.iter_mut().for_each(|sum| *sum /= count);
    }
    for (row, &place) in x.rows().zip(places) {
        let sums = variance[span(place)].iter_mut().zip(&mean[span(place)]);
        for ((sum, mean), &value) in sums.zip(row) {
            let apart = f64::from(value) - mean;
            *sum += apart * apart;
        }
    }
    for (variances, count) in variance.chunks_exact_mut(n_features).zip(&counts) {
        variances.iter_mut().for_each(|sum| *sum /= count);
    }
    (counts, mean, variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_each_class() {
        let x = Matrix::from_vec(4, 2, vec![1.0, 10.0, 5.0, 20.0, 3.0, 10.0, 9.0, 40.0]).unwrap();
        let model = NaiveBayes::fit(&x, &[4, 9, 4, 9], &NaiveBayesOptions { var_smoothing: 0.5 }).unwrap();
        assert_eq!((model.classes(), model.prior()), (&[4, 9][..], &[0.5, 0.5][..]));
        assert_eq!(model.mean(), [2.0, 10.0, 7.0, 30.0]);
        // Half of the variance of the second feature: (10, 20, 10, 40) around 20.
        assert_eq!(model.variance(), [76.0, 75.0, 79.0, 175.0]);
        // The second sample is nearer to the mean of 9, but 4 is the narrower class.
        assert_eq!(model.predict(&x), [4, 4, 4, 9]);
        let proba = model.try_predict_proba(&x).unwrap();
        assert!(proba.rows().all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6));
    }

    #[test]
    fn what_has_no_variance_is_refused() {
        let x = Matrix::from_vec(2, 1, vec![1.0, 1.0]).unwrap();
        let error = NaiveBayes::fit(&x, &[0, 1], &NaiveBayesOptions::default()).unwrap_err();
        assert_eq!(error.code(), "am-part");
        for var_smoothing in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(NaiveBayes::fit(&x, &[0, 1], &NaiveBayesOptions { var_smoothing }).is_err());
        }
        assert!(NaiveBayes::fit(&x, &[0], &NaiveBayesOptions::default()).is_err());
    }
}
