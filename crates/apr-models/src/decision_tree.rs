//! Decision trees: threshold tests down to a leaf with a class or a value.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{PayloadLayout, PayloadReader, PayloadWriter};

use crate::checks;
use crate::error::{Error, ErrorKind, Operation};
use crate::kernels::trees::walk::for_each_leaf;
use crate::model::{Classifier, Regressor, row_width};
use crate::payload::fields::read;
use crate::payload::values::{
    read_option, read_optional_usize, skip_option, write_option, write_optional_usize,
};
use crate::random_forest::ForestTree;
use crate::tensors::Tensors;
use crate::tree::payload::min_len;
use crate::tree::{self, Leaf, LeafKind, Tree, TreeNode};

mod fit;

pub use self::fit::TreeOptions;
pub(crate) use self::fit::{ClassTargets, ValueTargets};

/// Decision tree classifier (Breiman, Friedman, Olshen and Stone, *Classification and Regression Trees*, 1984): each
/// split tests `x[feature] <= threshold`, each leaf has a class: the one of the largest weight of the training samples
/// that reach it, of equal ones the smallest.
///
/// ```
/// use apr_models::{Classifier, DecisionTreeClassifier, Matrix, TreeNode};
///
/// let leaf = |value| TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 };
/// let nodes = [
///     TreeNode::Split { feature: 1, threshold: 0.5, left: 1, right: 2, n_samples: 0, impurity: 0.0 },
///     leaf(0),
///     leaf(1),
/// ];
/// let model = DecisionTreeClassifier::from_parts(&nodes, 2)?;
/// let x = Matrix::from_vec(2, 2, vec![9.0, 0.5, 9.0, 0.6])?;
/// assert_eq!(model.predict(&x), [0, 1]);
///
/// let model = DecisionTreeClassifier::fit(&x, &[3, 5], &apr_models::TreeOptions::default())?;
/// assert_eq!(model.predict(&x), [3, 5]);
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecisionTreeClassifier {
    tree: Option<Tree>,
    max_depth: Option<usize>,
    n_features: Option<usize>,
    trained: Trained,
}

/// Decision tree regressor: as [`DecisionTreeClassifier`], each leaf has a value.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionTreeRegressor {
    tree: Option<Tree>,
    max_depth: Option<usize>,
    min_samples_split: usize,
    min_samples_leaf: usize,
    trained: Trained,
}

/// What files do not hold of a training: models are equal whatever it is.
#[derive(Clone, Debug, Default)]
struct Trained {
    /// The importances of the features where samples had different weights, of which a tree knows only the number.
    importances: Option<Vec<f64>>,
}

impl PartialEq for Trained {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// Unfitted: it has no tree.
impl Default for DecisionTreeRegressor {
    fn default() -> Self {
        let trained = Trained::default();
        Self { tree: None, max_depth: None, min_samples_split: 2, min_samples_leaf: 1, trained }
    }
}

impl DecisionTreeClassifier {
    /// A tree of these nodes, the root first, for samples of `n_features` features.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] if the nodes are no tree, a threshold is not a number, a feature is not less than
    /// `n_features`, or a class is not less than 2^32 - 1.
    pub fn from_parts(nodes: &[TreeNode<usize>], n_features: usize) -> Result<Self, Error> {
        let tree = Tree::from_nodes(nodes)?;
        check_features(&tree, n_features)?;
        Ok(Self { tree: Some(tree), n_features: Some(n_features), ..Self::default() })
    }

    /// Sets the maximum depth of training.
    #[must_use]
    pub const fn with_max_depth(mut self, max_depth: Option<usize>) -> Self {
        self.max_depth = max_depth;
        self
    }

    /// The maximum depth of training.
    #[must_use]
    pub const fn max_depth(&self) -> Option<usize> {
        self.max_depth
    }

    /// The nodes, the root first, in preorder: a left child follows its parent. Empty if the model is unfitted.
    pub fn nodes(&self) -> impl Iterator<Item = TreeNode<usize>> {
        self.tree.iter().flat_map(Tree::iter)
    }

    /// Number of classes: one more than the greatest class of a leaf.
    #[must_use]
    pub fn n_classes(&self) -> usize {
        let mut n_classes = 0;
        if let Some(tree) = &self.tree {
            tree.leaves::<usize>().for_each(|class| n_classes = n_classes.max(class + 1));
        }
        n_classes
    }

    /// Reads the model from named tensors: `node_features`, `node_thresholds`, `node_classes`, `node_samples`,
    /// `node_left_child`, `node_right_child`, `max_depth`, and where they are known `node_impurities` and `n_features`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], the errors of [`Tensors`] for missing or
    /// malformed tensors, and all of [`from_parts`](Self::from_parts).
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&Self::is_part)?;
        Self::read_from(tensors, "")
    }
}

impl DecisionTreeRegressor {
    /// A tree of these nodes, the root first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] if the nodes are no tree, a threshold is not a number, or a feature is not less than
    /// 2^32 - 1; [`ErrorKind::PartNotFinite`] for a leaf's value.
    pub fn from_parts(nodes: &[TreeNode<f32>]) -> Result<Self, Error> {
        let not_finite =
            |node: &TreeNode<f32>| matches!(node, TreeNode::Leaf { value, .. } if !value.is_finite());
        if let Some(idx) = nodes.iter().position(not_finite) {
            return Err(ErrorKind::PartNotFinite { part: "leaf", idx }.into());
        }
        Ok(Self { tree: Some(Tree::from_nodes(nodes)?), ..Self::default() })
    }

    /// Sets the maximum depth of training, and the minimum numbers of samples of a split and of a leaf.
    #[must_use]
    pub const fn with_bounds(
        mut self,
        max_depth: Option<usize>,
        min_samples_split: usize,
        min_samples_leaf: usize,
    ) -> Self {
        self.max_depth = max_depth;
        self.min_samples_split = min_samples_split;
        self.min_samples_leaf = min_samples_leaf;
        self
    }

    /// The maximum depth of training.
    #[must_use]
    pub const fn max_depth(&self) -> Option<usize> {
        self.max_depth
    }

    /// The minimum number of samples of a split.
    #[must_use]
    pub const fn min_samples_split(&self) -> usize {
        self.min_samples_split
    }

    /// The minimum number of samples of a leaf.
    #[must_use]
    pub const fn min_samples_leaf(&self) -> usize {
        self.min_samples_leaf
    }

    /// The nodes, the root first, in preorder: a left child follows its parent. Empty if the model is unfitted.
    pub fn nodes(&self) -> impl Iterator<Item = TreeNode<f32>> {
        self.tree.iter().flat_map(Tree::iter)
    }

    /// Reads the model from named tensors: `node_features`, `node_thresholds`, `node_values`, `node_samples`,
    /// `node_left_child`, `node_right_child`, `max_depth`, `min_samples_split`, `min_samples_leaf`, and where they are
    /// known `node_impurities`.
    ///
    /// # Errors
    ///
    /// As [`DecisionTreeClassifier::from_tensors`].
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        tensors.expect_only(&Self::is_part)?;
        Self::read_from(tensors, "")
    }
}

pub(crate) fn named(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}")
}

pub(crate) fn fitted(tree: Option<&Tree>, operation: Operation) -> Result<&Tree, Error> {
    tree.ok_or_else(|| ErrorKind::NotFitted { operation }.into())
}

fn check_features(tree: &Tree, n_features: usize) -> Result<(), Error> {
    checks::expect("tree", tree.n_features() <= n_features, "it tests a feature that samples lack")
}

/// Values of a sample among `n_rows` in `rows`, proven to be the features of a model: exactly `n_features` of them, or,
/// if the model does not state it, at least the features it tests.
pub(crate) fn tree_row_width(
    rows: &[f32],
    n_rows: usize,
    n_features: Option<usize>,
    tested: usize,
) -> Result<usize, Error> {
    let found = row_width(rows, n_rows)?;
    let fits = n_features.map_or(found >= tested, |n_features| found == n_features);
    match fits || n_rows == 0 {
        true => Ok(found.max(1)),
        false => Err(ErrorKind::FeatureCount { expected: n_features.unwrap_or(tested), found }.into()),
    }
}

/// The sample of `rows` for that place of the results.
pub(crate) fn sample(rows: &[f32], idx: usize, width: usize) -> &[f32] {
    // A tree without splits may have samples without features.
    rows.get(idx * width..(idx + 1) * width).unwrap_or_default()
}

/// Writes the value of the leaf that each row reaches.
fn write_leaves<L: Leaf>(tree: &Tree, rows: &[f32], width: usize, out: &mut [L]) {
    // Rows without features reach the only leaf.
    out.fill(tree.leaf(0));
    for_each_leaf(core::slice::from_ref(tree), rows, width, |row, _, leaf| {
        if let Some(place) = out.get_mut(row) {
            *place = tree.leaf(leaf);
        }
    });
}

impl ForestTree for DecisionTreeClassifier {
    const MIN_LEN: u64 = min_len(LeafKind::Class) + 2;

    fn n_classes(&self) -> usize {
        self.n_classes()
    }

    fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    fn push_to(&self, tensors: &mut Tensors, prefix: &str) -> Result<(), Error> {
        let tree = fitted(self.tree.as_ref(), Operation::Save)?;
        tree::tensors::push(tensors, prefix, tree, LeafKind::Class)?;
        tensors.push_optional(&named(prefix, "max_depth"), self.max_depth.map(|depth| depth as u64))?;
        match self.n_features {
            Some(n_features) => tensors.push_count(&named(prefix, "n_features"), n_features),
            None => Ok(()),
        }
    }

    fn read_from(tensors: &Tensors, prefix: &str) -> Result<Self, Error> {
        let tree = tree::tensors::read(tensors, prefix, LeafKind::Class)?;
        let n_features = tensors.optional(&named(prefix, "n_features"), Tensors::count)?;
        n_features.map_or(Ok(()), |n_features| check_features(&tree, n_features))?;
        let max_depth = tensors.optional_count(&named(prefix, "max_depth"))?;
        Ok(Self { tree: Some(tree), max_depth, n_features, ..Self::default() })
    }

    fn is_part(name: &str) -> bool {
        tree::tensors::is_part(name, LeafKind::Class) || ["max_depth", "n_features"].contains(&name)
    }
}

impl Classifier for DecisionTreeClassifier {
    fn predict_into(&self, rows: &[f32], out: &mut [usize]) -> Result<(), Error> {
        let tree = fitted(self.tree.as_ref(), Operation::Predict)?;
        let width = tree_row_width(rows, out.len(), self.n_features, tree.n_features())?;
        write_leaves(tree, rows, width, out);
        Ok(())
    }
}

impl ForestTree for DecisionTreeRegressor {
    const MIN_LEN: u64 = min_len(LeafKind::Value) + 18;

    fn n_classes(&self) -> usize {
        0
    }

    fn tree(&self) -> Option<&Tree> {
        self.tree.as_ref()
    }

    fn push_to(&self, tensors: &mut Tensors, prefix: &str) -> Result<(), Error> {
        let tree = fitted(self.tree.as_ref(), Operation::Save)?;
        tree::tensors::push(tensors, prefix, tree, LeafKind::Value)?;
        tensors.push_optional(&named(prefix, "max_depth"), self.max_depth.map(|depth| depth as u64))?;
        tensors.push_count(&named(prefix, "min_samples_split"), self.min_samples_split)?;
        tensors.push_count(&named(prefix, "min_samples_leaf"), self.min_samples_leaf)
    }

    fn read_from(tensors: &Tensors, prefix: &str) -> Result<Self, Error> {
        Ok(Self {
            tree: Some(tree::tensors::read(tensors, prefix, LeafKind::Value)?),
            max_depth: tensors.optional_count(&named(prefix, "max_depth"))?,
            min_samples_split: tensors.count(&named(prefix, "min_samples_split"))?,
            min_samples_leaf: tensors.count(&named(prefix, "min_samples_leaf"))?,
            trained: Trained::default(),
        })
    }

    fn is_part(name: &str) -> bool {
        tree::tensors::is_part(name, LeafKind::Value)
            || ["max_depth", "min_samples_split", "min_samples_leaf"].contains(&name)
    }
}

impl Regressor for DecisionTreeRegressor {
    fn predict_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        let tree = fitted(self.tree.as_ref(), Operation::Predict)?;
        let width = tree_row_width(rows, out.len(), None, tree.n_features())?;
        write_leaves(tree, rows, width, out);
        Ok(())
    }
}

stored_model! {
    DecisionTreeClassifier "DecisionTreeClassifier" [DecisionTree]
    n_features: |model| model.n_features;
    is_fitted: |model| model.tree.is_some();
}

impl DecisionTreeClassifier {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.push_to(tensors, "")
    }

    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.tree.as_ref(), |out, tree| tree::payload::write(out, tree, LeafKind::Class))?;
        write_optional_usize(out, self.max_depth)?;
        match out.layout() {
            PayloadLayout::V0_10 => Ok(()),
            _ => write_optional_usize(out, self.n_features),
        }
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let tree = read_option(input, |input| tree::payload::read(input, LeafKind::Class))?;
        let max_depth = read_optional_usize(input)?;
        let n_features = match input.layout() {
            PayloadLayout::V0_10 => None,
            _ => read_optional_usize(input)?,
        };
        if let (Some(tree), Some(n_features)) = (&tree, n_features) {
            check_features(tree, n_features)?;
        }
        Ok(Self { tree, max_depth, n_features, ..Self::default() })
    }
}

stored_model! {
    DecisionTreeRegressor "DecisionTreeRegressor" [DecisionTree]
    // `None`: such trees do not say. A sample has at least the features that are tested.
    n_features: |_| None;
    is_fitted: |model| model.tree.is_some();
    skip: Self::skip_fields;
}

impl DecisionTreeRegressor {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        self.push_to(tensors, "")
    }

    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), apr_container::Error> {
        write_option(out, self.tree.as_ref(), |out, tree| tree::payload::write(out, tree, LeafKind::Value))?;
        write_optional_usize(out, self.max_depth)?;
        out.usize(self.min_samples_split)?;
        out.usize(self.min_samples_leaf)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        read(input, |fields| Self {
            tree: fields
                .take(|input| read_option(input, |input| tree::payload::read(input, LeafKind::Value))),
            max_depth: fields.optional_usize(),
            min_samples_split: fields.usize(),
            min_samples_leaf: fields.usize(),
            trained: Trained::default(),
        })
    }

    fn skip_fields(input: &mut PayloadReader<'_>) -> Result<(), apr_container::Error> {
        skip_option(input, |input| tree::payload::skip(input, LeafKind::Value))?;
        read_optional_usize(input)?;
        input.skip(16)
    }
}
