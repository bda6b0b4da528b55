//! Trees as arrays of one value for each node.
//!
//! | tensor | split | leaf |
//! |---|---|---|
//! | `node_features` | feature | -1 |
//! | `node_thresholds` | threshold | 0 |
//! | `node_classes` (or `node_values`) | 0 | class (or value) |
//! | `node_samples` | 0, or the samples counted | training samples |
//! | `node_left_child`, `node_right_child` | place of the child | -1 |
//! | `node_impurities`, if any is not 0 | impurity | impurity |

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::{Leaf, Tree, TreeNode};
use crate::error::{Error, ErrorKind};
use crate::tensors::Tensors;

/// What a leaf says, as a tensor.
pub(crate) trait LeafTensor: Leaf + Default {
    const NAME: &'static str;
    fn push(tensors: &mut Tensors, name: &str, values: &[Self]) -> Result<(), Error>;
    fn read(tensors: &Tensors, name: &str) -> Result<Vec<Self>, Error>;
}

impl LeafTensor for usize {
    const NAME: &'static str = "node_classes";

    fn push(tensors: &mut Tensors, name: &str, values: &[Self]) -> Result<(), Error> {
        tensors.push_counts(name, values)
    }

    fn read(tensors: &Tensors, name: &str) -> Result<Vec<Self>, Error> {
        tensors.counts(name)
    }
}

impl LeafTensor for f32 {
    const NAME: &'static str = "node_values";

    fn push(tensors: &mut Tensors, name: &str, values: &[Self]) -> Result<(), Error> {
        tensors.push_f32(name, &[values.len()], values)
    }

    fn read(tensors: &Tensors, name: &str) -> Result<Vec<Self>, Error> {
        tensors.vector(name)
    }
}

/// Leaves that say nothing have no tensor.
impl LeafTensor for () {
    const NAME: &'static str = "";

    fn push(_tensors: &mut Tensors, _name: &str, _values: &[Self]) -> Result<(), Error> {
        Ok(())
    }

    fn read(tensors: &Tensors, name: &str) -> Result<Vec<Self>, Error> {
        let features = format!("{}{FEATURES}", name.strip_suffix(Self::NAME).unwrap_or(name));
        Ok(vec![(); tensors.signed_integers(&features)?.len()])
    }
}

const FEATURES: &str = "node_features";
const THRESHOLDS: &str = "node_thresholds";
const SAMPLES: &str = "node_samples";
const LEFT: &str = "node_left_child";
const RIGHT: &str = "node_right_child";
const IMPURITIES: &str = "node_impurities";

/// Whether a tensor is part of a tree; `name` comes without the tree's prefix.
pub(crate) fn is_part<L: LeafTensor>(name: &str) -> bool {
    [FEATURES, THRESHOLDS, SAMPLES, LEFT, RIGHT, IMPURITIES].contains(&name) || name == L::NAME
}

/// Number of the tree and name of the part in `tree_3_node_features`.
pub(crate) fn part_of_tree(name: &str) -> Option<(usize, &str)> {
    let (idx, part) = name.strip_prefix("tree_")?.split_once('_')?;
    let canonical = idx == "0" || idx.starts_with(|digit: char| matches!(digit, '1'..='9'));
    canonical.then_some((idx.parse().ok()?, part))
}

pub(crate) fn push<L: LeafTensor>(tensors: &mut Tensors, prefix: &str, tree: &Tree) -> Result<(), Error> {
    let named = |name: &str| -> String { format!("{prefix}{name}") };
    let count = tree.len();
    let (mut features, mut thresholds) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut values, mut samples) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut left_children, mut right_children) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut impurities = Vec::with_capacity(count);
    for node in tree.iter::<L>() {
        let (n, i) = match node {
            TreeNode::Split { feature, threshold, left, right, n_samples, impurity } => {
                features.push(feature as i64);
                thresholds.push(threshold);
                values.push(L::default());
                left_children.push(left as i64);
                right_children.push(right as i64);
                (n_samples, impurity)
            }
            TreeNode::Leaf { value, n_samples, impurity } => {
                features.push(-1);
                thresholds.push(0.0);
                values.push(value);
                left_children.push(-1);
                right_children.push(-1);
                (n_samples, impurity)
            }
        };
        samples.push(n);
        impurities.push(i);
    }
    tensors.push_signed(&named(FEATURES), &features)?;
    tensors.push_f32(&named(THRESHOLDS), &[count], &thresholds)?;
    L::push(tensors, &named(L::NAME), &values)?;
    tensors.push_counts(&named(SAMPLES), &samples)?;
    tensors.push_signed(&named(LEFT), &left_children)?;
    tensors.push_signed(&named(RIGHT), &right_children)?;
    if tree.has_impurities() {
        tensors.push_f32(&named(IMPURITIES), &[count], &impurities)?;
    }
    Ok(())
}

pub(crate) fn read<L: LeafTensor>(tensors: &Tensors, prefix: &str) -> Result<Tree, Error> {
    let named = |name: &str| -> String { format!("{prefix}{name}") };
    let features = tensors.signed_integers(&named(FEATURES))?;
    let thresholds = tensors.vector(&named(THRESHOLDS))?;
    let values = L::read(tensors, &named(L::NAME))?;
    let samples = tensors.counts(&named(SAMPLES))?;
    let left_children = tensors.signed_integers(&named(LEFT))?;
    let right_children = tensors.signed_integers(&named(RIGHT))?;
    let impurities = tensors.optional(&named(IMPURITIES), Tensors::vector)?;
    let expected = features.len();
    let lengths = [
        (THRESHOLDS, thresholds.len()),
        (L::NAME, values.len()),
        (SAMPLES, samples.len()),
        (LEFT, left_children.len()),
        (RIGHT, right_children.len()),
        (IMPURITIES, impurities.as_ref().map_or(expected, Vec::len)),
    ];
    if let Some((part, found)) = lengths.into_iter().find(|&(_, found)| found != expected) {
        return Err(Error::from(ErrorKind::PartLength { part, expected, found }).of_tensor(&named(part)));
    }
    let place = |value: i128, name: &str| {
        usize::try_from(value).map_err(|_| Error::from(ErrorKind::TensorInteger).of_tensor(&named(name)))
    };
    let nodes = (0..expected)
        .map(|idx| {
            let n_samples = samples[idx];
            let impurity = impurities.as_ref().map_or(0.0, |impurities| impurities[idx]);
            if features[idx] < 0 {
                return Ok(TreeNode::Leaf { value: values[idx], n_samples, impurity });
            }
            Ok(TreeNode::Split {
                feature: place(features[idx], FEATURES)?,
                threshold: thresholds[idx],
                left: place(left_children[idx], LEFT)?,
                right: place(right_children[idx], RIGHT)?,
                n_samples,
                impurity,
            })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let mut tree = Tree::from_nodes(&nodes)?;
    // Writers that do not name the model do not count the samples of splits either, and write zeros.
    if tensors.model().is_none()
        && tree.iter::<L>().all(|node| !matches!(node, TreeNode::Split { n_samples: 1.., .. }))
    {
        tree.sum_samples();
    }
    Ok(tree)
}
