//! The `.apr` model container: one file with a header, metadata, a payload and a checksum.
//!
//! Version 1 holds the values of one model after a header of 32 bytes ([`save()`], [`load()`], [`inspect()`]), version 2 a table of
//! named tensors ([`v2`]). Files are exchanged with aprender 0.10 to 0.72; its defects are not reproduced: see `docs/apr-format.md`.
//!
//! ```
//! use apr_container::{DecodePayload, EncodePayload, Error, ModelType, PayloadReader, PayloadWriter, SaveOptions, load_from_bytes, to_vec};
//!
//! struct Thresholds(Vec<f32>);
//!
//! impl EncodePayload for Thresholds {
//!     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
//!         out.f32s(&self.0)
//!     }
//! }
//!
//! impl DecodePayload for Thresholds {
//!     fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
//!         Ok(Self(input.f32s()?))
//!     }
//! }
//!
//! let options = SaveOptions::default().with_name("thresholds").with_created_at(1_795_241_427);
//! let file = to_vec(&Thresholds(vec![0.5, 2.0]), ModelType::Custom, &options)?;
//! let Thresholds(values) = load_from_bytes(&file, ModelType::Custom)?;
//! assert_eq!(values, [0.5, 2.0]);
//!
//! // A single changed bit is noticed.
//! let mut damaged = file.clone();
//! damaged[file.len() / 2] ^= 1;
//! let error = load_from_bytes::<Thresholds>(&damaged, ModelType::Custom).err().unwrap();
//! assert_eq!(error.code(), "ac-checksum");
//! # Ok::<(), Error>(())
//! ```
//!
//! - Files: [`save()`], [`load()`], [`inspect()`]; in memory: [`to_vec`], [`load_from_bytes`], [`inspect_bytes`]. [`Container`]
//!   gives the parts of a file one by one.
//! - Payloads: [`EncodePayload`] and [`DecodePayload`] for types with a layout of their own, `Serde` (feature `serde`)
//!   for any serde type.
//! - Trust: [`ReadOptions`] choose between [`Strictness::Strict`] and what known readers tolerate, and set [`Limits`].
//!   An encrypted payload is a type of its own that cannot be decoded; a signed file is not loaded unless
//!   [`UncheckedSignature::Allow`] says that nobody needs to check it. With the feature `crypto`, `open_protected` verifies and
//!   decrypts, `to_vec_protected` encrypts and signs, `authenticate` gives metadata that somebody trusted vouches for.
//!
//! # Features
//!
//! - `std` (default): files, and the clock for `created_at`.
//! - `compression`: `zstd` and `lz4`. `zstd` is the reference library in C; `ruzstd` is zstd without C or `std`,
//!   used where `zstd` is off.
//! - `serde`: users' own types as payloads.
//! - `crypto`: encrypted, signed and sealed files; without `std` the caller brings the randomness.
//! - `rayon`: sealed files on all cores.
//! - `ring`: the same bytes, encrypted in assembler; does nothing without `crypto`.
//!
//! # Security
//!
//! Input from strangers is what this crate is for: no input makes it panic, loop, or ask for more than 8 MiB and 24
//! times the file's length. The checksum finds damage; it is no proof of anything against an adversary.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod codec;
mod compression;
mod crc;
mod error;
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
pub use crate::v1::file::checksum_mismatch;
pub use crate::v1::inspect::{
    Checksum, ModelInfo, Warning, inspect_bytes, inspect_bytes_with, inspect_prefix, prefix_len,
};
#[cfg(feature = "std")]
pub use crate::v1::inspect::{inspect, inspect_reader, inspect_with};
pub use crate::v1::load::{Expect, load_from_bytes, load_from_bytes_with, view_bytes, view_bytes_with};
#[cfg(feature = "std")]
pub use crate::v1::load::{load, load_with};
#[cfg(feature = "crypto")]
pub use crate::v1::protect::{
    AuthenticMetadata, InferenceKey, KeyHint, Opened, Protection, RawModel, authenticate, open_protected,
    to_vec_protected, verify_signature, verify_source,
};
#[cfg(all(feature = "crypto", feature = "std"))]
pub use crate::v1::protect::{
    check_before_reading, load_as_recipient, load_encrypted, load_protected, load_verified, save_encrypted,
    save_for_recipient, save_protected, save_signed,
};
pub use crate::v1::save::{SaveOptions, to_vec};
#[cfg(feature = "std")]
pub use crate::v1::save::{save, write_to};
