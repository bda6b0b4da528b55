#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! [`FileKind`] detects the format by the first bytes; [`ModelFile`] is an open file. It has a [format](ModelFile::format),
//! [metadata](ModelFile::metadata), [tensors](ModelFile::tensors) that are read on demand, a [model](ModelFile::model) that predicts,
//! and a [description](ModelFile::describe) as plain data.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod kind;
mod options;
mod error;
mod json;
mod content;
mod blocks;
mod tensor;
mod safetensors;
mod apr_v1;
mod apr_v2;
mod gguf;
mod model_file;
pub mod entries;
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
pub use crate::named_model::{NamedModel, gather};
pub use crate::options::{OpenOptions, ReadOptions};
pub use crate::safetensors::SafeTensors;
#[cfg(feature = "std")]
pub use crate::tensor::Part;
pub use crate::tensor::{Tensor, Totals, common_name, decodable};
