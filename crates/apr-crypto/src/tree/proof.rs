//! Proofs that leaves belong to a root.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use core::iter;
use core::ops::Range;

use read_at::ReadAt;

use super::shape::Beside;
use super::{Hash, TreeRoot, UpperHashes};
use crate::error::{Error, ErrorKind};
use crate::secret::constant_time_eq;

/// Longest way from a leaf to the root.
const MAX_LEVELS: usize = 64;
/// All levels up to the root.
pub(super) const NO_TOP: u32 = u32::MAX;

impl TreeRoot {
    /// The whole leaves that `len` bytes from `offset` on touch, in bytes of the content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if the content does not have these bytes.
    pub fn leaves(&self, offset: u64, len: u64) -> Result<Range<u64>, Error> {
        let end = offset.checked_add(len).filter(|end| *end <= self.len);
        let end = end.ok_or(ErrorKind::OutOfRange { offset, len, available: self.len })?;
        let leaf = self.leaf_len.get();
        let begin = offset - offset % leaf;
        if len == 0 {
            return Ok(begin..begin);
        }
        Ok(begin..end.div_ceil(leaf).saturating_mul(leaf).min(self.len))
    }

    /// Length of the proof for `leaves`: 32 bytes for each node beside the way to the root.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if `leaves` are not whole leaves of the content.
    pub fn proof_len(&self, leaves: Range<u64>) -> Result<usize, Error> {
        let beside = self.shape().beside(self.leaf_indices(&leaves)?);
        let n_hashes = |level: Beside| usize::from(level.left.is_some()) + usize::from(level.right.is_some());
        Ok(if leaves.is_empty() { 0 } else { 32 * beside.map(n_hashes).sum::<usize>() })
    }

    /// The proof for `leaves`, whole ones as [`leaves`](Self::leaves) gives them, from the outboard. Reads at most a few
    /// hashes per level. Nothing is verified here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if `leaves` are not whole leaves of the content; errors of the source.
    pub fn prove(&self, leaves: Range<u64>, outboard: &(impl ReadAt + ?Sized)) -> Result<Vec<u8>, Error> {
        let mut proof = Vec::with_capacity(self.proof_len(leaves.clone())?);
        if leaves.is_empty() {
            return Ok(proof);
        }
        self.prove_below(NO_TOP, &leaves, outboard, &mut proof)?;
        Ok(proof)
    }

    /// Appends the hashes of the levels below `top` to a proof.
    pub(super) fn prove_below(
        &self,
        top: u32,
        leaves: &Range<u64>,
        outboard: &(impl ReadAt + ?Sized),
        proof: &mut Vec<u8>,
    ) -> Result<(), Error> {
        for level in self.shape().beside(self.leaf_indices(leaves)?).take_while(|beside| beside.level < top) {
            for idx in [level.left, level.right].into_iter().flatten() {
                proof.extend_from_slice(&self.node(level.level, idx, outboard)?);
            }
        }
        Ok(())
    }

    /// Ranges of the outboard with the hashes for proofs of `leaves` and of any part of them below the level `top`, in order. Ranges near each
    /// other are one.
    #[cfg(feature = "std")]
    pub(super) fn proof_places(&self, leaves: &Range<u64>, top: u32) -> Result<Vec<Range<u64>>, Error> {
        // Hashes between two ranges that are one: up to 16 GiB in leaves of 16 KiB, all below the upper hashes.
        let gap = if top == NO_TOP { 512 } else { 1 << 10 };
        let (shape, idx) = (self.shape(), self.leaf_indices(leaves)?);
        let (Some(first), Some(last)) =
            (shape.place(0, idx.start), shape.place(0, idx.end.saturating_sub(1)))
        else {
            return Ok(Vec::new());
        };
        // The leaves, and the parents that follow the last one.
        let own = first..(last + MAX_LEVELS as u64).min(shape.n_hashes());
        let place = |level: u32, idx: Option<u64>| match shape.place(level, idx?) {
            Some(at) => Some(at..at + 1),
            // Nodes on the right edge are made of others.
            None if top == NO_TOP => None,
            None => Some(shape.place(0, idx? << level)?..shape.n_hashes()),
        };
        // Beside a part that ends before them.
        let (first, last) = (idx.start, idx.end.saturating_sub(1));
        let above_last = (0..top.min(MAX_LEVELS as u32))
            .take_while(|level| first >> level != last >> level)
            .filter_map(|level| place(level, Some(last >> level)));
        let beside = shape.beside(idx).take_while(|beside| beside.level < top);
        let beside = beside.flat_map(|Beside { level, left, right, .. }| {
            [place(level, left), place(level, right)].into_iter().flatten()
        });
        let mut places: Vec<_> = iter::once(own).chain(above_last).chain(beside).collect();
        places.sort_unstable_by_key(|place| place.start);
        let mut joined: Vec<Range<u64>> = Vec::new();
        for place in places {
            match joined.last_mut() {
                Some(last) if place.start <= last.end + gap => last.end = last.end.max(place.end),
                _ => joined.push(place),
            }
        }
        Ok(joined.into_iter().map(|place| place.start * 32..place.end * 32).collect())
    }

    /// Whether `data` are the content's bytes in the range `leaves`. An empty range is true of any content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Tree`] if `data` or `proof` is not the one that belongs there; [`ErrorKind::OutOfRange`] if `leaves`
    /// are not whole leaves of the content.
    pub fn verify(&self, leaves: Range<u64>, data: &[u8], proof: &[u8]) -> Result<(), Error> {
        let failed = Error::from(ErrorKind::Tree);
        let indices = self.leaf_indices(&leaves)?;
        if data.len() as u64 != leaves.end - leaves.start || proof.len() != self.proof_len(leaves.clone())? {
            return Err(failed);
        }
        if self.shape().n_leaves() <= 1 {
            // The content is one leaf or nothing; nothing of one leaf proves nothing.
            let is_whole = data.len() as u64 == self.len;
            let matches = !is_whole || constant_time_eq(&self.algorithm.hash_whole(data), &self.hash);
            return if matches { Ok(()) } else { Err(failed) };
        }
        if leaves.is_empty() {
            return Ok(());
        }
        match self.climb(NO_TOP, leaves.start, &indices, data, proof).as_slice() {
            [root] if constant_time_eq(root, &self.hash) => Ok(()),
            _ => Err(failed),
        }
    }

    /// The same for a tree whose upper levels are known, with a proof [below](Self::prove_below) them.
    pub(super) fn verify_below(
        &self,
        upper: &UpperHashes,
        leaves: &Range<u64>,
        data: &[u8],
        proof: &[u8],
    ) -> Result<(), Error> {
        let indices = self.leaf_indices(leaves)?;
        if data.len() as u64 != leaves.end - leaves.start {
            return Err(ErrorKind::Tree.into());
        }
        if leaves.is_empty() {
            return Ok(());
        }
        upper.verify(&indices, &self.climb(upper.level(), leaves.start, &indices, data, proof))
    }

    /// The nodes of level `top`, or the root, above leaves with these bytes.
    fn climb(&self, top: u32, offset: u64, indices: &Range<u64>, data: &[u8], proof: &[u8]) -> Vec<Hash> {
        let mut nodes = Vec::new();
        self.algorithm.hash_leaves(self.leaf_len, offset, data, &mut nodes);
        let (hashes, _) = proof.as_chunks::<32>();
        let mut hashes = hashes.iter();
        for level in self.shape().beside(indices.clone()).take_while(|beside| beside.level < top) {
            // A left neighbour comes first; a right one last. Then pairs are joined; a node without neighbour goes up.
            let left = level.left.and_then(|_| hashes.next());
            let right = level.right.and_then(|_| hashes.next());
            let joined = |left: &Hash, right: &Hash| match level.is_root_next {
                true => self.algorithm.hash_root(left, right),
                false => self.algorithm.hash_parent(left, right),
            };
            let mut all = left.into_iter().chain(&nodes).chain(right);
            let mut above = Vec::with_capacity(nodes.len() / 2 + 1);
            while let Some(node) = all.next() {
                above.push(all.next().map_or(*node, |right| joined(node, right)));
            }
            nodes = above;
        }
        nodes
    }

    /// The indices of whole leaves.
    pub(super) fn leaf_indices(&self, leaves: &Range<u64>) -> Result<Range<u64>, Error> {
        let leaf = self.leaf_len.get();
        let (offset, len) = (leaves.start, leaves.end.saturating_sub(leaves.start));
        let begins = leaves.start.is_multiple_of(leaf) && leaves.start <= leaves.end;
        let ends = leaves.end.is_multiple_of(leaf) && leaves.end <= self.len || leaves.end == self.len;
        if !begins || !ends {
            return Err(ErrorKind::OutOfRange { offset, len, available: self.len }.into());
        }
        Ok(leaves.start / leaf..leaves.end.div_ceil(leaf))
    }

    /// The hash of any node but the root: read, or on the right edge made of the ones below it.
    fn node(&self, level: u32, idx: u64, outboard: &(impl ReadAt + ?Sized)) -> Result<Hash, Error> {
        let shape = self.shape();
        let read = |place: u64| {
            let mut hash = [0; 32];
            outboard.read_exact_at(place * 32, &mut hash)?;
            Ok::<_, Error>(hash)
        };
        // Down the right edge to the first full node: what stands left of the way waits.
        let (mut waiting, mut n_waiting) = ([None; MAX_LEVELS], 0);
        let (mut level, mut idx) = (level, idx);
        let mut hash = loop {
            if let Some(place) = shape.place(level, idx) {
                break read(place)?;
            }
            // A leaf that exists is full; a node that is not has children.
            level = level.checked_sub(1).ok_or(ErrorKind::Tree)?;
            idx *= 2;
            if idx + 1 < shape.n_nodes(level) {
                let place = shape.place(level, idx).ok_or(ErrorKind::Tree)?;
                if let Some(slot) = waiting.get_mut(n_waiting) {
                    *slot = Some(place);
                    n_waiting += 1;
                }
                idx += 1;
            }
        };
        for place in waiting.into_iter().flatten().rev() {
            hash = self.algorithm.hash_parent(&read(place)?, &hash);
        }
        Ok(hash)
    }
}
