//! Gaussian mixture models.

use alloc::vec;
use alloc::vec::Vec;

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::convergence::Convergence;
use crate::error::{Error, ErrorKind, Operation};
use crate::matrix::Matrix;
use crate::model::{Classifier, check_rows};
use crate::payload::fields::read;
use crate::payload::values::{write_matrices, write_matrix, write_option, write_optional_u64};
use crate::tensors::Tensors;
use crate::vector::Vector;
use crate::workers::{Alone, Workers};

mod density;
mod fit;

pub use self::fit::GaussianMixtureOptions;

/// Constraint on the covariance matrices, as in scikit-learn's `GaussianMixture`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CovarianceType {
    /// A matrix for each component.
    #[default]
    Full,
    /// One matrix for all components.
    Tied,
    /// A diagonal matrix for each component.
    Diag,
    /// A multiple of the identity matrix for each component.
    Spherical,
}

impl CovarianceType {
    const ALL: [Self; 4] = [Self::Full, Self::Tied, Self::Diag, Self::Spherical];

    const fn is_diagonal(self) -> bool {
        matches!(self, Self::Diag | Self::Spherical)
    }
}

/// Gaussian mixture (Bishop, *Pattern Recognition and Machine Learning*, 2006, section 9.2): a sample belongs to the
/// component of the largest weighted density, to the first one in a tie.
///
/// A variance below 1e-6 counts as 1e-6.
///
/// ```
/// use apr_models::{Classifier, CovarianceType, GaussianMixture, Matrix};
///
/// let unit = Matrix::from_vec(1, 1, vec![1.0])?;
/// let means = Matrix::from_vec(2, 1, vec![0.0, 4.0])?;
/// let model = GaussianMixture::from_parts(CovarianceType::Full, means, vec![unit.clone(), unit], vec![0.5, 0.5])?;
/// assert_eq!(model.predict(&Matrix::from_vec(3, 1, vec![-3.0, 1.9, 2.1])?), [0, 0, 1]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianMixture {
    n_components: usize,
    covariance_type: CovarianceType,
    max_iter: usize,
    tol: f32,
    random_state: Option<u64>,
    parts: Option<Parts>,
    labels: Option<Vec<usize>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Parts {
    /// One a row.
    means: Matrix,
    /// One square matrix for each component.
    covariances: Vec<Matrix>,
    /// One for each component.
    weights: Vec<f32>,
}

impl Parts {
    fn check(&self) -> Result<(), Error> {
        let (n_components, n_features) = self.means.shape();
        for (part, found) in [(COVARIANCES, self.covariances.len()), (WEIGHTS, self.weights.len())] {
            checks::expect_len(part, n_components, found)?;
        }
        checks::expect(
            COVARIANCES,
            self.covariances.iter().all(|matrix| matrix.shape() == (n_features, n_features)),
            "as many rows and columns as features are needed",
        )
    }
}

impl GaussianMixture {
    /// A mixture with these means (one a row), covariance matrices and weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartLength`], [`ErrorKind::PartNotFinite`], and [`ErrorKind::PartInvalid`] for a negative weight, a
    /// matrix of another shape, or one that is not positive definite.
    pub fn from_parts(
        covariance_type: CovarianceType,
        means: Matrix,
        covariances: Vec<Matrix>,
        weights: Vec<f32>,
    ) -> Result<Self, Error> {
        let parts = Parts { means, covariances, weights };
        parts.check()?;
        for (part, values) in [(MEANS, parts.means.as_slice()), (WEIGHTS, &parts.weights)]
            .into_iter()
            .chain(parts.covariances.iter().map(|matrix| (COVARIANCES, matrix.as_slice())))
        {
            checks::expect_finite(part, values)?;
        }
        checks::expect(WEIGHTS, parts.weights.iter().all(|&weight| weight >= 0.0), "a weight is negative")?;
        let model = Self {
            n_components: parts.means.n_rows(),
            covariance_type,
            max_iter: 100,
            tol: 1e-3,
            random_state: None,
            parts: Some(parts),
            labels: None,
        };
        model.densities()?;
        Ok(model)
    }

    /// Fits a mixture to samples `x` (`[n_samples, n_features]`) by expectation and maximization (Dempster, Laird and
    /// Rubin, J. R. Stat. Soc. B 39, 1977), starting from the clusters of [`KMeans`](crate::KMeans), as scikit-learn 1.9.1's
    /// `GaussianMixture`. Of several starts the one of the largest density stays.
    ///
    /// Computed in `f64` and rounded once; the same samples, options and seed give the same bits on every platform. Time of
    /// a round is O(`n_samples` · `n_components` · `n_features`²), or without the square for diagonal covariances.
    ///
    /// ```
    /// use apr_models::{GaussianMixture, GaussianMixtureOptions, Matrix};
    ///
    /// let x = Matrix::from_vec(6, 1, vec![0.0, 0.1, 0.2, 5.0, 5.1, 5.2])?;
    /// let (model, convergence) = GaussianMixture::fit(&x, &GaussianMixtureOptions::new(2))?;
    /// assert!(convergence.converged);
    /// let labels = model.labels().unwrap();
    /// assert!(labels[0] == labels[2] && labels[2] != labels[3]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooFewSamples`] for fewer samples than components, [`ErrorKind::FeatureNotFinite`],
    /// [`ErrorKind::PartInvalid`] for an option that is out of its range and, as `reg_covar`, if a component has a direction
    /// without variance, [`ErrorKind::MatrixTooLarge`], [`ErrorKind::PartNotFinite`] if a parameter does not fit `f32`.
    pub fn fit(x: &Matrix, options: &GaussianMixtureOptions) -> Result<(Self, Convergence), Error> {
        Self::fit_on(&Alone, x, options)
    }

    /// As [`fit`](Self::fit), with starts by the workers.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit).
    pub fn fit_on(
        workers: &dyn Workers,
        x: &Matrix,
        options: &GaussianMixtureOptions,
    ) -> Result<(Self, Convergence), Error> {
        fit::fit(workers, x, options)
    }

    /// The same model with the settings of its training: rounds, tolerance and seed.
    #[must_use]
    pub const fn with_training(mut self, max_iter: usize, tol: f32, random_state: Option<u64>) -> Self {
        self.max_iter = max_iter;
        self.tol = tol;
        self.random_state = random_state;
        self
    }

    /// Components.
    #[must_use]
    pub const fn n_components(&self) -> usize {
        self.n_components
    }

    /// Constraint on the covariance matrices, as in scikit-learn's `GaussianMixture`.
    #[must_use]
    pub const fn covariance_type(&self) -> CovarianceType {
        self.covariance_type
    }

    /// The means, one a row; `None` if the model is not fitted.
    #[must_use]
    pub fn means(&self) -> Option<&Matrix> {
        self.parts.as_ref().map(|parts| &parts.means)
    }

    /// A covariance matrix for each component; `None` if the model is not fitted.
    #[must_use]
    pub fn covariances(&self) -> Option<&[Matrix]> {
        self.parts.as_ref().map(|parts| parts.covariances.as_slice())
    }

    /// The weight of each component; `None` if the model is not fitted.
    #[must_use]
    pub fn weights(&self) -> Option<&[f32]> {
        self.parts.as_ref().map(|parts| parts.weights.as_slice())
    }

    /// The component of each sample of the training, `None` if the model does not know.
    #[must_use]
    pub fn labels(&self) -> Option<&[usize]> {
        self.labels.as_deref()
    }

    /// For each component the logarithm of weight times density at its mean, and Cholesky's triangle of its covariances, row by row,
    /// or its deviations.
    pub(crate) fn components(&self) -> Result<Vec<(f64, Vec<f64>)>, Error> {
        Ok(self.densities()?.components().collect())
    }

    /// The probability of each component: `[n_samples, n_components]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`], [`ErrorKind::PartInvalid`] if a covariance matrix is not
    /// positive definite, [`ErrorKind::MatrixTooLarge`].
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Matrix, Error> {
        let mut densities = self.densities()?;
        check_rows(x.as_slice(), x.n_rows(), densities.n_features())?;
        let (n_rows, n_cols) = (x.n_rows(), self.n_components);
        let Some(len) = n_rows.checked_mul(n_cols) else {
            return Err(ErrorKind::MatrixTooLarge { n_rows, n_cols }.into());
        };
        let mut shares = Vec::with_capacity(len);
        let mut logs = vec![0.0; n_cols];
        for row in x.rows() {
            densities.logs(row, &mut logs);
            let greatest = logs.iter().fold(f64::NEG_INFINITY, |greatest, &log| greatest.max(log));
            let weights = logs.iter().map(|log| libm::exp(log - greatest));
            let sum: f64 = weights.clone().sum();
            shares.extend(weights.map(|weight| (weight / sum) as f32));
        }
        Matrix::from_vec(n_rows, n_cols, shares)
    }

    /// The natural logarithm of the mixture's density at each row of `x`: `[n_samples]`.
    ///
    /// # Errors
    ///
    /// As [`try_predict_proba`](Self::try_predict_proba).
    pub fn try_score_samples(&self, x: &Matrix) -> Result<Vector, Error> {
        let mut densities = self.densities()?;
        check_rows(x.as_slice(), x.n_rows(), densities.n_features())?;
        let mut logs = vec![0.0; self.n_components];
        let scores = x.rows().map(|row| {
            densities.logs(row, &mut logs);
            let greatest = logs.iter().fold(f64::NEG_INFINITY, |greatest, &log| greatest.max(log));
            let sum: f64 = logs.iter().map(|log| libm::exp(log - greatest)).sum();
            (greatest + libm::log(sum)) as f32
        });
        Ok(scores.collect())
    }

    fn densities(&self) -> Result<density::Densities<'_>, Error> {
        let Some(parts) = &self.parts else {
            return Err(ErrorKind::NotFitted { operation: Operation::Predict }.into());
        };
        density::Densities::new(
            &parts.means,
            &parts.covariances,
            &parts.weights,
            self.covariance_type.is_diagonal(),
        )
    }

    /// Reads the model from named tensors: `means`, `covariances`, `weights`, `covariance_type` (0 full, 1 tied, 2
    /// diagonal, 3 spherical), `max_iter`, `tol`, `random_state`. Labels of the training are not among them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        let known = [MEANS, COVARIANCES, WEIGHTS, COVARIANCE_TYPE, MAX_ITER, TOL, RANDOM_STATE];
        tensors.expect_parts(Self::NAME, &known)?;
        let means = tensors.matrix(MEANS)?;
        let (shape, values) = tensors.array(COVARIANCES)?;
        let (n_components, n_features) = means.shape();
        if *shape != [n_components, n_features, n_features] {
            let expected = "one square matrix for each mean";
            let error = ErrorKind::TensorShape { expected, found: shape.to_vec() };
            return Err(Error::from(error).of_tensor(COVARIANCES));
        }
        let matrices = values.chunks_exact(n_features * n_features);
        let covariances = matrices.map(|values| Matrix::from_vec(n_features, n_features, values.to_vec()));
        let covariances = checks::all(covariances)?;
        let kind = CovarianceType::ALL.get(tensors.count(COVARIANCE_TYPE)?).copied();
        let kind =
            kind.ok_or(ErrorKind::PartInvalid { part: COVARIANCE_TYPE, problem: "0 to 3 is needed" })?;
        let model = Self::from_parts(kind, means, covariances, tensors.vector(WEIGHTS)?)?;
        tensors.parts(|parts| {
            let (max_iter, tol) = (parts.count(MAX_ITER), parts.number(TOL));
            model.with_training(max_iter, tol, parts.optional_integer(RANDOM_STATE))
        })
    }
}

const MEANS: &str = "means";
const COVARIANCES: &str = "covariances";
const WEIGHTS: &str = "weights";
const COVARIANCE_TYPE: &str = "covariance_type";
const MAX_ITER: &str = "max_iter";
const TOL: &str = "tol";
const RANDOM_STATE: &str = "random_state";

impl GaussianMixture {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let Some(Parts { means, covariances, weights }) = &self.parts else {
            return Err(ErrorKind::NotFitted { operation: Operation::Save }.into());
        };
        let (n_components, n_features) = means.shape();
        tensors.push_f32(MEANS, &[n_components, n_features], means.as_slice())?;
        let mut values: Vec<f32> = Vec::new();
        covariances.iter().for_each(|matrix| values.extend_from_slice(matrix.as_slice()));
        tensors.push_f32(COVARIANCES, &[n_components, n_features, n_features], &values)?;
        tensors.push_f32(WEIGHTS, &[n_components], weights)?;
        tensors.push_count(COVARIANCE_TYPE, self.covariance_type as usize)?;
        tensors.push_count(MAX_ITER, self.max_iter)?;
        tensors.push_number(TOL, self.tol)?;
        tensors.push_optional(RANDOM_STATE, self.random_state)
    }
}

/// The triangles of the covariance matrices are computed, and allocated, once for each call.
impl Classifier for GaussianMixture {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        let mut densities = self.densities()?;
        let n_features = densities.n_features();
        check_rows(rows, out.len(), n_features)?;
        let mut logs = vec![0.0; self.n_components];
        for (place, row) in out.iter_mut().zip(rows.chunks_exact(n_features)) {
            densities.logs(row, &mut logs);
            let mut best = (0, f64::NEG_INFINITY);
            for (idx, &log) in logs.iter().enumerate() {
                if log > best.1 {
                    best = (idx, log);
                }
            }
            *place = best.0;
        }
        Ok(())
    }
}

stored_model! {
    /// Components, kind of the covariances (alternatives full, tied, diagonal, spherical), rounds allowed, tolerance,
    /// optional seed, optional means, list of covariances, list of weights, and labels.
    GaussianMixture "GaussianMixture" [Custom or any]
    n_features: |model| model.means().map(Matrix::n_cols);
    is_fitted: |model| model.parts.is_some();
}

impl GaussianMixture {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        let parts = self.parts.as_ref();
        out.usize(self.n_components)?;
        out.variant(self.covariance_type as u32)?;
        out.usize(self.max_iter)?;
        out.f32(self.tol)?;
        write_optional_u64(out, self.random_state)?;
        write_option(out, parts.map(|parts| &parts.means), write_matrix)?;
        write_option(out, parts.map(|parts| &*parts.covariances), write_matrices)?;
        out.option(parts.is_some())?;
        if let Some(parts) = parts {
            out.f32s(&parts.weights)?;
        }
        write_option(out, self.labels.as_ref(), |out, labels| out.usizes(labels))
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let model = read(input, |fields| {
            let n_components = fields.usize();
            let covariance_type = CovarianceType::ALL[fields.variant(4) as usize];
            let (max_iter, tol, random_state) = (fields.usize(), fields.f32(), fields.optional_u64());
            let (means, covariances) = (fields.optional_matrix(), fields.optional_matrices());
            let (weights, labels) = (fields.optional_f32s(), fields.optional_usizes());
            let is_whole = means.is_some() == covariances.is_some() && means.is_some() == weights.is_some();
            fields.check(is_whole, "a mixture has means, covariances and weights, or none of them");
            let parts = match (means, covariances, weights) {
                (Some(means), Some(covariances), Some(weights)) => {
                    Some(Parts { means, covariances, weights })
                }
                _ => None,
            };
            Self { n_components, covariance_type, max_iter, tol, random_state, parts, labels }
        })?;
        if let Some(parts) = &model.parts {
            parts.check()?;
            if parts.means.n_rows() != model.n_components {
                return Err(input.invalid("not as many means as components"));
            }
        }
        Ok(model)
    }
}
