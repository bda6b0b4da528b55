//! Walks from roots to leaves.

use super::arena::{MISSING_LEFT, Node, Number};

/// Walks that go on at once. One walk waits for memory at every step; eight wait together.
pub(super) const LANES: usize = 8;

/// Levels between two questions whether all have arrived: who asks at every level loses a tenth of the time.
const STRIDE: usize = 3;

/// The leaves that rows reach, each from its place in `at`: one tree for many rows, or many trees for one row.
///
/// A missing value follows the direction stored in its split if `MISSING`, else right: a caller without missing values must
/// know it. Every lane ends at the leaf it would reach alone.
#[inline]
pub(super) fn walk<const LANES: usize, const MISSING: bool, T: Number>(
    nodes: &[Node<T>],
    mut at: [u32; LANES],
    rows: [&[T]; LANES],
) -> [u32; LANES] {
    loop {
        let before = at;
        for _ in 0..STRIDE {
            for (at, row) in at.iter_mut().zip(rows) {
                let Some(node) = nodes.get(*at as usize) else { return before };
                // Columns are those of the row: the step knows its width. A leaf asks for the first one.
                let value = row.get((node.feature & !MISSING_LEFT) as usize).copied().unwrap_or_default();
                let left = value <= node.threshold
                    || (MISSING && value.is_nan() && node.feature & MISSING_LEFT != 0);
                *at = node.child + u32::from(!left);
            }
        }
        // Children follow their parents, so only leaves keep their index.
        if at == before {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::arena::{Arena, LEAF, Walks};
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
            let lanes: [&[f64]; 8] = core::array::from_fn(|lane| rows[lane].as_slice());
            let expected: Vec<[u32; 2]> = rows
                .iter()
                .map(|row| {
                    let mut reference = Reference { walks: &walks, row, next: [0; 3] };
                    [reference.leaf(), reference.leaf()]
                })
                .collect();
            for (number, &root) in arena.roots().iter().enumerate() {
                let found = walk::<8, true, _>(arena.nodes(), [root; 8], lanes);
                for (lane, row) in rows.iter().enumerate() {
                    prop_assert_eq!(arena.leaf(found[lane]) as u32, expected[lane][number]);
                    let alone = walk::<1, true, _>(arena.nodes(), [root], [row]);
                    prop_assert_eq!(alone[0], found[lane]);
                    if row.iter().all(|value| !value.is_nan()) {
                        let known = walk::<1, false, _>(arena.nodes(), [root], [row]);
                        prop_assert_eq!(known, alone);
                    }
                }
            }
            // Two trees for one row.
            for (row, expected) in rows.iter().zip(&expected) {
                let found = walk::<2, true, _>(arena.nodes(), [arena.roots()[0], arena.roots()[1]], [row, row]);
                prop_assert_eq!(found.map(|place| arena.leaf(place) as u32), *expected);
            }
        }
    }
}
