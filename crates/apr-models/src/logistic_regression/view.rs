//! A view of the model over the bytes of its payload.

use apr_container::F32s;

use super::{classes_into, probabilities_into};
use crate::error::Error;
use crate::linear::PlaneView;

/// A logistic regression over the bytes of its payload: it copies and allocates nothing, and the bytes need no
/// alignment. Its predictions equal, bit for bit, those of the model that
/// [`Embedded::load`](apr_container::Embedded::load) gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogisticRegressionView<'data> {
    pub(super) plane: PlaneView<'data>,
}

impl<'data> LogisticRegressionView<'data> {
    /// Features of a sample, at least one.
    #[must_use]
    pub const fn n_features(&self) -> usize {
        self.plane.coefficients().len()
    }

    /// The coefficients: `[n_features]`.
    #[must_use]
    pub const fn coefficients(&self) -> F32s<'data> {
        self.plane.coefficients()
    }

    /// The intercept.
    #[must_use]
    pub const fn intercept(&self) -> f32 {
        self.plane.intercept()
    }

    /// The class, 0 or 1, of each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`).
    /// Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputLength`](crate::ErrorKind::InputLength) and
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if `rows` is not `out.len()` rows of the model's
    /// features.
    pub fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        classes_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }

    /// The probability of class 1 for each row of `rows` into `out`; shapes as in
    /// [`predict_into`](Self::predict_into). Allocates nothing.
    ///
    /// # Errors
    ///
    /// As [`predict_into`](Self::predict_into).
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        probabilities_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }
}
