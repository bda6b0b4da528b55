//! Sharded models: the manifest that maps tensors to files.

mod check;
mod json;

use alloc::borrow::ToOwned as _;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use crate::error::Error;
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::json::Json;

pub use check::ShardProblem;

/// The manifest of a sharded model.
///
/// ```text
/// { "version": "2.0", "shard_count": 2, "total_size": <bytes of all files>, "tensor_count": 2,
///   "shards":     [ { "filename": "a.apr", "index": 0, "size": <bytes>, "tensors": ["w"] }, ... ],
///   "weight_map": { "w": 0, ... } }
/// ```
///
/// A manifest is always consistent: the shards are numbered from 0 without a gap, their names are plain
/// file names, each different, and the lists of the shards name the tensors of the map, each once and in its shard.
///
/// ```
/// use apr_container::ReadOptions;
/// use apr_container::v2::{Shard, ShardManifest};
///
/// let manifest = ShardManifest::new(vec![
///     Shard { filename: "a.apr".into(), size: 516, tensors: vec!["w".into()], ..Shard::default() },
///     Shard { filename: "b.apr".into(), size: 644, tensors: vec!["v".into()], ..Shard::default() },
/// ])?;
/// assert_eq!((manifest.total_size_declared(), manifest.shard_of("v")), (1160, Some(1)));
///
/// let text = manifest.to_json();
/// assert_eq!(ShardManifest::from_json(text.as_bytes(), &ReadOptions::STRICT)?, manifest);
/// let hostile = text.replace("a.apr", "../a.apr");
/// assert!(ShardManifest::from_json(hostile.as_bytes(), &ReadOptions::STRICT).is_err());
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardManifest {
    version: String,
    total_size: u64,
    shards: Vec<Shard>,
    weight_map: BTreeMap<String, usize>,
    other: BTreeMap<String, Json>,
}

/// One shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shard {
    /// Its name in the folder of the manifest.
    pub filename: String,
    /// Its length in bytes.
    pub size: u64,
    /// The tensors it holds.
    pub tensors: Vec<String>,
    /// Members that the format does not define, by key.
    pub other: BTreeMap<String, Json>,
}

impl ShardManifest {
    /// The version written.
    pub const VERSION: &'static str = "2.0";

    /// A manifest of these shards, numbered as given.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::ShardName`], [`v2::ErrorKind::DuplicateTensor`] and [`v2::ErrorKind::ShardManifest`], with the name concerned;
    /// [`v2::ErrorKind::SizeOverflow`].
    pub fn new(shards: Vec<Shard>) -> Result<Self, Error> {
        let mut weight_map = BTreeMap::new();
        for (idx, shard) in shards.iter().enumerate() {
            for tensor in &shard.tensors {
                if weight_map.insert(tensor.clone(), idx).is_some() {
                    return Err(Error::from(v2::ErrorKind::DuplicateTensor).about(Subject::tensor(tensor)));
                }
            }
        }
        let sizes = shards.iter().try_fold(0u64, |sum, shard| sum.checked_add(shard.size));
        let total_size = sizes.ok_or(v2::ErrorKind::SizeOverflow)?;
        let (version, other) = (Self::VERSION.to_owned(), BTreeMap::new());
        let manifest = Self { version, total_size, shards, weight_map, other };
        manifest.check_names()?;
        Ok(manifest)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a text of more than 100,000,000 bytes or too deep; [`ErrorKind::InvalidUtf8`](crate::ErrorKind::InvalidUtf8),
    /// [`v2::ErrorKind::JsonSyntax`], [`v2::ErrorKind::JsonType`], [`v2::ErrorKind::MissingKey`], [`v2::ErrorKind::DuplicateKey`];
    /// [`v2::ErrorKind::ShardName`], [`v2::ErrorKind::DuplicateTensor`], [`v2::ErrorKind::ShardManifest`] for one that contradicts
    /// itself.
    pub fn from_json(text: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        json::read(text, options)
    }

    /// The manifest as JSON, indented by two spaces, tensors of the map by name, no newline at the end: the bytes that the
    /// format's other writer writes, whose map is unordered.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Version of the format.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Bytes of all files together, as declared.
    #[must_use]
    pub const fn total_size_declared(&self) -> u64 {
        self.total_size
    }

    /// The shards by number.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Number of the shard that holds each tensor.
    #[must_use]
    pub const fn weight_map(&self) -> &BTreeMap<String, usize> {
        &self.weight_map
    }

    /// Number of the shard that holds a tensor.
    #[must_use]
    pub fn shard_of(&self, tensor: &str) -> Option<usize> {
        self.weight_map.get(tensor).copied()
    }

    /// Members that the format does not define, by key.
    #[must_use]
    pub const fn other(&self) -> &BTreeMap<String, Json> {
        &self.other
    }

    /// Each name is plain and occurs once.
    fn check_names(&self) -> Result<(), Error> {
        let mut names: Vec<&str> = self.shards.iter().map(|shard| shard.filename.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !is_plain(name)) {
            return Err(Error::from(v2::ErrorKind::ShardName).about(Subject::entry(name)));
        }
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(refusal("two shards of one name").about(Subject::entry(pair[0]))),
            None => Ok(()),
        }
    }

    /// Checks that the lists of the shards agree with the map.
    fn check_lists(&self) -> Result<(), Error> {
        let mut listed = 0;
        for (idx, shard) in self.shards.iter().enumerate() {
            let mut names: Vec<&str> = shard.tensors.iter().map(String::as_str).collect();
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(Error::from(v2::ErrorKind::DuplicateTensor).about(Subject::tensor(pair[0])));
            }
            if let Some(name) = names.iter().find(|name| self.shard_of(name) != Some(idx)) {
                return Err(refusal("a shard lists a tensor that the map puts elsewhere")
                    .about(Subject::tensor(name)));
            }
            listed += names.len();
        }
        // No name is listed twice in a shard, and each only in the shard that the map names: equal counts mean equal sets.
        if listed == self.weight_map.len() {
            Ok(())
        } else {
            Err(refusal("the map has tensors that no shard lists"))
        }
    }
}

fn refusal(what: &'static str) -> Error {
    v2::ErrorKind::ShardManifest { what }.into()
}

/// Whether a name stays in its folder on every system, and is one name.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', ':']) && !name.contains(char::is_control)
}
