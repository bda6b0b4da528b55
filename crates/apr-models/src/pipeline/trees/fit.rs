//! Grows a tree whose leaves have several numbers.

use alloc::vec;
use alloc::vec::Vec;

use super::{TreeOutputs, TreeThresholds, TreesParts, TreesStep};
use crate::decision_tree::TreeOptions;
use crate::error::Error;
use crate::grow::bins::{Binned, MAX_BINS};
use crate::grow::outputs::Outputs;
use crate::grow::{FeatureOrder, Grower};
use crate::kernels::trees::arena::LEAF;
use crate::matrix::Matrix;
use crate::rng::Rng;
use crate::tree::TreeNode;
use crate::workers::Alone;

impl TreesStep {
    /// Learns one tree from samples `x` (`[n_samples, n_features]`) and several values of each, `y` (`[n_samples, n_outputs]`): the
    /// split of a node is the one that lowers the squared error of all values together most, each leaf has the mean of its
    /// samples' values; otherwise as [`DecisionTreeClassifier::fit`](crate::DecisionTreeClassifier::fit). That is scikit-learn 1.9.1's
    /// `DecisionTreeRegressor` of several outputs.
    ///
    /// With rows of probabilities as values, leaves have probabilities: of rows that are 1 for one class and 0 for the others the
    /// tree is that of Gini's impurity.
    ///
    /// ```
    /// use apr_models::{Accepts, Head, Input, Link, Matrix, OutputShape, Pipeline, Samples, Step, TreeOptions, TreesStep, ValueKind};
    ///
    /// let x = Matrix::from_vec(3, 1, vec![0.0, 1.0, 5.0])?;
    /// let y = Matrix::from_vec(3, 2, vec![0.75, 0.25, 1.0, 0.0, 0.0, 1.0])?;
    /// let tree = TreesStep::fit(&x, &y, &TreeOptions { max_depth: Some(1), ..TreeOptions::default() })?;
    /// let head = Head::Values { kind: ValueKind::Predictions, link: Link::None, shape: OutputShape::Matrix };
    /// let input = Input::Numbers { n_features: 1, accepts: Accepts::Finite };
    /// let model = Pipeline::from_parts(input, vec![Step::Trees(tree)], head)?;
    /// let mut out = [0.0; 2];
    /// model.values_into(Samples::F64(&[2.0]), &mut out)?;
    /// assert_eq!(out, [0.875, 0.125]);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TargetLength`](crate::ErrorKind::TargetLength), [`ErrorKind::FeatureNotFinite`](crate::ErrorKind::FeatureNotFinite),
    /// [`ErrorKind::TargetNotFinite`](crate::ErrorKind::TargetNotFinite),
    /// [`ErrorKind::MatrixTooLarge`](crate::ErrorKind::MatrixTooLarge),
    /// [`ErrorKind::PartInvalid`](crate::ErrorKind::PartInvalid) for an option outside its range or weights of classes.
    pub fn fit(x: &Matrix, y: &Matrix, options: &TreeOptions) -> Result<Self, Error> {
        options.expect_no_classes()?;
        let limits = options.limits()?;
        let targets = Outputs::of(y, x.n_rows())?;
        let table = Binned::of(&Alone, x, MAX_BINS)?;
        let rows = (0_u32..).take(x.n_rows()).collect();
        let mut grower = Grower::new(&table, limits, table.n_features(), FeatureOrder::Table, &Alone);
        let grown = grower.grow(&targets, rows, &mut Rng::new(0));

        let n_outputs = y.n_cols();
        let (mut places, mut leaf_rows) = (vec![0; grown.n_nodes()], Vec::new());
        for (node, rows, _) in grown.leaves() {
            places[node] = leaf_rows.len() / n_outputs;
            let mut means = vec![0.0; n_outputs];
            for row in rows.iter().filter_map(|&row| y.row(row as usize)) {
                means.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
            }
            leaf_rows.extend(means.iter().map(|sum| sum / rows.len() as f64));
        }
        let (mut features, mut thresholds, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        for node in grown.into_tree(|node, _| places[node])?.iter::<usize>() {
            match node {
                TreeNode::Split { feature, threshold, .. } => {
                    features.push(feature as u32);
                    thresholds.push(threshold);
                }
                TreeNode::Leaf { value, .. } => {
                    features.push(LEAF);
                    leaves.push(value as u32);
                }
            }
        }
        Self::new(&TreesParts {
            n_outputs,
            outputs: TreeOutputs::All,
            start: &vec![0.0; n_outputs],
            divisor: 1.0,
            leaf_rows: &leaf_rows,
            tree_nodes: &[features.len() as u32],
            features: &features,
            thresholds: TreeThresholds::Single(&thresholds),
            leaves: &leaves,
        })
    }
}
