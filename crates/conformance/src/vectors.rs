//! The safetensors vectors, and what the sidecar of each says must happen.
//!
//! A vector is a file, or a folder of shards. Its [`Sidecar`] records what the official implementations answered, the expected
//! values, and what our readers have to answer. `README.md` of this crate describes the fields.

mod field;
mod sidecar;

use alloc::collections::BTreeMap;
use core::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) use self::field::{Field, Missing};
pub use self::sidecar::{SUFFIX, Sidecar, sidecars, text};

const FORMAT: &str = "safetensors";

/// Everything known about the safetensors vectors.
#[derive(Clone, Debug, Default)]
pub struct Vectors {
    /// Single files.
    pub files: Vec<Vector>,
    /// Folders with a shard index.
    pub sharded: Vec<Sharded>,
    /// Files too large to store.
    pub recipes: Vec<Recipe>,
    /// Index expressions.
    pub slices: Vec<SliceCase>,
}

/// Which of the three kinds a file belongs to: the name of its folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// What every reader has to accept.
    Valid,
    /// What the official reader accepts by accident or leniency.
    Quirk,
    /// What every reader has to refuse.
    Invalid,
}

impl Kind {
    /// Name of the folder.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Quirk => "quirk",
            Self::Invalid => "invalid",
        }
    }

    /// The kind of a file by its path.
    fn of(file: &str) -> Option<Self> {
        let folder = file.rsplit('/').nth(1)?;
        [Self::Valid, Self::Quirk, Self::Invalid].into_iter().find(|kind| kind.name() == folder)
    }
}

/// What the official crate said about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfficialVerdict {
    /// It reads the file.
    Accept,
    /// It refuses with this variant of its error type.
    Refuse {
        /// Name of the variant.
        variant: String,
    },
}

/// What our strict reader has to say about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrictVerdict {
    /// It reads the file.
    Accept,
    /// It refuses.
    Refuse {
        /// The error's stable code.
        code: String,
        /// The error's byte offset, where it has one.
        offset: Option<u64>,
    },
}

/// A single file.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Path below `vectors/safetensors`.
    pub file: String,
    /// Kind of vector.
    pub kind: Kind,
    /// Group within the kind.
    pub category: String,
    /// Length of the file.
    pub size: u64,
    /// SHA-256 of the file.
    pub sha256: String,
    /// Verdict of the official crate.
    pub official: OfficialVerdict,
    /// Whether the official crate panics on this file when overflow checks are on.
    pub official_panics_when_checked: bool,
    /// Verdict of our strict reader.
    pub strict: StrictVerdict,
    /// Length of the JSON header, for files that a reader accepts.
    pub header_len: Option<u64>,
    /// Metadata, for files that a reader accepts.
    pub metadata: Option<BTreeMap<String, String>>,
    /// Tensors in order of their offsets, unless they are many.
    pub tensors: Option<Vec<TensorFacts>>,
    /// Number of tensors.
    pub n_tensors: Option<usize>,
    /// SHA-256 of the names in order of their offsets, joined by line feeds.
    pub names_sha256: Option<String>,
    /// Whether our writer has to reproduce the file byte for byte.
    pub byte_exact: bool,
}

/// What a tensor of a file must look like.
#[derive(Clone, Debug)]
pub struct TensorFacts {
    /// Name.
    pub name: String,
    /// Dtype as written in headers.
    pub dtype: String,
    /// Shape.
    pub shape: Vec<u64>,
    /// Begin and end relative to the data section.
    pub data_offsets: (u64, u64),
    /// Begin in the file.
    pub abs_offset: u64,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// The bytes, if few.
    pub hex: Option<String>,
    /// The elements, if few: numbers, decimal strings, or pairs of strings for complex numbers.
    pub values: Option<Vec<Value>>,
}

/// A folder with a shard index.
#[derive(Clone, Debug)]
pub struct Sharded {
    /// Path below `vectors/safetensors`.
    pub dir: String,
    /// What is broken; [`None`] for a good one.
    pub rule: Option<String>,
    /// How it was split, for good ones.
    pub split: Option<Split>,
    /// What we have to say: a broken one is refused with the code of an error or the name of a problem.
    pub strict: StrictVerdict,
}

/// How a good sharded checkpoint was split.
#[derive(Clone, Debug)]
pub struct Split {
    /// Largest shard in bytes of tensor data.
    pub max_shard_size: u64,
    /// Sum of all tensors in bytes.
    pub total_size: u64,
    /// Tensors in the order they were given.
    pub tensors: Vec<SplitTensor>,
    /// Shard file to its tensors.
    pub shards: BTreeMap<String, Vec<String>>,
}

/// A tensor of a sharded checkpoint.
#[derive(Clone, Debug)]
pub struct SplitTensor {
    /// Name.
    pub name: String,
    /// Shape.
    pub shape: Vec<u64>,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: String,
}

/// A file too large to store.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// Which one.
    pub name: String,
    /// Length of the file.
    pub size: u64,
    /// Verdict of the official crate.
    pub official: OfficialVerdict,
    /// Number of tensors when read.
    pub n_tensors: Option<usize>,
    /// Verdict of our strict reader with its default limits.
    pub strict: StrictVerdict,
}

/// An index expression and its answers.
#[derive(Clone, Debug)]
pub struct SliceCase {
    /// Path of the file below `vectors/safetensors`.
    pub file: String,
    /// Name of the tensor.
    pub tensor: String,
    /// The expression, in Python's notation.
    pub index: String,
    /// The official library's answer; [`None`] if it refuses.
    pub official: Option<SliceAnswer>,
    /// NumPy's answer; [`None`] if it raises an exception.
    pub numpy: Option<SliceAnswer>,
}

/// Result of an index expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SliceAnswer {
    /// Shape of the result.
    pub shape: Vec<u64>,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// A vector or sidecar that cannot be used.
#[derive(Debug)]
pub struct Error {
    file: PathBuf,
    what: Fault,
}

#[derive(Debug)]
enum Fault {
    Io(std::io::Error),
    Json(serde_json::Error),
    Field { path: String },
}

impl Error {
    pub(crate) const fn io(file: PathBuf, error: std::io::Error) -> Self {
        Self { file, what: Fault::Io(error) }
    }

    /// What this file lacks.
    pub(crate) fn missing(file: PathBuf, Missing(path): Missing) -> Self {
        Self { file, what: Fault::Field { path } }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match &self.what {
            Fault::Io(error) => write!(f, "{error}"),
            Fault::Json(error) => write!(f, "{error}"),
            Fault::Field { path } => write!(f, "missing or of the wrong type: {path}"),
        }
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.what {
            Fault::Io(error) => Some(error),
            Fault::Json(error) => Some(error),
            Fault::Field { .. } => None,
        }
    }
}

/// Folder that holds the vectors of one format.
///
/// # Examples
///
/// ```
/// assert!(conformance::vectors::folder("safetensors").join("valid").is_dir());
/// ```
#[must_use]
pub fn folder(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(format)
}

/// Reads a file below `vectors/safetensors`.
///
/// # Errors
///
/// [`Error`] if the file cannot be read.
pub fn read(file: &str) -> Result<Vec<u8>, Error> {
    let path = folder(FORMAT).join(file);
    fs::read(&path).map_err(|error| Error::io(path, error))
}

/// Names of the files in a folder below `vectors/safetensors`, sorted.
///
/// # Errors
///
/// [`Error`] if the folder cannot be read.
pub fn list(dir: &str) -> Result<Vec<String>, Error> {
    names(&folder(FORMAT).join(dir))
}

/// Names of the files in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let names = fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    });
    let mut names: Vec<String> = names.map_err(|error| Error::io(folder.to_owned(), error))?;
    names.sort();
    Ok(names)
}

impl Vectors {
    /// Reads the sidecars.
    ///
    /// # Errors
    ///
    /// [`Error`] names the sidecar and the field that is missing or malformed.
    pub fn load() -> Result<Self, Error> {
        let mut vectors = Self::default();
        for sidecar in sidecars(FORMAT)? {
            match sidecar.vector.split_once('/') {
                Some(("sharded", _)) => {
                    vectors.sharded.push(sidecar.read(|facts| Sharded::from_facts(&sidecar.vector, facts))?);
                }
                Some(("generate", name)) => {
                    vectors.recipes.push(sidecar.read(|facts| Recipe::from_facts(name, facts))?);
                }
                // Tensors of a vector as NumPy writes them.
                Some(("npy", _)) => {}
                _ => {
                    vectors.files.push(sidecar.read(|facts| Vector::from_facts(&sidecar.vector, facts))?);
                    vectors.slices.extend(sidecar.read(|facts| slices(&sidecar.vector, facts))?);
                }
            }
        }
        vectors.files.sort_by(|a, b| (a.kind, &a.category, &a.file).cmp(&(b.kind, &b.category, &b.file)));
        vectors.sharded.sort_by(|a, b| (a.rule.is_some(), &a.dir).cmp(&(b.rule.is_some(), &b.dir)));
        Ok(vectors)
    }
}

impl Vector {
    fn from_facts(file: &str, facts: &Field<'_>) -> Result<Self, Missing> {
        let official = facts.get("official")?;
        Ok(Self {
            file: file.to_owned(),
            strict: strict_verdict(&facts.get("strict")?)?,
            kind: Kind::of(file).ok_or_else(|| Missing(format!("a folder of a kind: {file}")))?,
            category: facts.get("category")?.text()?,
            size: facts.get("size")?.number()?,
            sha256: facts.get("sha256")?.text()?,
            official: official_verdict(&official.get("crate_0_8_0")?)?,
            official_panics_when_checked: official.find("crate_0_8_0_overflow_checks_on").is_some(),
            header_len: facts.find("header_len").map(|field| field.number()).transpose()?,
            metadata: facts
                .find("metadata")
                .map(|field| field.entries()?.iter().map(|(k, v)| Ok((k.clone(), v.text()?))).collect())
                .transpose()?,
            tensors: facts
                .find("tensors")
                .map(|field| field.items()?.iter().map(TensorFacts::from_value).collect())
                .transpose()?,
            n_tensors: facts.find("n_tensors").map(|field| field.count()).transpose()?,
            names_sha256: facts.find("offset_order_names_sha256").map(|field| field.text()).transpose()?,
            byte_exact: facts.find("byte_exact_reserialize").is_some_and(|field| *field.value == true),
        })
    }
}

impl TensorFacts {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        let offsets = entry.get("data_offsets")?.numbers()?;
        let [begin, end] = offsets[..] else { return Err(entry.missing("data_offsets")) };
        Ok(Self {
            name: entry.get("name")?.text()?,
            dtype: entry.get("dtype")?.text()?,
            shape: entry.get("shape")?.numbers()?,
            data_offsets: (begin, end),
            abs_offset: entry.get("abs_offset")?.number()?,
            sha256: entry.get("sha256")?.text()?,
            hex: entry.find("hex").map(|field| field.text()).transpose()?,
            values: entry.find("values").and_then(|field| field.value.as_array().cloned()),
        })
    }
}

impl Sharded {
    fn from_facts(dir: &str, facts: &Field<'_>) -> Result<Self, Missing> {
        let rule = facts.find("rule").map(|field| field.text()).transpose()?;
        let split = if rule.is_some() { None } else { Some(Split::from_value(facts)?) };
        Ok(Self { dir: dir.to_owned(), strict: strict_verdict(&facts.get("strict")?)?, rule, split })
    }
}

impl Split {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        let facts = entry.get("tensors")?;
        let tensors = entry.get("insertion_order")?.items()?;
        let tensors = tensors.iter().map(|name| {
            let name = name.text()?;
            let tensor = facts.get(&name)?;
            let element = match tensor.get("dtype")?.text()?.as_str() {
                "uint8" => 1,
                "float32" => 4,
                _ => return Err(tensor.missing("dtype")),
            };
            let shape = tensor.get("shape")?.numbers()?;
            let bytes = shape.iter().product::<u64>() * element;
            Ok(SplitTensor { name, shape, bytes, sha256: tensor.get("sha256")?.text()? })
        });
        let shards = entry.get("filename_to_tensors")?.entries()?;
        let shards = shards.iter().map(|(file, names)| {
            Ok((file.clone(), names.items()?.iter().map(Field::text).collect::<Result<_, _>>()?))
        });
        Ok(Self {
            max_shard_size: entry.get("max_shard_size")?.number()?,
            total_size: entry.get("total_size")?.number()?,
            tensors: tensors.collect::<Result<_, _>>()?,
            shards: shards.collect::<Result<_, _>>()?,
        })
    }
}

impl Recipe {
    fn from_facts(name: &str, facts: &Field<'_>) -> Result<Self, Missing> {
        let official = facts.get("official_0_8_0")?;
        Ok(Self {
            name: name.to_owned(),
            size: facts.get("size")?.number()?,
            official: official_verdict(&official)?,
            n_tensors: official.find("n_tensors").map(|field| field.count()).transpose()?,
            strict: strict_verdict(&facts.get("strict")?)?,
        })
    }
}

/// The index expressions on tensors of a file.
fn slices(file: &str, facts: &Field<'_>) -> Result<Vec<SliceCase>, Missing> {
    let Some(slices) = facts.find("slices") else { return Ok(Vec::new()) };
    slices.items()?.iter().map(|entry| SliceCase::from_value(file, entry)).collect()
}

impl SliceCase {
    fn from_value(file: &str, entry: &Field<'_>) -> Result<Self, Missing> {
        let official = if *entry.get("ok")?.value == true { Some(slice_answer(entry)?) } else { None };
        let numpy = entry.get("numpy_says")?;
        let numpy = match numpy.value.as_str() {
            Some(_) => official.clone(),
            None if numpy.find("exception").is_some() => None,
            None => Some(slice_answer(&numpy)?),
        };
        Ok(Self {
            file: file.to_owned(),
            tensor: entry.get("tensor")?.text()?,
            index: entry.get("index")?.text()?,
            official,
            numpy,
        })
    }
}

fn slice_answer(entry: &Field<'_>) -> Result<SliceAnswer, Missing> {
    Ok(SliceAnswer { shape: entry.get("shape")?.numbers()?, sha256: entry.get("sha256")?.text()? })
}

fn official_verdict(entry: &Field<'_>) -> Result<OfficialVerdict, Missing> {
    match entry.get("verdict")?.text()?.as_str() {
        "accept" => Ok(OfficialVerdict::Accept),
        "reject" => Ok(OfficialVerdict::Refuse { variant: entry.get("variant")?.text()? }),
        _ => Err(entry.missing("verdict")),
    }
}

pub(crate) fn strict_verdict(entry: &Field<'_>) -> Result<StrictVerdict, Missing> {
    if entry.value.as_str() == Some("accept") {
        return Ok(StrictVerdict::Accept);
    }
    let offset = entry.find("offset").map(|field| field.number()).transpose()?;
    Ok(StrictVerdict::Refuse { code: entry.get("code")?.text()?, offset })
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Result<Value, Error> {
    let bytes = fs::read(path).map_err(|error| Error::io(path.to_owned(), error))?;
    serde_json::from_slice(&bytes).map_err(|error| Error { file: path.to_owned(), what: Fault::Json(error) })
}
