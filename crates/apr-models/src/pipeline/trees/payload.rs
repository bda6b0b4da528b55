//! Trees in payloads (`docs/payloads.md`, section 21).

use alloc::vec::Vec;

use apr_container::{Error, PayloadReader, PayloadWriter};

use super::{TreeOutputs, TreeThresholds, Trees, TreesParts, TreesStep, with_forest};
use crate::kernels::trees::arena::{Arena, LEAF, Number};
use crate::pipeline::reals::Reals;

impl TreesStep {
    pub(crate) fn encode(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.variant(u32::from(matches!(self.trees, Trees::Double(_))))?;
        out.usize(self.start.len())?;
        out.variant(u32::from(self.outputs == TreeOutputs::InTurn))?;
        Reals::from(self.start.as_slice()).encode(out)?;
        out.f64(self.divisor)?;
        let width = match self.outputs {
            TreeOutputs::All => self.start.len(),
            TreeOutputs::InTurn => 1,
        };
        let leaf_rows = with_forest!(&self.trees, forest => forest.leaves.to_values(width));
        Reals::from(leaf_rows).encode(out)?;
        match &self.trees {
            Trees::Single(forest) => write_arena(&forest.arena, out, PayloadWriter::f32),
            Trees::Double(forest) => write_arena(&forest.arena, out, PayloadWriter::f64),
        }
    }

    pub(crate) fn decode(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let is_double = input.variant(2)? == 1;
        let n_outputs = input.usize()?;
        let outputs = match input.variant(2)? {
            0 => TreeOutputs::All,
            _ => TreeOutputs::InTurn,
        };
        let start = wide(input)?;
        let divisor = input.f64()?;
        let leaf_rows = wide(input)?;
        let (tree_nodes, features) = (input.u32s()?, input.u32s()?);
        // The places of rows and the rows in order of use.
        input.charge(12 * leaf_rows.len() as u64)?;
        let (n_nodes, n_trees) = (features.len(), tree_nodes.len());
        let (single, double);
        let thresholds = if is_double {
            input.charge(Arena::<f64>::memory(n_nodes, n_trees))?;
            double = input.f64s()?;
            TreeThresholds::Double(&double)
        } else {
            input.charge(Arena::<f32>::memory(n_nodes, n_trees))?;
            single = input.f32s()?;
            TreeThresholds::Single(&single)
        };
        let leaves = input.u32s()?;
        let step = Self::new(&TreesParts {
            n_outputs,
            outputs,
            start: &start,
            divisor,
            leaf_rows: &leaf_rows,
            tree_nodes: &tree_nodes,
            features: &features,
            thresholds,
            leaves: &leaves,
        })?;
        // One file for one value: rows in the order of their first use, and none that is not used.
        let mut used = 0;
        let ordered = leaves.iter().all(|&leaf| {
            let is_next = leaf == used;
            used += u32::from(is_next);
            is_next || leaf < used
        });
        let width = if outputs == TreeOutputs::All { n_outputs } else { 1 };
        if !ordered || leaf_rows.len() / width != used as usize {
            return Err(input.invalid("rows of leaves that are not in the order of their first use"));
        }
        Ok(step)
    }
}

fn write_arena<'w, T: Number>(
    arena: &Arena<T>,
    out: &mut PayloadWriter<'w>,
    write: impl Fn(&mut PayloadWriter<'w>, T) -> Result<(), Error>,
) -> Result<(), Error> {
    let (n_trees, n_nodes) = (arena.roots().len(), arena.nodes().len());
    out.usize(n_trees)?;
    arena.tree_nodes().try_for_each(|count| out.u32(count))?;
    out.usize(n_nodes)?;
    arena.try_for_each(|_, node, is_leaf| out.u32(if is_leaf { LEAF } else { node.feature }))?;
    // Each tree has one leaf more than it has splits.
    let n_splits = (n_nodes - n_trees) / 2;
    out.usize(n_splits)?;
    arena.try_for_each(|_, node, is_leaf| if is_leaf { Ok(()) } else { write(out, node.threshold) })?;
    out.usize(n_nodes - n_splits)?;
    arena.try_for_each(|place, _, is_leaf| if is_leaf { out.u32(arena.leaf(place) as u32) } else { Ok(()) })
}

fn wide(input: &mut PayloadReader<'_>) -> Result<Vec<f64>, Error> {
    let values = Reals::decode(input)?;
    input.charge(8 * values.len() as u64)?;
    Ok(values.iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::alone::{bytes_of, read, survives_damage};

    fn steps() -> Vec<TreesStep> {
        let parts = TreesParts {
            n_outputs: 2,
            outputs: TreeOutputs::All,
            start: &[0.0, 0.1],
            divisor: 2.0,
            leaf_rows: &[0.5, 0.5, 1.0, 0.0, 0.0, 1.0],
            tree_nodes: &[5, 1],
            features: &[1 << 31 | 1, LEAF, 0, LEAF, LEAF, LEAF],
            thresholds: TreeThresholds::Single(&[0.5, f32::INFINITY]),
            leaves: &[0, 1, 0, 2],
        };
        let double = TreesParts {
            n_outputs: 1,
            start: &[-0.0],
            thresholds: TreeThresholds::Double(&[0.1, -1e300]),
            leaves: &[0, 1, 2, 5],
            ..parts
        };
        let turns = TreesParts {
            outputs: TreeOutputs::InTurn,
            start: &[0.0, 0.0],
            n_outputs: 2,
            leaves: &[0, 1, 1, 2],
            ..double
        };
        let none = TreesParts {
            leaf_rows: &[],
            tree_nodes: &[],
            features: &[],
            thresholds: TreeThresholds::Double(&[]),
            leaves: &[],
            ..turns
        };
        [parts, double, turns, none].iter().map(|parts| TreesStep::new(parts).unwrap()).collect()
    }

    #[test]
    fn payloads_are_read_as_they_were_written_and_damaged_ones_as_other_trees_if_at_all() {
        for step in steps() {
            let bytes = bytes_of(&step);
            assert_eq!(bytes_of(&read::<TreesStep>(&bytes).unwrap()), bytes);
            survives_damage(&step, |found, damaged| {
                // What passes has the one payload of its value, but for wide numbers that could be narrow.
                let again = bytes_of(&found);
                assert!(again.len() <= damaged.len());
                assert_eq!(read::<TreesStep>(&again).unwrap(), found);
            });
        }
    }

    #[test]
    fn leaf_rows_in_another_order_are_refused() {
        let step = &steps()[0];
        let bytes = bytes_of(step);
        let leaves = |leaves: [u32; 4]| {
            let mut bytes = bytes.clone();
            let at = bytes.len() - 16;
            bytes.truncate(at);
            bytes.extend(leaves.iter().flat_map(|leaf| leaf.to_le_bytes()));
            read::<TreesStep>(&bytes)
        };
        assert_eq!(leaves([0, 1, 0, 2]).unwrap(), *step);
        for order in [[1, 0, 1, 2], [0, 1, 1, 0], [0, 2, 1, 0], [0, 1, 2, 3], [0, 1, 2, u32::MAX]] {
            assert!(leaves(order).is_err(), "{order:?}");
        }
    }
}
