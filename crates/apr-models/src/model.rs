//! The traits of models.

use alloc::vec;
use alloc::vec::Vec;

use apr_container::ModelType;

use crate::error::{Error, ErrorKind, Operation};
use crate::matrix::{Matrix, table};
use crate::tensors::Tensors;
use crate::vector::Vector;

/// A model of a type this crate knows.
pub trait Model {
    /// Its type here, for example `Ridge`; files name it so in their metadata under `apr.model`.
    fn name(&self) -> &'static str;

    /// The container's type for it; several models share one.
    fn model_type(&self) -> ModelType;

    /// Features of a sample, `n_features`; `None` if the model is unfitted or does not store it.
    fn n_features(&self) -> Option<usize>;

    /// The model as named tensors.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`] if there is nothing to store.
    fn to_tensors(&self) -> Result<Tensors, Error>;

    /// The model with its weight matrices in blocks of 8 or 4 bits, to be saved.
    ///
    /// # Errors
    ///
    /// Those of [`QuantizedModel::new`](crate::QuantizedModel::new).
    #[cfg(feature = "quantize")]
    fn quantize(&self, quant_type: crate::QuantType) -> Result<crate::QuantizedModel, Error> {
        crate::QuantizedModel::new(self, quant_type)
    }
}

/// A model that predicts a value for each sample.
pub trait Regressor: Model {
    /// Predicts each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`). Allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`]; [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if `rows` is not
    /// `out.len()` rows of the model's features.
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error>;

    /// Predicts each row of `x` (`[n_samples, n_features]`): `[n_samples]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`].
    fn try_predict(&self, x: &Matrix) -> Result<Vector, Error> {
        let mut out = vec![0.0; x.n_rows()];
        self.predict_into(x.as_slice(), &mut out)?;
        Ok(Vector::from_vec(out))
    }

    /// Predicts each row of `x` (`[n_samples, n_features]`); [`try_predict`](Self::try_predict) returns an error
    /// instead of panicking.
    ///
    /// # Panics
    ///
    /// If the model is unfitted, or `x` does not have the model's number of features.
    #[must_use]
    #[track_caller]
    fn predict(&self, x: &Matrix) -> Vector {
        match self.try_predict(x) {
            Ok(predictions) => predictions,
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
    fn try_score(&self, x: &Matrix, y: &Vector) -> Result<f32, Error> {
        let predictions = self.try_predict(x)?;
        r_squared(predictions.iter().map(f64::from), y)
    }
}

/// A model that predicts a class, or a cluster, for each sample.
pub trait Classifier: Model {
    /// Predicts each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`). Allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`]; [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if `rows` is not
    /// `out.len()` rows of the model's features.
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error>;

    /// Predicts each row of `x` (`[n_samples, n_features]`): `[n_samples]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`].
    fn try_predict(&self, x: &Matrix) -> Result<Vec<usize>, Error> {
        let mut out = vec![0; x.n_rows()];
        self.predict_into(x.as_slice(), &mut out)?;
        Ok(out)
    }

    /// Predicts each row of `x` (`[n_samples, n_features]`); [`try_predict`](Self::try_predict) returns an error
    /// instead of panicking.
    ///
    /// # Panics
    ///
    /// If the model is unfitted, or `x` does not have the model's number of features.
    #[must_use]
    #[track_caller]
    fn predict(&self, x: &Matrix) -> Vec<usize> {
        match self.try_predict(x) {
            Ok(predictions) => predictions,
            Err(error) => panic!("{error}"),
        }
    }

    /// The accuracy: the fraction of samples whose prediction is the class in `y` (`[n_samples]`).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`], [`ErrorKind::TargetLength`].
    fn try_score(&self, x: &Matrix, y: &[usize]) -> Result<f32, Error> {
        let predictions = self.try_predict(x)?;
        if y.len() != x.n_rows() {
            return Err(ErrorKind::TargetLength { n_rows: x.n_rows(), given: y.len() }.into());
        }
        let right = predictions.iter().zip(y).filter(|(found, expected)| found == expected).count();
        Ok((right as f64 / y.len() as f64) as f32)
    }
}

/// A model that maps each sample to a row of values.
pub trait Transformer: Model {
    /// Values of a transformed sample, `n_outputs`; `None` if the model is unfitted.
    fn n_outputs(&self) -> Option<usize>;

    /// Transforms each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples, n_outputs]`,
    /// row-major). Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`]; [`ErrorKind::OutputLength`], [`ErrorKind::InputLength`] and
    /// [`ErrorKind::FeatureCount`] if the lengths do not fit each other and the model.
    fn transform_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error>;

    /// Transforms each row of `x` (`[n_samples, n_features]`): `[n_samples, n_outputs]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`], [`ErrorKind::MatrixTooLarge`].
    fn try_transform(&self, x: &Matrix) -> Result<Matrix, Error> {
        table(x, self.n_outputs().unwrap_or(x.n_cols()), |rows, out| self.transform_into(rows, out))
    }

    /// Transforms each row of `x` (`[n_samples, n_features]`); [`try_transform`](Self::try_transform) returns an
    /// error instead of panicking.
    ///
    /// # Panics
    ///
    /// If the model is unfitted, or `x` does not have the model's number of features.
    #[must_use]
    #[track_caller]
    fn transform(&self, x: &Matrix) -> Matrix {
        match self.try_transform(x) {
            Ok(transformed) => transformed,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Refuses to save a model that was not fitted.
pub(crate) fn check_fitted(is_fitted: bool) -> Result<(), apr_container::Error> {
    match is_fitted {
        true => Ok(()),
        false => Err(Error::from(ErrorKind::NotFitted { operation: Operation::Save }).into()),
    }
}

/// Values of one sample, if `rows` holds `n_rows` samples of as many values each.
pub(crate) fn row_width(rows: &[f32], n_rows: usize) -> Result<usize, Error> {
    match rows.len().checked_rem(n_rows) {
        Some(0) => Ok(rows.len() / n_rows),
        None if rows.is_empty() => Ok(0),
        _ => Err(ErrorKind::InputLength { n_rows, given: rows.len() }.into()),
    }
}

/// Proves that `rows` holds `n_rows` samples of `n_features` values each.
pub(crate) fn check_rows(rows: &[f32], n_rows: usize, n_features: usize) -> Result<(), Error> {
    match row_width(rows, n_rows)? {
        found if found == n_features || n_rows == 0 => Ok(()),
        found => Err(ErrorKind::FeatureCount { expected: n_features, found }.into()),
    }
}

/// R² of predictions that are not rounded yet.
pub(crate) fn r_squared(predictions: impl ExactSizeIterator<Item = f64>, y: &Vector) -> Result<f32, Error> {
    if y.len() != predictions.len() {
        return Err(ErrorKind::TargetLength { n_rows: predictions.len(), given: y.len() }.into());
    }
    // Relative to the first value, so that a large offset costs no digits and a constant target has no spread.
    let origin = y.iter().next().map_or(0.0, f64::from);
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
