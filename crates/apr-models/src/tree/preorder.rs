//! Trees as two lists, in the order of the nodes in memory: the feature each split tests, or a mark for leaves, and the
//! threshold or what the leaf says (`docs/payloads.md`, section 8).

use alloc::vec::Vec;

use super::{LEAF, Tree, invalid};
use crate::error::Error;

impl Tree {
    /// The feature of each split; 2^32 - 1 for leaves.
    pub(crate) fn features(&self) -> impl ExactSizeIterator<Item = u32> {
        self.nodes.iter().enumerate().map(|(idx, node)| if node.is_leaf(idx) { LEAF } else { node.feature })
    }

    /// The threshold of each split and the value of each leaf, which are `f32`.
    pub(crate) fn values(&self) -> impl ExactSizeIterator<Item = f32> {
        self.nodes.iter().map(|node| f32::from_bits(node.value))
    }

    /// Bytes that [`from_preorder`](Self::from_preorder) takes for so many nodes, at most.
    pub(crate) const fn preorder_memory(n_nodes: usize) -> u64 {
        Self::memory(n_nodes).saturating_add((n_nodes / 2 * size_of::<usize>()) as u64)
    }

    /// The tree of those two lists.
    pub(crate) fn from_preorder(features: &[u32], values: &[f32]) -> Result<Self, Error> {
        if features.len() != values.len() {
            return Err(invalid("there is one value for each node"));
        }
        let mut tree = Self::default();
        tree.try_reserve(features.len()).map_err(|_| invalid("there is memory for its nodes"))?;
        // Splits whose left side is being read; each has a leaf of its own.
        let most = features.len() / 2;
        let mut open: Vec<usize> = Vec::with_capacity(most);
        let mut complete = false;
        for (&feature, &value) in features.iter().zip(values) {
            if complete {
                return Err(invalid("nodes go on after the last leaf"));
            }
            let added = match feature {
                LEAF => tree.push_leaf(value, 0, 0.0),
                _ if value.is_nan() => return Err(invalid("a threshold is not a number")),
                _ => tree.push_split(feature as usize, value, 0, 0.0),
            };
            let added = added.ok_or_else(|| invalid("nodes are fewer than 2^32 - 1"))?;
            if feature != LEAF {
                if open.len() == most {
                    return Err(invalid("nodes end before every split has two sides"));
                }
                open.push(added);
            } else if let Some(parent) = open.pop() {
                tree.attach_right(parent);
            } else {
                complete = true;
            }
        }
        match complete {
            true => Ok(tree),
            false => Err(invalid("nodes end before every split has two sides")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TreeNode;

    #[test]
    fn lists_make_the_tree_they_came_from() {
        let split = |left, right| TreeNode::Split {
            feature: 3,
            threshold: 0.5,
            left,
            right,
            n_samples: 0,
            impurity: 0.0,
        };
        let leaf = |value| TreeNode::Leaf { value, n_samples: 0, impurity: 0.0 };
        let nodes = [split(1, 4), split(2, 3), leaf(1.0_f32), leaf(2.0), split(5, 6), leaf(3.0), leaf(4.0)];
        let tree = Tree::from_nodes(&nodes).unwrap();
        let (features, values): (Vec<u32>, Vec<f32>) = (tree.features().collect(), tree.values().collect());
        assert_eq!(features, [3, 3, LEAF, LEAF, 3, LEAF, LEAF]);
        assert_eq!(values, [0.5, 0.5, 1.0, 2.0, 0.5, 3.0, 4.0]);
        assert_eq!(Tree::from_preorder(&features, &values).unwrap(), tree);
        for len in 0..features.len() {
            assert!(Tree::from_preorder(&features[..len], &values[..len]).is_err(), "{len}");
        }
        let longer = ([features.as_slice(), &[LEAF]].concat(), [values.as_slice(), &[1.0]].concat());
        assert!(Tree::from_preorder(&longer.0, &longer.1).is_err());
        assert!(Tree::from_preorder(&features, &values[1..]).is_err());
        assert!(Tree::from_preorder(&[0, LEAF, LEAF], &[f32::NAN, 0.0, 0.0]).is_err());
    }
}
