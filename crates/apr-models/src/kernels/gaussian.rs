//! Squared Mahalanobis distances of samples from the means of normal distributions.
//!
//! Each reference has a way of its own to divide by a covariance, and so bits of its own.

/// `sum((x - mean)^2 / variance)`, in the order of the columns: scikit-learn's `GaussianNB`.
pub(crate) fn by_variances<X, M, V>(row: &[X], means: &[M], variances: &[V]) -> f64
where
    X: Copy + Into<f64>,
    M: Copy + Into<f64>,
    V: Copy + Into<f64>,
{
    let terms = row.iter().zip(means).zip(variances).map(|((&x, &mean), &variance)| {
        let apart = x.into() - mean.into();
        apart * apart / variance.into()
    });
    terms.sum()
}

/// `|(x - mean) F|^2` for an upper triangular factor `F` of the precision matrix, row by row: scikit-learn's `GaussianMixture`.
/// Values below the diagonal are not read. `sums` has a place for each column.
pub(crate) fn by_precision_factor<M, F>(row: &[f64], means: &[M], factor: &[F], sums: &mut [f64]) -> f64
where
    M: Copy + Into<f64>,
    F: Copy + Into<f64>,
{
    sums.fill(0.0);
    let lines = row.iter().zip(means).zip(factor.chunks_exact(row.len().max(1)));
    for (idx, ((x, &mean), line)) in lines.enumerate() {
        let apart = x - mean.into();
        for (sum, &weight) in sums.iter_mut().zip(line).skip(idx) {
            *sum += apart * weight.into();
        }
    }
    sums.iter().map(|sum| sum * sum).sum()
}

/// `sum(((x - mean) / deviation)^2)`, in the order of the columns: aprender's diagonal mixtures.
pub(crate) fn by_deviations(relative: &[f64], deviations: &[f64]) -> f64 {
    relative.iter().zip(deviations).fold(0.0, |sum, (value, deviation)| {
        let scaled = value / deviation;
        sum + scaled * scaled
    })
}

/// `|L^-1 (x - mean)|^2` for the lower triangle `L` of the covariance matrix (Cholesky), by forward substitution: aprender's full
/// mixtures. Row `idx` of the triangle begins after those before it. `relative` is overwritten.
pub(crate) fn by_covariance_triangle(relative: &mut [f64], triangle: &[f64]) -> f64 {
    let (mut sum, mut rest) = (0.0, triangle);
    for idx in 0..relative.len() {
        let (solved, ahead) = relative.split_at_mut(idx);
        let (Some((row, after)), Some(value)) = (rest.split_at_checked(idx + 1), ahead.first_mut()) else {
            break;
        };
        rest = after;
        let known: f64 = row.iter().zip(&*solved).map(|(a, b)| a * b).sum();
        *value = (*value - known) / row.last().copied().unwrap_or(1.0);
        sum += *value * *value;
    }
    sum
}
