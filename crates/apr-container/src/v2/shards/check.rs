//! A manifest compared with its shards.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::ShardManifest;
use crate::v2::index::Index;

/// What [`ShardManifest::check`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardProblem {
    /// A shard is missing or unreadable.
    MissingShard {
        /// Its file name.
        shard: String,
    },
    /// A shard has another length than the manifest declares.
    WrongSize {
        /// Its file name.
        shard: String,
        /// Bytes according to the manifest.
        declared: u64,
        /// Bytes of the file.
        actual: u64,
    },
    /// A shard's metadata declare another shard index, or another number of shards.
    WrongPlace {
        /// Its file name.
        shard: String,
        /// Its number and the number of shards according to its metadata.
        found: (u64, u64),
        /// According to the manifest.
        expected: (u64, u64),
    },
    /// The manifest names a tensor that its shard does not hold.
    GhostTensor {
        /// The tensor.
        tensor: String,
        /// The shard's file name.
        shard: String,
    },
    /// A shard holds a tensor that the manifest does not name, or names elsewhere.
    UnlistedTensor {
        /// The tensor.
        tensor: String,
        /// The shard's file name.
        shard: String,
    },
    /// `total_size` is not the sum of the sizes of the shards.
    WrongTotalSize {
        /// As declared.
        declared: u64,
        /// The sum.
        actual: u64,
    },
}

impl ShardManifest {
    /// Compares the manifest with its shards; `index_of` returns `None` for a shard that is missing or cannot be read.
    ///
    /// The sum of the sizes is compared only when no shard is missing. A shard without sharding metadata passes.
    pub fn check<'i>(&self, mut index_of: impl FnMut(&str) -> Option<&'i Index>) -> Vec<ShardProblem> {
        let mut problems = Vec::new();
        let (mut total, mut complete) = (0u64, true);
        for (idx, listed) in self.shards().iter().enumerate() {
            let shard = || listed.filename.clone();
            let Some(index) = index_of(&listed.filename) else {
                complete = false;
                problems.push(ShardProblem::MissingShard { shard: shard() });
                continue;
            };
            let (declared, actual) = (listed.size, index.file_len());
            total = total.saturating_add(actual);
            if declared != actual {
                problems.push(ShardProblem::WrongSize { shard: shard(), declared, actual });
            }
            let expected = (idx as u64, self.shards().len() as u64);
            let found =
                index.metadata().sharding.as_ref().map(|found| (found.shard_index, found.shard_count));
            if let Some(found) = found.filter(|found| *found != expected) {
                problems.push(ShardProblem::WrongPlace { shard: shard(), found, expected });
            }
            for tensor in listed.tensors.iter().filter(|tensor| index.tensor(tensor).is_none()) {
                problems.push(ShardProblem::GhostTensor { tensor: tensor.clone(), shard: shard() });
            }
            for info in index.iter().filter(|info| self.shard_of(info.name()) != Some(idx)) {
                let tensor = info.name().to_owned();
                problems.push(ShardProblem::UnlistedTensor { tensor, shard: shard() });
            }
        }
        let declared = self.total_size_declared();
        if complete && declared != total {
            problems.push(ShardProblem::WrongTotalSize { declared, actual: total });
        }
        problems
    }
}

impl fmt::Display for ShardProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingShard { shard } => write!(f, "shard {shard:?} is missing or unreadable"),
            Self::WrongSize { shard, declared, actual } => {
                write!(f, "shard {shard:?} has {actual} bytes, the manifest says {declared}")
            }
            Self::WrongPlace { shard, found, expected } => write!(
                f,
                "shard {shard:?} says it is number {} of {}, the manifest says {} of {}",
                found.0, found.1, expected.0, expected.1
            ),
            Self::GhostTensor { tensor, shard } => {
                write!(f, "tensor {tensor:?} is listed in the manifest but not in shard {shard:?}")
            }
            Self::UnlistedTensor { tensor, shard } => {
                write!(f, "tensor {tensor:?} is in shard {shard:?} but not listed there by the manifest")
            }
            Self::WrongTotalSize { declared, actual } => {
                write!(f, "total_size says {declared} bytes, the shards have {actual}")
            }
        }
    }
}
