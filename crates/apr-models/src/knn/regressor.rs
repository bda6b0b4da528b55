//! Regression by the mean of the neighbours' targets.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::kernels::neighbours::KnnWeights;
use crate::knn::neighbours::{Neighbour, Neighbours};
use crate::matrix::Matrix;
use crate::model::Regressor;
use crate::vector::Vector;

/// k-nearest-neighbours regressor: the weighted mean of the targets of the `k` nearest samples, as scikit-learn
/// 1.9.1's `KNeighborsRegressor` but for ties.
///
/// Distances are Euclidean, summed in `f64`. Of equally distant samples the one with the smaller index counts as
/// nearer.
///
/// ```
/// use apr_models::{KnnRegressor, KnnWeights, Matrix, Regressor, Vector};
///
/// let x = Matrix::from_vec(3, 1, vec![0.0, 1.0, 10.0])?;
/// let y = Vector::from_vec(vec![2.0, 4.0, 30.0]);
/// let model = KnnRegressor::fit(x, y, 2, KnnWeights::Uniform)?;
/// assert_eq!(model.predict(&Matrix::from_vec(1, 1, vec![0.25])?)[0], 3.0);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct KnnRegressor {
    pub(crate) neighbours: Neighbours,
    pub(crate) targets: Vector,
}

impl KnnRegressor {
    /// Stores the samples `x` (`[n_samples, n_features]`) and their targets `y` (`[n_samples]`); predictions use the
    /// `k` nearest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`], [`ErrorKind::FeatureNotFinite`], [`ErrorKind::TargetNotFinite`],
    /// [`ErrorKind::PartInvalid`] if `k` is 0, [`ErrorKind::TooFewSamples`] if it is more than the samples.
    pub fn fit(x: Matrix, y: Vector, k: usize, weights: KnnWeights) -> Result<Self, Error> {
        Self::from_parts(Neighbours::new(x, k, weights)?, y)
    }

    pub(crate) fn from_parts(neighbours: Neighbours, targets: Vector) -> Result<Self, Error> {
        if targets.len() != neighbours.samples.n_rows() {
            let n_rows = neighbours.samples.n_rows();
            return Err(ErrorKind::TargetLength { n_rows, given: targets.len() }.into());
        }
        if let Some(row) = targets.iter().position(|target| !target.is_finite()) {
            return Err(ErrorKind::TargetNotFinite { row }.into());
        }
        Ok(Self { neighbours, targets })
    }

    /// The stored samples: `[n_samples, n_features]`.
    #[must_use]
    pub const fn samples(&self) -> &Matrix {
        &self.neighbours.samples
    }

    /// Their targets.
    #[must_use]
    pub const fn targets(&self) -> &Vector {
        &self.targets
    }

    /// Number of neighbours, `k`.
    #[must_use]
    pub const fn k(&self) -> usize {
        self.neighbours.k
    }

    /// The weights of the neighbours.
    #[must_use]
    pub const fn weights(&self) -> KnnWeights {
        self.neighbours.weights
    }

    /// The stored samples nearest to `row` (`[n_features]`), nearest first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::FeatureCount`], [`ErrorKind::FeatureNotFinite`].
    pub fn nearest(&self, row: &[f32]) -> Result<Vec<Neighbour>, Error> {
        self.neighbours.nearest(row)
    }
}

/// A sample with a feature that is not finite is refused as [`ErrorKind::FeatureNotFinite`]. Up to 512 neighbours need
/// no memory but the stack.
impl Regressor for KnnRegressor {
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let targets = self.targets.as_slice();
        self.neighbours.for_each(rows, out.len(), &mut |number, nearest| {
            self.neighbours.weigh(nearest);
            let (mut sum, mut total) = (0.0, 0.0);
            for near in nearest {
                let target = targets.get(near.place).copied().unwrap_or_default();
                sum += near.value * f64::from(target);
                total += near.value;
            }
            if let Some(place) = out.get_mut(number) {
                *place = (sum / total) as f32;
            }
        })
    }
}
