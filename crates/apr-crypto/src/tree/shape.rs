//! Positions of nodes in the outboard.

use core::ops::Range;

use super::LeafLen;

/// A tree without its hashes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    n_leaves: u64,
}

impl Shape {
    pub(super) const fn new(len: u64, leaf_len: LeafLen) -> Self {
        Self { n_leaves: len.div_ceil(leaf_len.get()) }
    }

    pub(super) const fn n_leaves(&self) -> u64 {
        self.n_leaves
    }

    /// Hashes in the outboard.
    pub(super) const fn n_hashes(&self) -> u64 {
        // Leaves are at least 1 KiB: no overflow.
        2 * self.n_leaves - self.n_leaves.count_ones() as u64
    }

    /// Nodes of `level`, the right edge included.
    pub(super) const fn n_nodes(&self, level: u32) -> u64 {
        self.n_leaves.div_ceil(1 << level)
    }

    /// Where the outboard has node `idx` of `level`; none if its subtree is not full.
    pub(super) const fn place(&self, level: u32, idx: u64) -> Option<u64> {
        let end = (idx + 1) << level;
        if end > self.n_leaves {
            return None;
        }
        let last = end - 1;
        Some(2 * last - last.count_ones() as u64 + level as u64)
    }

    /// The nodes beside the path of `leaves` to the root, from the bottom up: on each level below the root, the left
    /// neighbour and the right one, where the path needs them.
    pub(super) fn beside(&self, leaves: Range<u64>) -> impl Iterator<Item = Beside> + use<> {
        let (shape, mut first, mut last) = (*self, leaves.start, leaves.end.saturating_sub(1));
        (0..).take_while(move |level| shape.n_nodes(*level) > 1).map(move |level| {
            let left = (first % 2 == 1).then(|| first - 1);
            let right = (last.is_multiple_of(2) && last + 1 < shape.n_nodes(level)).then(|| last + 1);
            (first, last) = (first / 2, last / 2);
            Beside { level, left, right, is_root_next: shape.n_nodes(level + 1) == 1 }
        })
    }
}

/// What a level adds to a proof.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    pub(super) level: u32,
    pub(super) left: Option<u64>,
    pub(super) right: Option<u64>,
    /// Whether the parents of this level's nodes are the root.
    pub(super) is_root_next: bool,
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// The places count up without a gap in the order in which nodes are known.
    #[test]
    fn places_follow_each_other() {
        for n in 0..70 {
            let shape = Shape::new(n * 1024, LeafLen::new(1024).unwrap());
            let mut next = 0;
            for leaf in 0..n {
                for level in 0..=(leaf + 1).trailing_zeros() {
                    assert_eq!(shape.place(level, leaf >> level), Some(next), "leaf {leaf} level {level}");
                    next += 1;
                }
            }
            assert_eq!(next, shape.n_hashes());
        }
    }

    #[test]
    fn nodes_that_are_not_full_have_no_place() {
        let shape = Shape::new(5 * 1024 - 1, LeafLen::new(1024).unwrap());
        assert_eq!(shape.n_leaves(), 5);
        assert_eq!((shape.place(0, 4), shape.place(1, 2), shape.place(2, 1)), (Some(7), None, None));
    }

    #[test]
    fn a_proof_has_at_most_two_hashes_a_level() {
        let shape = Shape::new(1000 * 1024, LeafLen::new(1024).unwrap());
        let levels: Vec<Beside> = shape.beside(333..334).collect();
        assert_eq!(levels.len(), 10);
        assert!(levels.iter().all(|level| level.left.is_none() || level.right.is_none()));
        assert!(levels[9].is_root_next && !levels[8].is_root_next);
        assert_eq!(shape.beside(0..1000).filter(|b| b.left.is_some() || b.right.is_some()).count(), 0);
    }
}
