//! The interface that the four linear regressions share.

/// Implements the methods of a regression with a field `plane`: the types differ in their training and in what they store
/// beside it.
macro_rules! linear_regressor {
    ($model:ident) => {
        impl $model {
            /// Whether the model is fitted: by `fit`, from a file, or from parts.
            #[must_use]
            pub fn is_fitted(&self) -> bool {
                self.plane.is_fitted()
            }

            /// The coefficients: `[n_features]`, empty until the model is fitted.
            #[must_use]
            pub fn coefficients(&self) -> &$crate::vector::Vector {
                self.plane.coefficients()
            }

            /// The intercept; 0 until the model is fitted.
            #[must_use]
            pub const fn intercept(&self) -> f32 {
                self.plane.intercept()
            }

            /// Whether training estimated the intercept.
            #[must_use]
            pub const fn intercept_rule(&self) -> $crate::linear::Intercept {
                self.rule
            }

            /// Predicts one sample `row` (`[n_features]`); [`try_predict_one`](Self::try_predict_one) returns an
            /// error instead of panicking.
            ///
            /// # Panics
            ///
            /// If the model is unfitted, or `row` does not have the model's number of features.
            #[must_use]
            #[track_caller]
            pub fn predict_one(&self, row: &[f32]) -> f32 {
                match self.try_predict_one(row) {
                    Ok(prediction) => prediction,
                    Err(error) => panic!("{error}"),
                }
            }

            /// Predicts one sample `row`: `[n_features]`.
            ///
            /// # Errors
            ///
            /// [`ErrorKind::NotFitted`](crate::ErrorKind::NotFitted),
            /// [`ErrorKind::FeatureCount`](crate::ErrorKind::FeatureCount).
            pub fn try_predict_one(&self, row: &[f32]) -> Result<f32, $crate::error::Error> {
                Ok(self.plane.value(row)? as f32)
            }

            fn push_tensors(
                &self,
                tensors: &mut $crate::tensors::Tensors,
            ) -> Result<(), $crate::error::Error> {
                self.plane.push_to(tensors)?;
                $crate::linear::push_intercept_rule(tensors, self.rule)?;
                self.push_settings(tensors)
            }
        }

        /// Each prediction is summed in `f64` and rounded once. A value that is not finite makes its own row's
        /// prediction not finite, and so does a prediction beyond the range of `f32`.
        impl $crate::model::Regressor for $model {
            fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), $crate::error::Error> {
                self.plane.values_into(rows, out)
            }

            fn try_score(
                &self,
                x: &$crate::matrix::Matrix,
                y: &$crate::vector::Vector,
            ) -> Result<f32, $crate::error::Error> {
                $crate::model::r_squared(self.plane.values(x.as_slice(), x.n_rows())?, y)
            }
        }
    };
}

pub(crate) use linear_regressor;
