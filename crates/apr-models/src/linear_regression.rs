//! Ordinary least squares.

use apr_container::{PayloadReader, PayloadWriter};

use crate::error::Error;
use crate::least_squares;
use crate::linear::regressor::linear_regressor;
use crate::linear::{self, Intercept, Plane};
use crate::matrix::Matrix;
use crate::model::Regressor;
use crate::payload::fields::read;
use crate::tensors::Tensors;
use crate::vector::Vector;

mod safetensors;

/// Ordinary least squares: `y = x · coefficients + intercept`, fitted by Householder QR with column pivoting
/// (Businger and Golub, Numer. Math. 7, 1965).
///
/// Collinear features (up to the rounding of their `f32` values) and more features than samples are no error: of all
/// least-squares solutions the model takes the one of minimum Euclidean norm in the units of the features. A constant
/// feature gets the coefficient 0.
///
/// ```
/// use apr_models::{LinearRegression, Matrix, Vector};
///
/// let x = Matrix::from_vec(3, 2, vec![1.0, 1.0, 2.0, 2.0, 4.0, 4.0])?;
/// let y = Vector::from_vec(vec![5.0, 7.0, 11.0]);
/// let mut model = LinearRegression::new();
/// model.fit(&x, &y)?;
///
/// // Both features are equal: they share the slope of 2.
/// assert_eq!(model.coefficients().as_slice(), &[1.0, 1.0]);
/// assert_eq!(model.intercept(), 3.0);
/// assert_eq!(model.predict(&x), y);
/// assert_eq!(model.score(&x, &y), 1.0);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearRegression {
    plane: Plane,
    rule: Intercept,
}

linear_regressor!(LinearRegression);

impl LinearRegression {
    /// An unfitted model.
    #[must_use]
    pub const fn new() -> Self {
        Self { plane: Plane::new(), rule: Intercept::Fitted }
    }

    /// Sets whether `fit` estimates the intercept or leaves it 0.
    #[must_use]
    pub const fn with_intercept(mut self, rule: Intercept) -> Self {
        self.rule = rule;
        self
    }

    /// A fitted model with these weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients), or
    /// [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite) for the first weight that is not finite.
    pub fn from_parts(coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        Ok(Self { plane: Plane::from_parts(coefficients, intercept)?, rule: Intercept::Fitted })
    }

    /// Fits the model to samples `x` (`[n_samples, n_features]`) and targets `y` (`[n_samples]`). On an error the
    /// model is unchanged.
    ///
    /// Computed in `f64` and rounded once; the same input gives the same bits on every platform. Time is
    /// O(`n_samples` · `n_features`²); working memory is independent of `n_samples` once there are many.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`](crate::ErrorKind::TargetLength),
    /// [`ErrorKind::FeatureNotFinite`](crate::ErrorKind::FeatureNotFinite),
    /// [`ErrorKind::TargetNotFinite`](crate::ErrorKind::TargetNotFinite),
    /// [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) if the solution does not fit `f32`,
    /// [`ErrorKind::MatrixTooLarge`](crate::ErrorKind::MatrixTooLarge).
    pub fn fit(&mut self, x: &Matrix, y: &Vector) -> Result<(), Error> {
        self.plane = least_squares::fit(x, y, self.rule)?;
        Ok(())
    }

    /// Predicts each row of `x` (`[n_samples, n_features]`): `[n_samples]`. [`try_predict`](Self::try_predict)
    /// returns an error instead of panicking.
    ///
    /// # Panics
    ///
    /// If the model is not fitted, or `x` has another number of columns than the model has coefficients.
    #[must_use]
    #[track_caller]
    pub fn predict(&self, x: &Matrix) -> Vector {
        Regressor::predict(self, x)
    }

    /// Predicts each row of `x` (`[n_samples, n_features]`): `[n_samples]`.
    ///
    /// Each prediction is summed in `f64` and rounded once. A value that is not finite makes its own row's prediction
    /// not finite, and so does a prediction beyond the range of `f32`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted), or
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if `x` has another number of columns than the model
    /// has coefficients.
    pub fn try_predict(&self, x: &Matrix) -> Result<Vector, Error> {
        Regressor::try_predict(self, x)
    }

    /// The coefficient of determination R² of the predictions for `x` against `y`; [`try_score`](Self::try_score)
    /// returns an error instead of panicking.
    ///
    /// # Panics
    ///
    /// If the model is not fitted, or the shapes of model, `x` and `y` do not fit together.
    #[must_use]
    #[track_caller]
    pub fn score(&self, x: &Matrix, y: &Vector) -> f32 {
        match self.try_score(x, y) {
            Ok(score) => score,
            Err(error) => panic!("{error}"),
        }
    }

    /// The coefficient of determination R² of the predictions for `x` against `y`: 1 for perfect predictions, 0 for
    /// those no better than the mean of `y`, negative for worse ones.
    ///
    /// For a constant `y` it is 1 if every prediction is exact and 0 otherwise (the convention of scikit-learn's
    /// `r2_score`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted),
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount),
    /// [`ErrorKind::TargetLength`](crate::ErrorKind::TargetLength).
    pub fn try_score(&self, x: &Matrix, y: &Vector) -> Result<f32, Error> {
        Regressor::try_score(self, x, y)
    }

    /// Predicts each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`). Allocates
    /// nothing; each prediction has the bits that [`try_predict`](Self::try_predict) gives.
    ///
    /// ```
    /// use apr_models::{LinearRegression, Vector};
    ///
    /// let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0, -1.0]), 0.5)?;
    /// let mut out = [0.0; 2];
    /// model.predict_into(&[1.0, 2.0, 3.0, 4.0], &mut out)?;
    /// assert_eq!(out, [0.5, 2.5]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted);
    /// [`ErrorKind::InputLength`](crate::ErrorKind::InputLength) and
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if `rows` is not `out.len()` rows of the model's
    /// features.
    pub fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        self.plane.values_into(rows, out)
    }

    /// Reads the model from named tensors: `coefficients`, `intercept`, and `fit_intercept` if it is 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel), and all but the first of
    /// [`from_safetensors`](Self::from_safetensors).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        // A model with more parts computes something else: half of it would predict without complaint, and wrongly.
        tensors.expect_only(&linear::is_part)?;
        Ok(Self { plane: Plane::read_from(tensors)?, rule: linear::read_intercept_rule(tensors)? })
    }

    pub(crate) fn set_plane(&mut self, plane: Plane) {
        self.plane = plane;
    }

    fn push_settings(&self, _tensors: &mut Tensors) -> Result<(), Error> {
        Ok(())
    }
}

stored_model! {
    /// Optional list of coefficients, intercept, whether training chose it.
    ///
    /// Weights that are not finite, and unfitted models, are accepted.
    LinearRegression "LinearRegression" [LinearRegression]
    n_features: |model| model.plane.n_features();
    is_fitted: |model| model.is_fitted();
    skip: Self::skip_fields;
}

impl LinearRegression {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        self.plane.encode(out)?;
        linear::encode_rule(self.rule, out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self { plane: Plane::decode(fields), rule: linear::decode_rule(fields) })
    }

    fn skip_fields(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        Plane::skip(input)?;
        input.skip(1)
    }
}
