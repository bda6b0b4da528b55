//! The nodes of all trees of a step in one list.
//!
//! In a file a tree is the walk through it that goes left first. Here the two children of a node stand side by side and
//! nearer levels before farther ones, so that the first levels of a tree share cache lines. A leaf is a node whose test
//! every value passes and whose left child is the leaf itself: who has arrived stays, without a branch that asks.

use alloc::vec::Vec;
use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::kernels::trees::walk::Trees;

/// In the list of features: no test but a leaf.
pub(crate) const LEAF: u32 = u32::MAX;

/// In the list of features: values that are missing go left.
pub(crate) const MISSING_LEFT: u32 = 1 << 31;

/// A number that splits compare.
pub(crate) trait Number: Copy + Default + PartialOrd + fmt::Debug {
    const INFINITY: Self;

    fn is_nan(self) -> bool;
}

impl Number for f32 {
    const INFINITY: Self = Self::INFINITY;

    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

impl Number for f64 {
    const INFINITY: Self = Self::INFINITY;

    fn is_nan(self) -> bool {
        self.is_nan()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Node<T> {
    /// A value that is not above it goes left.
    pub(crate) threshold: T,
    /// Bits 0 to 30: the column of the value; bit 31: [`MISSING_LEFT`].
    pub(crate) feature: u32,
    /// Index of the left child; the right one follows it. Of a leaf: its own index.
    pub(crate) child: u32,
}

/// Trees as files have them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walks<'p, T> {
    /// Nodes of each tree.
    pub(crate) tree_nodes: &'p [u32],
    /// One for each node: the column with [`MISSING_LEFT`], or [`LEAF`].
    pub(crate) features: &'p [u32],
    /// One for each split.
    pub(crate) thresholds: &'p [T],
    /// One for each leaf: a place in a list of what leaves say.
    pub(crate) leaves: &'p [u32],
}

/// Trees as they are asked. Every walk from a root ends at a leaf.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arena<T> {
    nodes: Vec<Node<T>>,
    /// Place of each tree's root; the nodes of a tree end where the next begin.
    roots: Vec<u32>,
    /// What each node says that is a leaf, 0 for the others.
    leaf_of: Vec<u32>,
    /// The last column that a split asks for.
    last_feature: Option<u32>,
}

impl<T: Number> Arena<T> {
    /// Builds the arena, and proves that the lists fit each other.
    pub(crate) fn new(walks: &Walks<'_, T>) -> Result<Self, Error> {
        let Walks { tree_nodes, features, .. } = *walks;
        let n_nodes = features.len();
        let mut left = n_nodes;
        for &count in tree_nodes {
            let rest = left.checked_sub(count as usize);
            left = rest.ok_or_else(|| invalid("the trees have more nodes than there are features"))?;
        }
        expect(left == 0, "the trees have fewer nodes than there are features")?;
        expect(u32::try_from(n_nodes).is_ok_and(|count| count < LEAF), "nodes are fewer than 2^32 - 1")?;

        let largest = tree_nodes.iter().max().map_or(0, |&count| count as usize);
        let mut arena = Self {
            nodes: reserved(n_nodes)?,
            roots: reserved(tree_nodes.len())?,
            leaf_of: reserved(n_nodes)?,
            last_feature: None,
        };
        let mut build =
            Build { walked: reserved(largest)?, open: reserved(largest / 2)?, order: reserved(largest)? };
        let (mut thresholds, mut leaves, mut start) = (walks.thresholds, walks.leaves, 0);
        for &count in tree_nodes {
            let end = start + count as usize;
            let features = features.get(start..end).unwrap_or_default();
            start = end;
            build.read(features, &mut thresholds, &mut leaves)?;
            build.append_to(&mut arena);
        }
        expect(thresholds.is_empty(), "there are more thresholds than splits")?;
        expect(leaves.is_empty(), "there are more results than leaves")?;
        let splits = features.iter().filter(|&&feature| feature != LEAF);
        arena.last_feature = splits.map(|feature| feature & !MISSING_LEFT).max();
        Ok(arena)
    }

    /// Bytes that [`new`](Self::new) takes, with its working memory; the largest tree may have all nodes.
    pub(crate) const fn memory(n_nodes: usize, n_trees: usize) -> u64 {
        let node = 2 * size_of::<Node<T>>() + 3 * size_of::<u32>();
        (n_nodes as u64).saturating_mul(node as u64).saturating_add(n_trees as u64 * 4)
    }

    pub(crate) const fn nodes(&self) -> &[Node<T>] {
        self.nodes.as_slice()
    }

    pub(crate) const fn roots(&self) -> &[u32] {
        self.roots.as_slice()
    }

    pub(crate) const fn last_feature(&self) -> Option<u32> {
        self.last_feature
    }

    /// The value of the leaf at that index.
    pub(crate) fn leaf(&self, place: u32) -> usize {
        self.leaf_of.get(place as usize).map_or(0, |&leaf| leaf as usize)
    }

    /// Nodes of each tree.
    pub(crate) fn tree_nodes(&self) -> impl Iterator<Item = u32> {
        let all = u32::try_from(self.nodes.len()).unwrap_or(LEAF);
        let end = move |idx: usize| self.roots.get(idx + 1).copied().unwrap_or(all);
        self.roots.iter().enumerate().map(move |(idx, root)| end(idx) - root)
    }

    /// Gives `each` the place of every node and whether it is a leaf, tree by tree in the order of walks.
    pub(crate) fn try_for_each<E>(
        &self,
        mut each: impl FnMut(u32, Node<T>, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut ahead = Vec::new();
        for &root in &self.roots {
            ahead.push(root);
            while let Some(place) = ahead.pop() {
                let Some(&node) = self.nodes.get(place as usize) else { continue };
                let is_leaf = node.child == place;
                each(place, node, is_leaf)?;
                if !is_leaf {
                    ahead.extend([node.child + 1, node.child]);
                }
            }
        }
        Ok(())
    }
}

/// The trees of an arena, for rows that may have missing values or not. A missing value follows the direction stored in its split if
/// `MISSING`, else it goes right: a caller without missing values must know it.
pub(crate) struct Routes<'a, T, const MISSING: bool>(pub(crate) &'a Arena<T>);

impl<T: Number, const MISSING: bool> Trees<T> for Routes<'_, T, MISSING> {
    type Node = Node<T>;
    const SIDE_BY_SIDE: bool = true;

    #[inline]
    fn n_trees(&self) -> usize {
        self.0.roots.len()
    }

    #[inline]
    fn tree(&self, number: usize) -> (&[Node<T>], u32) {
        (self.0.nodes(), self.0.roots.get(number).copied().unwrap_or_default())
    }

    #[inline]
    fn shared_list(&self) -> Option<&[Node<T>]> {
        Some(self.0.nodes())
    }

    #[inline]
    fn next<const LANES: usize>(node: &Node<T>, _at: u32, rows: &[T], start: usize) -> u32 {
        // Columns are those of the row: the step knows its width. A leaf asks for the first one.
        let value = rows.get(start + (node.feature & !MISSING_LEFT) as usize).copied().unwrap_or_default();
        let left = value <= node.threshold || (MISSING && value.is_nan() && node.feature & MISSING_LEFT != 0);
        node.child + u32::from(!left)
    }
}

/// Working memory of the making.
struct Build<T> {
    /// One tree in the order of its walk; `child` is the right child of a split, what a leaf says.
    walked: Vec<Node<T>>,
    /// Splits whose left side is being read.
    open: Vec<u32>,
    /// For each place of the arena, the place in the walk.
    order: Vec<u32>,
}

impl<T: Number> Build<T> {
    /// Reads one tree, and takes what its nodes use from the front of the other lists.
    fn read(&mut self, features: &[u32], thresholds: &mut &[T], leaves: &mut &[u32]) -> Result<(), Error> {
        self.walked.clear();
        self.open.clear();
        let mut complete = false;
        for (behind, &feature) in (1..).zip(features) {
            expect(!complete, "a tree goes on after its last leaf")?;
            if feature == LEAF {
                let (&leaf, rest) = leaves.split_first().ok_or_else(|| invalid("a leaf has no result"))?;
                *leaves = rest;
                self.walked.push(Node { threshold: T::INFINITY, feature, child: leaf });
                match self.open.pop().and_then(|parent| self.walked.get_mut(parent as usize)) {
                    Some(parent) => parent.child = behind,
                    None => complete = true,
                }
                continue;
            }
            let (&threshold, rest) =
                thresholds.split_first().ok_or_else(|| invalid("a split has no threshold"))?;
            *thresholds = rest;
            expect(!threshold.is_nan(), "a threshold is not a number")?;
            // A complete tree has fewer splits than leaves; this keeps the list within its capacity.
            expect(self.open.len() < features.len() / 2, "a tree ends before every split has two sides")?;
            self.walked.push(Node { threshold, feature, child: 0 });
            self.open.push(behind - 1);
        }
        expect(complete, "a tree ends before every split has two sides")
    }

    fn append_to(&mut self, arena: &mut Arena<T>) {
        // No overflow: all nodes together are fewer than 2^32 - 1.
        let root = arena.nodes.len() as u32;
        arena.roots.push(root);
        self.order.clear();
        self.order.push(0);
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            let place = root + next as u32;
            next += 1;
            let Some(&node) = self.walked.get(at as usize) else { continue };
            if node.feature == LEAF {
                arena.nodes.push(Node { feature: MISSING_LEFT, child: place, ..node });
                arena.leaf_of.push(node.child);
            } else {
                let child = root + self.order.len() as u32;
                arena.nodes.push(Node { child, ..node });
                arena.leaf_of.push(0);
                self.order.extend([at + 1, node.child]);
            }
        }
    }
}

fn reserved<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(invalid("there is memory for its nodes")),
    }
}

fn expect(holds: bool, problem: &'static str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(invalid(problem)) }
}

fn invalid(problem: &'static str) -> Error {
    ErrorKind::PartInvalid { part: "trees", problem }.into()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// A split with a leaf and a split with two leaves; then a leaf alone.
    fn walks() -> (Vec<u32>, Vec<u32>, Vec<f32>, Vec<u32>) {
        (vec![5, 1], vec![2 | MISSING_LEFT, LEAF, 0, LEAF, LEAF, LEAF], vec![0.5, -1.0], vec![0, 1, 2, 0])
    }

    fn build(lists: &(Vec<u32>, Vec<u32>, Vec<f32>, Vec<u32>)) -> Result<Arena<f32>, Error> {
        let (tree_nodes, features, thresholds, leaves) = lists;
        Arena::new(&Walks { tree_nodes, features, thresholds, leaves })
    }

    #[test]
    fn children_stand_side_by_side_and_leaves_point_to_themselves() {
        let arena = build(&walks()).unwrap();
        let children: Vec<u32> = arena.nodes().iter().map(|node| node.child).collect();
        assert_eq!(children, [1, 1, 3, 3, 4, 5]);
        assert_eq!((arena.roots(), arena.last_feature()), (&[0, 5][..], Some(2)));
        assert_eq!(arena.tree_nodes().collect::<Vec<_>>(), [5, 1]);
        assert_eq!([1, 3, 4, 5].map(|place| arena.leaf(place)), [0, 1, 2, 0]);
        let stump =
            Arena::new(&Walks { tree_nodes: &[1], features: &[LEAF], thresholds: &[0.0; 0], leaves: &[7] });
        assert_eq!(stump.unwrap().last_feature(), None);
    }

    #[test]
    fn an_arena_gives_back_the_walks_it_was_made_from() {
        let (_, features, thresholds, leaves) = walks();
        let arena = build(&walks()).unwrap();
        let mut found: (Vec<u32>, Vec<f32>, Vec<u32>) = Default::default();
        let all = arena.try_for_each(|place, node, is_leaf| {
            found.0.push(if is_leaf { LEAF } else { node.feature });
            match is_leaf {
                true => found.2.push(arena.leaf(place) as u32),
                false => found.1.push(node.threshold),
            }
            Ok::<(), Error>(())
        });
        all.unwrap();
        assert_eq!(found, (features, thresholds, leaves));
    }

    #[test]
    fn lists_that_do_not_fit_each_other_are_refused() {
        type Lists = (Vec<u32>, Vec<u32>, Vec<f32>, Vec<u32>);
        let damage: [fn(&mut Lists); 14] = [
            |lists| lists.0 = vec![5],
            |lists| lists.0 = vec![5, 1, 1],
            |lists| lists.0 = vec![5, 0, 1],
            |lists| lists.0 = vec![u32::MAX, 7],
            |lists| lists.0 = vec![1, 5],
            |lists| lists.0 = vec![6],
            |lists| lists.0 = vec![4, 2],
            |lists| lists.1[1] = 0,
            |lists| lists.1[0] = LEAF,
            |lists| lists.2.push(0.0),
            |lists| lists.2.truncate(1),
            |lists| lists.3.push(0),
            |lists| lists.3.truncate(3),
            |lists| lists.2[1] = f32::NAN,
        ];
        for (number, damage) in damage.iter().enumerate() {
            let mut lists = walks();
            damage(&mut lists);
            assert_eq!(build(&lists).unwrap_err().code(), "am-part", "{number}");
        }
        let mut all_splits = walks();
        all_splits.1.fill(0);
        all_splits.2 = vec![0.0; 6];
        assert!(build(&all_splits).is_err());
    }
}
