//! Linear regressions with an L1 penalty: Lasso and ElasticNet.

use apr_container::{PayloadReader, PayloadWriter};

use crate::checks;
use crate::convergence::Convergence;
use crate::error::Error;
use crate::least_squares::{self, L1Settings};
use crate::linear::regressor::linear_regressor;
use crate::linear::{self, Intercept, Plane};
use crate::matrix::Matrix;
use crate::payload::fields::{Fields, read};
use crate::tensors::Tensors;
use crate::vector::Vector;

/// Lasso: a linear regression with an L1 penalty, which makes coefficients exactly 0 (Tibshirani, J. R. Stat. Soc. B 58,
/// 1996). Training minimizes `|y - x b|^2 / (2 n) + alpha * |b|_1`, as scikit-learn 1.9.1's `Lasso`; the intercept has no
/// penalty.
///
/// ```
/// use apr_models::{Lasso, Matrix, Vector};
///
/// let x = Matrix::from_vec(4, 2, vec![-1.0, 0.5, -1.0, -0.5, 1.0, 0.5, 1.0, -0.5])?;
/// let y = Vector::from_vec(vec![1.0, 1.0, 5.0, 5.0]);
/// let mut model = Lasso::new(0.5)?;
/// assert!(model.fit(&x, &y)?.converged);
/// // The slope of 2 is shortened by alpha, and a feature that says nothing has none.
/// assert_eq!(model.coefficients().as_slice(), &[1.5, 0.0]);
/// assert_eq!(model.intercept(), 3.0);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Lasso {
    alpha: f32,
    plane: Plane,
    rule: Intercept,
    stop: Stop,
}

/// Elastic net: a linear regression with an L1 and an L2 penalty (Zou and Hastie, J. R. Stat. Soc. B 67, 2005). Training
/// minimizes `|y - x b|^2 / (2 n) + alpha * l1_ratio * |b|_1 + alpha * (1 - l1_ratio) / 2 * |b|^2`, as scikit-learn
/// 1.9.1's `ElasticNet`; the intercept has no penalty.
#[derive(Clone, Debug, PartialEq)]
pub struct ElasticNet {
    alpha: f32,
    l1_ratio: f32,
    plane: Plane,
    rule: Intercept,
    stop: Stop,
}

/// When training is to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stop {
    max_iter: usize,
    tol: f32,
}

/// What other implementations start from.
impl Default for Stop {
    fn default() -> Self {
        Self { max_iter: 1000, tol: 1e-4 }
    }
}

linear_regressor!(Lasso);
linear_regressor!(ElasticNet);

impl Lasso {
    /// An unfitted model with this penalty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if `alpha` is negative or not finite.
    pub fn new(alpha: f32) -> Result<Self, Error> {
        checks::expect_not_negative(ALPHA, alpha.into())?;
        Ok(Self { alpha, plane: Plane::new(), rule: Intercept::Fitted, stop: Stop::default() })
    }

    /// A fitted model with these weights, trained with this penalty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if `alpha` is negative or not finite,
    /// [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients), or
    /// [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite) for the first weight that is not finite.
    pub fn from_parts(alpha: f32, coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        let empty = Self::new(alpha)?;
        Ok(Self { plane: Plane::from_parts(coefficients, intercept)?, ..empty })
    }

    /// Reads the model from named tensors: `alpha`, `coefficients`, `intercept`, `max_iter`, `tol`, and
    /// `fit_intercept` if it is 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor), the errors of [`Tensors`] for missing
    /// or malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&|name| linear::is_part(name) || [ALPHA, MAX_ITER, TOL].contains(&name))?;
        let empty = Self::new(tensors.number(ALPHA)?)?;
        Ok(Self {
            alpha: empty.alpha,
            plane: Plane::read_from(tensors)?,
            rule: linear::read_intercept_rule(tensors)?,
            stop: Stop::read_from(tensors)?,
        })
    }

    fn push_settings(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_number(ALPHA, self.alpha)?;
        self.stop.push_to(tensors)
    }
}

impl ElasticNet {
    /// An unfitted model with a penalty of this size, of which `l1_ratio` is on the absolute values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if `alpha` is negative or not finite or `l1_ratio`
    /// is not from 0 to 1.
    pub fn new(alpha: f32, l1_ratio: f32) -> Result<Self, Error> {
        checks::expect_not_negative(ALPHA, alpha.into())?;
        check_ratio(l1_ratio)?;
        Ok(Self { alpha, l1_ratio, plane: Plane::new(), rule: Intercept::Fitted, stop: Stop::default() })
    }

    /// A fitted model with these weights, trained with a penalty of this size, of which `l1_ratio` was on the absolute
    /// values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) if `alpha` is negative or not finite or `l1_ratio`
    /// is not from 0 to 1, [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients), or
    /// [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite) for the first weight that is not finite.
    pub fn from_parts(
        alpha: f32,
        l1_ratio: f32,
        coefficients: Vector,
        intercept: f32,
    ) -> Result<Self, Error> {
        let empty = Self::new(alpha, l1_ratio)?;
        Ok(Self { plane: Plane::from_parts(coefficients, intercept)?, ..empty })
    }

    /// The fraction of the penalty that is L1, 0 to 1.
    #[must_use]
    pub const fn l1_ratio(&self) -> f32 {
        self.l1_ratio
    }

    /// Reads the model from named tensors: `alpha`, `l1_ratio`, `coefficients`, `intercept`, `max_iter`, `tol`, and
    /// `fit_intercept` if it is 0.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor), the errors of [`Tensors`] for missing
    /// or malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors
            .expect_only(&|name| linear::is_part(name) || [ALPHA, L1_RATIO, MAX_ITER, TOL].contains(&name))?;
        let empty = Self::new(tensors.number(ALPHA)?, tensors.number(L1_RATIO)?)?;
        Ok(Self {
            alpha: empty.alpha,
            l1_ratio: empty.l1_ratio,
            plane: Plane::read_from(tensors)?,
            rule: linear::read_intercept_rule(tensors)?,
            stop: Stop::read_from(tensors)?,
        })
    }

    fn push_settings(&self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_number(ALPHA, self.alpha)?;
        tensors.push_number(L1_RATIO, self.l1_ratio)?;
        self.stop.push_to(tensors)
    }
}

/// Training settings of both.
macro_rules! trained_with {
    ($model:ident) => {
        impl $model {
            /// Fits the model to samples `x` (`[n_samples, n_features]`) and targets `y` (`[n_samples]`). On an error
            /// the model is unchanged.
            ///
            /// Cyclic coordinate descent in `f64` until the duality gap is at most [`tol`](Self::tol) times the sum of
            /// the squares of the centred target, or for [`max_iter`](Self::max_iter) passes; rounded once. The same
            /// input gives the same bits on every platform.
            ///
            /// # Errors
            ///
            /// As [`LinearRegression::fit`](crate::LinearRegression::fit);
            /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for a setting that is out of its range.
            pub fn fit(&mut self, x: &Matrix, y: &Vector) -> Result<Convergence, Error> {
                let settings = self.l1_settings()?;
                let (plane, convergence) = least_squares::fit_l1(x, y, self.rule, settings)?;
                self.plane = plane;
                Ok(convergence)
            }

            /// Sets whether training estimates the intercept or leaves it 0.
            #[must_use]
            pub const fn with_intercept(mut self, rule: Intercept) -> Self {
                self.rule = rule;
                self
            }

            /// Sets the most passes over the coefficients and the tolerance of training; 1000 and 1e-4 by default.
            #[must_use]
            pub const fn with_stop(mut self, max_iter: usize, tol: f32) -> Self {
                self.stop = Stop { max_iter, tol };
                self
            }

            /// The size of the penalty.
            #[must_use]
            pub const fn alpha(&self) -> f32 {
                self.alpha
            }

            /// The most passes of training over the coefficients.
            #[must_use]
            pub const fn max_iter(&self) -> usize {
                self.stop.max_iter
            }

            /// The tolerance of training.
            #[must_use]
            pub const fn tol(&self) -> f32 {
                self.stop.tol
            }
        }
    };
}

trained_with!(Lasso);
trained_with!(ElasticNet);

impl Lasso {
    fn l1_settings(&self) -> Result<L1Settings, Error> {
        self.stop.l1_settings(self.alpha, 1.0)
    }
}

impl ElasticNet {
    fn l1_settings(&self) -> Result<L1Settings, Error> {
        self.stop.l1_settings(self.alpha, self.l1_ratio)
    }
}

impl Stop {
    /// Checks all settings: those read from a file may have any value.
    fn l1_settings(self, alpha: f32, l1_ratio: f32) -> Result<L1Settings, Error> {
        checks::expect_not_negative(ALPHA, alpha.into())?;
        check_ratio(l1_ratio)?;
        checks::expect(MAX_ITER, self.max_iter > 0, "at least 1 is needed")?;
        checks::expect_not_negative(TOL, self.tol.into())?;
        Ok(L1Settings {
            alpha: alpha.into(),
            l1_ratio: l1_ratio.into(),
            max_iter: self.max_iter,
            tol: self.tol.into(),
        })
    }

    fn push_to(self, tensors: &mut Tensors) -> Result<(), Error> {
        tensors.push_count(MAX_ITER, self.max_iter)?;
        tensors.push_number(TOL, self.tol)
    }

    fn read_from(tensors: &Tensors) -> Result<Self, Error> {
        Ok(Self { max_iter: tensors.count(MAX_ITER)?, tol: tensors.number(TOL)? })
    }

    fn encode(self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.usize(self.max_iter)?;
        out.f32(self.tol)
    }

    fn decode(fields: &mut Fields<'_, '_>) -> Self {
        Self { max_iter: fields.usize(), tol: fields.f32() }
    }
}

fn check_ratio(l1_ratio: f32) -> Result<(), Error> {
    checks::expect("l1_ratio", (0.0..=1.0).contains(&l1_ratio), "a number from 0 to 1 is needed")
}

const ALPHA: &str = "alpha";
const L1_RATIO: &str = "l1_ratio";
const MAX_ITER: &str = "max_iter";
const TOL: &str = "tol";

stored_model! {
    /// `alpha`, the weights as [`LinearRegression`](crate::LinearRegression), the most rounds, the change to stop at.
    ///
    /// Values that are not finite, and unfitted models, are accepted.
    Lasso "Lasso" [LinearRegression]
    n_features: |model| model.plane.n_features();
    is_fitted: |model| model.is_fitted();
}

impl Lasso {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32(self.alpha)?;
        self.plane.encode(out)?;
        linear::encode_rule(self.rule, out)?;
        self.stop.encode(out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self {
            alpha: fields.f32(),
            plane: Plane::decode(fields),
            rule: linear::decode_rule(fields),
            stop: Stop::decode(fields),
        })
    }
}

stored_model! {
    /// As [`Lasso`] with the ratio after `alpha`.
    ///
    /// Values that are not finite, and unfitted models, are accepted.
    ElasticNet "ElasticNet" [LinearRegression]
    n_features: |model| model.plane.n_features();
    is_fitted: |model| model.is_fitted();
}

impl ElasticNet {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        out.f32(self.alpha)?;
        out.f32(self.l1_ratio)?;
        self.plane.encode(out)?;
        linear::encode_rule(self.rule, out)?;
        self.stop.encode(out)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self {
            alpha: fields.f32(),
            l1_ratio: fields.f32(),
            plane: Plane::decode(fields),
            rule: linear::decode_rule(fields),
            stop: Stop::decode(fields),
        })
    }
}
