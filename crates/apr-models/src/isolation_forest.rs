//! Isolation forest: outliers are samples that few random splits isolate.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::checks;
use crate::decision_tree::{sample, tree_row_width};
use crate::error::{Error, ErrorKind, Operation};
use crate::kernels::trees::SplitTest;
use crate::kernels::trees::walk::{Trees, for_each_leaf};
use crate::matrix::Matrix;
use crate::tensors::Tensors;
use crate::tree::{self, LeafKind, Node, Tree, TreeNode};
use crate::vector::Vector;

mod fit;
mod payload;

pub use self::fit::{Contamination, IsolationOptions};

/// Rows from which on a table of path lengths pays.
const MANY_ROWS: usize = 64;

/// Euler's constant, with the digits that files' thresholds were computed with.
const EULER: f64 = 0.577_215_7;

/// Isolation forest (Liu, Ting and Zhou, ICDM 2008).
///
/// The score of a sample is `-2^(-l / c)`, where `l` is the mean path length over the trees, each extended by the
/// expected path length for the samples of its leaf, and `c` is the expected path length for `max_samples`, stored
/// with the forest. Scores below the threshold are outliers. Unlike in decision trees, a value equal to a threshold
/// goes right.
#[derive(Clone, Debug, PartialEq)]
pub struct IsolationForest {
    n_estimators: usize,
    max_samples: Option<usize>,
    contamination: f32,
    random_state: Option<u64>,
    max_depth: usize,
    trees: Vec<IsolationTree>,
    threshold: Option<f32>,
    c_norm: f32,
}

/// One of the trees.
#[derive(Clone, Debug, PartialEq)]
struct IsolationTree {
    root: Option<Tree>,
    max_depth: usize,
}

/// The trees as rows walk through them.
struct Walks<'f>(&'f [IsolationTree]);

impl Trees<f32> for Walks<'_> {
    type Node = Node;

    fn n_trees(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn tree(&self, number: usize) -> (&[Node], u32) {
        (self.0.get(number).and_then(|tree| tree.root.as_ref()).map_or(&[], Tree::nodes), 0)
    }

    #[inline]
    fn next<const LANES: usize>(node: &Node, at: u32, rows: &[f32], start: usize) -> u32 {
        node.next::<LANES>(at, rows, start, SplitTest::Below)
    }
}

/// The path length of each leaf, by its index; of splits 0.
fn path_lengths(tree: &Tree) -> Vec<f64> {
    // Right children that are still to come, with their depths: a left child follows its parent.
    let (mut ahead, mut depth) = (Vec::new(), 0);
    let lengths = tree.iter::<()>().map(|node| match node {
        TreeNode::Split { .. } => {
            depth += 1;
            ahead.push(depth);
            0.0
        }
        TreeNode::Leaf { n_samples, .. } => {
            let length = IsolationForest::path_length(depth, n_samples);
            depth = ahead.pop().unwrap_or(0);
            length
        }
    });
    lengths.collect()
}

/// What other implementations start from: no tree yet.
impl Default for IsolationForest {
    fn default() -> Self {
        Self {
            n_estimators: 100,
            max_samples: None,
            contamination: 0.1,
            random_state: None,
            max_depth: 10,
            trees: Vec::new(),
            threshold: None,
            c_norm: 1.0,
        }
    }
}

impl IsolationForest {
    /// Creates a forest from trees whose leaves store their numbers of samples, each fitted on `max_samples` samples.
    /// Impurities, which such trees do not have, are not kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] without a tree, if the nodes of one are no tree, a cut is not a number, or for fewer
    /// than two samples; [`ErrorKind::PartNotFinite`] for the threshold.
    pub fn from_parts(
        trees: &[Vec<TreeNode<()>>],
        max_samples: usize,
        threshold: f32,
    ) -> Result<Self, Error> {
        let invalid = |part, problem| Error::from(ErrorKind::PartInvalid { part, problem });
        if trees.is_empty() {
            return Err(invalid("trees", "at least one is needed"));
        }
        if max_samples < 2 {
            return Err(invalid(MAX_SAMPLES, "at least two are needed"));
        }
        if !threshold.is_finite() {
            return Err(ErrorKind::PartNotFinite { part: THRESHOLD, idx: 0 }.into());
        }
        let max_depth = (max_samples - 1).ilog2() as usize + 1;
        let grown = |nodes: &Vec<TreeNode<()>>| {
            let root = Tree::from_nodes(nodes)?.without_impurities();
            Ok(IsolationTree { root: Some(root), max_depth })
        };
        Ok(Self {
            n_estimators: trees.len(),
            max_samples: Some(max_samples),
            max_depth,
            trees: trees.iter().map(grown).collect::<Result<_, Error>>()?,
            threshold: Some(threshold),
            c_norm: mean_depth(max_samples) as f32,
            ..Self::default()
        })
    }

    /// The same model with the settings of its training: the share of outliers and the seed.
    #[must_use]
    pub const fn with_training(mut self, contamination: f32, random_state: Option<u64>) -> Self {
        self.contamination = contamination;
        self.random_state = random_state;
        self
    }

    /// The nodes of each tree.
    pub fn trees(&self) -> impl ExactSizeIterator<Item = Vec<TreeNode<()>>> {
        self.trees.iter().map(|tree| tree.root.iter().flat_map(Tree::iter).collect())
    }

    /// The score below which a sample is an outlier; `None` if the model is not fitted.
    #[must_use]
    pub const fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    /// The share of outliers that training assumed; 0 if it assumed none.
    #[must_use]
    pub const fn contamination(&self) -> f32 {
        self.contamination
    }

    /// The mean depth of a random tree of as many samples as each tree was grown on.
    #[must_use]
    pub const fn c_norm(&self) -> f32 {
        self.c_norm
    }

    /// The score of each row of `rows` (`[n_samples, n_features]`, row-major) into `out` (`[n_samples]`); lower for
    /// outliers. Allocates nothing for fewer than 64 rows, and 8 bytes for each node for more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`]; [`ErrorKind::InputLength`] and [`ErrorKind::FeatureCount`] if `rows` is not
    /// `out.len()` rows of at least the features that are tested.
    pub fn score_samples_into(&self, rows: &[f32], out: &mut [f32]) -> Result<(), Error> {
        if self.trees.is_empty() {
            return Err(ErrorKind::NotFitted { operation: Operation::Predict }.into());
        }
        let roots = || self.trees.iter().filter_map(|tree| tree.root.as_ref());
        let cut = roots().map(Tree::n_features).max().unwrap_or(0);
        let n_rows = out.len();
        let width = tree_row_width(rows, n_rows, None, cut)?;
        if n_rows >= MANY_ROWS && Walks::SIDE_BY_SIDE {
            self.score_many(rows, width, out);
            return Ok(());
        }
        for (idx, place) in out.iter_mut().enumerate() {
            let row = sample(rows, idx, width);
            let lengths = roots().map(|root| {
                let (leaf, n_cuts) = root.reach(row, SplitTest::Below);
                Self::path_length(n_cuts, root.n_samples(leaf as usize))
            });
            *place = self.score(lengths.sum::<f64>() / self.trees.len() as f64);
        }
        Ok(())
    }

    /// As [`score_samples_into`](Self::score_samples_into), rows side by side.
    fn score_many(&self, rows: &[f32], width: usize, out: &mut [f32]) {
        let trees = Walks(&self.trees);
        // For each tree the path length of each leaf.
        let lengths: Vec<Vec<f64>> =
            self.trees.iter().map(|tree| tree.root.as_ref().map_or_else(Vec::new, path_lengths)).collect();
        for (rows, out) in rows.chunks(MANY_ROWS * width).zip(out.chunks_mut(MANY_ROWS)) {
            let mut sums = [0.0; MANY_ROWS];
            for_each_leaf(&trees, rows, width, |row, number, leaf| {
                let length = lengths.get(number).and_then(|lengths| lengths.get(leaf as usize));
                if let (Some(sum), Some(length)) = (sums.get_mut(row), length) {
                    *sum += length;
                }
            });
            for (place, sum) in out.iter_mut().zip(sums) {
                *place = self.score(sum / self.trees.len() as f64);
            }
        }
    }

    /// The length of a path of so many cuts to a leaf of so many training samples.
    pub(crate) fn path_length(n_cuts: usize, n_samples: usize) -> f64 {
        n_cuts as f64 + mean_depth(n_samples)
    }

    /// The score of a mean path length.
    pub(crate) fn score(&self, mean: f64) -> f32 {
        -libm::exp2(-mean / f64::from(self.c_norm)) as f32
    }

    /// The score of each row of `x`, lower for outliers: `[n_samples]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`].
    pub fn try_score_samples(&self, x: &Matrix) -> Result<Vector, Error> {
        let mut scores = vec![0.0; x.n_rows()];
        self.score_samples_into(x.as_slice(), &mut scores)?;
        Ok(Vector::from_vec(scores))
    }

    /// 1 for an inlier, -1 for an outlier: `[n_samples]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFitted`], [`ErrorKind::FeatureCount`].
    pub fn try_predict(&self, x: &Matrix) -> Result<Vec<i32>, Error> {
        let Some(threshold) = self.threshold else {
            return Err(ErrorKind::NotFitted { operation: Operation::Predict }.into());
        };
        let scores = self.try_score_samples(x)?;
        Ok(scores.iter().map(|score| if score < threshold { -1 } else { 1 }).collect())
    }

    /// Reads the model from named tensors: those of each tree after `tree_0_`, `tree_1_` and so on, as of a decision tree
    /// without classes; `n_estimators`, `max_samples`, `contamination`, `random_state`, `max_depth`, `c_norm`, and
    /// `threshold` unless training did not get that far.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OtherModel`], [`ErrorKind::UnexpectedTensor`], and the errors of [`Tensors`] for missing or
    /// malformed tensors.
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, Error> {
        tensors.expect_model(Self::NAME)?;
        let n_trees = (0..).take_while(|idx| tensors.contains(&format!("tree_{idx}_node_features"))).count();
        if n_trees == 0 {
            return Err(Error::from(ErrorKind::MissingTensor).of_tensor("tree_0_node_features"));
        }
        tensors.expect_only(&|name| {
            SETTINGS.contains(&name)
                || tree::tensors::part_of_tree(name).is_some_and(|(idx, part)| {
                    idx < n_trees && (part == MAX_DEPTH || tree::tensors::is_part(part, LeafKind::Nothing))
                })
        })?;
        let trees = (0..n_trees).map(|idx| {
            let prefix = format!("tree_{idx}_");
            let root = Some(tree::tensors::read(tensors, &prefix, LeafKind::Nothing)?);
            Ok::<_, Error>(IsolationTree { root, max_depth: tensors.count(&format!("{prefix}{MAX_DEPTH}"))? })
        });
        let trees = checks::all(trees)?;
        tensors.parts(|parts| Self {
            trees,
            n_estimators: parts.count(N_ESTIMATORS),
            max_samples: parts.optional_count(MAX_SAMPLES),
            contamination: parts.number(CONTAMINATION),
            random_state: parts.optional_integer(RANDOM_STATE),
            max_depth: parts.count(MAX_DEPTH),
            threshold: parts.take(|tensors| tensors.optional(THRESHOLD, Tensors::number)),
            c_norm: parts.number(C_NORM),
        })
    }
}

const N_ESTIMATORS: &str = "n_estimators";
const MAX_SAMPLES: &str = "max_samples";
const CONTAMINATION: &str = "contamination";
const RANDOM_STATE: &str = "random_state";
const MAX_DEPTH: &str = "max_depth";
const THRESHOLD: &str = "threshold";
const C_NORM: &str = "c_norm";
const SETTINGS: [&str; 7] =
    [N_ESTIMATORS, MAX_SAMPLES, CONTAMINATION, RANDOM_STATE, MAX_DEPTH, THRESHOLD, C_NORM];

/// Mean number of cuts that set a sample apart from the others of `n_samples`.
fn mean_depth(n_samples: usize) -> f64 {
    match n_samples {
        0 | 1 => 0.0,
        2 => 1.0,
        _ => {
            let n = n_samples as f64;
            2.0 * (libm::log(n - 1.0) + EULER) - 2.0 * (n - 1.0) / n
        }
    }
}

impl IsolationForest {
    fn push_tensors(&self, tensors: &mut Tensors) -> Result<(), Error> {
        let not_fitted = || Error::from(ErrorKind::NotFitted { operation: Operation::Save });
        if self.trees.is_empty() {
            return Err(not_fitted());
        }
        for (idx, tree) in self.trees.iter().enumerate() {
            let prefix = format!("tree_{idx}_");
            tree::tensors::push(
                tensors,
                &prefix,
                tree.root.as_ref().ok_or_else(not_fitted)?,
                LeafKind::Nothing,
            )?;
            tensors.push_count(&format!("{prefix}{MAX_DEPTH}"), tree.max_depth)?;
        }
        tensors.push_count(N_ESTIMATORS, self.n_estimators)?;
        tensors.push_optional(MAX_SAMPLES, self.max_samples.map(|samples| samples as u64))?;
        tensors.push_number(CONTAMINATION, self.contamination)?;
        tensors.push_optional(RANDOM_STATE, self.random_state)?;
        tensors.push_count(MAX_DEPTH, self.max_depth)?;
        tensors.push_number(C_NORM, self.c_norm)?;
        if let Some(threshold) = self.threshold {
            tensors.push_number(THRESHOLD, threshold)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn many_rows_have_the_bits_that_each_has_alone() {
        let mut rng = Rng::new(8);
        let mut normal = |n_rows: usize| {
            Matrix::from_vec(n_rows, 3, (0..3 * n_rows).map(|_| rng.normal() as f32).collect()).unwrap()
        };
        let options = IsolationOptions { n_estimators: 11, ..IsolationOptions::default() };
        let forest = IsolationForest::fit(&normal(300), &options).unwrap();
        let asked = normal(2 * MANY_ROWS + 5);
        let together = forest.try_score_samples(&asked).unwrap();
        for (row, expected) in asked.rows().zip(together.iter()) {
            let mut score = [f32::NAN];
            forest.score_samples_into(row, &mut score).unwrap();
            assert_eq!(score[0].to_bits(), expected.to_bits());
        }
    }
}
