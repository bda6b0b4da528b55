//! Splits a model into several files, and merges them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::builder::GgufBuilder;
use crate::error::{Error, ErrorKind};
use crate::header::{ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Header};
use crate::value::Value;

const SPLIT_NO: &str = "split.no";
const SPLIT_COUNT: &str = "split.count";
const SPLIT_TENSORS: &str = "split.tensors.count";
const SPLIT_KEYS: [&str; 3] = [SPLIT_NO, SPLIT_COUNT, SPLIT_TENSORS];

/// When a shard is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardLimit {
    /// After so many tensors.
    Tensors(u64),
    /// Before its tensors, each padded to 32, take more than so many bytes. A larger tensor has a shard of its own.
    Bytes(u64),
}

impl ShardLimit {
    /// A size as llama-gguf-split takes it: a number followed by `M` or `G`, of 1000^2 or 1000^3 bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ShardSize`].
    ///
    /// ```
    /// use gguf_core::ShardLimit;
    ///
    /// assert_eq!(ShardLimit::parse_size("2G")?, ShardLimit::Bytes(2_000_000_000));
    /// assert!(ShardLimit::parse_size("2").is_err());
    /// # Ok::<(), gguf_core::Error>(())
    /// ```
    pub fn parse_size(text: &str) -> Result<Self, Error> {
        let units = [('M', 1_000_000), ('G', 1_000_000_000)];
        let parsed = units.iter().find_map(|&(unit, bytes)| {
            let number =
                text.strip_suffix(unit).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
            number.parse::<u64>().ok()?.checked_mul(bytes).filter(|bytes| *bytes > 0)
        });
        parsed.map(Self::Bytes).ok_or(ErrorKind::ShardSize.into())
    }
}

/// The content of the first shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstShard {
    /// Keys and tensors.
    #[default]
    Tensors,
    /// Keys alone: a small file to look at.
    KeysOnly,
}

/// Name of a shard: `PREFIX-00001-of-00003.gguf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardName<'a> {
    /// The prefix before the numbers.
    pub prefix: &'a str,
    /// Index of the shard, from 0.
    pub idx: u16,
    /// How many there are.
    pub count: u16,
}

impl<'a> ShardName<'a> {
    /// Takes a file name apart; `None` if it is none of a shard.
    ///
    /// ```
    /// use gguf_core::ShardName;
    ///
    /// let name = ShardName::parse("m-00002-of-00003.gguf").expect("the name of a shard");
    /// assert_eq!((name.prefix, name.idx, name.count), ("m", 1, 3));
    /// assert_eq!(name.to_string(), "m-00002-of-00003.gguf");
    /// ```
    #[must_use]
    pub fn parse(file_name: &'a str) -> Option<Self> {
        let (rest, count) = file_name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (prefix, no) = rest.rsplit_once('-')?;
        let number = |text: &str| {
            let plain = text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
            if plain { text.parse::<u16>().ok() } else { None }
        };
        let (no, count) = (number(no)?, number(count)?);
        (1..=count).contains(&no).then(|| Self { prefix, idx: no - 1, count })
    }
}

impl core::fmt::Display for ShardName<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{:05}-of-{:05}.gguf", self.prefix, u32::from(self.idx) + 1, self.count)
    }
}

/// Which tensors go into which of several files.
///
/// The first has the model's keys, all have `split.no`, `split.count` and `split.tensors.count`; the others carry
/// `general.alignment` besides where it is not 32.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitPlan {
    shards: Vec<Range<usize>>,
    n_tensors: i32,
}

impl SplitPlan {
    /// Plans the split of a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ShardSize`] for a limit of nothing, [`ErrorKind::ShardCount`] for more shards or tensors than the
    /// keys can count, [`ErrorKind::ShardKeys`] for a file that is a shard itself.
    pub fn new(header: &Header<'_>, limit: ShardLimit, first: FirstShard) -> Result<Self, Error> {
        // A merged file keeps `split.count` 0, by which it is known.
        if header.get(SPLIT_COUNT).and_then(|value| value.to_u64()).is_some_and(|count| count > 1) {
            return Err(Error::from(ErrorKind::ShardKeys).of_key(SPLIT_COUNT.as_bytes()));
        }
        let n_tensors = header.tensors().len();
        let too_many = ErrorKind::ShardCount { count: n_tensors as u64, max: i32::MAX as u64 };
        let n_tensors_declared = i32::try_from(n_tensors).map_err(|_| too_many)?;
        if matches!(limit, ShardLimit::Tensors(0) | ShardLimit::Bytes(0)) {
            return Err(ErrorKind::ShardSize.into());
        }
        let mut shards = Vec::new();
        if first == FirstShard::KeysOnly {
            shards.push(0..0);
        }
        let mut begin = 0;
        let mut bytes = 0u64;
        for (idx, info) in header.tensors().iter().enumerate() {
            // llama-gguf-split counts so whatever the alignment is.
            let padded =
                info.byte_len().checked_next_multiple_of(DEFAULT_ALIGNMENT.into()).unwrap_or(u64::MAX);
            let next = bytes.saturating_add(padded);
            let full = match limit {
                ShardLimit::Tensors(most) => (idx - begin) as u64 == most,
                ShardLimit::Bytes(most) => next > most,
            };
            if full && idx > begin {
                shards.push(begin..idx);
                begin = idx;
                bytes = padded;
            } else {
                bytes = next;
            }
        }
        shards.push(begin..n_tensors);
        let max = u64::from(u16::MAX);
        if shards.len() as u64 > max {
            return Err(ErrorKind::ShardCount { count: shards.len() as u64, max }.into());
        }
        Ok(Self { shards, n_tensors: n_tensors_declared })
    }

    /// The tensors of each shard, by their index in the file that is split.
    #[must_use]
    pub fn shards(&self) -> &[Range<usize>] {
        &self.shards
    }

    /// File name of a shard.
    #[must_use]
    pub fn file_name(&self, prefix: &str, idx: usize) -> String {
        format!("{prefix}-{:05}-of-{:05}.gguf", idx.saturating_add(1), self.shards.len())
    }

    /// One shard of the file that the plan was made for. Its tensor `n` is tensor `shards()[idx].start + n` of that file.
    ///
    /// # Errors
    ///
    /// As [`GgufBuilder::copy_of`]; [`ErrorKind::ShardCount`] if there is no such shard, or it has tensors that the file
    /// has not.
    pub fn builder(&self, header: &Header<'_>, idx: usize) -> Result<GgufBuilder, Error> {
        let missing = ErrorKind::ShardCount { count: idx as u64, max: self.shards.len() as u64 };
        let range = self.shards.get(idx).cloned().ok_or(missing)?;
        let mut builder = GgufBuilder::with_endian(header.endian());
        if idx == 0 {
            builder.copy_entries(header)?;
        } else if header.alignment() != DEFAULT_ALIGNMENT {
            builder.set(ALIGNMENT_KEY, header.alignment())?;
        }
        for key in SPLIT_KEYS {
            builder.remove(key);
        }
        // In the order of llama-gguf-split. The shards were counted.
        builder.set(SPLIT_NO, idx as u16)?;
        builder.set(SPLIT_TENSORS, self.n_tensors)?;
        builder.set(SPLIT_COUNT, self.shards.len() as u16)?;
        let infos = header.tensors().get(range).ok_or(missing)?;
        infos.iter().try_for_each(|info| builder.copy_tensor(info))?;
        Ok(builder)
    }
}

/// The keys of the shards that a merged file keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SplitKeys {
    /// All three, `split.count` being 0: what llama-gguf-split leaves.
    #[default]
    AsReference,
    /// None: a split and a merge give the file that was there before.
    Removed,
}

/// One file from several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePlan {
    builder: GgufBuilder,
    sources: Vec<(usize, usize)>,
}

impl MergePlan {
    /// Plans the merge of all shards of a model, in order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ShardKeys`] for a file that is no shard, [`ErrorKind::ShardOrder`] for one in the wrong place or of
    /// another number of shards, [`ErrorKind::ShardTensors`]; those of [`GgufBuilder::copy_of`]. A tensor that two shards
    /// have is found by the layout.
    pub fn new(shards: &[Header<'_>], keys: SplitKeys) -> Result<Self, Error> {
        let first = shards.first().ok_or(ErrorKind::ShardCount { count: 0, max: u16::MAX.into() })?;
        let mut builder = GgufBuilder::with_endian(first.endian());
        builder.copy_entries(first)?;
        match keys {
            SplitKeys::AsReference => {
                builder.remove(SPLIT_COUNT);
                builder.set(SPLIT_COUNT, 0u16)?;
            }
            SplitKeys::Removed => {
                for key in SPLIT_KEYS {
                    builder.remove(key);
                }
            }
        }
        let declared = number(first, SPLIT_TENSORS)?;
        let mut sources = Vec::new();
        for (idx, shard) in shards.iter().enumerate() {
            let (no, count) = (number(shard, SPLIT_NO)?, number(shard, SPLIT_COUNT)?);
            let others = number(shard, SPLIT_TENSORS)?;
            if no != idx as u64 || count != shards.len() as u64 || shard.endian() != first.endian() {
                return Err(ErrorKind::ShardOrder { idx: idx as u64, no, count }.into());
            }
            if others != declared {
                return Err(ErrorKind::ShardTensors { declared, found: others }.into());
            }
            for (tensor, info) in shard.tensors().iter().enumerate() {
                builder.copy_tensor(info)?;
                sources.push((idx, tensor));
            }
        }
        let found = sources.len() as u64;
        if found != declared {
            return Err(ErrorKind::ShardTensors { declared, found }.into());
        }
        Ok(Self { builder, sources })
    }

    /// The merged file.
    #[must_use]
    pub const fn builder(&self) -> &GgufBuilder {
        &self.builder
    }

    /// The source of each tensor of the merged file: shard, and index within it.
    #[must_use]
    pub fn sources(&self) -> &[(usize, usize)] {
        &self.sources
    }
}

/// One of the three keys, of whatever integer type.
fn number(header: &Header<'_>, key: &str) -> Result<u64, Error> {
    let number = header.get(key).and_then(|value: Value<'_>| value.to_u64());
    number.ok_or_else(|| Error::from(ErrorKind::ShardKeys).of_key(key.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_decimal_and_whole() {
        assert_eq!(ShardLimit::parse_size("300M").ok(), Some(ShardLimit::Bytes(300_000_000)));
        for text in
            ["", "M", "0M", "1", "1.5G", "-1G", "+1G", "1GB", "1 G", "99999999999999999999G", "18446744074G"]
        {
            assert_eq!(
                ShardLimit::parse_size(text).map_err(|error| error.code()),
                Err("gg-shard-size"),
                "{text}"
            );
        }
    }

    #[test]
    fn names_are_taken_apart_only_if_they_are_those_of_shards() {
        let name = "a/b-00001-of-00001.gguf";
        let parsed = ShardName::parse(name).map(|parsed| alloc::string::ToString::to_string(&parsed));
        assert_eq!(parsed.as_deref(), Some(name));
        for name in [
            "m.gguf",
            "m-00000-of-00002.gguf",
            "m-00003-of-00002.gguf",
            "m-1-of-2.gguf",
            "m-00001-of-00002",
            "m-0000a-of-00002.gguf",
            "m-99999-of-99999.gguf",
        ] {
            assert_eq!(ShardName::parse(name), None, "{name}");
        }
    }
}
