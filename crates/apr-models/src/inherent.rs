//! `predict` and `transform` as inherent methods of the models, so that callers need not import a trait:
//!
//! ```
//! use apr_models::{LogisticRegression, Matrix, StandardScaler};
//!
//! let x = Matrix::from_vec(4, 1, vec![0.0, 1.0, 2.0, 3.0])?;
//! let mut model = LogisticRegression::new();
//! model.fit(&x, &[0, 0, 1, 1])?;
//! assert_eq!(model.predict(&x), [0, 0, 1, 1]);
//!
//! let scaler = StandardScaler::from_parts(vec![1.0], vec![2.0])?;
//! assert_eq!(scaler.transform(&x).as_slice(), [-0.5, 0.0, 0.5, 1.0]);
//! # Ok::<(), apr_models::Error>(())
//! ```

use alloc::vec::Vec;

use crate::matrix::Matrix;
use crate::model::{Classifier, Regressor, Transformer};
use crate::vector::Vector;

macro_rules! regressors {
    ($($model:ty)*) => {$(
        impl $model {
            /// Predicts each row of `x` (`[n_samples, n_features]`): `[n_samples]`; [`Regressor::try_predict`] returns an
            /// error instead of panicking.
            ///
            /// # Panics
            ///
            /// If the model is unfitted, or `x` does not have the model's number of features.
            #[must_use]
            #[track_caller]
            pub fn predict(&self, x: &Matrix) -> Vector {
                Regressor::predict(self, x)
            }
        }
    )*};
}

macro_rules! classifiers {
    ($($model:ty)*) => {$(
        impl $model {
            /// Predicts the class of each row of `x` (`[n_samples, n_features]`): `[n_samples]`;
            /// [`Classifier::try_predict`] returns an error instead of panicking.
            ///
            /// # Panics
            ///
            /// If the model is unfitted, or `x` does not have the model's number of features.
            #[must_use]
            #[track_caller]
            pub fn predict(&self, x: &Matrix) -> Vec<usize> {
                Classifier::predict(self, x)
            }
        }
    )*};
}

macro_rules! transformers {
    ($($model:ty)*) => {$(
        impl $model {
            /// Transforms each row of `x` (`[n_samples, n_features]`): `[n_samples, n_outputs]`;
            /// [`Transformer::try_transform`] returns an error instead of panicking.
            ///
            /// # Panics
            ///
            /// If the model is unfitted, or `x` does not have the model's number of features.
            #[must_use]
            #[track_caller]
            pub fn transform(&self, x: &Matrix) -> Matrix {
                Transformer::transform(self, x)
            }
        }
    )*};
}

regressors! {
    crate::Ridge crate::Lasso crate::ElasticNet crate::DecisionTreeRegressor crate::RandomForestRegressor
    crate::KnnRegressor crate::GradientBoostingRegressor crate::MixtureOfExperts<crate::LinearRegression>
}

classifiers! {
    crate::LogisticRegression crate::DecisionTreeClassifier crate::RandomForestClassifier crate::KMeans
    crate::GaussianMixture crate::NaiveBayes crate::KnnClassifier crate::Svm crate::GradientBoostingClassifier
}

transformers! {
    crate::StandardScaler crate::MinMaxScaler crate::Pca crate::NeuralSequential
}
