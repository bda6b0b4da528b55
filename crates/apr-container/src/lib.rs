#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - Files: [`save()`], [`load()`], [`inspect()`]; in memory: [`to_vec`], [`load_from_bytes`], [`inspect_bytes`]. [`v1::Container`]
//!   gives the parts of a file one by one.
//! - Payloads: [`EncodePayload`] and [`DecodePayload`] for types with a layout of their own, `Serde` (feature `serde`)
//!   for any serde type.
//! - Options: [`LoadOptions`] and [`SaveOptions`]. [`ReadOptions`] choose between [`Strictness::Strict`] and what known readers
//!   tolerate, and set [`Limits`]. A signed file is not loaded unless [`UncheckedSignature::Allow`] allows that.
//! - Protection (feature `crypto`): [`LoadOptions::access`] requires a signature and decrypts, [`SaveOptions::protection`]
//!   encrypts and signs, `authenticate` gives metadata authenticated by a trusted key or a password.
//!
//! # Security
//!
//! The crate is made for untrusted input: no input makes it panic, loop, or ask for more than 8 MiB and 24
//! times the file's length. The checksum detects corruption; it does not authenticate the file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod codec;
mod compression;
mod crc;
mod error;
mod flags;
mod limits;
mod map;
mod metadata;
mod model_type;
pub mod v1;
pub mod v2;

pub use crate::codec::payload_layout::PayloadLayout;
#[cfg(feature = "serde")]
pub use crate::codec::serde::Serde;
pub use crate::codec::{
    DecodePayload, EncodePayload, F32s, PayloadReader, PayloadWriter, ViewPayload, decode_payload_from_slice,
    encode_payload_to_vec,
};
pub use crate::compression::Compression;
pub use crate::error::{Error, ErrorKind, ModelError};
pub use crate::limits::{Expansion, Limits, ReadOptions, Strictness, UncheckedSignature};
pub use crate::map::{Iter as MapIter, Map};
pub use crate::metadata::{
    DistillationInfo, DistillationMethod, DistillationParams, LayerMapping, License, LicenseTier, Metadata,
    ModelCard, Teacher, Training, TrainingData, Value,
};
pub use crate::model_type::ModelType;
#[doc(hidden)]
pub use crate::v1::embedded::Aligned;
pub use crate::v1::embedded::Embedded;
#[cfg(feature = "std")]
pub use crate::v1::file::{checksum_mismatch, checksum_mismatch_from};
pub use crate::v1::inspect::{
    Checksum, ModelInfo, Warning, inspect_bytes, inspect_bytes_with, inspect_prefix, prefix_len,
};
#[cfg(feature = "std")]
pub use crate::v1::inspect::{inspect, inspect_from, inspect_with};
pub use crate::v1::load::{Expect, LoadOptions, load_from_bytes, load_from_bytes_with, view_bytes};
#[cfg(feature = "std")]
pub use crate::v1::load::{load, load_from, load_with};
#[cfg(all(feature = "crypto", feature = "std"))]
pub use crate::v1::load::{load_as_recipient, load_encrypted, load_verified};
#[cfg(feature = "crypto")]
pub use crate::v1::protect::{
    AuthenticMetadata, InferenceKey, KeyHint, Protection, RawModel, authenticate, check_source,
    verify_signature, verify_source,
};
#[cfg(feature = "crypto")]
pub use crate::v1::save::to_vec_with_rng;
pub use crate::v1::save::{SaveOptions, to_vec};
#[cfg(feature = "std")]
pub use crate::v1::save::{save, write_to};
#[cfg(all(feature = "crypto", feature = "std"))]
pub use crate::v1::save::{save_encrypted, save_for_recipient, save_signed};
pub use located_error::Subject;
