//! Opens a model file, whatever its format and wherever its bytes are.
//!
//! [`FileKind`] detects the format by the first bytes; [`ModelFile`] opens safetensors files and sets of shards, `.apr` files of
//! version 1 and 2, GGUF files, and, with keys, what is inside sealed files. An open file has a [format](ModelFile::format),
//! [metadata](ModelFile::metadata), [tensors](ModelFile::tensors) that are read on demand, a [model](ModelFile::model) that predicts,
//! and a [description](ModelFile::describe) as plain data.
//!
//! ```
//! use model_file::{FileKind, ModelFormat};
//!
//! assert_eq!(FileKind::of(b"GGUF\x03\0\0\0"), FileKind::Model(ModelFormat::Gguf));
//! let FileKind::Foreign(format) = FileKind::of(b"<!DOCTYPE html><html>") else { unreachable!() };
//! assert_eq!(format.title(), "a web page");
//! ```
//!
//! # Features
//!
//! - `std` (default): files, folders and sets of shards by their paths.
//! - `sealed` (default): sealed files, and encrypted and signed `.apr` files.
//! - `serde`: `Serialize` for [`Description`].
//!
//! Without `std` the crate needs an allocator and no operating system; bytes come from any [`read_at::ReadAt`].

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod kind;
mod options;
mod error;
mod content;
mod blocks;
mod tensor;
mod safetensors;
mod apr_v1;
mod apr_v2;
mod gguf;
mod model_file;
mod named_model;
mod description;
#[cfg(feature = "serde")]
mod serialize;

#[cfg(feature = "sealed")]
pub use crate::apr_v1::SignedBy;
pub use crate::apr_v1::{AprV1, Payload};
pub use crate::apr_v2::AprV2;
pub use crate::blocks::halves;
pub use crate::description::{Description, MetadataValue, TensorDescription, Warning};
pub use crate::error::{Error, ErrorKind};
pub use crate::gguf::Gguf;
pub use crate::kind::{FileKind, ModelFormat};
#[cfg(feature = "std")]
pub use crate::model_file::Verification;
pub use crate::model_file::{Contents, ModelFile};
pub use crate::named_model::NamedModel;
pub use crate::options::{OpenOptions, ReadOptions};
pub use crate::safetensors::SafeTensors;
#[cfg(feature = "std")]
pub use crate::tensor::Part;
pub use crate::tensor::{Tensor, Totals, common_name, decodable};
