//! The `.apr` vectors, and what their sidecars say.

use alloc::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::vectors::{
    Error, Field, Missing, StrictVerdict as Verdict, folder, json, names, sidecars, strict_verdict,
};

const FORMAT: &str = "apr";

/// Folder of the payloads, each of which several files have.
const PAYLOADS: &str = "payloads";

/// Everything known about the `.apr` vectors.
#[derive(Clone, Debug)]
pub struct Vectors {
    /// The samples of every list of predictions.
    pub rows: Vec<Vec<f32>>,
    /// Distinct payloads by name.
    pub payloads: BTreeMap<String, Payload>,
    /// What the peers wrote.
    pub files: Vec<File>,
    /// Invalid files.
    pub hostile: Vec<Hostile>,
}

/// A model as bytes and as values.
#[derive(Clone, Debug)]
pub struct Payload {
    /// The peer's name of the type.
    pub kind: String,
    /// Length in bytes.
    pub len: u64,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// The bytes, unless they are many.
    pub bytes: Option<Vec<u8>>,
    /// The peer's type as JSON; [`None`] if it was not recorded.
    pub model: Option<Value>,
    /// What the peer computed with it, by name.
    pub expected: Value,
}

/// A file and what it holds.
#[derive(Clone, Debug)]
pub struct File {
    /// Name below `vectors/apr`.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256.
    pub sha256: String,
    /// Crate and version that wrote it.
    pub peer: String,
    /// What it is.
    pub content: Content,
}

/// What a file is.
#[derive(Clone, Debug)]
pub enum Content {
    /// A container of version 1.
    V1(V1File),
    /// A container of version 2.
    V2(V2File),
    /// A payload without a container.
    Bincode {
        /// Name of the payload.
        payload: String,
    },
    /// A model exported as safetensors.
    SafeTensors {
        /// The peer's name of the type.
        kind: String,
        /// The peer's type as JSON.
        model: Value,
        /// What the peer computed with it, by name.
        expected: Value,
    },
    /// A model exported as GGUF.
    Gguf,
    /// A list of shards of version 2.
    ShardManifest,
}

/// A container of version 1.
#[derive(Clone, Debug)]
pub struct V1File {
    /// How it is protected.
    pub protection: Protection,
    /// Its header.
    pub header: HeaderFacts,
    /// Its metadata as JSON.
    pub metadata: Value,
    /// Name of its payload.
    pub payload: String,
}

/// How a container of version 1 is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    Plain,
    /// By a signature.
    Signed,
    /// Encrypted with a password.
    Password,
    /// Encrypted for one recipient.
    Recipient,
}

impl Protection {
    /// As written in the sidecars.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Signed => "signed",
            Self::Password => "password",
            Self::Recipient => "recipient",
        }
    }

    /// Whether the payload is encrypted.
    #[must_use]
    pub const fn is_encrypted(self) -> bool {
        matches!(self, Self::Password | Self::Recipient)
    }
}

/// The fields of a header of version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the specification")]
pub struct HeaderFacts {
    pub version: (u8, u8),
    pub model_type: u16,
    pub metadata_size: u32,
    pub payload_size: u32,
    pub uncompressed_size: u32,
    pub compression: u8,
    pub flags: u8,
    pub quality: u8,
    pub crc32: u32,
}

/// A container of version 2.
#[derive(Clone, Debug)]
pub struct V2File {
    /// Header fields by name.
    pub header: V2Header,
    /// Metadata as JSON.
    pub metadata: Value,
    /// Tensors in the order of the index.
    pub tensors: Vec<TensorFacts>,
    /// What the tensors of 70 elements were made from.
    pub source: Option<Vec<f32>>,
}

/// The fields of a header of version 2, and the footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as in the specification")]
pub struct V2Header {
    pub version: (u8, u8),
    pub flags: u16,
    pub tensor_count: u32,
    pub metadata_offset: u64,
    pub metadata_size: u32,
    pub tensor_index_offset: u64,
    pub data_offset: u64,
    pub checksum: u32,
    pub footer: u32,
}

/// A tensor of version 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorFacts {
    /// Name.
    pub name: String,
    /// Number of the element type.
    pub dtype: u8,
    /// Dimensions.
    pub shape: Vec<u64>,
    /// Relative to the data section.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of the bytes.
    pub sha256: String,
}

/// A file made to break readers.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// Name below `vectors/apr`.
    pub name: String,
    /// Length in bytes.
    pub size: u64,
    /// SHA-256.
    pub sha256: String,
    /// Whether it is of version 2.
    pub second: bool,
    /// What a reader should do: `accept`, `reject`, `reject-strict`, `accept-as-untrusted`, `implementation-choice`.
    pub suggested: String,
    /// What is wrong with it.
    pub why: String,
    /// Our answers in strict reading.
    pub strict: Verdicts,
    /// Our answers in compat reading.
    pub compat: Verdicts,
}

/// What we answer to a hostile file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// When loading the model, or all tensors.
    pub load: Verdict,
    /// When inspecting header and metadata.
    pub inspect: Verdict,
}

/// Reads a file below `vectors/apr`.
///
/// # Errors
///
/// [`Error`] if the file cannot be read.
///
/// # Examples
///
/// ```
/// let file = conformance::apr::vectors::read("hostile/h00_good.bin")?;
/// assert!(file.starts_with(b"APRN"));
/// # Ok::<(), conformance::vectors::Error>(())
/// ```
pub fn read(name: &str) -> Result<Vec<u8>, Error> {
    let path = folder(FORMAT).join(name);
    fs::read(&path).map_err(|error| Error::io(path, error))
}

impl Vectors {
    /// Reads the sidecars, the payloads and the samples.
    ///
    /// # Errors
    ///
    /// [`Error`] names the file and the field that is missing or malformed.
    pub fn load() -> Result<Self, Error> {
        let (mut files, mut hostile) = (Vec::new(), Vec::new());
        for sidecar in sidecars(FORMAT)? {
            let name = sidecar.vector.as_str();
            if name.starts_with("hostile/") {
                hostile.push(sidecar.read(|facts| Hostile::from_facts(name, facts))?);
            } else {
                files.push(sidecar.read(|facts| File::from_facts(name, facts))?);
            }
        }
        let rows = inputs(|inputs| inputs.get("rows")?.items()?.iter().map(floats).collect())?;
        Ok(Self { rows, payloads: payloads()?, files, hostile })
    }

    /// The payload of this name, which some file names.
    ///
    /// # Errors
    ///
    /// [`Error`] if there is none.
    pub fn payload(&self, name: &str) -> Result<&Payload, Error> {
        let missing = || Error::missing(folder(FORMAT).join(PAYLOADS), Missing(name.to_owned()));
        self.payloads.get(name).ok_or_else(missing)
    }
}

/// Reads what several vectors share: the samples, and the keys of the protected files.
pub(super) fn inputs<T>(read: impl Fn(&Field<'_>) -> Result<T, Missing>) -> Result<T, Error> {
    let path = folder(FORMAT).join("inputs.json");
    let value = json(&path)?;
    read(&Field::root(&value)).map_err(|missing| Error::missing(path, missing))
}

fn payloads() -> Result<BTreeMap<String, Payload>, Error> {
    let folder = folder(FORMAT).join(PAYLOADS);
    let read = |file: String| {
        let path = folder.join(&file);
        let value = json(&path)?;
        let payload = Payload::from_value(&Field::root(&value));
        let payload = payload.map_err(|missing| Error::missing(path, missing))?;
        Ok((file.trim_end_matches(".json").to_owned(), payload))
    };
    names(&folder)?.into_iter().map(read).collect()
}

impl Payload {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        let bytes = entry.find("hex").map(|field| field.text()).transpose()?;
        let bytes = bytes.map(|text| from_hex(&text).ok_or_else(|| entry.missing("hex"))).transpose()?;
        Ok(Self {
            kind: entry.get("type")?.text()?,
            len: entry.get("len")?.number()?,
            sha256: entry.get("sha256")?.text()?,
            bytes,
            model: entry.find("model").map(|field| field.value.clone()),
            expected: entry.get("expected")?.value.clone(),
        })
    }
}

impl File {
    fn from_facts(name: &str, entry: &Field<'_>) -> Result<Self, Missing> {
        let content = match entry.get("container")?.text()?.as_str() {
            "apr-v1" => Content::V1(V1File::from_value(entry)?),
            "apr-v2" => Content::V2(V2File::from_value(entry)?),
            "raw-bincode" => Content::Bincode { payload: entry.get("payload")?.text()? },
            "safetensors" => Content::SafeTensors {
                kind: entry.get("type")?.text()?,
                model: entry.get("model")?.value.clone(),
                expected: entry.get("expected")?.value.clone(),
            },
            "gguf-v3" => Content::Gguf,
            "shardmanifest" => Content::ShardManifest,
            _ => return Err(entry.missing("container")),
        };
        Ok(Self {
            name: name.to_owned(),
            size: entry.get("size")?.number()?,
            sha256: entry.get("sha256")?.text()?,
            peer: entry.get("peer")?.text()?,
            content,
        })
    }
}

impl V1File {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        let names = [Protection::Plain, Protection::Signed, Protection::Password, Protection::Recipient];
        let protection = entry.get("protection")?.text()?;
        let protection = names.into_iter().find(|known| known.name() == protection);
        let header = entry.get("header")?;
        Ok(Self {
            protection: protection.ok_or_else(|| entry.missing("protection"))?,
            header: HeaderFacts {
                version: version(&header)?,
                model_type: small(&header, "model_type")?,
                metadata_size: small(&header, "metadata_size")?,
                payload_size: small(&header, "payload_size")?,
                uncompressed_size: small(&header, "uncompressed_size")?,
                compression: small(&header, "compression")?,
                flags: small(&header, "flags")?,
                quality: small(&header, "quality")?,
                crc32: word(&header, "crc32", u32::from_le_bytes)?,
            },
            metadata: entry.get("metadata")?.value.clone(),
            payload: entry.get("payload")?.text()?,
        })
    }
}

impl V2File {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        let header = entry.get("header")?;
        let source = entry.find("source").map(|field| field.text()).transpose()?;
        let source =
            source.map(|text| float_bits(&text).ok_or_else(|| entry.missing("source"))).transpose()?;
        Ok(Self {
            header: V2Header {
                version: version(&header)?,
                flags: small(&header, "flags")?,
                tensor_count: small(&header, "tensor_count")?,
                metadata_offset: header.get("metadata_offset")?.number()?,
                metadata_size: small(&header, "metadata_size")?,
                tensor_index_offset: header.get("tensor_index_offset")?.number()?,
                data_offset: header.get("data_offset")?.number()?,
                checksum: word(&header, "checksum", u32::from_be_bytes)?,
                footer: word(&header, "footer_crc", u32::from_le_bytes)?,
            },
            metadata: entry.get("metadata")?.value.clone(),
            tensors: entry
                .get("tensors")?
                .items()?
                .iter()
                .map(TensorFacts::from_value)
                .collect::<Result<_, _>>()?,
            source,
        })
    }
}

impl TensorFacts {
    fn from_value(entry: &Field<'_>) -> Result<Self, Missing> {
        Ok(Self {
            name: entry.get("name")?.text()?,
            dtype: small(entry, "dtype")?,
            shape: entry.get("shape")?.numbers()?,
            offset: entry.get("offset")?.number()?,
            size: entry.get("size")?.number()?,
            sha256: entry.get("sha256")?.text()?,
        })
    }
}

impl Hostile {
    fn from_facts(name: &str, facts: &Field<'_>) -> Result<Self, Missing> {
        let level = |level: &str| {
            let ours = facts.get(level)?;
            let verdict = |what: &str| strict_verdict(&ours.get(what)?);
            Ok(Verdicts { load: verdict("load")?, inspect: verdict("inspect")? })
        };
        Ok(Self {
            name: name.to_owned(),
            size: facts.get("size")?.number()?,
            sha256: facts.get("sha256")?.text()?,
            second: facts.get("container")?.text()? == "apr-v2",
            suggested: facts.get("suggested")?.text()?,
            why: facts.get("why")?.text()?,
            strict: level("strict")?,
            compat: level("compat")?,
        })
    }
}

fn version(header: &Field<'_>) -> Result<(u8, u8), Missing> {
    let version = header.get("version")?.numbers()?;
    let [Ok(major), Ok(minor)] = version.into_iter().map(u8::try_from).collect::<Vec<_>>()[..] else {
        return Err(header.missing("version"));
    };
    Ok((major, minor))
}

fn small<T: TryFrom<u64>>(entry: &Field<'_>, key: &str) -> Result<T, Missing> {
    entry.get(key)?.number()?.try_into().map_err(|_| entry.missing(key))
}

fn word(entry: &Field<'_>, key: &str, order: fn([u8; 4]) -> u32) -> Result<u32, Missing> {
    let bytes = from_hex(&entry.get(key)?.text()?).and_then(|bytes| bytes.try_into().ok());
    bytes.map(order).ok_or_else(|| entry.missing(key))
}

fn floats(entry: &Field<'_>) -> Result<Vec<f32>, Missing> {
    let float = |entry: &Field<'_>| entry.value.as_f64().map(|value| value as f32);
    entry.items()?.iter().map(|entry| float(entry).ok_or_else(|| entry.missing(""))).collect()
}

/// Floats from the digits of their bits, eight each, as [`Payload::expected`] has them.
///
/// # Examples
///
/// ```
/// assert_eq!(conformance::apr::vectors::float_bits("3f800000 c0000000"), Some(vec![1.0, -2.0]));
/// ```
#[must_use]
pub fn float_bits(text: &str) -> Option<Vec<f32>> {
    text.split(' ').map(|bits| u32::from_str_radix(bits, 16).ok().map(f32::from_bits)).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    base16ct::mixed::decode_vec(text).ok()
}
