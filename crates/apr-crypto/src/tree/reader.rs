//! Verified reading of any part.

use alloc::vec::Vec;
use core::fmt;
#[cfg(feature = "std")]
use core::ops::Range;

use read_at::{ReadAt, check_range};

#[cfg(feature = "std")]
use super::proof::NO_TOP;
use super::{TreeRoot, UpperHashes};
use crate::error::{Error, ErrorKind};

/// Bytes that are read and verified at once, unless a leaf is longer.
const BATCH_LEN: u64 = 1 << 20;

/// Content over any source, verified against its root where it is read.
///
/// Reading `[a, b)` reads the leaves it touches and the hashes beside their way to the root, and returns no byte that
/// was not verified. The outboard need not be trusted; keep it in memory (`Vec<u8>`) where single small reads are slow.
/// The reader is itself a [`ReadAt`].
///
/// ```
/// use apr_crypto::{LeafLen, TreeAlgorithm, TreeHasher, VerifiedReader};
///
/// let content = vec![7; 1_000_000];
/// let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, LeafLen::KIB_16);
/// hasher.update(&content);
/// let (root, outboard) = hasher.finish();
///
/// let reader = VerifiedReader::new(root, &content, &outboard)?;
/// let mut out = [0; 100];
/// reader.read_exact_at(500_000, &mut out)?;
/// assert_eq!(out, [7; 100]);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
pub struct VerifiedReader<R, O> {
    root: TreeRoot,
    content: R,
    outboard: O,
    upper: Option<UpperHashes>,
}

impl<R: ReadAt, O: ReadAt> VerifiedReader<R, O> {
    /// A reader of `content`, which fills its source, as `outboard` does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Tree`] if one of the lengths is not the one that belongs to `root`.
    pub fn new(root: TreeRoot, content: R, outboard: O) -> Result<Self, Error> {
        if content.total_len() != root.content_len() || outboard.total_len() != root.outboard_len() {
            return Err(ErrorKind::Tree.into());
        }
        Ok(Self { root, content, outboard, upper: None })
    }

    /// The reader, which reads no hashes of the upper levels from the outboard.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Tree`] if `upper` belongs to another root.
    pub fn with_upper(mut self, upper: &UpperHashes) -> Result<Self, Error> {
        if *upper.root() != self.root {
            return Err(ErrorKind::Tree.into());
        }
        self.upper = Some(upper.clone());
        Ok(self)
    }

    /// The root everything is verified against.
    #[must_use]
    pub const fn root(&self) -> &TreeRoot {
        &self.root
    }

    /// Fills `out` with the verified content that begins at `offset`; with zeros if anything is wrong with any of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`]; [`ErrorKind::Tree`] if the content does not belong to the root; errors of the source.
    pub fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.root.content_len())?;
        self.read(offset, out).inspect_err(|_| out.fill(0))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let all = self.root.leaves(offset, out.len() as u64)?;
        let batch = BATCH_LEN.max(self.root.leaf_len().get());
        let mut buffer = Vec::new();
        let (mut rest, mut begin, mut skip) = (out, all.start, offset - all.start);
        while !rest.is_empty() {
            let end = begin.saturating_add(batch).min(all.end);
            // At most 16 MiB.
            let len = (end - begin) as usize;
            buffer.try_reserve(len).map_err(|_| ErrorKind::OutOfMemory { len: len as u64 })?;
            buffer.resize(len, 0);
            self.content.read_exact_at(begin, &mut buffer)?;
            match &self.upper {
                None => {
                    let proof = self.root.prove(begin..end, &self.outboard)?;
                    self.root.verify(begin..end, &buffer, &proof)?;
                }
                Some(upper) => {
                    let mut proof = Vec::new();
                    self.root.prove_below(upper.level(), &(begin..end), &self.outboard, &mut proof)?;
                    self.root.verify_below(upper, &(begin..end), &buffer, &proof)?;
                }
            }
            let fresh = buffer.get(skip as usize..).unwrap_or_default();
            let (now, after) = rest.split_at_mut(fresh.len().min(rest.len()));
            now.iter_mut().zip(fresh).for_each(|(to, from)| *to = *from);
            (rest, begin, skip) = (after, end, 0);
            buffer.clear();
        }
        Ok(())
    }
}

impl<R: ReadAt, O: ReadAt> ReadAt for VerifiedReader<R, O> {
    fn total_len(&self) -> u64 {
        self.root.content_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        Ok(self.read_exact_at(offset, out)?)
    }

    /// The content is told of whole leaves, the outboard of what proves them. Without `std` nothing is: pages in browsers fetch by themselves.
    #[cfg(feature = "std")]
    fn will_read(&self, range: Range<u64>) {
        if let Ok(leaves) = self.root.leaves(range.start, range.end.saturating_sub(range.start)) {
            let top = self.upper.as_ref().map_or(NO_TOP, UpperHashes::level);
            for place in self.root.proof_places(&leaves, top).unwrap_or_default() {
                self.outboard.will_read(place);
            }
            self.content.will_read(leaves);
        }
    }
}

impl<R, O> fmt::Debug for VerifiedReader<R, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedReader").field("root", &self.root).finish_non_exhaustive()
    }
}
