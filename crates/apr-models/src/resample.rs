//! Samples drawn from samples: intervals of means, and new samples between known ones.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::matrix::Matrix;
use crate::rng::Rng;

/// Means of a bootstrap.
const MAX_RESAMPLES: usize = 1000;

/// Values drawn for a bootstrap at most, unless that were fewer than [`MIN_RESAMPLES`] means.
const MAX_DRAWS: usize = 1 << 26;

const MIN_RESAMPLES: usize = 100;

/// Samples among which the nearest one is looked for.
const MAX_NEIGHBOURS: usize = 2048;

/// A 95 % interval of the mean of values: the percentiles of the means of 1,000 bootstrap samples, of fewer (at least 100) for more
/// than 67,000 values (Efron, *Bootstrap Methods: Another Look at the Jackknife*, 1979). `None` without values.
///
/// Same values and seed, same interval, on every platform.
///
/// ```
/// let (low, high) = apr_models::bootstrap_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 7).unwrap();
/// assert!(1.0 < low && low < 3.0 && 3.0 < high && high < 5.0);
/// ```
#[must_use]
pub fn bootstrap_interval(values: &[f64], seed: u64) -> Option<(f64, f64)> {
    let n_resamples = MAX_DRAWS.checked_div(values.len())?.clamp(MIN_RESAMPLES, MAX_RESAMPLES);
    let mut rng = Rng::new(seed);
    let mut means: Vec<f64> = (0..n_resamples)
        .map(|_| {
            let drawn = values.iter().filter_map(|_| values.get(rng.below(values.len())));
            drawn.sum::<f64>() / values.len() as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let outside = n_resamples / 40;
    Some((*means.get(outside)?, *means.get(n_resamples - 1 - outside)?))
}

/// New samples between those of `x` (`[n_samples, n_features]`): `count` rows, for a teacher to label. After the algorithm MUNGE of Bucilă,
/// Caruana and Niculescu-Mizil (*Model Compression*, KDD 2006): each is a drawn sample in which every feature is replaced with the probability
/// `share` by a draw from the normal distribution around the value of the nearest other sample, whose deviation is the difference of both values.
///
/// Features are numbers: between the codes of categories there is nothing. The nearest sample is the one of the least squared distance, with
/// features in units of their deviations, among 2,048 samples, which are drawn if there are more. Same arguments, same samples, on every
/// platform. Time is O(`count` · 2,048 · `n_features`).
///
/// ```
/// use apr_models::{Matrix, mixed_samples};
///
/// let x = Matrix::from_vec(3, 2, vec![0.0, 0.0, 1.0, 2.0, 9.0, 9.0])?;
/// let mixed = mixed_samples(&x, 5, 0.5, 1)?;
/// assert_eq!(mixed.shape(), (5, 2));
/// # Ok::<(), apr_models::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::FeatureNotFinite`]; [`ErrorKind::PartInvalid`] for a share that is not from 0 to 1 and for a single sample;
/// [`ErrorKind::EmptyMatrix`] and [`ErrorKind::MatrixTooLarge`] for the rows asked for.
pub fn mixed_samples(x: &Matrix, count: usize, share: f64, seed: u64) -> Result<Matrix, Error> {
    let (n_rows, n_cols) = x.shape();
    checks::expect_finite_rows(x.as_slice(), n_cols)?;
    checks::expect("share", (0.0..=1.0).contains(&share), "must be from 0 to 1")?;
    checks::expect("samples", n_rows >= 2, "at least two are needed: new ones lie between them")?;
    let too_large = ErrorKind::MatrixTooLarge { n_rows: count, n_cols };
    let mut values: Vec<f32> = Vec::new();
    let len = count.checked_mul(n_cols).filter(|&len| values.try_reserve_exact(len).is_ok());
    len.ok_or(too_large)?;

    let mut rng = Rng::new(seed);
    let mut candidates: Vec<usize> = (0..n_rows).collect();
    for place in 0..MAX_NEIGHBOURS.min(n_rows) {
        candidates.swap(place, place + rng.below(n_rows - place));
    }
    candidates.truncate(MAX_NEIGHBOURS);
    let units = units(x);
    for _ in 0..count {
        let drawn = rng.below(n_rows);
        let Some(sample) = x.row(drawn) else { continue };
        let mut nearest = (f64::INFINITY, sample);
        for other in candidates.iter().filter(|&&other| other != drawn).filter_map(|&other| x.row(other)) {
            let distance = distance(sample, other, &units, nearest.0);
            if distance < nearest.0 {
                nearest = (distance, other);
            }
        }
        for (&value, &other) in sample.iter().zip(nearest.1) {
            let mixed = (rng.unit() < share).then(|| {
                let (value, other) = (f64::from(value), f64::from(other));
                (other + (value - other).abs() * rng.normal()) as f32
            });
            // Beyond the range of 32 bits only where the values are nearly that large.
            values.push(mixed.filter(|mixed| mixed.is_finite()).unwrap_or(value));
        }
    }
    Matrix::from_vec(count, n_cols, values)
}

/// For each column 1 over its variance, 0 for a constant one.
fn units(x: &Matrix) -> Vec<f64> {
    let n_rows = x.n_rows() as f64;
    let mut means = vec![0.0; x.n_cols()];
    x.rows().for_each(|row| means.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value)));
    means.iter_mut().for_each(|sum| *sum /= n_rows);
    let mut units = vec![0.0; x.n_cols()];
    for row in x.rows() {
        let apart = row.iter().zip(&means).map(|(&value, mean)| f64::from(value) - mean);
        units.iter_mut().zip(apart).for_each(|(sum, apart)| *sum += apart * apart);
    }
    units.iter_mut().for_each(|sum| *sum = if *sum > 0.0 { n_rows / *sum } else { 0.0 });
    units
}

/// The squared distance, or a part of it that is above `bound`.
fn distance(a: &[f32], b: &[f32], units: &[f64], bound: f64) -> f64 {
    let mut sum = 0.0;
    for ((&a, &b), unit) in a.iter().zip(b).zip(units) {
        let apart = f64::from(a) - f64::from(b);
        sum += unit * apart * apart;
        if sum > bound {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_as_wide_as_the_mean_varies() {
        let mut rng = Rng::new(3);
        let values: Vec<f64> = (0..400).map(|_| 5.0 + rng.normal()).collect();
        let mean = values.iter().sum::<f64>() / 400.0;
        let (low, high) = bootstrap_interval(&values, 1).unwrap();
        // 1.96 deviations of the mean of 400 values on either side.
        assert!(
            (mean - low - 0.098).abs() < 0.02 && (high - mean - 0.098).abs() < 0.02,
            "{low} {mean} {high}"
        );
        assert_eq!(bootstrap_interval(&values, 1), bootstrap_interval(&values, 1));
        assert_eq!(bootstrap_interval(&[2.0; 9], 0), Some((2.0, 2.0)));
        assert_eq!(bootstrap_interval(&[], 0), None);
    }

    #[test]
    fn new_samples_lie_near_known_ones() {
        let mut rng = Rng::new(5);
        // Two groups far from each other, and a constant column.
        let row = |idx: usize, rng: &mut Rng| {
            [f64::from(u8::from(idx.is_multiple_of(2))) * 100.0 + rng.normal(), rng.normal(), 3.0]
        };
        let values = (0..200).flat_map(|idx| row(idx, &mut rng)).map(|value| value as f32).collect();
        let x = Matrix::from_vec(200, 3, values).unwrap();
        let mixed = mixed_samples(&x, 500, 0.5, 9).unwrap();
        assert!(mixed.rows().all(|row| row[0].abs() < 10.0 || (row[0] - 100.0).abs() < 10.0));
        assert!(mixed.rows().all(|row| row[2] == 3.0));
        let is_new = |row: &[f32]| !x.rows().any(|known| known == row);
        assert!(mixed.rows().filter(|row| is_new(row)).count() > 300);
        assert_eq!(mixed, mixed_samples(&x, 500, 0.5, 9).unwrap());
        let copies = mixed_samples(&x, 50, 0.0, 9).unwrap();
        assert!(!copies.rows().any(is_new));
    }

    #[test]
    fn what_has_nothing_between_is_refused() {
        let refused = |n_rows, values, count, share| {
            let x = Matrix::from_vec(n_rows, 1, values).unwrap();
            mixed_samples(&x, count, share, 0).unwrap_err().code()
        };
        assert_eq!(refused(1, vec![0.0], 1, 0.5), "am-part");
        assert_eq!(refused(2, vec![0.0, 1.0], 1, 1.5), "am-part");
        assert_eq!(refused(2, vec![0.0, f32::NAN], 1, 0.5), "am-feature-not-finite");
        assert_eq!(refused(2, vec![0.0, 1.0], 0, 0.5), "am-empty-matrix");
        assert_eq!(refused(2, vec![0.0, 1.0], usize::MAX, 0.5), "am-matrix-too-large");
    }
}
