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
