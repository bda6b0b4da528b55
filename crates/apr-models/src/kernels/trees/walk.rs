//! Walks from roots to leaves.

/// Walks that go on at once. One walk waits for memory at every step; eight wait together.
pub(crate) const LANES: usize = 8;

/// Levels between two questions whether all have arrived: who asks at every level loses a tenth of the time.
const STRIDE: usize = 3;

/// Trees that rows of `T` walk through.
pub(crate) trait Trees<T> {
    type Node;

    /// Whether rows walk side by side: faster, in more code.
    const SIDE_BY_SIDE: bool = !cfg!(apr_small);

    fn n_trees(&self) -> usize;

    /// The list of nodes that the tree is in, and the index of its root.
    fn tree(&self, number: usize) -> (&[Self::Node], u32);

    /// The list that all trees are in, if they share one.
    fn shared_list(&self) -> Option<&[Self::Node]> {
        None
    }

    /// The index of the child that a row goes on to from the node at the index `at`; from a leaf its own index. The row begins at
    /// `start` in `rows`.
    fn next<const LANES: usize>(node: &Self::Node, at: u32, rows: &[T], start: usize) -> u32;
}

/// The leaves that rows reach, each from its index in `at`: one tree for many rows, or many trees for one row. The row of a lane
/// begins at its place of `starts`. Every lane ends at the leaf it would reach alone.
#[inline]
pub(crate) fn walk<const LANES: usize, F: Trees<T> + ?Sized, T>(
    nodes: &[F::Node],
    mut at: [u32; LANES],
    rows: &[T],
    starts: [usize; LANES],
) -> [u32; LANES] {
    loop {
        let before = at;
        for _ in 0..STRIDE {
            for (at, start) in at.iter_mut().zip(starts) {
                let Some(node) = nodes.get(*at as usize) else { return before };
                *at = F::next::<LANES>(node, *at, rows, start);
            }
        }
        // Children follow their parents, so only leaves keep their index.
        if at == before {
            return at;
        }
    }
}

/// Gives `each` the number of every row of `width` values, the number of every tree, and the index of the leaf that the row
/// reaches in it; the trees of a row in their order.
#[inline]
pub(crate) fn for_each_leaf<F: Trees<T> + ?Sized, T>(
    forest: &F,
    rows: &[T],
    width: usize,
    mut each: impl FnMut(usize, usize, u32),
) {
    let width = width.max(1);
    let n_trees = forest.n_trees();
    let (mut others, mut first) = (rows, 0);
    if F::SIDE_BY_SIDE {
        let blocks = rows.chunks_exact(LANES * width);
        (others, first) = (blocks.remainder(), blocks.len() * LANES);
        // Tree by tree: the nodes of one stay in the cache while all rows pass through it.
        for number in 0..n_trees {
            let (nodes, root) = forest.tree(number);
            for (block, rows) in blocks.clone().enumerate() {
                let starts = core::array::from_fn(|lane| lane * width);
                let leaves = walk::<LANES, F, T>(nodes, [root; LANES], rows, starts);
                (block * LANES..).zip(leaves).for_each(|(row, leaf)| each(row, number, leaf));
            }
        }
    }
    // Fewer rows than lanes: eight trees for one row, if they share a list.
    for (idx, row) in (first..).zip(others.chunks_exact(width)) {
        let mut number = 0;
        if F::SIDE_BY_SIDE
            && let Some(nodes) = forest.shared_list()
        {
            while number + LANES <= n_trees {
                let roots = core::array::from_fn(|lane| forest.tree(number + lane).1);
                let leaves = walk::<LANES, F, T>(nodes, roots, row, [0; LANES]);
                (number..).zip(leaves).for_each(|(number, leaf)| each(idx, number, leaf));
                number += LANES;
            }
        }
        for number in number..n_trees {
            let (nodes, mut at) = forest.tree(number);
            while let Some(node) = nodes.get(at as usize) {
                match F::next::<1>(node, at, row, 0) {
                    next if next == at => break,
                    next => at = next,
                }
            }
            each(idx, number, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::arena::{Arena, LEAF, MISSING_LEFT, Routes, Walks};
    use super::*;

    /// The lists of one tree of those nodes: splits as long as one may still follow, leaves with numbers of their own.
    fn tree(nodes: &[(bool, u32, f64, bool)]) -> (Vec<u32>, Vec<f64>, Vec<u32>) {
        let (mut features, mut thresholds, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        let mut ahead = 1;
        for &(is_split, feature, threshold, missing_left) in nodes {
            if ahead == 0 {
                break;
            }
            if is_split {
                features.push(feature | if missing_left { MISSING_LEFT } else { 0 });
                thresholds.push(threshold);
                ahead += 1;
            } else {
                features.push(LEAF);
                leaves.push(leaves.len() as u32);
                ahead -= 1;
            }
        }
        for _ in 0..ahead {
            features.push(LEAF);
            leaves.push(leaves.len() as u32);
        }
        (features, thresholds, leaves)
    }

    /// The walk as its definition says it, on the lists of the file. Returns the leaf and moves `next` past the tree.
    struct Reference<'p> {
        walks: &'p Walks<'p, f64>,
        row: &'p [f64],
        next: [usize; 3],
    }

    impl Reference<'_> {
        fn leaf(&mut self) -> u32 {
            let feature = self.walks.features[self.next[0]];
            self.next[0] += 1;
            if feature == LEAF {
                self.next[2] += 1;
                return self.walks.leaves[self.next[2] - 1];
            }
            let threshold = self.walks.thresholds[self.next[1]];
            self.next[1] += 1;
            let value = self.row[(feature & !MISSING_LEFT) as usize];
            let goes_left = if value.is_nan() { feature & MISSING_LEFT != 0 } else { value <= threshold };
            let (left, right) = (self.leaf(), self.leaf());
            if goes_left { left } else { right }
        }
    }

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            4 => (-3..4_i8).prop_map(f64::from),
            1 => Just(f64::INFINITY),
            1 => Just(f64::NEG_INFINITY),
            1 => Just(-0.0),
            1 => Just(f64::MIN_POSITIVE / 4.0),
        ]
    }

    proptest! {
        #[test]
        fn every_lane_ends_where_recursion_ends(
            nodes in vec((any::<bool>(), 0..4_u32, number(), any::<bool>()), 0..60),
            more in vec((any::<bool>(), 0..4_u32, number(), any::<bool>()), 0..20),
            rows in vec(vec(prop_oneof![4 => number(), 1 => Just(f64::NAN)], 4), 8),
        ) {
            let (first, second) = (tree(&nodes), tree(&more));
            let features = [first.0.as_slice(), &second.0].concat();
            let (thresholds, leaves) = ([first.1, second.1].concat(), [first.2, second.2].concat());
            let tree_nodes = [first.0.len() as u32, second.0.len() as u32];
            let walks =
                Walks { tree_nodes: &tree_nodes, features: &features, thresholds: &thresholds, leaves: &leaves };
            let arena = Arena::new(&walks).unwrap();
            let expected: Vec<[u32; 2]> = rows
                .iter()
                .map(|row| {
                    let mut reference = Reference { walks: &walks, row, next: [0; 3] };
                    [reference.leaf(), reference.leaf()]
                })
                .collect();
            let (flat, forest) = (rows.concat(), Routes::<_, true>(&arena));
            let leaf = |leaf| arena.leaf(leaf) as u32;
            // One tree for as many rows as lanes; then one lane, and two trees for one row.
            for_each_leaf(&forest, &flat, 4, |row, number, end| assert_eq!(leaf(end), expected[row][number]));
            for (row, expected) in rows.iter().zip(&expected) {
                for_each_leaf(&forest, row, 4, |_, number, end| assert_eq!(leaf(end), expected[number]));
                if row.iter().all(|value| !value.is_nan()) {
                    let known = Routes::<_, false>(&arena);
                    for_each_leaf(&known, row, 4, |_, number, end| assert_eq!(leaf(end), expected[number]));
                }
                let roots = [arena.roots()[0], arena.roots()[1]];
                let found = walk::<2, Routes<'_, f64, true>, _>(arena.nodes(), roots, row, [0; 2]);
                prop_assert_eq!(found.map(leaf), *expected);
            }
        }
    }
}
