//! Binary decision trees, stored flat, so that depth is not limited by the stack.

use alloc::collections::TryReserveError;
use alloc::vec;
use alloc::vec::Vec;
use core::hint::select_unpredictable;

use crate::error::{Error, ErrorKind};
use crate::kernels::trees::SplitTest;
use crate::kernels::trees::walk::Trees;

pub(crate) mod payload;
mod preorder;
pub(crate) mod tensors;

/// A node of a tree. Nodes refer to each other by their indices in a list whose first node is the root.
///
/// `L` is the value of a leaf: `usize` for a class, `f32` for a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TreeNode<L> {
    /// A split by one feature.
    Split {
        /// The feature tested, counted from 0.
        feature: usize,
        /// Samples whose feature is at most this go left, all others (also those whose feature is not a number) right.
        threshold: f32,
        /// Index of the left child.
        left: usize,
        /// Index of the right child.
        right: usize,
        /// Training samples that reached the node; 0 if unknown.
        n_samples: usize,
        /// Impurity of those samples by the criterion of training; 0 if unknown.
        impurity: f32,
    },
    /// A leaf.
    Leaf {
        /// Its value.
        value: L,
        /// Training samples that reached the node; 0 if unknown.
        n_samples: usize,
        /// Impurity of those samples by the criterion of training; 0 if unknown.
        impurity: f32,
    },
}

/// Most classes of a tree. Labels and probabilities have a place for each class up to the greatest, and a leaf may name any.
const MAX_CLASSES: usize = 1 << 20;

/// The value of a leaf in four bytes.
pub(crate) trait Leaf: Copy {
    fn to_bits(self) -> Option<u32>;
    fn from_bits(bits: u32) -> Self;
}

/// What the leaves of a tree hold. A run-time value, so that reading and writing are compiled once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafKind {
    /// A class, a `usize`.
    Class,
    /// A value, an `f32`.
    Value,
    /// Nothing but their number of samples.
    Nothing,
}

/// A class, or the bits of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeafBits(u64);

impl LeafBits {
    /// One beyond [`MAX_CLASSES`] has no bits.
    fn class(class: usize) -> Self {
        Self(class.to_bits().map_or(u64::MAX, u64::from))
    }

    fn value(value: f32) -> Self {
        Self(value.to_bits().into())
    }

    /// What [`value`](Self::value) was given.
    fn to_value(self) -> f32 {
        f32::from_bits(self.0 as u32)
    }
}

impl Leaf for LeafBits {
    fn to_bits(self) -> Option<u32> {
        u32::try_from(self.0).ok()
    }

    fn from_bits(bits: u32) -> Self {
        Self(bits.into())
    }
}

impl Leaf for usize {
    fn to_bits(self) -> Option<u32> {
        (self < MAX_CLASSES).then_some(self as u32)
    }

    fn from_bits(bits: u32) -> Self {
        // Only bits of a `usize` come back.
        bits as Self
    }
}

impl Leaf for f32 {
    fn to_bits(self) -> Option<u32> {
        Some(Self::to_bits(self))
    }

    fn from_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

/// Leaf of a tree that says nothing but its number of samples.
impl Leaf for () {
    fn to_bits(self) -> Option<u32> {
        Some(0)
    }

    fn from_bits(_bits: u32) -> Self {}
}

/// Marks leaves in lists of features.
const LEAF: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// The feature tested; of a leaf 0.
    feature: u32,
    /// Bits of the threshold of a split, or of what the leaf says.
    value: u32,
    /// Index of the right child of a split; the left one follows its parent. Of a leaf: its own index.
    right: u32,
}

/// A tree whose nodes are in pre-order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Training samples at each node.
    samples: Vec<usize>,
    /// Impurity at each node; 0 if the source has none.
    impurities: Vec<f32>,
    /// One more than the greatest feature tested.
    n_features: usize,
}

impl Tree {
    /// A tree of connected nodes; their order does not matter but for the root, which is the first.
    pub(crate) fn from_nodes<L: Leaf>(nodes: &[TreeNode<L>]) -> Result<Self, Error> {
        let mut tree = Self::default();
        let mut met = vec![false; nodes.len()];
        // Places in `nodes` still to be met, and the split whose right child they are.
        let mut ahead = vec![(0, None)];
        while let Some((place, parent)) = ahead.pop() {
            if let Some(parent) = parent {
                tree.attach_right(parent);
            }
            let mut place = place;
            loop {
                match met.get_mut(place) {
                    Some(met) if !*met => *met = true,
                    Some(_) => {
                        return Err(invalid("every node but the root is the child of exactly one split"));
                    }
                    None => return Err(invalid("a child stands outside the list of nodes")),
                }
                match nodes[place] {
                    TreeNode::Split { feature, threshold, left, right, n_samples, impurity } => {
                        if threshold.is_nan() {
                            return Err(invalid("a threshold is not a number"));
                        }
                        let idx = tree.push_split(feature, threshold, n_samples, impurity);
                        let idx = idx.ok_or_else(|| invalid("features and nodes are fewer than 2^32 - 1"))?;
                        ahead.push((right, Some(idx)));
                        place = left;
                    }
                    TreeNode::Leaf { value, n_samples, impurity } => {
                        tree.push_leaf(value, n_samples, impurity)
                            .ok_or_else(|| invalid("classes and nodes are fewer than 2^32 - 1"))?;
                        break;
                    }
                }
            }
        }
        match tree.nodes.len() == nodes.len() {
            true => Ok(tree),
            false => Err(invalid("every node is reached from the root")),
        }
    }

    /// The node at a place, if there are that many.
    pub(crate) fn node<L: Leaf>(&self, idx: usize) -> Option<TreeNode<L>> {
        let &Node { feature, value, right } = self.nodes.get(idx)?;
        let n_samples = self.samples.get(idx).copied().unwrap_or(0);
        let impurity = self.impurities.get(idx).copied().unwrap_or(0.0);
        Some(if right as usize == idx {
            TreeNode::Leaf { value: L::from_bits(value), n_samples, impurity }
        } else {
            TreeNode::Split {
                feature: feature as usize,
                threshold: f32::from_bits(value),
                left: idx + 1,
                right: right as usize,
                n_samples,
                impurity,
            }
        })
    }

    pub(crate) fn iter<L: Leaf>(&self) -> impl ExactSizeIterator<Item = TreeNode<L>> {
        (0..self.nodes.len()).map(|idx| self.node(idx).expect("within the list"))
    }

    pub(crate) const fn nodes(&self) -> &[Node] {
        self.nodes.as_slice()
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Features that a sample has at least.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// The value of the leaf at that index.
    pub(crate) fn leaf<L: Leaf>(&self, idx: u32) -> L {
        L::from_bits(self.nodes.get(idx as usize).map_or(0, |node| node.value))
    }

    /// Index of the leaf that the sample reaches, and the number of splits on the way.
    ///
    /// The sample has all [`n_features`](Self::n_features) that are tested.
    pub(crate) fn reach(&self, row: &[f32], test: SplitTest) -> (u32, usize) {
        let (mut idx, mut depth) = (0, 0);
        while let Some(node) = self.nodes.get(idx as usize) {
            // Children come after their parents, and only leaves stay: the walk ends.
            match node.next::<1>(idx, row, 0, test) {
                next if next == idx => break,
                next => (idx, depth) = (next, depth + 1),
            }
        }
        (idx, depth)
    }

    /// The value of the leaf that the sample reaches; it has all features that are tested.
    pub(crate) fn predict<L: Leaf>(&self, row: &[f32]) -> L {
        self.leaf(self.reach(row, SplitTest::AtMost).0)
    }

    /// Training samples at a node.
    pub(crate) fn n_samples(&self, idx: usize) -> usize {
        self.samples.get(idx).copied().unwrap_or(0)
    }

    pub(crate) fn leaves<L: Leaf>(&self) -> impl Iterator<Item = L> {
        let leaves = self.nodes.iter().enumerate().filter(|(idx, node)| node.is_leaf(*idx));
        leaves.map(|(_, node)| L::from_bits(node.value))
    }

    /// Adds the next node of the walk; `None` if its numbers are too large to store.
    pub(crate) fn push_split(
        &mut self,
        feature: usize,
        threshold: f32,
        n_samples: usize,
        impurity: f32,
    ) -> Option<usize> {
        let stored = u32::try_from(feature).ok().filter(|&feature| feature != LEAF)?;
        self.n_features = self.n_features.max(feature + 1);
        self.push(Node { feature: stored, value: threshold.to_bits(), right: 0 }, n_samples, impurity)
    }

    /// Adds the next node of the walk; `None` if its numbers are too large to store.
    pub(crate) fn push_leaf<L: Leaf>(&mut self, value: L, n_samples: usize, impurity: f32) -> Option<usize> {
        let right = u32::try_from(self.nodes.len()).ok()?;
        self.push(Node { feature: 0, value: value.to_bits()?, right }, n_samples, impurity)
    }

    fn push(&mut self, node: Node, n_samples: usize, impurity: f32) -> Option<usize> {
        let idx = self.nodes.len();
        u32::try_from(idx).ok()?;
        self.nodes.push(node);
        self.samples.push(n_samples);
        self.impurities.push(impurity);
        Some(idx)
    }

    /// Makes the node added next the right child of a split.
    pub(crate) fn attach_right(&mut self, parent: usize) {
        // A place beyond `u32` is refused when the node is added.
        let next = u32::try_from(self.nodes.len()).unwrap_or(LEAF);
        if let Some(node) = self.nodes.get_mut(parent) {
            node.right = next;
        }
    }

    pub(crate) fn set_samples(&mut self, idx: usize, n_samples: usize) {
        if let Some(samples) = self.samples.get_mut(idx) {
            *samples = n_samples;
        }
    }

    /// Reserves memory for `count` more nodes, so that a failed allocation is an error and not an abort.
    pub(crate) fn try_reserve(&mut self, count: usize) -> Result<(), TryReserveError> {
        self.nodes.try_reserve_exact(count)?;
        self.samples.try_reserve_exact(count)?;
        self.impurities.try_reserve_exact(count)
    }

    /// Number of nodes to reserve before one is added.
    pub(crate) fn room_to_make(&self) -> usize {
        payload::room_to_make(&self.nodes)
    }

    /// Bytes that so many nodes take.
    pub(crate) const fn memory(n_nodes: usize) -> u64 {
        (n_nodes as u64).saturating_mul((size_of::<Node>() + size_of::<usize>() + size_of::<f32>()) as u64)
    }

    /// Counts the samples at splits, which some sources leave out, from their children's.
    fn sum_samples(&mut self) {
        for idx in (0..self.nodes.len()).rev() {
            let node = self.nodes[idx];
            if !node.is_leaf(idx) {
                let right = self.n_samples(node.right as usize);
                self.samples[idx] = self.n_samples(idx + 1).saturating_add(right);
            }
        }
    }

    pub(crate) fn without_impurities(mut self) -> Self {
        self.impurities.fill(0.0);
        self
    }

    pub(crate) fn has_impurities(&self) -> bool {
        self.impurities.iter().any(|&impurity| impurity.to_bits() != 0)
    }
}

/// Trees one after the other, for samples that have every feature that is tested.
impl Trees<f32> for [Tree] {
    type Node = Node;

    fn n_trees(&self) -> usize {
        self.len()
    }

    fn tree(&self, number: usize) -> (&[Node], u32) {
        (self.get(number).map_or(&[], |tree| tree.nodes()), 0)
    }

    #[inline]
    fn next<const LANES: usize>(node: &Node, at: u32, rows: &[f32], start: usize) -> u32 {
        node.next::<LANES>(at, rows, start, SplitTest::AtMost)
    }
}

impl Node {
    /// Whether the node, which has this index, is a leaf.
    pub(crate) const fn is_leaf(&self, idx: usize) -> bool {
        self.right as usize == idx
    }

    /// The index after the node, which has the index `at`, for the row that begins at `start`.
    #[inline]
    pub(crate) fn next<const LANES: usize>(
        &self,
        at: u32,
        rows: &[f32],
        start: usize,
        test: SplitTest,
    ) -> u32 {
        let value = rows.get(start + self.feature as usize).copied();
        let threshold = f32::from_bits(self.value);
        let passes = |value| match test {
            SplitTest::AtMost => value <= threshold,
            SplitTest::Below => value < threshold,
        };
        // A leaf stays, whatever the value of the first feature.
        if LANES == 1 {
            return if self.right != at && value.is_some_and(passes) { at + 1 } else { self.right };
        }
        let goes_left = (self.right != at) & passes(value.unwrap_or_default());
        select_unpredictable(goes_left, at + 1, self.right)
    }
}

fn invalid(problem: &'static str) -> Error {
    ErrorKind::PartInvalid { part: "tree", problem }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::trees::walk::for_each_leaf;

    pub(crate) fn split<L>(feature: usize, threshold: f32, left: usize, right: usize) -> TreeNode<L> {
        TreeNode::Split { feature, threshold, left, right, n_samples: 0, impurity: 0.0 }
    }

    pub(crate) fn leaf<L>(value: L) -> TreeNode<L> {
        TreeNode::Leaf { value, n_samples: 1, impurity: 0.0 }
    }

    /// The value of the leaf that a row reaches, by either walk.
    fn leaf_of<L: Leaf + PartialEq + core::fmt::Debug>(tree: &Tree, row: &[f32]) -> L {
        let alone = tree.leaf(tree.reach(row, SplitTest::AtMost).0);
        let rows = row.repeat(11);
        for_each_leaf(core::slice::from_ref(tree), &rows, row.len(), |_, _, leaf| {
            assert_eq!(tree.leaf::<L>(leaf), alone);
        });
        alone
    }

    #[test]
    fn order_of_the_nodes_does_not_matter() {
        let walked = [split(1, 0.5, 1, 4), split(0, -1.0, 2, 3), leaf(7_usize), leaf(8), leaf(9)];
        let breadth = [split(1, 0.5, 1, 2), split(0, -1.0, 3, 4), leaf(9), leaf(7), leaf(8)];
        let tree = Tree::from_nodes(&walked).expect("connected");
        assert_eq!(Tree::from_nodes(&breadth).expect("connected"), tree);
        assert!(tree.iter::<usize>().eq(walked));
        assert_eq!(tree.n_features(), 2);
        for (row, class) in [([-1.0, 0.5], 7), ([-0.9, 0.5], 8), ([f32::NAN, 0.0], 8), ([0.0, 0.6], 9)] {
            assert_eq!(leaf_of::<usize>(&tree, &row), class, "{row:?}");
        }
        assert_eq!(tree.reach(&[-1.0, 0.4], SplitTest::Below), (3, 2));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let cases: [&[TreeNode<f32>]; 8] = [
            &[],
            &[split(0, 0.0, 0, 0)],
            &[split(0, 0.0, 1, 1), leaf(1.0)],
            &[split(0, 0.0, 1, 0), leaf(1.0)],
            &[split(0, 0.0, 1, 3), leaf(1.0), leaf(2.0)],
            &[leaf(1.0), leaf(2.0)],
            &[split(0, f32::NAN, 1, 2), leaf(1.0), leaf(2.0)],
            &[split(u32::MAX as usize, 0.0, 1, 2), leaf(1.0), leaf(2.0)],
        ];
        for nodes in cases {
            assert_eq!(Tree::from_nodes(nodes).expect_err("not a tree").code(), "am-part", "{nodes:?}");
        }
        assert!(Tree::from_nodes(&[leaf(usize::MAX)]).is_err());
        // A few bytes do not make gigabytes of labels.
        assert!(Tree::from_nodes(&[leaf(MAX_CLASSES)]).is_err());
        assert!(Tree::from_nodes(&[leaf(MAX_CLASSES - 1)]).is_ok());
    }

    #[test]
    fn deep_trees_are_as_good_as_flat_ones() {
        let depth = 100_000;
        let nodes: Vec<TreeNode<f32>> = (0..depth)
            .flat_map(|level| [split(0, level as f32, 2 * level + 1, 2 * level + 2), leaf(level as f32)])
            .chain([leaf(-1.0)])
            .collect();
        let tree = Tree::from_nodes(&nodes).expect("connected");
        assert_eq!(leaf_of::<f32>(&tree, &[99_998.5]), 99_999.0);
        assert_eq!(leaf_of::<f32>(&tree, &[f32::INFINITY]), -1.0);
    }
}
