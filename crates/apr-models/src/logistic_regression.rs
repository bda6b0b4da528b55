//! Logistic regression with two classes.

use alloc::vec;

use crate::error::Error;
use crate::kernels::activations::sigmoid;
use crate::linear::{self, Plane};
use crate::matrix::Matrix;
use crate::model::Classifier;
use crate::tensors::Tensors;
use crate::vector::Vector;
use crate::weighting::ClassWeight;

mod payload;
mod fit;
mod view;

pub use self::view::LogisticRegressionView;

/// Batches of the training of other implementations. Stored for them, not used here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FitMode {
    /// All samples, then a step.
    #[default]
    Batch,
    /// A step for each sample.
    Stochastic,
    /// A step for this many samples.
    MiniBatch(usize),
}

/// Binary logistic regression: the probability of class 1 is `1 / (1 + exp(-z))` with
/// `z = x · coefficients + intercept`; a sample is of class 1 if that, rounded to `f32`, is at least 1/2. Fitted by
/// Newton's method with backtracking (Hastie, Tibshirani and Friedman, *The Elements of Statistical Learning*, 2nd
/// edition, section 4.4.1).
///
/// ```
/// use apr_models::{Classifier, LogisticRegression, Matrix};
///
/// let x = Matrix::from_vec(6, 1, vec![0.0, 1.0, 2.0, 2.5, 3.0, 4.0])?;
/// let mut model = LogisticRegression::new().with_l2_penalty(0.01);
/// model.fit(&x, &[0, 0, 1, 0, 1, 1])?;
/// assert_eq!(model.predict(&Matrix::from_vec(2, 1, vec![0.5, 3.5])?), [0, 1]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LogisticRegression {
    plane: Plane,
    learning_rate: f32,
    max_iter: usize,
    tol: f32,
    class_weight: ClassWeight,
    l2_penalty: f32,
    fit_mode: FitMode,
}

impl Default for LogisticRegression {
    fn default() -> Self {
        Self::new()
    }
}

impl LogisticRegression {
    /// An unfitted model without a penalty.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            plane: Plane::new(),
            learning_rate: 0.01,
            max_iter: 100,
            tol: 1e-8,
            class_weight: ClassWeight::Uniform,
            l2_penalty: 0.0,
            fit_mode: FitMode::Batch,
        }
    }

    /// A fitted model with these weights.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NoCoefficients`](crate::ErrorKind::NoCoefficients), or
    /// [`ErrorKind::WeightNotFinite`](crate::ErrorKind::WeightNotFinite) for the first weight that is not finite.
    pub fn from_parts(coefficients: Vector, intercept: f32) -> Result<Self, Error> {
        Ok(Self { plane: Plane::from_parts(coefficients, intercept)?, ..Self::new() })
    }

    /// Sets the L2 penalty: training adds half of `penalty` times the sum of squared coefficients to the mean loss
    /// of a sample. scikit-learn's `C` for `n` samples is `1 / (n * penalty)`.
    #[must_use]
    pub const fn with_l2_penalty(mut self, penalty: f32) -> Self {
        self.l2_penalty = penalty;
        self
    }

    /// Sets the weights of the classes.
    #[must_use]
    pub fn with_class_weight(mut self, class_weight: ClassWeight) -> Self {
        self.class_weight = class_weight;
        self
    }

    /// Sets the maximum number of iterations.
    #[must_use]
    pub const fn with_max_iter(mut self, max_iter: usize) -> Self {
        self.max_iter = max_iter;
        self
    }

    /// Sets the tolerance: training stops when no derivative of the loss, for standardized features, is greater.
    #[must_use]
    pub const fn with_tol(mut self, tol: f32) -> Self {
        self.tol = tol;
        self
    }

    /// Sets the training options of other implementations.
    #[must_use]
    pub const fn with_descent(mut self, learning_rate: f32, fit_mode: FitMode) -> Self {
        self.learning_rate = learning_rate;
        self.fit_mode = fit_mode;
        self
    }

    /// Fits the model to samples `x` (`[n_samples, n_features]`) and classes `y` (`[n_samples]`, 0 or 1). On an
    /// error the model is unchanged.
    ///
    /// Newton's method in `f64`, in units in which every feature has the mean 0 and the standard deviation 1, rounded
    /// once; the same input gives the same bits on every platform. The intercept has no penalty. Without a penalty
    /// the coefficients of linearly separable classes grow until the derivatives vanish; a small penalty bounds them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`](crate::ErrorKind::TargetLength),
    /// [`ErrorKind::FeatureNotFinite`](crate::ErrorKind::FeatureNotFinite),
    /// [`ErrorKind::Label`](crate::ErrorKind::Label) for a class other than 0 and 1,
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for a penalty or weight that is negative or not
    /// finite, [`ErrorKind::OutOfRange`](crate::ErrorKind::OutOfRange) if the solution does not fit `f32`.
    pub fn fit(&mut self, x: &Matrix, y: &[usize]) -> Result<(), Error> {
        self.fit_samples(x, y, None)
    }

    /// As [`fit`](Self::fit), with a weight for each sample, which its class's weight is multiplied by. The loss is still
    /// divided by the number of samples.
    ///
    /// # Errors
    ///
    /// As [`fit`](Self::fit), and for weights that are not one finite number of at least 0 for each sample, or all 0.
    pub fn fit_weighted(&mut self, x: &Matrix, y: &[usize], weights: &[f32]) -> Result<(), Error> {
        self.fit_samples(x, y, Some(weights))
    }

    fn fit_samples(&mut self, x: &Matrix, y: &[usize], weights: Option<&[f32]>) -> Result<(), Error> {
        let settings = fit::Settings {
            max_iter: self.max_iter,
            tol: self.tol.into(),
            l2_penalty: self.l2_penalty.into(),
            class_weight: &self.class_weight,
        };
        self.plane = fit::fit(x, y, weights, &settings)?;
        Ok(())
    }

    /// Whether the model is fitted: by `fit`, from a file, or from parts.
    #[must_use]
    pub fn is_fitted(&self) -> bool {
        self.plane.is_fitted()
    }

    /// The coefficients: `[n_features]`, empty until the model is fitted.
    #[must_use]
    pub fn coefficients(&self) -> &Vector {
        self.plane.coefficients()
    }

    /// The intercept; 0 until the model is fitted.
    #[must_use]
    pub const fn intercept(&self) -> f32 {
        self.plane.intercept()
    }

    /// The penalty of training.
    #[must_use]
    pub const fn l2_penalty(&self) -> f32 {
        self.l2_penalty
    }

    /// The weights of the classes in training.
    #[must_use]
    pub const fn class_weight(&self) -> &ClassWeight {
        &self.class_weight
    }

    /// Maximum number of iterations.
    #[must_use]
    pub const fn max_iter(&self) -> usize {
        self.max_iter
    }

    /// The tolerance of training.
    #[must_use]
    pub const fn tol(&self) -> f32 {
        self.tol
    }

    /// The learning rate of other implementations' training.
    #[must_use]
    pub const fn learning_rate(&self) -> f32 {
        self.learning_rate
    }

    /// The batches of other implementations' training.
    #[must_use]
    pub const fn fit_mode(&self) -> FitMode {
        self.fit_mode
    }

    /// The probability of class 1 for each row of `rows` (`[n_samples, n_features]`, row-major) into `out`
    /// (`[n_samples]`). Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted);
    /// [`ErrorKind::InputLength`](crate::ErrorKind::InputLength) and
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if `rows` is not `out.len()` rows of the model's
    /// features.
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        probabilities_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }

    /// The probability of class 1 for each row of `x`: `[n_samples]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted),
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount).
    pub fn try_predict_proba(&self, x: &Matrix) -> Result<Vector, Error> {
        let mut out = vec![0.0; x.n_rows()];
        self.predict_proba_into(x.as_slice(), &mut out)?;
        Ok(Vector::from_vec(out))
    }

    /// Reads the model from named tensors: `coefficients` and `intercept`. Settings of the training are not among them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`](crate::ErrorKind::OtherModel),
    /// [`ErrorKind::UnexpectedTensor`](crate::ErrorKind::UnexpectedTensor), the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_parts(Self::NAME, &[linear::COEFFICIENTS, linear::INTERCEPT])?;
        Ok(Self { plane: Plane::read_from(tensors)?, ..Self::new() })
    }
}

/// The probability of class 1 for each value of the linear function.
fn probabilities_into(values: impl Iterator<Item = f64>, out: &mut [f32]) {
    for (place, value) in out.iter_mut().zip(values) {
        *place = sigmoid(value) as f32;
    }
}

/// The class for each value of the linear function.
fn classes_into(values: impl Iterator<Item = f64>, out: &mut [usize]) {
    for (place, value) in out.iter_mut().zip(values) {
        // A probability that is not a number is not at least one half.
        *place = usize::from(sigmoid(value) as f32 >= 0.5);
    }
}

impl LogisticRegression {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.plane.push_to(tensors)
    }
}

impl Classifier for LogisticRegression {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        classes_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }
}
