//! Boosted trees for regression.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::Error;
use crate::gradient_boosting::boosted::Boosted;
use crate::model::Regressor;
use crate::tree::TreeNode;

/// Gradient boosted regression trees (Friedman, Annals of Statistics 29, 2001): a starting value
/// plus the learning rate times the value of each tree, summed in `f64`.
///
/// ```
/// use apr_models::{BoostedRegressorParts, GradientBoostingRegressor, Matrix, Regressor, TreeNode};
///
/// let leaf = |value| TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 };
/// let stump = vec![
///     TreeNode::Split { feature: 0, threshold: 2.5, left: 1, right: 2, n_samples: 0, impurity: 0.0 },
///     leaf(-4.0),
///     leaf(4.0),
/// ];
/// let model = GradientBoostingRegressor::from_parts(BoostedRegressorParts {
///     n_features: 1,
///     learning_rate: 0.5,
///     start: 10.0,
///     trees: vec![stump.clone(), stump],
/// })?;
/// assert_eq!(model.predict(&Matrix::from_vec(2, 1, vec![1.0, 3.0])?).as_slice(), [6.0, 14.0]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GradientBoostingRegressor {
    pub(crate) boosted: Boosted,
}

/// Parameters of a [`GradientBoostingRegressor`].
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedRegressorParts {
    /// Features of a sample.
    pub n_features: usize,
    /// The learning rate: factor of the trees' values.
    pub learning_rate: f64,
    /// The prediction before the first tree.
    pub start: f64,
    /// The trees; samples counted and impurities are not kept.
    pub trees: Vec<Vec<TreeNode<f32>>>,
}

impl GradientBoostingRegressor {
    /// Makes a model of its parts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for nodes that are no tree, features that samples do
    /// not have, leaves or a learning rate that are not finite;
    /// [`ErrorKind::PartNotFinite`](crate::ErrorKind::PartNotFinite).
    pub fn from_parts(parts: BoostedRegressorParts) -> Result<Self, Error> {
        let BoostedRegressorParts { n_features, learning_rate, start, trees } = parts;
        Self::of(Boosted::from_nodes(n_features, learning_rate, vec![start], &trees)?)
    }

    pub(crate) fn of(boosted: Boosted) -> Result<Self, Error> {
        crate::checks::expect_len("start", 1, boosted.width())?;
        Ok(Self { boosted })
    }

    /// Returns the parts.
    #[must_use]
    pub fn to_parts(&self) -> BoostedRegressorParts {
        BoostedRegressorParts {
            n_features: self.boosted.n_features,
            learning_rate: self.boosted.learning_rate,
            start: self.start(),
            trees: self.boosted.to_nodes(),
        }
    }

    /// Number of trees.
    #[must_use]
    pub const fn n_trees(&self) -> usize {
        self.boosted.trees.len()
    }

    /// The learning rate: factor of the trees' values.
    #[must_use]
    pub const fn learning_rate(&self) -> f64 {
        self.boosted.learning_rate
    }

    /// The prediction before the first tree.
    #[must_use]
    pub fn start(&self) -> f64 {
        self.boosted.start.first().copied().unwrap_or_default()
    }
}

impl Regressor for GradientBoostingRegressor {
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        self.boosted.for_each(rows, out.len(), &mut |number, scores| {
            if let (Some(place), Some(&score)) = (out.get_mut(number), scores.first()) {
                *place = score as f32;
            }
        })
    }
}
