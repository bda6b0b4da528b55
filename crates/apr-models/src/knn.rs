//! k nearest neighbours.

mod classifier;
mod neighbours;
mod regressor;
mod stored;

pub use self::classifier::KnnClassifier;
pub use self::neighbours::{KnnWeights, Neighbour};
pub use self::regressor::KnnRegressor;
