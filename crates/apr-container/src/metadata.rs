//! The metadata of a model: MessagePack between header and payload.

mod budget;
mod distillation;
mod json;
mod license;
mod model_card;
mod reader;
mod record;
mod time;
mod training;
mod value;
mod writer;

pub use self::distillation::{
    DistillationInfo, DistillationMethod, DistillationParams, LayerMapping, Teacher,
};
pub use self::license::{License, LicenseTier};
pub use self::model_card::{ModelCard, TrainingData};
pub use self::training::Training;
pub use self::value::Value;

use alloc::string::String;
use alloc::vec::Vec;

use self::reader::Reader;
use self::record::{Part, record};
use self::writer::{Writer, Written};
use crate::error::Error;
use crate::limits::{Limits, Strictness};
use crate::map::Map;

record! {
    /// The metadata of a model.
    ///
    /// Equal metadata are written as equal bytes. In a file that is encrypted but not signed they are plaintext and not
    /// authenticated until the payload is decrypted.
    ///
    /// # Examples
    ///
    /// ```
    /// use apr_container::{Limits, Metadata, Strictness, Value};
    ///
    /// let mut metadata = Metadata { created_at: "1795241427".into(), ..Metadata::default() };
    /// metadata.metrics.insert("r2".into(), Value::from(0.93));
    /// let bytes = metadata.to_msgpack()?;
    /// let read = Metadata::from_msgpack(&bytes, Strictness::Strict, &Limits::DEFAULT)?;
    /// assert_eq!(read, metadata);
    /// assert_eq!(read.created_at_unix(), Some(1_795_241_427));
    /// # Ok::<(), apr_container::Error>(())
    /// ```
    pub struct Metadata {
        /// Time of creation: Unix time in seconds as the format's known writers write it, or ISO 8601 as they document it.
        pub created_at: String,
        /// Version of the implementation that the payload is laid out for, see
        /// [`PayloadLayout::version`](crate::PayloadLayout::version).
        pub aprender_version: String,
        /// Name of the model.
        pub model_name: Option<String>,
        /// Description.
        pub description: Option<String>,
        /// How it was trained.
        pub training: Option<Training>,
        /// Hyperparameters of the training.
        pub hyperparameters: Map<Value>,
        /// Metrics of the model.
        pub metrics: Map<Value>,
        /// Entries of applications.
        pub custom: Map<Value>,
        /// Digest of the model it was distilled from.
        pub distillation: Option<String>,
        /// Details of the distillation.
        pub distillation_info: Option<DistillationInfo>,
        /// The license.
        pub license: Option<License>,
        /// The model card.
        pub model_card: Option<ModelCard>,
    }
}

impl Metadata {
    /// Reads metadata.
    ///
    /// Keys of no field go to `extra`, at every level. A field of the wrong type is an error for both levels of
    /// strictness, as it is for the format's other readers; nil is a missing value, and the 32-bit numbers may be
    /// written as 64-bit numbers or integers. [`Strictness::Compat`] adds what those readers tolerate: bytes after
    /// the map, structures as lists of their fields in order, text as bytes.
    ///
    /// The memory taken stays below [`Limits::metadata_memory`] plus three times the length; no level is deeper than
    /// [`Limits::metadata_depth`], nor than 1024 whatever the limit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Truncated`](crate::ErrorKind::Truncated), `Count`, `InvalidUtf8`, `MetadataMarker`,
    /// `MetadataType`, `InvalidValue`, `MetadataMissing`, `MetadataDuplicate`, `MetadataTrailing`, `MetadataTooDense`
    /// and `Limit`. [`Error::subject`] has the path of the key, [`Error::offset`] counts from the metadata's first byte.
    pub fn from_msgpack(bytes: &[u8], strictness: Strictness, limits: &Limits) -> Result<Self, Error> {
        let mut input = Reader::new(bytes, strictness, limits)?;
        let mut metadata = Self::default();
        metadata.read(&mut input)?;
        input.finish()?;
        Ok(metadata)
    }

    /// The bytes: keys sorted at every level, numbers in their shortest form, fields without a value left out.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MetadataDuplicate`](crate::ErrorKind::MetadataDuplicate) for a key of `extra` that is a field, and
    /// for what a reader with the default limits would refuse, `Limit` and `MetadataTooDense`.
    pub fn to_msgpack(&self) -> Result<Vec<u8>, Error> {
        self.to_msgpack_with(&Limits::DEFAULT)
    }

    /// The bytes, for readers with other limits.
    ///
    /// # Errors
    ///
    /// As [`to_msgpack`](Self::to_msgpack).
    pub fn to_msgpack_with(&self, limits: &Limits) -> Result<Vec<u8>, Error> {
        let mut out = Writer::new(limits);
        self.write(&mut out)?;
        out.finish(limits)
    }

    /// The metadata as one value: a map of the fields that are present and of `extra`, as they are written.
    ///
    /// ```
    /// use apr_container::{Metadata, Value};
    ///
    /// let metadata = Metadata { model_name: Some("iris".into()), ..Metadata::default() };
    /// let value = metadata.to_value()?;
    /// assert_eq!(value.as_map().and_then(|map| map["model_name"].as_str()), Some("iris"));
    /// assert_eq!(Metadata::from_value(&value)?, metadata);
    /// # Ok::<(), apr_container::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`to_msgpack`](Self::to_msgpack).
    pub fn to_value(&self) -> Result<Value, Error> {
        let bytes = self.to_msgpack()?;
        let mut input = Reader::new(&bytes, Strictness::Strict, &Limits::DEFAULT)?;
        let value = input.value()?;
        input.finish()?;
        Ok(value)
    }

    /// The metadata that a value of the form of [`to_value`](Self::to_value) represents.
    ///
    /// # Errors
    ///
    /// As [`from_msgpack`](Self::from_msgpack), strictly; offsets are those of the value's MessagePack form.
    pub fn from_value(value: &Value) -> Result<Self, Error> {
        let mut out = Writer::new(&Limits::DEFAULT);
        value.write(&mut out)?;
        Self::from_msgpack(&out.finish(&Limits::DEFAULT)?, Strictness::Strict, &Limits::DEFAULT)
    }

    /// Seconds since 1970 of [`created_at`](Self::created_at), `None` if that is not a time, or before 1970.
    #[must_use]
    pub fn created_at_unix(&self) -> Option<u64> {
        time::unix_seconds(&self.created_at)
    }
}
