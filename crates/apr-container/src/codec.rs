//! Payloads: a model's values in the fixed little-endian layout of bincode 1.3.
//!
//! Integers have their width; `usize` and every length are a `u64`; an optional value begins with a byte 0 or 1, an
//! alternative with its number as a `u32`; floats are their bits; text and lists are a length and their elements; a
//! structure is its fields in order, without names.

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

/// Where in the custom metadata a model's name within its type stands.
pub(crate) const MODEL_NAME_KEY: &str = "apr.model";

/// A model that can become a payload.
pub trait EncodePayload {
    /// The type a container with such a payload has; `None` if that is the caller's choice.
    const MODEL_TYPE: Option<ModelType> = None;

    /// Name of the model within its type, written to the metadata as `custom["apr.model"]` so that readers need not
    /// guess; `None` to write none.
    fn model_name(&self) -> Option<&str> {
        None
    }

    /// Whether there is anything to save: asked before a file is made. A model that was never fitted says no.
    ///
    /// # Errors
    ///
    /// [`Error::model`] with what the model says.
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

/// A model that can be read from a payload.
pub trait DecodePayload: Sized {
    /// The type a container with such a payload has; `None` if that is the caller's choice.
    const MODEL_TYPE: Option<ModelType> = None;

    /// Reads the model's values in the layout of [`PayloadReader::layout`].
    ///
    /// The bytes may come from anyone, and may prove damaged only after this call: every count must go through
    /// [`PayloadReader::count`] or one of the methods that read whole lists.
    ///
    /// # Errors
    ///
    /// What the reader refuses, and [`Error::model`] for values that make no model.
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error>;

    /// Passes over one model without keeping it.
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

/// A model's values alone, without a container around them.
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

/// Reads a model from its values alone. Nothing may be left over.
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
