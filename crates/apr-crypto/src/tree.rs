//! Tree hashes: one root for the content, a proof for any part.
//!
//! The content is cut into leaves of equal length, the last one shorter. A tree of n leaves has the largest power of two
//! below n on its left side, the rest on its right, and so on down; BLAKE3 (paper, section 2.1) and RFC 6962 (section
//! 2.1) agree on this shape.
//!
//! | | [`TreeAlgorithm::Blake3`] | [`TreeAlgorithm::Sha256`] |
//! |---|---|---|
//! | leaf | chaining value of a subtree | SHA-256 of a zero byte and the leaf |
//! | parent | BLAKE3's parent node | SHA-256 of a byte 1, left, right |
//! | root | the BLAKE3 hash of the content, whatever the leaf length | RFC 6962's tree hash; the leaf length is part of it |
//! | no content | the BLAKE3 hash of nothing | the SHA-256 hash of nothing |
//!
//! The *outboard* holds the hashes of all leaves and of all parents whose subtree is full, 32 bytes each, in the order in
//! which they are known while the content goes by: node i of level l (leaves are level 0) follows leaf
//! k = (i + 1) 2^l - 1 and is at index 2 k - (ones in k) + l. A writer appends; a reader finds each with one
//! calculation. The few parents on the right edge whose subtree is not full are made from the others.

mod hasher;
mod node;
mod proof;
mod reader;
mod shape;
mod upper;

use core::fmt;

pub use hasher::TreeHasher;
pub use reader::VerifiedReader;
pub use upper::UpperHashes;

use crate::error::{Error, ErrorKind};
use shape::Shape;

/// A hash in a tree.
type Hash = [u8; 32];

/// Which hash a tree is made of. Named in every file that holds a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TreeAlgorithm {
    /// BLAKE3, whose own tree this is: the root is the ordinary BLAKE3 hash. The default, for its speed.
    Blake3,
    /// SHA-256 in the shape of RFC 6962, where a standard demands it.
    Sha256,
}

impl TreeAlgorithm {
    /// How a text names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blake3 => "blake3",
            Self::Sha256 => "sha256",
        }
    }

    /// How a file names it.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::Blake3 => 1,
            Self::Sha256 => 2,
        }
    }

    /// The algorithm of this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownAlgorithm`].
    pub fn from_name(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|all| all.name() == name).ok_or_else(|| ErrorKind::UnknownAlgorithm.into())
    }

    /// The algorithm of this number.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownAlgorithm`].
    pub fn from_id(id: u8) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|all| all.id() == id).ok_or_else(|| ErrorKind::UnknownAlgorithm.into())
    }

    const ALL: [Self; 2] = [Self::Blake3, Self::Sha256];
}

impl fmt::Display for TreeAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Length of a leaf: a power of two from 1 KiB to 16 MiB. What has to be read and hashed to verify a single byte; the
/// outboard takes 64 bytes for each leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeafLen {
    log2: u8,
}

impl LeafLen {
    /// 16 KiB: for reading small parts. 0.4 % of outboard.
    pub const KIB_16: Self = Self { log2: 14 };
    /// 64 KiB.
    pub const KIB_64: Self = Self { log2: 16 };
    /// 1 MiB: for reading large parts.
    pub const MIB_1: Self = Self { log2: 20 };

    /// A leaf length.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LeafLen`] if it is not a power of two from 1,024 to 16,777,216.
    pub fn new(len: u64) -> Result<Self, Error> {
        if !len.is_power_of_two() {
            return Err(ErrorKind::LeafLen { len }.into());
        }
        Self::from_log2(u8::try_from(len.trailing_zeros()).unwrap_or(u8::MAX))
    }

    /// Bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        1 << self.log2
    }

    /// Bytes, as an index.
    fn index(self) -> usize {
        1 << self.log2
    }

    fn from_log2(log2: u8) -> Result<Self, Error> {
        let len = 1_u64.checked_shl(log2.into()).unwrap_or(u64::MAX);
        if (10..=24).contains(&log2) { Ok(Self { log2 }) } else { Err(ErrorKind::LeafLen { len }.into()) }
    }
}

/// The root of a tree, with everything needed to verify parts against it: algorithm, leaf length, length of the content,
/// hash. Worth as much as the place it comes from: sign [`to_bytes`](Self::to_bytes), not the hash alone, for the hash
/// alone does not determine the offset of a part.
///
/// ```
/// use apr_crypto::{LeafLen, TreeAlgorithm, TreeHasher, TreeRoot};
///
/// let content = vec![7; 100_000];
/// let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, LeafLen::KIB_16);
/// hasher.update(&content);
/// let (root, outboard) = hasher.finish();
///
/// // A verifier that has the root gets some leaves and the proof for them.
/// let leaves = root.leaves(50_000, 10)?;
/// assert_eq!(leaves, 49_152..65_536);
/// let proof = root.prove(leaves.clone(), &outboard)?;
/// root.verify(leaves.clone(), &content[49_152..65_536], &proof)?;
/// assert_eq!(root.verify(leaves, &[8; 16_384], &proof).unwrap_err().code(), "cy-tree");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRoot {
    algorithm: TreeAlgorithm,
    leaf_len: LeafLen,
    len: u64,
    hash: Hash,
}

impl TreeRoot {
    /// Length of [`to_bytes`](Self::to_bytes).
    pub const LEN: usize = 42;

    /// The root of a tree that is known from elsewhere.
    #[must_use]
    pub const fn new(algorithm: TreeAlgorithm, leaf_len: LeafLen, len: u64, hash: [u8; 32]) -> Self {
        Self { algorithm, leaf_len, len, hash }
    }

    /// The algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> TreeAlgorithm {
        self.algorithm
    }

    /// Length of a leaf.
    #[must_use]
    pub const fn leaf_len(&self) -> LeafLen {
        self.leaf_len
    }

    /// Length of the content.
    #[must_use]
    pub const fn content_len(&self) -> u64 {
        self.len
    }

    /// The hash.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// Length of the outboard.
    #[must_use]
    pub const fn outboard_len(&self) -> u64 {
        self.shape().n_hashes().saturating_mul(32)
    }

    /// As a file holds it and a signature covers it.
    ///
    /// | offset | size | field |
    /// |---|---|---|
    /// | 0 | 1 | algorithm: 1 BLAKE3, 2 SHA-256 |
    /// | 1 | 1 | logarithm of the leaf length, 10 to 24 |
    /// | 2 | 8 | length of the content, little-endian |
    /// | 10 | 32 | hash |
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let fields = [self.algorithm.id(), self.leaf_len.log2].into_iter().chain(self.len.to_le_bytes());
        bytes.iter_mut().zip(fields.chain(self.hash)).for_each(|(to, from)| *to = from);
        bytes
    }

    /// From a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnknownAlgorithm`], [`ErrorKind::LeafLen`].
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        let [id, log2, a, b, c, d, e, f, g, h, hash @ ..] = *bytes;
        let len = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Ok(Self::new(TreeAlgorithm::from_id(id)?, LeafLen::from_log2(log2)?, len, hash))
    }

    const fn shape(&self) -> Shape {
        Shape::new(self.len, self.leaf_len)
    }
}

#[cfg(test)]
mod tests;
