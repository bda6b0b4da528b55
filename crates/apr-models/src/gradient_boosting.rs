//! Gradient boosted trees.

mod boosted;
mod classifier;
mod regressor;
mod stored;

pub use self::classifier::{BoostedClassifierParts, GradientBoostingClassifier};
pub use self::regressor::{BoostedRegressorParts, GradientBoostingRegressor};
