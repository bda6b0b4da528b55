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

use super::{LeafBits, LeafKind, Tree, TreeNode};
use crate::error::{Error, ErrorKind};
use crate::tensors::Tensors;

/// The tensor of what leaves say.
const fn name_of(says: LeafKind) -> &'static str {
    match says {
        LeafKind::Class => "node_classes",
        LeafKind::Value => "node_values",
        LeafKind::Nothing => "",
    }
}

const FEATURES: &str = "node_features";
const THRESHOLDS: &str = "node_thresholds";
const SAMPLES: &str = "node_samples";
const LEFT: &str = "node_left_child";
const RIGHT: &str = "node_right_child";
const IMPURITIES: &str = "node_impurities";

/// Whether a tensor is part of a tree; `name` comes without the tree's prefix.
pub(crate) fn is_part(name: &str, says: LeafKind) -> bool {
    [FEATURES, THRESHOLDS, SAMPLES, LEFT, RIGHT, IMPURITIES].contains(&name) || name == name_of(says)
}

/// Number of the tree and name of the part in `tree_3_node_features`.
pub(crate) fn part_of_tree(name: &str) -> Option<(usize, &str)> {
    let (idx, part) = name.strip_prefix("tree_")?.split_once('_')?;
    let canonical = idx == "0" || idx.starts_with(|digit: char| matches!(digit, '1'..='9'));
    canonical.then_some((idx.parse().ok()?, part))
}

pub(crate) fn push(tensors: &mut Tensors, prefix: &str, tree: &Tree, says: LeafKind) -> Result<(), Error> {
    let named = |name: &str| -> String { format!("{prefix}{name}") };
    let count = tree.len();
    let (mut features, mut thresholds) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut values, mut samples) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let (mut left_children, mut right_children) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let mut impurities = Vec::with_capacity(count);
    for node in tree.iter::<LeafBits>() {
        let (n, i) = match node {
            TreeNode::Split { feature, threshold, left, right, n_samples, impurity } => {
                features.push(feature as i64);
                thresholds.push(threshold);
                values.push(LeafBits::default());
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
    let name = &named(name_of(says));
    match says {
        LeafKind::Class => {
            let values: Vec<u64> = values.iter().map(|said| said.0).collect();
            tensors.push_integers(name, &[count], &values)?;
        }
        LeafKind::Value => {
            let values: Vec<f32> = values.iter().map(|said| said.to_value()).collect();
            tensors.push_f32(name, &[count], &values)?;
        }
        LeafKind::Nothing => {}
    }
    tensors.push_counts(&named(SAMPLES), &samples)?;
    tensors.push_signed(&named(LEFT), &left_children)?;
    tensors.push_signed(&named(RIGHT), &right_children)?;
    if tree.has_impurities() {
        tensors.push_f32(&named(IMPURITIES), &[count], &impurities)?;
    }
    Ok(())
}

pub(crate) fn read(tensors: &Tensors, prefix: &str, says: LeafKind) -> Result<Tree, Error> {
    let named = |name: &str| -> String { format!("{prefix}{name}") };
    let features = tensors.signed_integers(&named(FEATURES))?;
    let thresholds = tensors.vector(&named(THRESHOLDS))?;
    let name = &named(name_of(says));
    let values: Vec<LeafBits> = match says {
        LeafKind::Class => tensors.counts(name)?.into_iter().map(LeafBits::class).collect(),
        LeafKind::Value => tensors.vector(name)?.into_iter().map(LeafBits::value).collect(),
        LeafKind::Nothing => vec![LeafBits::default(); features.len()],
    };
    let samples = tensors.counts(&named(SAMPLES))?;
    let left_children = tensors.signed_integers(&named(LEFT))?;
    let right_children = tensors.signed_integers(&named(RIGHT))?;
    let impurities = tensors.optional(&named(IMPURITIES), Tensors::vector)?;
    let expected = features.len();
    let lengths = [
        (THRESHOLDS, thresholds.len()),
        (name_of(says), values.len()),
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
    let mut nodes = Vec::with_capacity(expected);
    for idx in 0..expected {
        let n_samples = samples[idx];
        let impurity = impurities.as_ref().map_or(0.0, |impurities| impurities[idx]);
        nodes.push(if features[idx] < 0 {
            TreeNode::Leaf { value: values[idx], n_samples, impurity }
        } else {
            TreeNode::Split {
                feature: place(features[idx], FEATURES)?,
                threshold: thresholds[idx],
                left: place(left_children[idx], LEFT)?,
                right: place(right_children[idx], RIGHT)?,
                n_samples,
                impurity,
            }
        });
    }
    let mut tree = Tree::from_nodes(&nodes)?;
    // Writers that do not name the model do not count the samples of splits either, and write zeros.
    if tensors.model().is_none()
        && tree.iter::<LeafBits>().all(|node| !matches!(node, TreeNode::Split { n_samples: 1.., .. }))
    {
        tree.sum_samples();
    }
    Ok(tree)
}
