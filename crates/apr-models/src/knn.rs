//! k nearest neighbours.

mod classifier;
mod neighbours;
mod regressor;
mod stored;

pub use self::classifier::KnnClassifier;
pub use self::neighbours::Neighbour;
pub use self::regressor::KnnRegressor;
pub use crate::kernels::neighbours::KnnWeights;
