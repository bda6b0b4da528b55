//! The upper levels of a tree, from one of its levels.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Hash, TreeRoot};
use crate::error::{Error, ErrorKind};
use crate::secret::constant_time_eq;

/// Most hashes of a level that is stored by itself.
const HASHES_MAX: u64 = 1024;

/// The hashes of one level of a tree, verified against its root.
///
/// In the outboard, the hashes that prove a part of long content are in places far from each other: where each read is a
/// request, that is one request for each of the upper levels. The lowest level of at most 1,024 nodes, stored in one piece of 32 KiB or
/// less, replaces them: what is left to read for a proof is next to the hashes of the leaves.
///
/// ```
/// use apr_crypto::{LeafLen, TreeAlgorithm, TreeHasher, UpperHashes, VerifiedReader};
///
/// let content = vec![7; 3_000_000];
/// let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, LeafLen::new(1024)?).with_upper(3_000_000);
/// hasher.update(&content);
/// let (root, outboard, upper) = hasher.finish_upper();
/// assert_eq!(upper.len() as u64, root.upper_len());
///
/// let upper = UpperHashes::from_bytes(&root, &upper)?;
/// let reader = VerifiedReader::new(root, &content, &outboard)?.with_upper(&upper)?;
/// let mut out = [0; 100];
/// reader.read_exact_at(1_500_000, &mut out)?;
/// assert_eq!(out, [7; 100]);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct UpperHashes {
    root: TreeRoot,
    level: u32,
    hashes: Arc<[Hash]>,
}

impl UpperHashes {
    /// From the bytes of the level, one hash after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Tree`] if they are not the ones that belong to `root`.
    pub fn from_bytes(root: &TreeRoot, bytes: &[u8]) -> Result<Self, Error> {
        let level = root.upper_level().ok_or(ErrorKind::Tree)?;
        let (hashes, _) = bytes.as_chunks::<32>();
        if bytes.len() as u64 != root.upper_len() {
            return Err(ErrorKind::Tree.into());
        }
        let mut nodes = hashes.to_vec();
        while nodes.len() > 1 {
            let is_root = nodes.len() == 2;
            nodes = nodes.chunks(2).map(|pair| root.join(pair, is_root)).collect();
        }
        match nodes.as_slice() {
            [found] if constant_time_eq(found, root.hash()) => {
                Ok(Self { root: *root, level, hashes: hashes.into() })
            }
            _ => Err(ErrorKind::Tree.into()),
        }
    }

    /// The root they belong to.
    pub(super) const fn root(&self) -> &TreeRoot {
        &self.root
    }

    pub(super) const fn level(&self) -> u32 {
        self.level
    }

    /// Compares nodes of the level with those of the leaves of these indices.
    pub(super) fn verify(&self, leaves: &Range<u64>, nodes: &[Hash]) -> Result<(), Error> {
        let (first, last) = (leaves.start >> self.level, leaves.end.saturating_sub(1) >> self.level);
        let expected = self.hashes.get(first as usize..=last as usize).ok_or(ErrorKind::Tree)?;
        let is_equal = expected.len() == nodes.len()
            && expected.iter().zip(nodes).all(|(expected, found)| constant_time_eq(expected, found));
        if is_equal { Ok(()) } else { Err(ErrorKind::Tree.into()) }
    }
}

impl TreeRoot {
    /// The level of the [`UpperHashes`]: the lowest one of at most 1,024 nodes; none if that is the level of the leaves.
    pub(super) const fn upper_level(&self) -> Option<u32> {
        let (shape, mut level) = (self.shape(), 0);
        while shape.n_nodes(level) > HASHES_MAX {
            level += 1;
        }
        if level == 0 { None } else { Some(level) }
    }

    /// Length of the [`UpperHashes`] in bytes; 0 for content of at most 1,024 leaves, which has none.
    #[must_use]
    pub const fn upper_len(&self) -> u64 {
        match self.upper_level() {
            Some(level) => self.shape().n_nodes(level) * 32,
            None => 0,
        }
    }

    /// The parent of one or two nodes; of one, that itself.
    fn join(&self, nodes: &[Hash], is_root: bool) -> Hash {
        match nodes {
            [left, right] if is_root => self.algorithm.hash_root(left, right),
            [left, right] => self.algorithm.hash_parent(left, right),
            [node] => *node,
            _ => Hash::default(),
        }
    }
}

/// Collects the hashes of a level while content is hashed.
#[derive(Debug)]
pub(super) struct Collected {
    level: u32,
    pub(super) hashes: Vec<Hash>,
}

impl Collected {
    /// For content of the length in `root`; none if it has no such level.
    pub(super) fn new(root: &TreeRoot) -> Option<Self> {
        root.upper_level().map(|level| Self { level, hashes: Vec::new() })
    }

    pub(super) const fn level(&self) -> u32 {
        self.level
    }

    /// Takes a full node.
    pub(super) fn take(&mut self, level: u32, hash: &Hash) {
        if level == self.level {
            self.hashes.push(*hash);
        }
    }
}
