//! Fits the components.

use alloc::vec;
use alloc::vec::Vec;

use nalgebra::{DMatrix, SymmetricEigen};

use crate::checks;
use crate::classes::largest;
use crate::error::{Error, ErrorKind};
use crate::kernels::products::SumOrder;
use crate::matrix::Matrix;
use crate::pca::{Pca, PcaOptions, PcaParts};

/// A component whose standard deviation is below this fraction of the largest one is rounding error.
const LEAST_LENGTH: f64 = 1e-7;

/// Directions (one after the other) and variances, by falling variance.
struct Directions {
    components: Vec<f64>,
    variances: Vec<f64>,
}

pub(crate) fn fit(x: &Matrix, options: &PcaOptions) -> Result<Pca, Error> {
    let (n_rows, n_features) = x.shape();
    let n_components = options.n_components;
    if n_rows < 2 {
        return Err(ErrorKind::TooFewSamples { needed: 2, given: n_rows }.into());
    }
    let possible = (1..=n_rows.min(n_features)).contains(&n_components);
    checks::expect("number of components", possible, "must be 1 to the number of samples and of features")?;
    checks::expect_finite_rows(x.as_slice(), n_features)?;

    let mean = means(x);
    let freedom = (n_rows - 1) as f64;
    let directions = match n_rows >= n_features {
        true => from_covariance(x, &mean, freedom),
        false => from_samples(x, &mean, freedom),
    };
    let Directions { mut components, variances } = directions.ok_or(ErrorKind::PartInvalid {
        part: "samples",
        problem: "their covariances have no eigenvectors this machine could find: scale the features",
    })?;
    let total = total_variance(x, &mean) / freedom;
    components.truncate(n_components * n_features);
    for direction in components.chunks_exact_mut(n_features) {
        point_forward(direction);
    }
    let kept = variances.iter().take(n_components);
    let ratio = |&variance: &f64| if total > 0.0 { (variance / total) as f32 } else { 0.0 };
    Pca::from_parts(PcaParts {
        mean: mean.iter().map(|&mean| mean as f32).collect(),
        components: Matrix::from_vec(
            n_components,
            n_features,
            components.iter().map(|&value| value as f32).collect(),
        )?,
        explained_variance: kept.clone().map(|&variance| variance as f32).collect(),
        explained_variance_ratio: kept.map(ratio).collect(),
        scaling: options.scaling,
    })
}

/// Mean of each column: relative to the first row, so that a large offset costs no digits.
fn means(x: &Matrix) -> Vec<f64> {
    let origin: Vec<f64> = x.rows().next().into_iter().flatten().copied().map(f64::from).collect();
    let mut sums = vec![0.0; x.n_cols()];
    for row in x.rows() {
        for ((sum, &value), origin) in sums.iter_mut().zip(row).zip(&origin) {
            *sum += f64::from(value) - origin;
        }
    }
    sums.iter().zip(&origin).map(|(sum, origin)| origin + sum / x.n_rows() as f64).collect()
}

fn centred<'x>(x: &'x Matrix, mean: &'x [f64]) -> impl Iterator<Item = impl Iterator<Item = f64> + 'x> + 'x {
    x.rows().map(move |row| row.iter().zip(mean).map(|(&value, mean)| f64::from(value) - mean))
}

/// Sum of the squares of all centred values.
fn total_variance(x: &Matrix, mean: &[f64]) -> f64 {
    centred(x, mean).flatten().map(|value| value * value).sum()
}

fn from_covariance(x: &Matrix, mean: &[f64], freedom: f64) -> Option<Directions> {
    let n_features = x.n_cols();
    let mut sums = vec![0.0; n_features * n_features];
    let mut sample = vec![0.0; n_features];
    for row in centred(x, mean) {
        sample.iter_mut().zip(row).for_each(|(place, value)| *place = value);
        for (first, &factor) in sample.iter().enumerate() {
            // The lower triangle suffices, here the upper one of a table stored by columns.
            let line = sums.get_mut(first * n_features + first..(first + 1) * n_features)?;
            for (sum, value) in line.iter_mut().zip(sample.get(first..)?) {
                *sum += factor * value;
            }
        }
    }
    sums.iter_mut().for_each(|sum| *sum /= freedom);
    let covariance = DMatrix::from_vec(n_features, n_features, sums);
    let (variances, vectors) = eigen(covariance)?;
    Some(Directions { components: vectors.concat(), variances })
}

/// From the products of the samples with each other, whose eigenvectors say how much of each sample goes into a direction.
fn from_samples(x: &Matrix, mean: &[f64], freedom: f64) -> Option<Directions> {
    let (n_rows, n_features) = x.shape();
    let samples: Vec<f64> = centred(x, mean).flatten().collect();
    let rows = || samples.chunks_exact(n_features);
    let products = rows().flat_map(|a| rows().map(move |b| SumOrder::InOrder.dot(a, b)));
    let products = DMatrix::from_iterator(n_rows, n_rows, products);
    let (variances, shares) = eigen(products)?;

    let least = LEAST_LENGTH * libm::sqrt(variances.first().copied().unwrap_or(0.0));
    let mut components: Vec<f64> = Vec::with_capacity(samples.len());
    for share in &shares {
        let mut direction = vec![0.0; n_features];
        for (row, factor) in rows().zip(share) {
            direction.iter_mut().zip(row).for_each(|(sum, value)| *sum += factor * value);
        }
        let length = libm::sqrt(SumOrder::InOrder.dot(&direction, &direction));
        direction.iter_mut().for_each(|value| *value /= length);
        // Without variance along it, every direction at a right angle to the others will do.
        if length <= least || !make_orthonormal(&mut direction, &components) {
            direction = unit_beside(&components, n_features);
        }
        components.extend(direction);
    }
    Some(Directions { components, variances: variances.iter().map(|sum| sum / freedom).collect() })
}

/// Eigenvalues of a symmetric table by falling value, none below 0, and their vectors.
fn eigen(table: DMatrix<f64>) -> Option<(Vec<f64>, Vec<Vec<f64>>)> {
    let rank = table.nrows();
    let eigen = SymmetricEigen::try_new(table, f64::EPSILON, 1000 + 100 * rank)?;
    let mut order: Vec<usize> = (0..rank).collect();
    // Stable: of equal values the first found comes first.
    order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
    let values = order.iter().map(|&idx| eigen.eigenvalues[idx].max(0.0)).collect();
    let vectors = order.iter().map(|&idx| eigen.eigenvectors.column(idx).iter().copied().collect());
    Some((values, vectors.collect()))
}

/// Makes a direction orthogonal to the ones before it and normalizes it; `false` if little is left.
fn make_orthonormal(direction: &mut [f64], before: &[f64]) -> bool {
    // Once more, because the first pass leaves rounding errors of what it removes.
    for _ in 0..2 {
        for other in before.chunks_exact(direction.len()) {
            let along = SumOrder::InOrder.dot(direction, other);
            direction.iter_mut().zip(other).for_each(|(value, other)| *value -= along * other);
        }
    }
    let length = libm::sqrt(SumOrder::InOrder.dot(direction, direction));
    direction.iter_mut().for_each(|value| *value /= length);
    length > 0.5
}

/// The axis farthest from the directions before it, made orthonormal to them.
fn unit_beside(before: &[f64], n_features: usize) -> Vec<f64> {
    let mut covered = vec![0.0; n_features];
    for other in before.chunks_exact(n_features) {
        covered.iter_mut().zip(other).for_each(|(sum, value)| *sum += value * value);
    }
    let freest = largest(covered.iter().map(|sum| -sum));
    let mut direction: Vec<f64> = (0..n_features).map(|idx| f64::from(u8::from(idx == freest))).collect();
    make_orthonormal(&mut direction, before);
    direction
}

/// Makes the component of the largest magnitude, the first of equal ones, positive.
fn point_forward(direction: &mut [f64]) {
    let mut largest = 0.0_f64;
    for &value in direction.iter() {
        if value.abs() > largest.abs() {
            largest = value;
        }
    }
    if largest < 0.0 {
        direction.iter_mut().for_each(|value| *value = -*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn random(n_rows: usize, n_cols: usize, seed: u64) -> Matrix {
        let mut rng = Rng::new(seed);
        let values = (0..n_rows * n_cols).map(|idx| (rng.normal() * (1 + idx % n_cols) as f64) as f32);
        Matrix::from_vec(n_rows, n_cols, values.collect()).unwrap()
    }

    #[test]
    fn directions_are_orthonormal_and_give_the_samples_back() {
        for (n_rows, n_cols) in [(40, 6), (6, 6), (5, 12), (2, 3), (2, 1), (3, 30)] {
            let x = random(n_rows, n_cols, 3);
            let n_components = n_rows.min(n_cols);
            let pca = Pca::fit(&x, &PcaOptions::new(n_components)).unwrap();
            for (idx, a) in pca.components().rows().enumerate() {
                for (other, b) in pca.components().rows().enumerate() {
                    let product = crate::kernels::products::dot(a, b);
                    let expected = if idx == other { 1.0 } else { 0.0 };
                    assert!((product - expected).abs() < 1e-6, "{n_rows}x{n_cols}: {product}");
                }
            }
            let variances = pca.explained_variance();
            assert!(variances.is_sorted_by(|a, b| a >= b), "{variances:?}");
            let ratio: f32 = pca.explained_variance_ratio().iter().sum();
            assert!((ratio - 1.0).abs() < 1e-5, "{ratio}");
            let back = pca.inverse_transform(&pca.transform(&x)).unwrap();
            for (a, b) in back.as_slice().iter().zip(x.as_slice()) {
                assert!((a - b).abs() < 1e-4, "{n_rows}x{n_cols}: {a} {b}");
            }
        }
    }

    #[test]
    fn both_ways_find_the_same_directions() {
        let x = random(9, 9, 5);
        let mean = means(&x);
        let (a, b) = (from_covariance(&x, &mean, 8.0).unwrap(), from_samples(&x, &mean, 8.0).unwrap());
        for (mut a, mut b) in
            a.components.chunks(9).zip(b.components.chunks(9)).take(8).map(|(a, b)| (a.to_vec(), b.to_vec()))
        {
            point_forward(&mut a);
            point_forward(&mut b);
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
        }
        assert!(a.variances.iter().zip(&b.variances).all(|(a, b)| (a - b).abs() < 1e-9));
    }

    #[test]
    fn whitened_projections_have_unit_variance() {
        let x = random(50, 4, 8);
        let pca = Pca::fit(&x, &PcaOptions { n_components: 4, scaling: super::super::PcaScaling::Whiten });
        let pca = pca.unwrap();
        let z = pca.transform(&x);
        for component in 0..4 {
            let squares: f32 = z.rows().map(|row| row[component] * row[component]).sum();
            assert!((squares / 49.0 - 1.0).abs() < 1e-4, "{squares}");
        }
        let back = pca.inverse_transform(&z).unwrap();
        assert!(back.as_slice().iter().zip(x.as_slice()).all(|(a, b)| (a - b).abs() < 1e-4));
    }

    #[test]
    fn constant_samples_have_no_variance() {
        let x = Matrix::from_vec(3, 2, vec![5.0; 6]).unwrap();
        let pca = Pca::fit(&x, &PcaOptions::new(2)).unwrap();
        assert_eq!(pca.explained_variance(), [0.0, 0.0]);
        assert_eq!(pca.explained_variance_ratio(), [0.0, 0.0]);
        assert!(pca.transform(&x).as_slice().iter().all(|&value| value == 0.0));
    }

    #[test]
    fn impossible_requests_are_refused() {
        let x = random(3, 2, 1);
        for n_components in [0, 3] {
            assert_eq!(Pca::fit(&x, &PcaOptions::new(n_components)).unwrap_err().code(), "am-part");
        }
        let one = Matrix::from_vec(1, 2, vec![1.0, 2.0]).unwrap();
        assert_eq!(Pca::fit(&one, &PcaOptions::new(1)).unwrap_err().code(), "am-too-few-samples");
        let broken = Matrix::from_vec(2, 1, vec![1.0, f32::NAN]).unwrap();
        assert_eq!(Pca::fit(&broken, &PcaOptions::new(1)).unwrap_err().code(), "am-feature-not-finite");
    }
}
