//! Hashes of leaves and parents.

use alloc::boxed::Box;
use alloc::vec::Vec;

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use sha2::{Digest, Sha256};

use super::{Hash, LeafLen, TreeAlgorithm};

/// Fewer bytes than this are not worth waking another core for.
#[cfg(feature = "rayon")]
const PARALLEL_FROM: usize = 512 * 1024;

/// A leaf whose bytes come one after the other.
pub(super) enum Leaf {
    Blake3(Box<blake3::Hasher>),
    Sha256(Sha256),
}

impl Leaf {
    /// The leaf that begins at `offset` of the content.
    pub(super) fn new(algorithm: TreeAlgorithm, offset: u64) -> Self {
        match algorithm {
            TreeAlgorithm::Blake3 => {
                let mut hasher = Box::new(blake3::Hasher::new());
                hasher.set_input_offset(offset);
                Self::Blake3(hasher)
            }
            TreeAlgorithm::Sha256 => Self::Sha256(Sha256::new().chain_update([0])),
        }
    }

    pub(super) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Blake3(hasher) => {
                hasher.update(data);
            }
            Self::Sha256(hasher) => hasher.update(data),
        }
    }

    /// The hash of a leaf beside others. BLAKE3 has none for a leaf without bytes.
    pub(super) fn hash(self) -> Hash {
        match self {
            Self::Blake3(hasher) => hasher.finalize_non_root(),
            Self::Sha256(hasher) => hasher.finalize().into(),
        }
    }
}

impl TreeAlgorithm {
    /// The hash of content that is one leaf, or nothing.
    pub(super) fn hash_whole(self, data: &[u8]) -> Hash {
        match self {
            Self::Blake3 => blake3::hash(data).into(),
            Self::Sha256 if data.is_empty() => Sha256::digest([]).into(),
            Self::Sha256 => self.hash_leaf(0, data),
        }
    }

    pub(super) fn hash_parent(self, left: &Hash, right: &Hash) -> Hash {
        match self {
            Self::Blake3 => merge_subtrees_non_root(left, right, Mode::Hash),
            Self::Sha256 => {
                Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
            }
        }
    }

    pub(super) fn hash_root(self, left: &Hash, right: &Hash) -> Hash {
        match self {
            Self::Blake3 => merge_subtrees_root(left, right, Mode::Hash).into(),
            Self::Sha256 => self.hash_parent(left, right),
        }
    }

    fn hash_leaf(self, offset: u64, data: &[u8]) -> Hash {
        match self {
            Self::Blake3 => {
                let mut hasher = blake3::Hasher::new();
                hasher.set_input_offset(offset).update(data);
                hasher.finalize_non_root()
            }
            Self::Sha256 => Sha256::new().chain_update([0]).chain_update(data).finalize().into(),
        }
    }

    /// The hashes of the leaves in `data`, the first of which begins at `offset`; on all cores if there are many.
    pub(super) fn hash_leaves(self, leaf_len: LeafLen, offset: u64, data: &[u8], out: &mut Vec<Hash>) {
        let place = |idx: usize| offset + idx as u64 * leaf_len.get();
        #[cfg(feature = "rayon")]
        if data.len() >= PARALLEL_FROM && data.len() > leaf_len.index() && rayon::current_num_threads() > 1 {
            use rayon::prelude::*;
            let leaves = data.par_chunks(leaf_len.index()).enumerate();
            out.par_extend(leaves.with_min_len(4).map(|(idx, leaf)| self.hash_leaf(place(idx), leaf)));
            return;
        }
        let leaves = data.chunks(leaf_len.index()).enumerate();
        out.extend(leaves.map(|(idx, leaf)| self.hash_leaf(place(idx), leaf)));
    }
}
