//! Isolation forests in payloads: trees asked for, optional samples a tree, share of outliers, optional seed, depth
//! allowed, list of trees, optional threshold, mean depth.
//!
//! A tree is an optional root and a depth. A node is five fields, of which a leaf has only the last: optional feature,
//! optional cut, optional left child, optional right child, number of samples.

use alloc::vec::Vec;

use apr_container::{Error, PayloadReader, PayloadWriter};

use super::{IsolationForest, IsolationTree};
use crate::payload::fields::read;
use crate::payload::values::{
    read_option, read_optional_usize, write_option, write_optional_u64, write_optional_usize,
};
use crate::tree::payload::make_room;
use crate::tree::{Tree, TreeNode};

/// Shortest tree: no root.
const MIN_TREE_LEN: u64 = 9;

stored_model! {
    IsolationForest "IsolationForest" [Custom or any]
    // `None`: such forests do not say. A sample has at least the features that are cut.
    n_features: |_| None;
    is_fitted: |model| !model.trees.is_empty() && model.trees.iter().all(|tree| tree.root.is_some());
}

impl IsolationForest {
    fn encode_fields(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.usize(self.n_estimators)?;
        write_optional_usize(out, self.max_samples)?;
        out.f32(self.contamination)?;
        write_optional_u64(out, self.random_state)?;
        out.usize(self.max_depth)?;
        out.usize(self.trees.len())?;
        for tree in &self.trees {
            write_option(out, tree.root.as_ref(), write_tree)?;
            out.usize(tree.max_depth)?;
        }
        write_option(out, self.threshold.as_ref(), |out, &threshold| out.f32(threshold))?;
        out.f32(self.c_norm)
    }

    fn decode_fields(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        read(input, |fields| Self {
            n_estimators: fields.usize(),
            max_samples: fields.optional_usize(),
            contamination: fields.f32(),
            random_state: fields.optional_u64(),
            max_depth: fields.usize(),
            trees: fields.take(|input| {
                input.list(MIN_TREE_LEN, |input| {
                    Ok(IsolationTree { root: read_option(input, read_tree)?, max_depth: input.usize()? })
                })
            }),
            threshold: fields.optional_f32(),
            c_norm: fields.f32(),
        })
    }
}

fn write_tree(out: &mut PayloadWriter<'_>, tree: &Tree) -> Result<(), Error> {
    // Right children not yet begun (by their place), and the samples of splits that end with the next leaf.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut nodes = tree.iter::<()>().enumerate();
    while let Some((_, node)) = nodes.next() {
        match node {
            TreeNode::Split { feature, threshold, right, n_samples, .. } => {
                write_optional_usize(out, Some(feature))?;
                write_option(out, Some(&threshold), |out, &threshold| out.f32(threshold))?;
                out.option(true)?;
                open.push((right, n_samples));
            }
            TreeNode::Leaf { n_samples, .. } => {
                // No feature, no cut, no child.
                out.bytes_raw(&[0; 4])?;
                out.usize(n_samples)?;
                let next = nodes.len();
                let next = tree.len() - next;
                // Splits whose right side ended here are complete.
                while let Some(&(right, n_samples)) = open.last()
                    && right < next
                {
                    out.usize(n_samples)?;
                    open.pop();
                }
                if !open.is_empty() {
                    out.option(true)?;
                }
            }
        }
    }
    Ok(())
}

fn read_tree(input: &mut PayloadReader<'_>) -> Result<Tree, Error> {
    let mut tree = Tree::default();
    // Splits being read, and whether their right side is.
    let mut open: Vec<(u32, bool)> = Vec::new();
    loop {
        make_room(&mut tree, &mut open, input)?;
        let too_large =
            |input: &PayloadReader<'_>| input.invalid("feature or node of a tree beyond 2^32 - 2");
        let feature = read_optional_usize(input)?;
        let threshold = read_option(input, PayloadReader::f32)?;
        let has_left = input.option()?;
        match (feature, threshold, has_left) {
            (Some(feature), Some(threshold), true) => {
                let idx = tree.push_split(feature, threshold, 0, 0.0).and_then(|idx| u32::try_from(idx).ok());
                open.push((idx.ok_or_else(|| too_large(input))?, false));
                continue;
            }
            (None, None, false) if !input.option()? => {}
            _ => return Err(input.invalid("a node of an isolation tree is neither a split nor a leaf")),
        }
        let n_samples = input.usize()?;
        tree.push_leaf((), n_samples, 0.0).ok_or_else(|| too_large(input))?;
        // Splits that end here.
        while let Some(&(idx, true)) = open.last() {
            tree.set_samples(idx as usize, input.usize()?);
            open.pop();
        }
        let Some((idx, is_right)) = open.last_mut() else { return Ok(tree) };
        if !input.option()? {
            return Err(input.invalid("a split of an isolation tree has only one side"));
        }
        *is_right = true;
        tree.attach_right(*idx as usize);
    }
}
