//! Assigns tensors to shards.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::Error;
use crate::shard::ShardIndex;

/// A file of a [`ShardPlan`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// `model.safetensors`, or `model-00001-of-00002.safetensors` and so on.
    pub file_name: String,
    /// Places of its tensors in the list given to [`ShardPlan::new`], ascending.
    pub tensors: Vec<usize>,
}

/// Tensors divided into files of limited size, by the rule and the names of `huggingface_hub`.
///
/// Tensors are taken in order. One that exceeds the limit becomes a separate shard immediately, so it can come before the shard
/// that is being filled; a tensor that would make the current shard exceed the limit begins the next. A single shard needs no
/// index.
///
/// ```
/// use st_core::ShardPlan;
///
/// let plan = ShardPlan::new([("a", 4), ("b", 4), ("c", 9)], 8)?;
/// let tensors: Vec<_> = plan.shards().iter().map(|shard| shard.tensors.as_slice()).collect();
/// assert_eq!(tensors, [&[2][..], &[0, 1]]);
/// assert_eq!(plan.index().and_then(|index| index.shard_of("c")), Some("model-00001-of-00002.safetensors"));
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShardPlan {
    shards: Vec<PlannedShard>,
    index: Option<ShardIndex>,
}

impl ShardPlan {
    /// Divides tensors, given by name and size in bytes, into shards of at most `max_shard_bytes` each, headers
    /// not counted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateShardEntry`](crate::ErrorKind::DuplicateShardEntry) for a name given twice.
    pub fn new<'a>(
        tensors: impl IntoIterator<Item = (&'a str, u64)>,
        max_shard_bytes: u64,
    ) -> Result<Self, Error> {
        let tensors: Vec<_> = tensors.into_iter().collect();
        let mut divided = Vec::new();
        let mut current = Vec::new();
        let mut current_bytes = 0u64;
        for (idx, &(_, bytes)) in tensors.iter().enumerate() {
            if bytes > max_shard_bytes {
                divided.push(alloc::vec![idx]);
                continue;
            }
            if current_bytes.saturating_add(bytes) > max_shard_bytes {
                divided.push(core::mem::take(&mut current));
                current_bytes = 0;
            }
            current.push(idx);
            current_bytes += bytes;
        }
        if !current.is_empty() || divided.is_empty() {
            divided.push(current);
        }

        let count = divided.len();
        let file_name = |nth: usize| match count {
            1 => String::from("model.safetensors"),
            _ => format!("model-{:05}-of-{count:05}.safetensors", nth + 1),
        };
        let name = |(nth, tensors)| PlannedShard { file_name: file_name(nth), tensors };
        let shards: Vec<_> = divided.into_iter().enumerate().map(name).collect();
        let mut shard_of = alloc::vec![""; tensors.len()];
        for shard in &shards {
            shard.tensors.iter().for_each(|&idx| shard_of[idx] = &shard.file_name);
        }
        // Listed shard by shard, as the shards are.
        let listed = shards.iter().flat_map(|shard| &shard.tensors);
        let weight_map = listed.map(|&idx| (tensors[idx].0, shard_of[idx]));
        let total_size = tensors.iter().fold(0u64, |total, (_, bytes)| total.saturating_add(*bytes));
        let index = ShardIndex::new(weight_map, Some(total_size))?;
        Ok(Self { index: (count > 1).then_some(index), shards })
    }

    /// The files.
    #[must_use]
    pub fn shards(&self) -> &[PlannedShard] {
        &self.shards
    }

    /// The index to be written beside them; `None` for a single file.
    #[must_use]
    pub const fn index(&self) -> Option<&ShardIndex> {
        self.index.as_ref()
    }
}
