//! Gradient boosted trees.

pub(crate) mod boosted;
mod classifier;
mod fit;
mod loss;
mod regressor;
mod stored;

pub use self::classifier::{BoostedClassifierParts, GradientBoostingClassifier};
pub use self::fit::{BoostingOptions, BoostingReport, EarlyStopping};
pub use self::regressor::{BoostedRegressorParts, GradientBoostingRegressor};
