//! What a file says about itself, as plain data.

use alloc::borrow::ToOwned as _;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use apr_container::Value;
#[cfg(feature = "apr")]
use apr_container::v2;
use read_at::ReadAt;

use crate::error::Error;
#[cfg(feature = "apr")]
use crate::json;
use crate::model_file::{Contents, ModelFile};
use crate::tensor::Tensor;

/// Elements of an array that a description shows.
#[cfg(feature = "gguf")]
const SHOWN: usize = 8;

/// What a file says about itself: claims of its writer, read without decoding a payload.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Description {
    /// `safetensors`, `apr`, `gguf` or `sealed`.
    pub format: String,
    /// Version of the format, where there are several.
    pub version: Option<u32>,
    /// Bytes of the file or of all shards.
    pub file_size: u64,
    /// The model that the metadata name.
    pub model: Option<String>,
    /// The metadata in file order.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialize::entries"))]
    pub metadata: Vec<(String, MetadataValue)>,
    /// The tensors in file order; of `.apr` version 1, once the payload was decoded.
    pub tensors: Vec<TensorDescription>,
    /// Whether the payload is encrypted.
    pub encrypted: bool,
    /// Whether there is a signature, verified or not.
    pub signed: bool,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// A tensor of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TensorDescription {
    /// Its name.
    pub name: String,
    /// Name of the element or block type.
    pub dtype: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Offset of its bytes in its file; `None` of a tensor that only exists in memory.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub offset: Option<u64>,
    /// Bytes of its data.
    pub bytes: u64,
    /// SHA-256 of its bytes as hexadecimal digits, if the caller computed it.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub sha256: Option<String>,
    /// Name of the shard it is in.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub shard: Option<String>,
    /// The tensor that it is another name of: its bytes are those of that one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub alias_of: Option<String>,
}

/// A warning about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Warning {
    /// Stable identifier, for example `signature-unchecked`.
    pub kind: &'static str,
    /// Its text.
    pub message: String,
}

/// A value of the metadata of any format.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetadataValue {
    /// A value.
    Value(Value),
    /// A value as JSON text.
    Json(String),
    /// A long array: its element type, its length, and its first elements.
    Array {
        /// Name of the element type.
        element_type: &'static str,
        /// Number of elements.
        len: u64,
        /// The first elements.
        first: Vec<Value>,
    },
}

impl TensorDescription {
    /// Describes a tensor, without a digest.
    #[must_use]
    pub fn new(tensor: &Tensor<'_>) -> Self {
        Self {
            name: tensor.name().to_owned(),
            dtype: tensor.dtype().name().to_owned(),
            shape: tensor.shape().iter().map(|&dim| dim as u64).collect(),
            offset: tensor.file_offset(),
            bytes: tensor.byte_len(),
            sha256: None,
            shard: tensor.shard().map(Into::into),
            #[cfg(feature = "foreign")]
            alias_of: tensor.alias_of().map(Into::into),
            #[cfg(not(feature = "foreign"))]
            alias_of: None,
        }
    }
}

impl Warning {
    /// A warning about an `.apr` file of version 1.
    #[cfg(feature = "apr")]
    #[must_use]
    pub fn of_v1(warning: &apr_container::Warning) -> Self {
        use apr_container::Warning as W;
        let kind = match warning {
            W::UnknownModelType(_) => "unknown-type",
            W::NewerVersion(_) => "newer-version",
            W::ReservedInUse => "reserved",
            W::MetadataNotEncrypted => "metadata-not-encrypted",
            W::SignatureUnchecked => "signature-unchecked",
            W::UnknownLayout => "unknown-layout",
            W::Expansion { .. } => "expansion",
            _ => "other",
        };
        Self { kind, message: warning.to_string() }
    }

    /// A note about a file of another program.
    #[cfg(feature = "foreign")]
    #[must_use]
    pub fn of_foreign(note: &foreign_tensors::Note) -> Self {
        let message = match note.place.as_str() {
            "" => note.text.clone(),
            place => alloc::format!("{}: {}", json_scan::Visible(place), note.text),
        };
        Self { kind: "foreign", message }
    }

    /// A tensor of such a file that cannot be represented.
    #[cfg(feature = "foreign")]
    #[must_use]
    pub fn of_unsupported(tensor: &foreign_tensors::Tensor) -> Option<Self> {
        let name = json_scan::Visible(tensor.name());
        let message = alloc::format!("{name}: {} cannot be represented", tensor.problem()?);
        Some(Self { kind: "unsupported-tensor", message })
    }

    /// A warning about an `.apr` file of version 2.
    #[cfg(feature = "apr")]
    #[must_use]
    pub fn of_v2(warning: &v2::Warning) -> Self {
        use v2::Warning as W;
        let kind = match warning {
            W::OtherVersion(_) => "newer-version",
            W::ReservedInUse => "reserved",
            W::NotCompressed { .. } => "not-compressed",
            W::Inflated { .. } => "compressed",
            W::Encrypted => "encrypted",
            W::SignatureUnchecked => "signature-unchecked",
            W::UnknownDtypes => "unknown-dtype",
            W::OverlappingTensors => "overlap",
            W::NoFooter => "no-checksum",
            W::WrongFooter { .. } => "wrong-checksum",
            W::TrailingBytes { .. } => "trailing",
            _ => "other",
        };
        Self { kind, message: warning.to_string() }
    }
}

impl<R: ReadAt> ModelFile<R> {
    /// The metadata in file order. Of shards that carry different values the first one counts; of a key that occurs twice, both.
    #[must_use]
    pub fn metadata(&self) -> Vec<(String, MetadataValue)> {
        let text = |key: String, value: &str| (key, MetadataValue::Value(Value::from(value)));
        match self.contents() {
            Contents::SafeTensors(files) => {
                let mut entries: Vec<(String, MetadataValue)> = Vec::new();
                let headers = files.headers().unwrap_or_default();
                for metadata in headers.into_iter().filter_map(st_core::Header::metadata) {
                    for (key, value) in metadata.iter() {
                        if entries.iter().all(|(known, _)| known != key) {
                            entries.push(text(key.to_owned(), value));
                        }
                    }
                }
                entries
            }
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => match file.info().metadata.to_value() {
                Ok(Value::Map(members)) => {
                    let members = members.into_iter();
                    members.map(|(key, value)| (key, MetadataValue::Value(value))).collect()
                }
                _ => Vec::new(),
            },
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => {
                let json = file.index().metadata().to_json();
                // It is JSON and an object: the library wrote it.
                let members = json::members(&json).unwrap_or_default();
                let present = members.into_iter().filter(|(_, json)| *json != "null");
                let entry = |(key, json)| match json_scan::unescape(json) {
                    Some(value) => text(key, &value),
                    None => (key, MetadataValue::Json(json.to_owned())),
                };
                present.map(entry).collect()
            }
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => match file.header() {
                Ok(header) => {
                    let entries = header.entries();
                    let entries = entries
                        .iter()
                        .map(|entry| (entry.key().to_str_lossy().into_owned(), gguf_value(entry.value())));
                    entries.collect()
                }
                Err(_) => Vec::new(),
            },
            #[cfg(feature = "foreign")]
            Contents::Foreign(file) => {
                let entries = file.model().entries().iter();
                let entry = |(path, json): &(String, String)| match json_scan::unescape(json) {
                    Some(value) => text(path.clone(), &value),
                    None => (path.clone(), MetadataValue::Json(json.clone())),
                };
                entries.map(entry).collect()
            }
            #[cfg(feature = "sealed")]
            Contents::Sealed(header) => {
                header.public_declared().iter().map(|(key, value)| text(key.clone(), value)).collect()
            }
        }
    }
}

impl<R: ReadAt> ModelFile<R> {
    /// The version of the format, as [`Description::version`].
    ///
    /// # Errors
    ///
    /// Those of [`describe`](Self::describe).
    pub fn version(&self) -> Result<Option<u32>, Error> {
        match self.contents() {
            #[cfg(feature = "gguf")]
            Contents::Gguf(file) => Ok(Some(file.header()?.version())),
            _ => Ok(self.format().version()),
        }
    }

    /// Warnings about the file, as text with a stable kind.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        // Loops: the core of the npm package is smaller with them.
        #[cfg_attr(
            not(any(feature = "apr", feature = "foreign")),
            allow(unused_mut, reason = "others have none")
        )]
        let mut warnings = Vec::new();
        match self.contents() {
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => {
                for warning in file.info().warnings() {
                    warnings.push(Warning::of_v1(&warning));
                }
            }
            #[cfg(feature = "apr")]
            Contents::AprV2(file) => {
                for warning in file.index().warnings() {
                    warnings.push(Warning::of_v2(warning));
                }
            }
            #[cfg(feature = "foreign")]
            Contents::Foreign(file) => {
                warnings.extend(file.model().notes().iter().map(Warning::of_foreign));
                warnings.extend(file.model().tensors().iter().filter_map(Warning::of_unsupported));
            }
            _ => {}
        }
        warnings
    }

    /// Describes the file.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub fn describe(&self) -> Result<Description, Error> {
        let tensors = match self.contents() {
            // Known once the payload is decoded.
            #[cfg(feature = "apr")]
            Contents::AprV1(file) if file.payload().is_none_or(|payload| payload.model.is_none()) => {
                Vec::new()
            }
            _ => self.tensors()?,
        };
        let (encrypted, signed) = match self.contents() {
            #[cfg(feature = "apr")]
            Contents::AprV1(file) => (file.info().encrypted, file.info().signed),
            #[cfg(feature = "sealed")]
            Contents::Sealed(header) => (header.is_encrypted(), header.is_signed()),
            _ => (false, false),
        };
        Ok(Description {
            format: self.format().name().to_string(),
            version: self.version()?,
            file_size: self.file_len()?,
            #[cfg(feature = "apr")]
            model: self.declared_model(),
            #[cfg(not(feature = "apr"))]
            model: None,
            metadata: self.metadata(),
            tensors: tensors.iter().map(TensorDescription::new).collect(),
            encrypted,
            signed,
            warnings: self.warnings(),
        })
    }
}

#[cfg(feature = "gguf")]
fn gguf_value(value: gguf_core::Value<'_>) -> MetadataValue {
    match value.as_array() {
        Some(array) => MetadataValue::Array {
            element_type: array.element_type().name(),
            len: array.len() as u64,
            first: array.iter().take(SHOWN).map(gguf_scalar).collect(),
        },
        None => MetadataValue::Value(gguf_scalar(value)),
    }
}

/// A value of a GGUF file that is no array; of an array, its length.
#[cfg(feature = "gguf")]
#[must_use]
pub fn gguf_scalar(value: gguf_core::Value<'_>) -> Value {
    if let Some(value) = value.as_bool() {
        Value::Bool(value)
    } else if let Some(text) = value.as_text() {
        Value::String(text.to_str_lossy().into_owned())
    } else if let Some(number) = value.to_i64() {
        Value::Int(number)
    } else if let Some(number) = value.to_u64() {
        Value::UInt(number)
    } else if let Some(number) = value.to_f64() {
        Value::F64(number)
    } else {
        value.as_array().map_or(Value::Nil, |array| Value::UInt(array.len() as u64))
    }
}
