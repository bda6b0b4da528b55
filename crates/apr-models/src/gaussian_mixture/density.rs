//! Log densities of normal distributions.

use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;
use crate::kernels::gaussian::{by_covariance_triangle, by_deviations};
use crate::matrix::Matrix;

/// Least variance.
const LEAST_VARIANCE: f64 = 1e-6;

pub(super) struct Densities<'m> {
    means: &'m Matrix,
    components: Vec<Component>,
    /// A sample relative to a mean, then as a combination of a triangle's columns.
    relative: Vec<f64>,
}

struct Component {
    /// The lower triangle whose product with its transpose is the covariance matrix, row by row; for a diagonal matrix
    /// only the diagonal.
    triangle: Vec<f64>,
    /// Logarithm of the weight and of the density at the mean.
    log_peak: f64,
}

impl<'m> Densities<'m> {
    /// The shapes fit each other.
    pub(super) fn new(
        means: &'m Matrix,
        covariances: &[Matrix],
        weights: &[f32],
        is_diagonal: bool,
    ) -> Result<Self, Error> {
        let n_features = means.n_cols();
        let components = covariances.iter().zip(weights).map(|(covariance, &weight)| {
            let (triangle, half_log_det) = match is_diagonal {
                true => diagonal(covariance),
                false => triangle(covariance)?,
            };
            let log_scale = 0.5 * n_features as f64 * libm::log(2.0 * core::f64::consts::PI);
            Ok::<_, Error>(Component {
                triangle,
                log_peak: libm::log(weight.into()) - half_log_det - log_scale,
            })
        });
        Ok(Self { means, components: checks::all(components)?, relative: vec![0.0; n_features] })
    }

    pub(super) fn n_features(&self) -> usize {
        self.means.n_cols()
    }

    /// For each component the logarithm of weight times density at its mean, and Cholesky's triangle of its covariances, row by row,
    /// or its deviations.
    pub(super) fn components(self) -> impl Iterator<Item = (f64, Vec<f64>)> {
        self.components.into_iter().map(|component| (component.log_peak, component.triangle))
    }

    /// The logarithm of weight times density of each component at the sample.
    pub(super) fn logs(&mut self, row: &[f32], logs: &mut [f64]) {
        for ((log, component), mean) in logs.iter_mut().zip(&self.components).zip(self.means.rows()) {
            for ((place, &value), &mean) in self.relative.iter_mut().zip(row).zip(mean) {
                *place = f64::from(value) - f64::from(mean);
            }
            *log = component.log_peak - 0.5 * component.squared_norm(&mut self.relative);
        }
    }
}

impl Component {
    /// Squared Mahalanobis norm; `relative` is used up.
    fn squared_norm(&self, relative: &mut [f64]) -> f64 {
        match self.triangle.len() == relative.len() {
            true => by_deviations(relative, &self.triangle),
            false => by_covariance_triangle(relative, &self.triangle),
        }
    }
}

/// Standard deviations and the sum of their logarithms.
fn diagonal(covariance: &Matrix) -> (Vec<f64>, f64) {
    let variances = covariance.rows().enumerate().map(|(idx, row)| f64::from(row[idx]).max(LEAST_VARIANCE));
    let deviations: Vec<f64> = variances.map(libm::sqrt).collect();
    let half_log_det = deviations.iter().map(|&deviation| libm::log(deviation)).sum();
    (deviations, half_log_det)
}

/// Cholesky's triangle and the sum of the logarithms of its diagonal. Only the lower half of the matrix is read.
fn triangle(covariance: &Matrix) -> Result<(Vec<f64>, f64), Error> {
    let n_features = covariance.n_cols();
    if n_features == 1 {
        return Ok(diagonal(covariance));
    }
    let mut triangle: Vec<f64> = Vec::with_capacity(n_features * (n_features + 1) / 2);
    let mut half_log_det = 0.0;
    for (idx, values) in covariance.rows().enumerate() {
        let begin = triangle.len();
        for (col, &value) in values[..idx].iter().enumerate() {
            let other = &triangle[col * (col + 1) / 2..][..=col];
            let known: f64 = triangle[begin..].iter().zip(other).map(|(a, b)| a * b).sum();
            let solved = (f64::from(value) - known) / other[col];
            triangle.push(solved);
        }
        let known: f64 = triangle[begin..].iter().map(|value| value * value).sum();
        let rest = f64::from(values[idx]).max(LEAST_VARIANCE) - known;
        checks::expect("covariances", rest > 0.0, "a matrix is not positive definite")?;
        let deviation = libm::sqrt(rest);
        half_log_det += libm::log(deviation);
        triangle.push(deviation);
    }
    Ok((triangle, half_log_det))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_matrix_follows_the_definition() {
        // Inverse of [[2, 1], [1, 3]] is [[3, -1], [-1, 2]] / 5, the determinant 5.
        let covariance = Matrix::from_vec(2, 2, vec![2.0, 1.0, 1.0, 3.0]).expect("two by two");
        let means = Matrix::from_vec(1, 2, vec![1.0, -1.0]).expect("one mean");
        let mut densities = Densities::new(&means, &[covariance], &[0.5], false).expect("positive definite");
        let mut logs = [0.0];
        densities.logs(&[2.0, 1.0], &mut logs);
        let norm = (3.0 - 2.0 * 2.0 + 2.0 * 4.0) / 5.0;
        let expected =
            libm::log(0.5) - 0.5 * norm - libm::log(2.0 * core::f64::consts::PI) - 0.5 * libm::log(5.0);
        assert!((logs[0] - expected).abs() < 1e-14, "{} {expected}", logs[0]);
    }

    #[test]
    fn indefinite_matrix_is_refused() {
        let covariance = Matrix::from_vec(2, 2, vec![1.0, 2.0, 2.0, 1.0]).expect("two by two");
        let means = Matrix::from_vec(1, 2, vec![0.0, 0.0]).expect("one mean");
        assert!(Densities::new(&means, core::slice::from_ref(&covariance), &[1.0], false).is_err());
        assert!(Densities::new(&means, &[covariance], &[1.0], true).is_ok());
    }
}
