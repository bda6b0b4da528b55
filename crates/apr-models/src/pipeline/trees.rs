//! Sums over decision trees: single trees, forests, boosted trees.

mod fit;
mod payload;
mod sums;

use alloc::vec;
use alloc::vec::Vec;

use self::sums::{Forest, LeafRows};
use crate::checks;
use crate::error::{Error, ErrorKind};
use crate::kernels::trees::arena::{Arena, Number, Walks};
use crate::pipeline::rows::Block;
use crate::scratch::with_scratch;

/// Values rounded on the stack: rows of single predictions.
const ON_STACK: usize = 512;

/// To which outputs the leaf of a tree adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TreeOutputs {
    /// Each leaf has a number for every output.
    #[default]
    All,
    /// Each leaf has one value: the first tree adds to the first output, the next to the next, and after the last output it
    /// begins again.
    InTurn,
}

/// What values are compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeThresholds<'p> {
    /// The values of a row are rounded to `f32` first.
    Single(&'p [f32]),
    /// The values are compared as they are.
    Double(&'p [f64]),
}

/// What a [`TreesStep`] is made from. Trees are lists of their nodes, each in the order of the walk that goes left
/// first; the lists of all trees are concatenated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreesParts<'p> {
    /// Outputs of a row: at least 1.
    pub n_outputs: usize,
    /// To which outputs a leaf adds.
    pub outputs: TreeOutputs,
    /// What sums begin with, one for each output.
    pub start: &'p [f64],
    /// What sums are divided by: above 0.
    pub divisor: f64,
    /// What leaves say, row by row: one number for each output, a single one if trees take turns.
    pub leaf_rows: &'p [f64],
    /// Nodes of each tree.
    pub tree_nodes: &'p [u32],
    /// For each node: the column of the value it tests, with bit 31 set if missing values go left; 2^32 - 1 for leaves.
    pub features: &'p [u32],
    /// For each split: a value that is not above it goes left.
    pub thresholds: TreeThresholds<'p>,
    /// For each leaf: its row of `leaf_rows`. Rows that no leaf has are dropped.
    pub leaves: &'p [u32],
}

/// A step that sums what decision trees say, in the order of the trees, and divides it: the arithmetic of scikit-learn,
/// bit for bit.
///
/// ```
/// use apr_models::{TreeOutputs, TreeThresholds, TreesParts, TreesStep};
///
/// // One tree: is the second value above 0.5?
/// let step = TreesStep::new(&TreesParts {
///     n_outputs: 1,
///     outputs: TreeOutputs::All,
///     start: &[0.0],
///     divisor: 1.0,
///     leaf_rows: &[10.0, 20.0],
///     tree_nodes: &[3],
///     features: &[1, u32::MAX, u32::MAX],
///     thresholds: TreeThresholds::Single(&[0.5]),
///     leaves: &[0, 1],
/// })?;
/// assert_eq!((step.n_trees(), step.n_nodes()), (1, 3));
/// # Ok::<(), apr_models::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TreesStep {
    trees: Trees,
    outputs: TreeOutputs,
    start: Vec<f64>,
    divisor: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Trees {
    Single(Forest<f32>),
    Double(Forest<f64>),
}

/// Evaluates an expression in which `$forest` is the trees with thresholds of either type.
macro_rules! with_forest {
    ($trees:expr, $forest:ident => $body:expr) => {
        match $trees {
            $crate::pipeline::trees::Trees::Single($forest) => $body,
            $crate::pipeline::trees::Trees::Double($forest) => $body,
        }
    };
}
use with_forest;

impl TreesStep {
    /// Builds the trees.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::PartInvalid`] for trees that are not whole or name rows that are not there, thresholds that are not
    /// numbers, no outputs, a divisor that is not above 0, trees that take turns and do not come in whole rounds;
    /// [`ErrorKind::PartLength`], [`ErrorKind::PartNotFinite`].
    pub fn new(parts: &TreesParts<'_>) -> Result<Self, Error> {
        let n_trees = parts.tree_nodes.len();
        checks::expect("outputs", parts.n_outputs > 0, "must be at least 1")?;
        checks::expect_len("start", parts.n_outputs, parts.start.len())?;
        checks::expect_finite("start", parts.start)?;
        checks::expect_finite("divisor", &[parts.divisor])?;
        checks::expect("divisor", parts.divisor > 0.0, "must be above 0")?;
        match parts.outputs {
            TreeOutputs::All => checks::expect("trees", n_trees > 0, "there is at least one")?,
            TreeOutputs::InTurn => {
                let rounds = n_trees.is_multiple_of(parts.n_outputs);
                checks::expect("trees", rounds, "as many add to each output")?;
            }
        }
        let width = parts.leaf_width();
        checks::expect(
            "leaf rows",
            parts.leaf_rows.len().is_multiple_of(width),
            "one number for each output, or one alone",
        )?;
        checks::expect_finite("leaf rows", parts.leaf_rows)?;
        let (leaves, leaf_rows) = parts.in_order_of_use(width)?;
        let leaf_rows = LeafRows::new(leaf_rows, width);
        let trees = match parts.thresholds {
            TreeThresholds::Single(thresholds) => {
                Trees::Single(Forest { arena: arena(parts, thresholds, &leaves)?, leaves: leaf_rows })
            }
            TreeThresholds::Double(thresholds) => {
                Trees::Double(Forest { arena: arena(parts, thresholds, &leaves)?, leaves: leaf_rows })
            }
        };
        Ok(Self { trees, outputs: parts.outputs, start: parts.start.to_vec(), divisor: parts.divisor })
    }

    /// Number of trees.
    #[must_use]
    pub const fn n_trees(&self) -> usize {
        with_forest!(&self.trees, forest => forest.arena.roots().len())
    }

    /// Nodes of all trees.
    #[must_use]
    pub const fn n_nodes(&self) -> usize {
        with_forest!(&self.trees, forest => forest.arena.nodes().len())
    }

    /// Values of a row after the step; `width` is their number before it.
    pub(crate) fn n_outputs(&self, width: usize) -> Result<usize, Error> {
        let last = with_forest!(&self.trees, forest => forest.arena.last_feature());
        let there = last.is_none_or(|feature| (feature as usize) < width);
        checks::expect("features of trees", there, "must be columns of the rows")?;
        Ok(self.start.len())
    }

    /// Where in these values the first one stands that is infinite as an `f32`, and so cannot be compared with the thresholds
    /// of these trees; `None` if they compare `f64`.
    pub(crate) fn beyond_range(&self, values: &[f64]) -> Option<usize> {
        let is_beyond = |value: &f64| (*value as f32).is_infinite();
        let is_single = matches!(self.trees, Trees::Single(_));
        // All values first: a search that may end at each of them takes several times as long.
        let any = is_single && values.iter().fold(false, |any, value| any | is_beyond(value));
        values.iter().take(if any { values.len() } else { 0 }).position(is_beyond)
    }

    /// Replaces each row of a dense block by its sums.
    pub(crate) fn run(&self, block: &mut Block<'_>) {
        let width = block.width();
        block.replace(self.start.len(), |rows, sums| self.sum_into(rows, width, sums));
    }

    fn sum_into(&self, rows: &[f64], width: usize, sums: &mut [f64]) {
        let n_outputs = self.start.len();
        sums.chunks_exact_mut(n_outputs).for_each(|sums| sums.copy_from_slice(&self.start));
        match &self.trees {
            Trees::Single(forest) => with_scratch::<f32, ON_STACK, _>(rows.len(), |rounded| {
                rounded.iter_mut().zip(rows).for_each(|(rounded, &value)| *rounded = value as f32);
                forest.add_to(rounded, width.max(1), sums, n_outputs);
            }),
            Trees::Double(forest) => forest.add_to(rows, width.max(1), sums, n_outputs),
        }
        // Dividing by 1 changes nothing, and divisions are slow.
        if self.divisor != 1.0 {
            sums.iter_mut().for_each(|sum| *sum /= self.divisor);
        }
    }
}

impl TreesParts<'_> {
    /// Numbers of a leaf.
    const fn leaf_width(&self) -> usize {
        match self.outputs {
            TreeOutputs::All => self.n_outputs,
            TreeOutputs::InTurn => 1,
        }
    }

    /// The rows of leaves in the order in which leaves name them first, and for each leaf its row among those.
    fn in_order_of_use(&self, width: usize) -> Result<(Vec<u32>, Vec<f64>), Error> {
        const UNUSED: u32 = u32::MAX;
        let mut places = vec![UNUSED; self.leaf_rows.len() / width];
        let mut rows = Vec::with_capacity(self.leaf_rows.len());
        let mut used = 0;
        let mut place = |&leaf: &u32| {
            let place = places.get_mut(leaf as usize)?;
            if *place == UNUSED {
                *place = used;
                used += 1;
                let row = self.leaf_rows.chunks_exact(width).nth(leaf as usize);
                rows.extend_from_slice(row.unwrap_or_default());
            }
            Some(*place)
        };
        let leaves = checks::all(self.leaves.iter().map(|leaf| place(leaf).ok_or(())));
        let leaves = leaves
            .map_err(|()| ErrorKind::PartInvalid { part: "leaves", problem: "must be rows of leaf_rows" })?;
        Ok((leaves, rows))
    }
}

fn arena<T: Number>(parts: &TreesParts<'_>, thresholds: &[T], leaves: &[u32]) -> Result<Arena<T>, Error> {
    Arena::new(&Walks { tree_nodes: parts.tree_nodes, features: parts.features, thresholds, leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: u32 = u32::MAX;

    /// Three outputs in turn, six trees of one split each; leaf `i` says 2^i.
    fn in_turn() -> (Vec<f64>, Vec<u32>) {
        ((0..12).map(|leaf| f64::from(1 << leaf)).collect(), (0..12).collect())
    }

    fn parts<'p>(leaf_rows: &'p [f64], leaves: &'p [u32]) -> TreesParts<'p> {
        TreesParts {
            n_outputs: 3,
            outputs: TreeOutputs::InTurn,
            start: &[0.5, 0.0, -0.5],
            divisor: 2.0,
            leaf_rows,
            tree_nodes: &[3; 6],
            features: &[
                0, LEAF, LEAF, 1, LEAF, LEAF, 0, LEAF, LEAF, 1, LEAF, LEAF, 0, LEAF, LEAF, 1, LEAF, LEAF,
            ],
            thresholds: TreeThresholds::Double(&[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]),
            leaves,
        }
    }

    fn sums(step: &TreesStep, rows: &[f64], width: usize) -> Vec<f64> {
        let n_rows = rows.len() / width;
        let space = n_rows * width.max(step.start.len());
        let (mut values, mut spare) = (vec![0.0; space], vec![f64::NAN; space]);
        values[..rows.len()].copy_from_slice(rows);
        let mut block = Block::dense(n_rows, width, &mut values, &mut spare);
        step.run(&mut block);
        block.values().to_vec()
    }

    #[test]
    fn trees_take_turns() {
        let (leaf_rows, leaves) = in_turn();
        let step = TreesStep::new(&parts(&leaf_rows, &leaves)).unwrap();
        assert_eq!((step.n_trees(), step.n_nodes(), step.n_outputs(2).unwrap()), (6, 18, 3));
        assert!(step.n_outputs(1).is_err());
        let expected = [(1.0 + 64.0 + 0.5) / 2.0, (8.0 + 256.0) / 2.0, (16.0 + 2048.0 - 0.5) / 2.0];
        // Column 0 is 0, column 1 is 3: left in every tree of column 0, right in every one of column 1.
        let expected_in_order =
            [(0.5 + 1.0 + 128.0) / 2.0, (8.0 + 256.0) / 2.0, (-0.5 + 16.0 + 2048.0) / 2.0];
        assert_ne!(expected, expected_in_order);
        assert_eq!(sums(&step, &[0.0, 3.0], 2), expected_in_order);
    }

    #[test]
    fn rows_alone_and_together_have_the_same_sums() {
        let (leaf_rows, leaves) = in_turn();
        let step = TreesStep::new(&parts(&leaf_rows, &leaves)).unwrap();
        let rows: Vec<f64> = (0..2 * 21).map(|n| f64::from(n * 7 % 11) / 2.0 - 1.0).collect();
        let together = sums(&step, &rows, 2);
        let alone: Vec<f64> = rows.chunks(2).flat_map(|row| sums(&step, row, 2)).collect();
        assert_eq!(together, alone);
        let missing: Vec<f64> =
            rows.iter().map(|&value| if value == 0.0 { f64::NAN } else { value }).collect();
        let alone: Vec<f64> = missing.chunks(2).flat_map(|row| sums(&step, row, 2)).collect();
        assert_eq!(sums(&step, &missing, 2), alone);
    }

    #[test]
    fn values_are_rounded_where_thresholds_are_narrow() {
        let step = |thresholds| {
            TreesStep::new(&TreesParts {
                n_outputs: 1,
                outputs: TreeOutputs::All,
                start: &[0.0],
                divisor: 1.0,
                leaf_rows: &[1.0, 2.0],
                tree_nodes: &[3],
                features: &[0, LEAF, LEAF],
                thresholds,
                leaves: &[0, 1],
            })
        };
        // 1 + 2^-30 is 1 as an `f32`.
        let value = 1.0 + 1.0 / f64::from(1 << 30);
        assert_eq!(sums(&step(TreeThresholds::Single(&[1.0])).unwrap(), &[value], 1), [1.0]);
        assert_eq!(sums(&step(TreeThresholds::Double(&[1.0])).unwrap(), &[value], 1), [2.0]);
        // What is beyond `f32` is infinite, and goes right; missing values go right unless their split says left.
        assert_eq!(
            sums(&step(TreeThresholds::Single(&[1.0])).unwrap(), &[1e300, -1e300, f64::NAN], 1),
            [2.0, 1.0, 2.0]
        );
    }

    #[test]
    fn unused_leaf_rows_are_dropped_and_the_others_ordered() {
        let (leaf_rows, leaves) = in_turn();
        let step = TreesStep::new(&parts(&leaf_rows, &leaves)).unwrap();
        let reversed: Vec<f64> = [7.0].into_iter().chain(leaf_rows.iter().rev().copied()).collect();
        let places: Vec<u32> = leaves.iter().map(|leaf| 12 - leaf).collect();
        assert_eq!(TreesStep::new(&parts(&reversed, &places)).unwrap(), step);
    }

    #[test]
    fn impossible_parts_are_refused() {
        let (leaf_rows, leaves) = in_turn();
        let good = parts(&leaf_rows, &leaves);
        let cases = [
            ("am-part", TreesParts { n_outputs: 0, start: &[], ..good }),
            ("am-part-length", TreesParts { n_outputs: 2, ..good }),
            ("am-part-not-finite", TreesParts { start: &[0.0, f64::NAN, 0.0], ..good }),
            ("am-part", TreesParts { divisor: 0.0, ..good }),
            ("am-part-not-finite", TreesParts { divisor: f64::INFINITY, ..good }),
            ("am-part", TreesParts { n_outputs: 4, start: &[0.0; 4], ..good }),
            ("am-part", TreesParts { leaf_rows: &[1.0; 11], ..good }),
            ("am-part-not-finite", TreesParts { leaf_rows: &[f64::INFINITY; 12], ..good }),
            ("am-part", TreesParts { outputs: TreeOutputs::All, leaf_rows: &[0.0; 4], ..good }),
            ("am-part", TreesParts { tree_nodes: &[], ..good }),
        ];
        for (number, (code, parts)) in cases.iter().enumerate() {
            assert_eq!(TreesStep::new(parts).unwrap_err().code(), *code, "{number}");
        }
        let none = TreesParts {
            leaf_rows: &[],
            tree_nodes: &[],
            features: &[],
            thresholds: TreeThresholds::Double(&[]),
            leaves: &[],
            divisor: 1.0,
            ..good
        };
        // Boosting that stopped before its first round.
        assert_eq!(sums(&TreesStep::new(&none).unwrap(), &[1.0], 1), [0.5, 0.0, -0.5]);
        assert!(TreesStep::new(&TreesParts { outputs: TreeOutputs::All, ..none }).is_err());
    }
}
