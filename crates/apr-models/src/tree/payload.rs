//! Trees in payloads, written and read in one pass without recursion.
//!
//! | layout | split (alternative 0) | leaf (alternative 1) |
//! |---|---|---|
//! | 0.10, 0.15 | feature u64, threshold f32, left, right | value (class u64 or f32), samples u64 |
//! | 0.72 | feature u64, threshold f32, impurity f32, samples u64, left, right | value, samples u64, impurity f32 |

use alloc::vec::Vec;

use apr_container::{Error, PayloadLayout, PayloadReader, PayloadWriter};

use super::{LeafBits, LeafKind, Tree, TreeNode};

/// Bytes of what a leaf says.
const fn len_of(says: LeafKind) -> u64 {
    match says {
        LeafKind::Class => 8,
        LeafKind::Value => 4,
        LeafKind::Nothing => 0,
    }
}

const SPLIT: u32 = 0;
const LEAF: u32 = 1;

fn measures_nodes(layout: PayloadLayout) -> bool {
    layout >= PayloadLayout::V0_72
}

pub(crate) fn write(out: &mut PayloadWriter<'_>, tree: &Tree, says: LeafKind) -> Result<(), Error> {
    let measured = measures_nodes(out.layout());
    // The order in memory is the order of the payload.
    for node in tree.iter::<LeafBits>() {
        match node {
            TreeNode::Split { feature, threshold, n_samples, impurity, .. } => {
                out.variant(SPLIT)?;
                out.usize(feature)?;
                out.f32(threshold)?;
                if measured {
                    out.f32(impurity)?;
                    out.usize(n_samples)?;
                }
            }
            TreeNode::Leaf { value, n_samples, impurity } => {
                out.variant(LEAF)?;
                match says {
                    LeafKind::Class => out.u64(value.0)?,
                    LeafKind::Value => out.f32(value.to_value())?,
                    LeafKind::Nothing => {}
                }
                out.usize(n_samples)?;
                if measured {
                    out.f32(impurity)?;
                }
            }
        }
    }
    Ok(())
}

pub(crate) fn read(input: &mut PayloadReader<'_>, says: LeafKind) -> Result<Tree, Error> {
    let measured = measures_nodes(input.layout());
    let mut tree = Tree::default();
    // Splits whose left side is being read.
    let mut open: Vec<u32> = Vec::new();
    loop {
        make_room(&mut tree, &mut open, input)?;
        if input.variant(2)? == SPLIT {
            let (feature, threshold) = (input.usize()?, input.f32()?);
            let (impurity, n_samples) = match measured {
                true => (input.f32()?, input.usize()?),
                false => (0.0, 0),
            };
            let idx = tree.push_split(feature, threshold, n_samples, impurity);
            let idx = idx.and_then(|idx| u32::try_from(idx).ok());
            open.push(idx.ok_or_else(|| input.invalid("feature or node of a tree beyond 2^32 - 2"))?);
        } else {
            let value = match says {
                LeafKind::Class => LeafBits::class(input.usize()?),
                LeafKind::Value => LeafBits::value(input.f32()?),
                LeafKind::Nothing => LeafBits::default(),
            };
            let n_samples = input.usize()?;
            let impurity = if measured { input.f32()? } else { 0.0 };
            if tree.push_leaf(value, n_samples, impurity).is_none() {
                return Err(input.invalid("class of a tree beyond 2^20 - 1, or node beyond 2^32 - 2"));
            }
            match open.pop() {
                Some(parent) => tree.attach_right(parent as usize),
                None => break,
            }
        }
    }
    if !measured {
        tree.sum_samples();
    }
    Ok(tree)
}

/// Reserves memory for one more node and one more open split. Capacity doubles, and every allocation is charged: while a list
/// is moved, both exist.
pub(crate) fn make_room<T>(
    tree: &mut Tree,
    open: &mut Vec<T>,
    input: &mut PayloadReader<'_>,
) -> Result<(), Error> {
    let (nodes, splits) = (tree.room_to_make(), room_to_make(open));
    let charge = |grown: usize, all: u64| if grown == 0 { 0 } else { all };
    input.charge(charge(nodes, Tree::memory(tree.len() + nodes)))?;
    input.charge(charge(splits, ((open.len() + splits) * size_of::<T>()) as u64))?;
    let made = tree.try_reserve(nodes).and_then(|()| open.try_reserve_exact(splits));
    made.map_err(|_| input.invalid("no memory for so many nodes of a tree"))
}

/// Number of elements to reserve before one is added: none if there is spare capacity, else the current length.
pub(crate) fn room_to_make<T>(list: &Vec<T>) -> usize {
    if list.len() < list.capacity() { 0 } else { list.len().max(1) }
}

pub(crate) fn skip(input: &mut PayloadReader<'_>, says: LeafKind) -> Result<(), Error> {
    let measured = u64::from(measures_nodes(input.layout()));
    let mut ahead = 1_u64;
    while ahead > 0 {
        if input.variant(2)? == SPLIT {
            input.skip(12 + 12 * measured)?;
            ahead += 1;
        } else {
            input.skip(len_of(says) + 8 + 4 * measured)?;
            ahead -= 1;
        }
    }
    Ok(())
}

/// Fewest bytes a tree takes: a leaf.
pub(crate) const fn min_len(says: LeafKind) -> u64 {
    12 + len_of(says)
}
