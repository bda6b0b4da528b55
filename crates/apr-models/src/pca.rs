//! Principal component analysis.

mod stored;
mod fit;

use alloc::vec::Vec;

use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::products;
use crate::matrix::{Matrix, table};
use crate::model::{self, Transformer};

/// Variance below which a whitened direction is not stretched any further.
const LEAST_VARIANCE: f64 = 1.0 / (1_u128 << 100) as f64;

/// Principal component analysis (Jolliffe, *Principal Component Analysis*, 2nd edition, 2002): projection onto the
/// directions of largest variance.
///
/// The directions are orthonormal, by decreasing variance; the component of largest magnitude of each is positive,
/// as in scikit-learn 1.9.1, so that equal samples give equal directions.
///
/// ```
/// use apr_models::{Matrix, Pca, PcaOptions, Transformer};
///
/// // Points on the line y = x.
/// let x = Matrix::from_vec(3, 2, vec![0.0, 1.0, 1.0, 2.0, 2.0, 3.0])?;
/// let pca = Pca::fit(&x, &PcaOptions::new(1))?;
/// assert!((pca.explained_variance_ratio()[0] - 1.0).abs() < 1e-6);
///
/// let z = pca.transform(&x);
/// assert!((z.get(2, 0).unwrap() - 2.0_f32.sqrt()).abs() < 1e-6);
/// let back = pca.inverse_transform(&z)?;
/// assert!((back.get(2, 1).unwrap() - 3.0).abs() < 1e-6);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pca {
    parts: PcaParts,
    /// For each component the product of mean and direction.
    offsets: Vec<f64>,
    /// For each component what projections are multiplied by.
    scales: Vec<f64>,
}

/// Parameters of a [`Pca`].
#[derive(Clone, Debug, PartialEq)]
pub struct PcaParts {
    /// Mean of each feature.
    pub mean: Vec<f32>,
    /// A row for each component: its direction.
    pub components: Matrix,
    /// Variance of the samples along each direction.
    pub explained_variance: Vec<f32>,
    /// Its share of the variance of all features.
    pub explained_variance_ratio: Vec<f32>,
    /// What becomes of the scale of projections.
    pub scaling: PcaScaling,
}

/// What becomes of the scale of projections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PcaScaling {
    /// It is that of the samples.
    #[default]
    Keep,
    /// Each projection is divided by the deviation along its direction.
    Whiten,
}

/// How to train a [`Pca`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcaOptions {
    /// Components to keep: at most as many as there are samples, and features.
    pub n_components: usize,
    /// What becomes of the scale of projections.
    pub scaling: PcaScaling,
}

impl PcaOptions {
    /// That many components, in the scale of the samples.
    #[must_use]
    pub const fn new(n_components: usize) -> Self {
        Self { n_components, scaling: PcaScaling::Keep }
    }
}

impl Pca {
    /// Makes a projection of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`] for lists of other lengths than the components call for,
    /// [`ErrorKind::PartNotFinite`], [`ErrorKind::PartInvalid`] for more components than features or a negative
    /// variance.
    pub fn from_parts(parts: PcaParts) -> Result<Self, Error> {
        let (n_components, n_features) = parts.components.shape();
        checks::expect("components", n_components <= n_features, "there are more than features")?;
        checks::expect_len("mean", n_features, parts.mean.len())?;
        checks::expect_finite("mean", &parts.mean)?;
        checks::expect_finite("components", parts.components.as_slice())?;
        for (name, values) in [
            ("explained variance", &parts.explained_variance),
            ("explained variance ratio", &parts.explained_variance_ratio),
        ] {
            checks::expect_len(name, n_components, values.len())?;
            checks::expect_finite(name, values)?;
            checks::expect(name, values.iter().all(|&value| value >= 0.0), "must not be negative")?;
        }
        let offsets = parts.components.rows().map(|row| products::dot(row, &parts.mean)).collect();
        let scale = |&variance: &f32| match parts.scaling {
            PcaScaling::Keep => 1.0,
            PcaScaling::Whiten => 1.0 / libm::sqrt(f64::from(variance).max(LEAST_VARIANCE)),
        };
        let scales = parts.explained_variance.iter().map(scale).collect();
        Ok(Self { parts, offsets, scales })
    }

    /// Fits the projection to samples `x`: `[n_samples, n_features]`.
    ///
    /// Computed in `f64`: from the covariances of the features if there are at least as many samples as features (time
    /// grows with samples times features squared plus features cubed; working memory with features squared), from the
    /// products of the samples with each other otherwise.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooFewSamples`] for fewer than two, [`ErrorKind::FeatureNotFinite`], [`ErrorKind::PartInvalid`] if
    /// `n_components` is 0 or more than there are samples or features.
    pub fn fit(x: &Matrix, options: &PcaOptions) -> Result<Self, Error> {
        fit::fit(x, options)
    }

    /// The parts of the projection.
    #[must_use]
    pub const fn parts(&self) -> &PcaParts {
        &self.parts
    }

    /// Returns the parts.
    #[must_use]
    pub fn into_parts(self) -> PcaParts {
        self.parts
    }

    /// What projections are multiplied by, one for each component.
    pub(crate) const fn scales(&self) -> &[f64] {
        self.scales.as_slice()
    }

    /// A row for each component: its direction.
    #[must_use]
    pub const fn components(&self) -> &Matrix {
        &self.parts.components
    }

    /// Mean of each feature.
    #[must_use]
    pub const fn mean(&self) -> &[f32] {
        self.parts.mean.as_slice()
    }

    /// Variance of the samples along each direction.
    #[must_use]
    pub const fn explained_variance(&self) -> &[f32] {
        self.parts.explained_variance.as_slice()
    }

    /// Its share of the variance of all features.
    #[must_use]
    pub const fn explained_variance_ratio(&self) -> &[f32] {
        self.parts.explained_variance_ratio.as_slice()
    }

    /// Maps projections (`[n_samples, n_components]`, row-major) back to samples (`[n_samples, n_features]`,
    /// row-major). Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if the lengths do not
    /// fit each other and the model.
    pub fn inverse_transform_into(&self, projections: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let (n_components, n_features) = self.components().shape();
        let n_rows = model_rows(out.len(), n_features)?;
        model::check_rows(projections, n_rows, n_components)?;
        let samples = out.chunks_exact_mut(n_features);
        for (projection, sample) in projections.chunks_exact(n_components).zip(samples) {
            for (feature, (value, &mean)) in sample.iter_mut().zip(self.mean()).enumerate() {
                let weights = self.components().as_slice().iter().skip(feature).step_by(n_features);
                let terms = projection.iter().zip(weights).zip(&self.scales);
                let sum = terms.fold(f64::from(mean), |sum, ((&projected, &weight), scale)| {
                    sum + f64::from(projected) / scale * f64::from(weight)
                });
                *value = sum as f32;
            }
        }
        Ok(())
    }

    /// Maps projections `z` (`[n_samples, n_components]`) back to samples (`[n_samples, n_features]`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`] if `z` has another number of columns than the model has components.
    pub fn inverse_transform(&self, z: &Matrix) -> Result<Matrix, Error> {
        table(z, self.components().n_cols(), |rows, out| self.inverse_transform_into(rows, out))
    }
}

impl Transformer for Pca {
    fn n_outputs(&self) -> Option<usize> {
        Some(self.components().n_rows())
    }

    fn transform_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let (n_components, n_features) = self.components().shape();
        let n_rows = model_rows(out.len(), n_components)?;
        model::check_rows(rows, n_rows, n_features)?;
        for (row, projection) in rows.chunks_exact(n_features).zip(out.chunks_exact_mut(n_components)) {
            let directions = self.components().rows().zip(&self.offsets).zip(&self.scales);
            for (value, ((direction, offset), scale)) in projection.iter_mut().zip(directions) {
                *value = ((products::dot(row, direction) - offset) * scale) as f32;
            }
        }
        Ok(())
    }
}

/// Rows of `width` values that a slice of `len` places takes.
fn model_rows(len: usize, width: usize) -> Result<usize, Error> {
    match len % width {
        0 => Ok(len / width),
        _ => Err(ErrorKind::OutputLength { needed: len - len % width, given: len }.into()),
    }
}
