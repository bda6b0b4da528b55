//! Streaming tree hasher.

use alloc::vec::Vec;
use core::fmt;

use super::node::Leaf;
use super::upper::Collected;
use super::{Hash, LeafLen, TreeAlgorithm, TreeRoot};

/// Leaves that are hashed in one go; bounds the working memory.
const RUN_LEN: usize = 4 << 20;

/// Hashes content that comes in pieces of any size.
///
/// With [`new`](Self::new) the outboard is kept for [`finish`](Self::finish); [`take_outboard`](Self::take_outboard) hands out what is
/// known so far, so that it can be written away while the content goes by. [`root_only`](Self::root_only) keeps none.
///
/// ```
/// use apr_crypto::{LeafLen, TreeAlgorithm, TreeHasher};
///
/// let mut hasher = TreeHasher::root_only(TreeAlgorithm::Sha256, LeafLen::MIB_1);
/// hasher.update(b"wei");
/// hasher.update(b"ghts");
/// let (root, _) = hasher.finish();
/// assert_eq!(root.content_len(), 7);
/// ```
pub struct TreeHasher {
    algorithm: TreeAlgorithm,
    leaf_len: LeafLen,
    /// Bytes so far.
    len: u64,
    /// The leaf that is being filled. A full one stays until there is another byte: alone, it is the root.
    leaf: Leaf,
    leaf_filled: usize,
    n_leaves: u64,
    /// Full subtrees that wait for their right neighbour, and their levels. The last two may be of one level: they are
    /// joined when another leaf comes, for the join at the very top is another one.
    peaks: Vec<(u32, Hash)>,
    outboard: Option<Vec<u8>>,
    upper: Option<Collected>,
    run: Vec<Hash>,
}

impl TreeHasher {
    /// A hasher that computes root and outboard.
    #[must_use]
    pub fn new(algorithm: TreeAlgorithm, leaf_len: LeafLen) -> Self {
        Self { outboard: Some(Vec::new()), ..Self::root_only(algorithm, leaf_len) }
    }

    /// A hasher that computes the root alone.
    #[must_use]
    pub fn root_only(algorithm: TreeAlgorithm, leaf_len: LeafLen) -> Self {
        Self {
            algorithm,
            leaf_len,
            len: 0,
            leaf: Leaf::new(algorithm, 0),
            leaf_filled: 0,
            n_leaves: 0,
            peaks: Vec::new(),
            outboard: None,
            upper: None,
            run: Vec::new(),
        }
    }

    /// The hasher, which also collects the [`UpperHashes`](super::UpperHashes) of content of this length.
    #[must_use]
    pub fn with_upper(mut self, content_len: u64) -> Self {
        self.upper = Collected::new(&TreeRoot::new(self.algorithm, self.leaf_len, content_len, [0; 32]));
        self
    }

    /// Takes the next piece.
    pub fn update(&mut self, mut data: &[u8]) {
        let leaf_len = self.leaf_len.index();
        while !data.is_empty() {
            if self.leaf_filled == leaf_len {
                self.end_leaf();
            }
            if self.leaf_filled == 0 && self.n_leaves > 0 && data.len() >= leaf_len {
                let whole = data.len().min(RUN_LEN.max(leaf_len)) / leaf_len * leaf_len;
                let (now, rest) = data.split_at(whole);
                self.take_leaves(now);
                data = rest;
                continue;
            }
            let (now, rest) = data.split_at((leaf_len - self.leaf_filled).min(data.len()));
            self.leaf.update(now);
            self.leaf_filled += now.len();
            self.len += now.len() as u64;
            data = rest;
        }
    }

    /// The part of the outboard that is known and was not taken before.
    pub fn take_outboard(&mut self) -> Vec<u8> {
        self.outboard.as_mut().map(core::mem::take).unwrap_or_default()
    }

    /// The root, and the part of the outboard that was not taken before.
    #[must_use]
    pub fn finish(self) -> (TreeRoot, Vec<u8>) {
        let (root, outboard, _) = self.finish_upper();
        (root, outboard)
    }

    /// The same with the bytes of the [`UpperHashes`](super::UpperHashes), empty unless [requested](Self::with_upper) for content of this
    /// length, or if there are none.
    #[must_use]
    pub fn finish_upper(mut self) -> (TreeRoot, Vec<u8>, Vec<u8>) {
        let hash = if self.n_leaves == 0 {
            self.finish_small()
        } else {
            if self.leaf_filled > 0 {
                self.end_leaf();
            }
            let hash = self.join_all();
            self.join_equal();
            hash
        };
        let root = TreeRoot::new(self.algorithm, self.leaf_len, self.len, hash);
        let upper = self.finish_level().filter(|upper| upper.len() as u64 == root.upper_len());
        (root, self.outboard.unwrap_or_default(), upper.unwrap_or_default())
    }

    /// The collected level, with the node on its right edge whose subtree is not full.
    fn finish_level(&mut self) -> Option<Vec<u8>> {
        let mut upper = self.upper.take()?;
        let below = self.peaks.iter().rev().take_while(|(level, _)| *level < upper.level());
        let edge =
            below.map(|(_, hash)| *hash).reduce(|right, left| self.algorithm.hash_parent(&left, &right));
        upper.hashes.extend(edge);
        Some(upper.hashes.concat())
    }

    /// The root of content that is one leaf or nothing.
    fn finish_small(&mut self) -> Hash {
        let leaf = core::mem::replace(&mut self.leaf, Leaf::new(self.algorithm, 0));
        if self.leaf_filled == 0 {
            return self.algorithm.hash_whole(&[]);
        }
        let root = match &leaf {
            Leaf::Blake3(hasher) => Some(hasher.finalize().into()),
            Leaf::Sha256(_) => None,
        };
        let hash = leaf.hash();
        self.emit(0, &hash);
        root.unwrap_or(hash)
    }

    fn end_leaf(&mut self) {
        let next = Leaf::new(self.algorithm, (self.n_leaves + 1) * self.leaf_len.get());
        let hash = core::mem::replace(&mut self.leaf, next).hash();
        self.leaf_filled = 0;
        self.push(hash);
    }

    fn take_leaves(&mut self, data: &[u8]) {
        let mut run = core::mem::take(&mut self.run);
        self.algorithm.hash_leaves(self.leaf_len, self.len, data, &mut run);
        run.drain(..).for_each(|hash| self.push(hash));
        self.run = run;
        self.len += data.len() as u64;
        self.leaf = Leaf::new(self.algorithm, self.len);
    }

    /// Adds the hash of the next leaf.
    fn push(&mut self, hash: Hash) {
        self.join_equal();
        self.emit(0, &hash);
        self.peaks.push((0, hash));
        self.n_leaves += 1;
    }

    /// Joins the last two subtrees while they are of one level.
    fn join_equal(&mut self) {
        while let [.., (a, left), (b, right)] = self.peaks.as_slice() {
            if a != b {
                break;
            }
            let joined = (a + 1, self.algorithm.hash_parent(left, right));
            self.emit(joined.0, &joined.1);
            self.peaks.truncate(self.peaks.len() - 2);
            self.peaks.push(joined);
        }
    }

    /// The root of all subtrees; there are two or more, or the tree is one leaf.
    fn join_all(&self) -> Hash {
        let mut peaks = self.peaks.iter().map(|(_, hash)| hash);
        let first = peaks.next().copied().unwrap_or_default();
        let Some(right) = peaks.next_back() else { return first };
        let right = peaks.rev().fold(*right, |right, left| self.algorithm.hash_parent(left, &right));
        self.algorithm.hash_root(&first, &right)
    }

    fn emit(&mut self, level: u32, hash: &Hash) {
        if let Some(upper) = &mut self.upper {
            upper.take(level, hash);
        }
        if let Some(outboard) = &mut self.outboard {
            outboard.extend_from_slice(hash);
        }
    }
}

impl fmt::Debug for TreeHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { algorithm, leaf_len, len, .. } = self;
        f.debug_struct("TreeHasher")
            .field("algorithm", algorithm)
            .field("leaf_len", leaf_len)
            .field("len", len)
            .finish_non_exhaustive()
    }
}
