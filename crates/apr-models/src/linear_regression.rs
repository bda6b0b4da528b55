//! Ordinary least squares.

use crate::error::{Error, ErrorKind, Operation, Parameter};
use crate::least_squares;
use crate::matrix::Matrix;
use crate::vector::Vector;

mod safetensors;

/// Ordinary least squares with an intercept: the prediction for a sample is the intercept plus the sum of each feature
/// times its coefficient.
///
/// Features that repeat others (up to the rounding of their `f32` values), or more features than samples, are no error:
/// of all solutions with the least squared residuals the model takes the one whose coefficients have the least
/// Euclidean norm in the units of the features. A constant feature gets the coefficient 0.
///
/// ```
/// use apr_models::{LinearRegression, Matrix, Vector};
///
/// let x = Matrix::from_vec(3, 2, vec![1.0, 1.0, 2.0, 2.0, 4.0, 4.0])?;
/// let y = Vector::from_vec(vec![5.0, 7.0, 11.0]);
/// let mut model = LinearRegression::new();
/// model.fit(&x, &y)?;
///
/// // Both features say the same: they share the slope of 2.
/// assert_eq!(model.coefficients().as_slice(), &[1.0, 1.0]);
/// assert_eq!(model.intercept(), 3.0);
/// assert_eq!(model.predict(&x), y);
/// assert_eq!(model.score(&x, &y), 1.0);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinearRegression {
    /// Empty until fitted.
    coefficients: Vector,
    intercept: f32,
}

impl LinearRegression {
    /// A model that has not been fitted.
    #[must_use]
    pub const fn new() -> Self {
        Self { coefficients: Vector::from_vec(alloc::vec::Vec::new()), intercept: 0.0 }
    }

    /// A fitted model with these weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoCoefficients`], or [`ErrorKind::WeightNotFinite`] for the first weight that is infinite or not
    /// a number.
    pub fn from_parts(coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        if coefficients.is_empty() {
            return Err(ErrorKind::NoCoefficients.into());
        }
        if let Some(feature) = coefficients.iter().position(|value| !value.is_finite()) {
            return Err(ErrorKind::WeightNotFinite { parameter: Parameter::Coefficient(feature) }.into());
        }
        if !intercept.is_finite() {
            return Err(ErrorKind::WeightNotFinite { parameter: Parameter::Intercept }.into());
        }
        Ok(Self { coefficients, intercept })
    }

    /// Fits the model to samples `x` and their targets `y`. On an error the model stays as it was.
    ///
    /// Computed in `f64` and rounded once; the same input gives the same bits on every platform. Time grows with rows
    /// times features squared; working memory does not depend on the number of rows once they are many.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::TargetNotFinite`],
    /// [`ErrorKind::OutOfRange`] if the solution does not fit `f32`, [`ErrorKind::MatrixTooLarge`].
    pub fn fit(&mut self, x: &Matrix, y: &Vector) -> Result<(), Error> {
        let plane = least_squares::fit(x, y)?;
        self.coefficients = Vector::from_vec(plane.coefficients);
        self.intercept = plane.intercept;
        Ok(())
    }

    /// Whether the model has weights: it was fitted, loaded, or made from parts.
    #[must_use]
    pub const fn is_fitted(&self) -> bool {
        !self.coefficients.is_empty()
    }

    /// One coefficient for each feature; empty until fitted.
    #[must_use]
    pub const fn coefficients(&self) -> &Vector {
        &self.coefficients
    }

    /// The constant term; 0 until fitted.
    #[must_use]
    pub const fn intercept(&self) -> f32 {
        self.intercept
    }

    /// Predicts the target of each sample; [`try_predict`](Self::try_predict) for samples of unknown shape.
    ///
    /// # Panics
    ///
    /// If the model is not fitted, or `x` has another number of columns than the model has coefficients.
    #[must_use]
    #[track_caller]
    pub fn predict(&self, x: &Matrix) -> Vector {
        match self.try_predict(x) {
            Ok(predictions) => predictions,
            Err(error) => panic!("{error}"),
        }
    }

    /// Predicts the target of each sample.
    ///
    /// Each prediction is summed in `f64` and rounded once. A value that is not finite makes its own row's prediction
    /// not finite, and so does a prediction beyond the range of `f32`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], or [`ErrorKind::FeatureCount`] if `x` has another number of columns than the model has
    /// coefficients.
    pub fn try_predict(&self, x: &Matrix) -> Result<Vector, Error> {
        Ok(self.predictions(x)?.map(|prediction| prediction as f32).collect())
    }

    /// The coefficient of determination R² of the predictions for `x` against `y`;
    /// [`try_score`](Self::try_score) for data of unknown shape.
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
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`], [`ErrorKind::TargetLength`].
    pub fn try_score(&self, x: &Matrix, y: &Vector) -> Result<f32, Error> {
        let predictions = self.predictions(x)?;
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        // Relative to the first value, so that a large offset costs no digits and a constant target has no spread.
        let origin = f64::from(y[0]);
        let mean = origin + y.iter().map(|target| f64::from(target) - origin).sum::<f64>() / y.len() as f64;
        let (mut residual, mut total) = (0.0, 0.0);
        for (prediction, target) in predictions.zip(y) {
            let (miss, spread) = (f64::from(target) - prediction, f64::from(target) - mean);
            residual += miss * miss;
            total += spread * spread;
        }
        let score = match (total == 0.0, residual == 0.0) {
            (true, true) => 1.0,
            (true, false) => 0.0,
            (false, _) => 1.0 - residual / total,
        };
        Ok(score as f32)
    }

    /// Predictions before rounding.
    fn predictions(&self, x: &Matrix) -> Result<impl Iterator<Item = f64>, Error> {
        if !self.is_fitted() {
            return Err(ErrorKind::NotFitted { operation: Operation::Predict }.into());
        }
        if x.n_cols() != self.coefficients.len() {
            return Err(
                ErrorKind::FeatureCount { expected: self.coefficients.len(), found: x.n_cols() }.into()
            );
        }
        Ok(x.rows().map(|row| {
            let terms = row.iter().zip(&self.coefficients);
            terms.fold(f64::from(self.intercept), |sum, (&value, coefficient)| {
                sum + f64::from(value) * f64::from(coefficient)
            })
        }))
    }
}
