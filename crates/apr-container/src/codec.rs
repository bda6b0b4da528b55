//! Payloads: a model's values in the fixed little-endian layout of bincode 1.3.
//!
//! Integers have their width; `usize` and every length are a `u64`; an optional value begins with a byte 0 or 1, an
//! enum with its variant index as a `u32`; floats are their bits; strings and lists are a length and their elements; a
//! struct is its fields in order, without names.

mod list;
pub(crate) mod payload_layout;
mod reader;
#[cfg(feature = "serde")]
pub(crate) mod serde;
mod sink;
mod source;
mod view;
mod writer;

pub(crate) use self::reader::Context;
pub use self::reader::PayloadReader;
pub(crate) use self::sink::{Counting, Sink};
pub(crate) use self::source::{SliceSource, Source, collect};
pub use self::view::{F32s, ViewPayload};
pub use self::writer::PayloadWriter;

use alloc::vec::Vec;

use crate::codec::payload_layout::PayloadLayout;
use crate::error::Error;
use crate::limits::ReadOptions;
use crate::model_type::ModelType;

/// Key of the custom metadata with a model's name within its type.
pub(crate) const MODEL_NAME_KEY: &str = "apr.model";

/// A model that can be encoded as a payload.
pub trait EncodePayload {
    /// The type a container with such a payload has; `None` if that is the caller's choice.
    const MODEL_TYPE: Option<ModelType> = None;

    /// Name of the model within its type, written to the metadata as `custom["apr.model"]` so that readers need not
    /// guess; `None` to write none.
    fn model_name(&self) -> Option<&str> {
        None
    }

    /// Checks that the model can be saved, before a file is created: an unfitted model cannot.
    ///
    /// # Errors
    ///
    /// [`Error::model`] with the error of the model.
    fn check_fitted(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Writes the model's values in the layout of [`PayloadWriter::layout`]. Called twice for one file, the first
    /// time to learn the length: both calls must write the same.
    ///
    /// # Errors
    ///
    /// What the writer refuses.
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error>;
}

/// A model that can be decoded from a payload.
pub trait DecodePayload: Sized {
    /// The type a container with such a payload has; `None` if that is the caller's choice.
    const MODEL_TYPE: Option<ModelType> = None;

    /// Reads the model's values in the layout of [`PayloadReader::layout`].
    ///
    /// The bytes are untrusted, and corruption may be detected only after this call: every count must go through
    /// [`PayloadReader::count`] or one of the methods that read whole lists.
    ///
    /// # Errors
    ///
    /// What the reader refuses, and [`Error::model`] for values that the model's constructor refuses.
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error>;

    /// Skips one model.
    ///
    /// # Errors
    ///
    /// As [`decode_payload`](Self::decode_payload).
    fn skip_payload(input: &mut PayloadReader<'_>) -> Result<(), Error> {
        Self::decode_payload(input).map(drop)
    }
}

impl<M: EncodePayload + ?Sized> EncodePayload for &M {
    const MODEL_TYPE: Option<ModelType> = M::MODEL_TYPE;

    fn model_name(&self) -> Option<&str> {
        (**self).model_name()
    }

    fn check_fitted(&self) -> Result<(), Error> {
        (**self).check_fitted()
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        (**self).encode_payload(out)
    }
}

/// A model's payload alone, without a container.
///
/// # Errors
///
/// What the model refuses to encode.
pub fn encode_payload_to_vec<M: EncodePayload + ?Sized>(
    model: &M,
    layout: PayloadLayout,
) -> Result<Vec<u8>, Error> {
    let len = payload_len(model, layout)?;
    let mut bytes = Vec::new();
    let wanted = usize::try_from(len).ok().filter(|&len| bytes.try_reserve_exact(len).is_ok());
    if wanted.is_none() {
        return Err(crate::ErrorKind::OutOfMemory { bytes: len }.into());
    }
    let mut out = PayloadWriter::new(&mut bytes, layout);
    model.encode_payload(&mut out)?;
    out.finish()?;
    Ok(bytes)
}

/// Decodes a model from its payload alone. Trailing bytes are an error.
///
/// # Errors
///
/// What the model refuses to decode; [`ErrorKind::PayloadTrailing`](crate::ErrorKind::PayloadTrailing).
pub fn decode_payload_from_slice<M: DecodePayload>(
    bytes: &[u8],
    layout: PayloadLayout,
    model_type: ModelType,
) -> Result<M, Error> {
    let mut source = SliceSource::new(bytes);
    let context = Context::new(layout, model_type, ReadOptions::STRICT, bytes.len() as u64);
    let mut input = PayloadReader::new(&mut source, bytes.len() as u64, &context);
    let model = M::decode_payload(&mut input)?;
    input.finish()?;
    Ok(model)
}

/// Bytes of the model's payload before compression.
pub(crate) fn payload_len<M: EncodePayload + ?Sized>(model: &M, layout: PayloadLayout) -> Result<u64, Error> {
    let mut counting = Counting;
    let mut out = PayloadWriter::new(&mut counting, layout);
    model.encode_payload(&mut out)?;
    out.finish()
}
