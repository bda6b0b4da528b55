//! Sums over boosted trees.

use alloc::vec::Vec;

use crate::checks;
use crate::error::Error;
use crate::kernels::trees::walk::for_each_leaf;
use crate::model;
use crate::scratch::with_scratch;
use crate::tree::{Tree, TreeNode};

/// Number of scores that are kept on the stack.
const ON_STACK: usize = 512;

/// Most samples that go through one tree before the next: the nodes of a tree stay near meanwhile.
const MAX_BLOCK: usize = 64;

/// Scores that begin somewhere and to which trees add, stage by stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Boosted {
    pub(crate) n_features: usize,
    pub(crate) learning_rate: f64,
    /// One for each output.
    pub(crate) start: Vec<f64>,
    /// Those of the first stage, one for each output, then those of the next.
    pub(crate) trees: Vec<Tree>,
}

impl Boosted {
    pub(crate) fn new(
        n_features: usize,
        learning_rate: f64,
        start: Vec<f64>,
        trees: Vec<Tree>,
    ) -> Result<Self, Error> {
        checks::expect("features", n_features > 0, "at least one is needed")?;
        checks::expect("learning rate", learning_rate.is_finite(), "must be finite")?;
        checks::expect_finite("start", &start)?;
        let whole = !start.is_empty() && trees.len().is_multiple_of(start.len());
        checks::expect("trees", whole, "each stage needs one for each output")?;
        let known = trees.iter().all(|tree| tree.n_features() <= n_features);
        checks::expect("trees", known, "one tests a feature that samples do not have")?;
        let finite = trees.iter().all(|tree| tree.leaves::<f32>().all(f32::is_finite));
        checks::expect("trees", finite, "a leaf is not a finite number")?;
        Ok(Self { n_features, learning_rate, start, trees })
    }

    /// As [`new`](Self::new) from nodes; counts from training are not kept.
    pub(crate) fn from_nodes(
        n_features: usize,
        learning_rate: f64,
        start: Vec<f64>,
        trees: &[Vec<TreeNode<f32>>],
    ) -> Result<Self, Error> {
        let trees = trees.iter().map(|nodes| {
            let nodes: Vec<_> = nodes.iter().copied().map(without_counts).collect();
            Tree::from_nodes(&nodes)
        });
        Self::new(n_features, learning_rate, start, checks::all(trees)?)
    }

    pub(crate) fn to_nodes(&self) -> Vec<Vec<TreeNode<f32>>> {
        self.trees.iter().map(|tree| tree.iter().collect()).collect()
    }

    /// Outputs of a sample.
    pub(crate) const fn width(&self) -> usize {
        self.start.len()
    }

    /// Gives `each` the number of every sample of `rows` and its scores.
    pub(crate) fn for_each(
        &self,
        rows: &[f32],
        n_rows: usize,
        each: &mut dyn FnMut(usize, &mut [f64]),
    ) -> Result<(), Error> {
        model::check_rows(rows, n_rows, self.n_features)?;
        let width = self.width().max(1);
        let block = (ON_STACK / width).clamp(1, MAX_BLOCK).min(n_rows.max(1));
        with_scratch::<f64, ON_STACK, _>(block * width, |scores| {
            for (number, rows) in rows.chunks(block * self.n_features).enumerate() {
                for scores in scores.chunks_exact_mut(width) {
                    scores.copy_from_slice(&self.start);
                }
                for_each_leaf(self.trees.as_slice(), rows, self.n_features, |row, number, leaf| {
                    let value = self.trees.get(number).map_or(0.0, |tree| tree.leaf::<f32>(leaf));
                    if let Some(score) = scores.get_mut(row * width + number % width) {
                        *score += self.learning_rate * f64::from(value);
                    }
                });
                let in_block = rows.len() / self.n_features;
                for (idx, scores) in scores.chunks_exact_mut(width).take(in_block).enumerate() {
                    each(number * block + idx, scores);
                }
            }
        });
        Ok(())
    }
}

const fn without_counts(node: TreeNode<f32>) -> TreeNode<f32> {
    match node {
        TreeNode::Split { feature, threshold, left, right, .. } => {
            TreeNode::Split { feature, threshold, left, right, n_samples: 0, impurity: 0.0 }
        }
        TreeNode::Leaf { value, .. } => TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 },
    }
}
