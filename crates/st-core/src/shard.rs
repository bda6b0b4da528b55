//! Sharded checkpoints: the index that maps tensors to files.

mod plan;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use json_scan::{Check, Escape, RawStr, Scanner, Writer};

use crate::error::{Error, ErrorKind};
use crate::grammar::{skip_value, string_value};
use crate::header::Header;
use crate::name_index::{Duplicate, NameIndex, Names, hash};

pub use plan::{PlannedShard, ShardPlan};

/// Longest index accepted, in bytes: as long as the longest header.
const MAX_INDEX_LEN: u64 = crate::limits::MAX_HEADER_LEN;

/// The index of a sharded checkpoint, by convention `model.safetensors.index.json`.
///
/// ```text
/// { "metadata":   { "total_size": <bytes of all tensors>, ... },
///   "weight_map": { "<tensor>": "<file>", ... } }
/// ```
///
/// Shards are named by relative paths that stay inside the folder of the index; any other path is refused
/// when the index is read.
///
/// ```
/// use st_core::ShardIndex;
///
/// let json = br#"{"metadata":{"total_size":8},"weight_map":{"a":"1.safetensors","b":"2.safetensors"}}"#;
/// let index = ShardIndex::from_json(json)?;
/// assert_eq!(index.total_size(), Some(8));
/// assert_eq!(index.shard_of("b"), Some("2.safetensors"));
/// assert!(ShardIndex::from_json(br#"{"weight_map":{"a":"../a.safetensors"}}"#).is_err());
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShardIndex {
    total_size: Option<u64>,
    metadata: BTreeMap<String, String>,
    weights: Weights,
    index: NameIndex,
}

/// Tensor and shard names.
#[derive(Clone, Debug, Default)]
struct Weights(Vec<(String, u32)>, Vec<String>);

impl Names for Weights {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn name(&self, idx: u32) -> &str {
        &self.0[idx as usize].0
    }

    fn hash(&self, idx: u32) -> u32 {
        hash(self.name(idx))
    }
}

impl ShardIndex {
    /// Makes an index from pairs of tensor and shard, in the order given.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateShardEntry`] and [`ErrorKind::ShardPathEscapes`], which names the tensor.
    pub fn new<'a>(
        weight_map: impl IntoIterator<Item = (&'a str, &'a str)>,
        total_size: Option<u64>,
    ) -> Result<Self, Error> {
        let mut builder = Builder { total_size, ..Builder::default() };
        for (tensor, shard) in weight_map {
            builder.push(tensor.to_owned(), shard.to_owned())?;
        }
        builder.finish()
    }

    /// Makes the index of files whose headers were read: files in the order given, tensors in that of their file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DuplicateShardEntry`] for a tensor that two of the files hold.
    pub fn of_headers<'h>(shards: impl IntoIterator<Item = (&'h str, &'h Header)>) -> Result<Self, Error> {
        let mut builder = Builder::default();
        let mut total_size = 0u64;
        for (shard, header) in shards {
            total_size = total_size.saturating_add(header.data_len());
            for info in header {
                builder.push(info.name().to_owned(), shard.to_owned())?;
            }
        }
        Builder { total_size: Some(total_size), ..builder }.finish()
    }

    /// Reads an index.
    ///
    /// `total_size` may be missing, and may be written as a whole float (`8.0`). Other items of `metadata` are
    /// kept as JSON; other members of the index are ignored.
    ///
    /// # Errors
    ///
    /// JSON kinds with their byte offset, [`ErrorKind::NoWeightMap`], [`ErrorKind::InvalidTotalSize`],
    /// [`ErrorKind::DuplicateShardEntry`], [`ErrorKind::ShardPathEscapes`]; [`ErrorKind::LimitExceeded`] for a
    /// text of more than 100,000,000 bytes.
    pub fn from_json(json: &[u8]) -> Result<Self, Error> {
        if json.len() as u64 > MAX_INDEX_LEN {
            return Err(
                ErrorKind::LimitExceeded { limit: "bytes of a shard index", max: MAX_INDEX_LEN }.into()
            );
        }
        let text = core::str::from_utf8(json)
            .map_err(|error| Error::from(ErrorKind::InvalidUtf8).at(error.valid_up_to() as u64))?;
        let mut builder = Builder::default();
        if builder.read(text)? { builder.finish() } else { Err(ErrorKind::NoWeightMap.into()) }
    }

    /// The index as `huggingface_hub` writes it: indented by two spaces, `total_size` first, tensors in their
    /// order, characters beyond ASCII escaped, no newline at the end.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Writer::indented(Escape::Ascii);
        out.begin_object();
        out.key("metadata").begin_object();
        if let Some(total_size) = self.total_size {
            out.key("total_size").plain(total_size);
        }
        for (key, raw) in &self.metadata {
            out.key(key).plain(raw);
        }
        out.end_object();
        out.key("weight_map").begin_object();
        for (tensor, shard) in self.weight_map() {
            out.key(tensor).string(shard);
        }
        out.end_object();
        out.end_object();
        out.finish()
    }

    /// Bytes of all tensors together, as declared.
    #[must_use]
    pub const fn total_size(&self) -> Option<u64> {
        self.total_size
    }

    /// Items of `metadata` other than `total_size`, each value as JSON text.
    #[must_use]
    pub const fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Tensors and their shards in the order of the index.
    pub fn weight_map(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        let Weights(tensors, shards) = &self.weights;
        tensors.iter().map(|(tensor, shard)| (tensor.as_str(), shards[*shard as usize].as_str()))
    }

    /// The shard that holds a tensor.
    #[must_use]
    pub fn shard_of(&self, tensor: &str) -> Option<&str> {
        let idx = self.index.find(tensor, &self.weights)?;
        let Weights(tensors, shards) = &self.weights;
        Some(&shards[tensors[idx as usize].1 as usize])
    }

    /// The shards, each once, in the order they are first named.
    pub fn shard_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.weights.1.iter().map(String::as_str)
    }

    /// Compares the index with the headers of its shards; `header_of` returns `None` for a shard that is
    /// missing or cannot be read.
    ///
    /// `total_size` is compared only when no shard is missing.
    pub fn check<'h>(&self, mut header_of: impl FnMut(&str) -> Option<&'h Header>) -> Vec<ShardProblem> {
        let mut problems = Vec::new();
        let mut headers = Vec::with_capacity(self.weights.1.len());
        let mut actual = 0u64;
        for shard in self.shard_names() {
            let header = header_of(shard);
            headers.push(header);
            let Some(header) = header else {
                problems.push(ShardProblem::MissingShard { shard: shard.to_owned() });
                continue;
            };
            actual = actual.saturating_add(header.data_len());
            for info in header {
                if self.shard_of(info.name()) != Some(shard) {
                    let (tensor, shard) = (info.name().to_owned(), shard.to_owned());
                    problems.push(ShardProblem::UnlistedTensor { tensor, shard });
                }
            }
        }
        for (tensor, shard) in &self.weights.0 {
            if headers[*shard as usize].is_some_and(|header| header.tensor(tensor).is_none()) {
                let (tensor, shard) = (tensor.clone(), self.weights.1[*shard as usize].clone());
                problems.push(ShardProblem::GhostTensor { tensor, shard });
            }
        }
        if let Some(declared) = self.total_size
            && headers.iter().all(Option::is_some)
            && declared != actual
        {
            problems.push(ShardProblem::WrongTotalSize { declared, actual });
        }
        problems
    }
}

/// What [`ShardIndex::check`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShardProblem {
    /// A shard is not there, or not readable.
    MissingShard {
        /// Its path in the index.
        shard: String,
    },
    /// The index names a tensor its shard does not hold.
    GhostTensor {
        /// The tensor.
        tensor: String,
        /// The shard.
        shard: String,
    },
    /// A shard holds a tensor the index does not name, or names elsewhere.
    UnlistedTensor {
        /// The tensor.
        tensor: String,
        /// The shard.
        shard: String,
    },
    /// `total_size` is not the number of bytes of all tensors.
    WrongTotalSize {
        /// As declared.
        declared: u64,
        /// As counted.
        actual: u64,
    },
}

impl ShardProblem {
    /// Whether every tensor can be read all the same: only `total_size` is wrong, which no loader uses.
    #[must_use]
    pub const fn is_harmless(&self) -> bool {
        matches!(self, Self::WrongTotalSize { .. })
    }
}

impl fmt::Display for ShardProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingShard { shard } => write!(f, "shard {shard:?} is missing or unreadable"),
            Self::GhostTensor { tensor, shard } => {
                write!(f, "tensor {tensor:?} is listed in the index but not in shard {shard:?}")
            }
            Self::UnlistedTensor { tensor, shard } => {
                write!(f, "tensor {tensor:?} is in shard {shard:?} but not listed there by the index")
            }
            Self::WrongTotalSize { declared, actual } => {
                write!(f, "expected {declared} bytes by total_size, found {actual} in the shards")
            }
        }
    }
}

#[derive(Default)]
struct Builder {
    total_size: Option<u64>,
    metadata: BTreeMap<String, String>,
    weights: Weights,
    shard_idx: BTreeMap<String, u32>,
}

impl Builder {
    /// Reads the whole text; returns whether there was a weight map.
    fn read(&mut self, text: &str) -> Result<bool, Error> {
        let mut scanner = Scanner::new(text, Check::Values);
        scanner.skip_white_space();
        let (mut maps, mut metadata) = (0, 0);
        scanner.members(|scanner, key, at| {
            let seen = if key.is("weight_map") {
                scanner.members(|scanner, tensor, at| self.weight(scanner, tensor, at))?;
                &mut maps
            } else if key.is("metadata") {
                scanner.members(|scanner, key, at| self.item(scanner, key, at))?;
                &mut metadata
            } else {
                return skip_value(scanner, 1);
            };
            *seen += 1;
            if *seen == 1 { Ok(()) } else { Err(duplicate(at)) }
        })?;
        scanner.finish()?;
        Ok(maps == 1)
    }

    fn weight(&mut self, scanner: &mut Scanner<'_>, tensor: RawStr<'_>, at: usize) -> Result<(), Error> {
        let shard = string_value(scanner)?;
        self.push(tensor.unescape().into_owned(), shard.unescape().into_owned())
            .map_err(|error| error.at(at as u64))
    }

    fn item(&mut self, scanner: &mut Scanner<'_>, key: RawStr<'_>, at: usize) -> Result<(), Error> {
        let start = scanner.pos();
        skip_value(scanner, 2)?;
        let raw = scanner.text_from(start).trim_ascii_end();
        let known = if key.is("total_size") {
            let total_size =
                whole_number(raw).ok_or(Error::from(ErrorKind::InvalidTotalSize).at(at as u64))?;
            self.total_size.replace(total_size).is_some()
        } else {
            self.metadata.insert(key.unescape().into_owned(), raw.to_owned()).is_some()
        };
        if known { Err(duplicate(at)) } else { Ok(()) }
    }

    fn push(&mut self, tensor: String, shard: String) -> Result<(), Error> {
        if !stays_inside(&shard) {
            return Err(Error::from(ErrorKind::ShardPathEscapes).of_tensor(&tensor));
        }
        let Weights(tensors, shards) = &mut self.weights;
        let idx = *self.shard_idx.entry(shard).or_insert_with_key(|shard| {
            shards.push(shard.clone());
            shards.len() as u32 - 1
        });
        tensors.push((tensor, idx));
        Ok(())
    }

    fn finish(self) -> Result<ShardIndex, Error> {
        let Self { total_size, metadata, weights, .. } = self;
        match NameIndex::new(&weights) {
            Ok(index) => Ok(ShardIndex { total_size, metadata, weights, index }),
            Err(Duplicate(_, second)) => {
                Err(Error::from(ErrorKind::DuplicateShardEntry).of_tensor(weights.name(second)))
            }
        }
    }
}

fn duplicate(at: usize) -> Error {
    Error::from(ErrorKind::DuplicateShardEntry).at(at as u64)
}

/// `8` or `8.0`.
fn whole_number(raw: &str) -> Option<u64> {
    let (whole, fraction) = raw.split_once('.').unwrap_or((raw, "0"));
    fraction.bytes().all(|digit| digit == b'0').then_some(())?;
    whole.parse().ok()
}

/// Whether a path consists of plain names. Backslashes and colons mean more than that on some systems.
fn stays_inside(path: &str) -> bool {
    let plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['\\', ':', '\0']);
    path.split('/').all(plain)
}
