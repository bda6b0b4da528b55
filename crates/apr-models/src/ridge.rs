//! Least squares with a penalty on the squares of the coefficients.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::Error;
use crate::least_squares;
use crate::linear::regressor::linear_regressor;
use crate::linear::{self, Intercept, Plane};
use crate::matrix::Matrix;
use crate::payload::fields::read;
use crate::tensors::Tensors;
use crate::vector::Vector;

/// Ridge regression: training minimizes the sum of squared residuals plus `alpha` times the sum of squared
/// coefficients; the intercept has no penalty (Hoerl and Kennard, Technometrics 12, 1970).
///
/// ```
/// use apr_models::{Matrix, Regressor, Ridge, Vector};
///
/// let x = Matrix::from_vec(3, 1, vec![-1.0, 0.0, 1.0])?;
/// let y = Vector::from_vec(vec![1.0, 3.0, 5.0]);
/// let mut model = Ridge::new(2.0)?;
/// model.fit(&x, &y)?;
/// // The slope is halved: 4 / (2 + alpha).
/// assert_eq!(model.coefficients()[0], 1.0);
/// assert_eq!(model.predict_one(&[1.0]), 4.0);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ridge {
    alpha: f32,
    plane: Plane,
    rule: Intercept,
}

linear_regressor!(Ridge);

impl Ridge {
    /// An unfitted model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if `alpha` is negative or not finite.
    pub fn new(alpha: f32) -> Result<Self, Error> {
        checks::expect_not_negative(ALPHA, alpha.into())?;
        Ok(Self { alpha, plane: Plane::new(), rule: Intercept::Fitted })
    }

    /// A fitted model with these weights.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients), or
    /// [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite) for the first weight that is not finite.
    pub fn from_parts(alpha: f32, coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        Ok(Self { plane: Plane::from_parts(coefficients, intercept)?, ..Self::new(alpha)? })
    }

    /// Sets whether `fit` estimates the intercept or leaves it 0.
    #[must_use]
    pub const fn with_intercept(mut self, rule: Intercept) -> Self {
        self.rule = rule;
        self
    }

    /// The L2 penalty, `alpha`.
    #[must_use]
    pub const fn alpha(&self) -> f32 {
        self.alpha
    }

    /// Fits the model to samples `x` (`[n_samples, n_features]`) and targets `y` (`[n_samples]`). On an error the
    /// model is unchanged.
    ///
    /// Computed in `f64` by an orthogonal factorization and rounded once, like [`LinearRegression`], to which `alpha`
    /// of 0 is equal.
    ///
    /// # Errors
    ///
    /// As [`LinearRegression::fit`]; [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an `alpha` read
    /// from a file that is negative or not finite.
    ///
    /// [`LinearRegression`]: crate::LinearRegression
    /// [`LinearRegression::fit`]: crate::LinearRegression::fit
    pub fn fit(&mut self, x: &Matrix, y: &Vector) -> Result<(), Error> {
        Self::new(self.alpha)?;
        self.plane = if self.alpha == 0.0 {
            least_squares::fit(x, y, self.rule)?
        } else {
            least_squares::fit_ridge(x, y, self.rule, self.alpha.into())?
        };
        Ok(())
    }

    /// Reads the model from named tensors: `alpha`, `coefficients`, `intercept`, and `fit_intercept` if it is 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor), the errors of [`Tensors`] for missing
    /// or malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&|name| linear::is_part(name) || name == ALPHA)?;
        let empty = Self::new(tensors.number(ALPHA)?)?;
        Ok(Self { plane: Plane::read_from(tensors)?, rule: linear::read_intercept_rule(tensors)?, ..empty })
    }

    fn push_settings(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_number(ALPHA, self.alpha)
    }
}

const ALPHA: &str = "alpha";

stored_model! {
    /// `alpha`, then as [`LinearRegression`](crate::LinearRegression).
    ///
    /// Values that are not finite, and unfitted models, are accepted.
    Ridge "Ridge" [LinearRegression]
    n_features: |model| model.plane.n_features();
    is_fitted: |model| model.is_fitted();
    skip: Self::skip_fields;
}

impl Ridge {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32(self.alpha)?;
        self.plane.encode(out)?;
        linear::encode_rule(self.rule, out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self {
            alpha: fields.f32(),
            plane: Plane::decode(fields),
            rule: linear::decode_rule(fields),
        })
    }

    fn skip_fields(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        input.skip(4)?;
        Plane::skip(input)?;
        input.skip(1)
    }
}
