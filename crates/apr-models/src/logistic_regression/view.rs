//! The model over the bytes of its payload.

use apr_container::F32s;

use super::{classes_into, probabilities_into};
use crate::error::Error;
use crate::linear::PlaneView;

/// A logistic regression over the bytes of its payload: nothing is copied, nothing allocated, and the numbers may begin at
/// any address. It predicts with the bits of the model that [`Embedded::load`](apr_container::Embedded::load) gives.
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

    /// One coefficient for each feature.
    #[must_use]
    pub const fn coefficients(&self) -> F32s<'data> {
        self.plane.coefficients()
    }

    /// The constant term.
    #[must_use]
    pub const fn intercept(&self) -> f32 {
        self.plane.intercept()
    }

    /// The class, 0 or 1, of each sample of `rows`, which stand one after the other, into its place in `out`. Nothing is
    /// allocated.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InputLength`](crate::ErrorKind::InputLength) and
    /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount) if `rows` is not one sample of the model's features for
    /// each place.
    pub fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        classes_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }

    /// The probability of class 1 for each sample of `rows`, into its place in `out`. Nothing is allocated.
    ///
    /// # Errors
    ///
    /// As [`predict_into`](Self::predict_into).
    pub fn predict_proba_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        probabilities_into(self.plane.values(rows, out.len())?, out);
        Ok(())
    }
}
