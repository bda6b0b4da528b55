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
#[cfg_attr(
    not(all(feature = "tensor-models", feature = "gguf")),
    allow(dead_code, reason = "some of it is for entries and for GGUF alone")
)]
mod json;
mod content;
#[cfg(feature = "quantize")]
#[cfg_attr(not(feature = "gguf"), allow(dead_code, reason = "the other byte order is for GGUF alone"))]
mod blocks;
mod tensor;
#[cfg(feature = "quantize")]
mod statistics;
mod safetensors;
#[cfg(feature = "apr")]
mod apr_v1;
#[cfg(feature = "apr")]
mod apr_v2;
#[cfg(feature = "gguf")]
mod gguf;
#[cfg(feature = "foreign")]
mod foreign;
mod model_file;
#[cfg(feature = "tensor-models")]
pub mod entries;
#[cfg(feature = "categories")]
mod categories;
#[cfg(feature = "apr")]
mod named_model;
mod description;
#[cfg(feature = "tensor-models")]
mod compatibility;
#[cfg(feature = "serde")]
mod serialize;

#[cfg(feature = "sealed")]
pub use crate::apr_v1::SignedBy;
#[cfg(feature = "apr")]
pub use crate::apr_v1::{AprV1, Payload};
#[cfg(feature = "apr")]
pub use crate::apr_v2::AprV2;
#[cfg(feature = "quantize")]
pub use crate::blocks::halves;
#[cfg(feature = "categories")]
pub use crate::categories::{Categories, CategoryError, CategoryNumbers, UnknownCategory};
#[cfg(feature = "tensor-models")]
pub use crate::compatibility::{Difference, Effect, Interface};
#[cfg(feature = "gguf")]
pub use crate::description::gguf_scalar;
pub use crate::description::{Description, MetadataValue, TensorDescription, Warning};
pub use crate::error::{Error, ErrorKind};
#[cfg(feature = "foreign")]
pub use crate::foreign::Foreign;
#[cfg(feature = "gguf")]
pub use crate::gguf::Gguf;
pub use crate::kind::{FileKind, ModelFormat};
pub use crate::model_file::{Contents, ModelFile, Verification};
#[cfg(feature = "apr")]
pub use crate::named_model::NamedModel;
#[cfg(feature = "tensor-models")]
pub use crate::named_model::gather;
pub use crate::options::{OpenOptions, ReadOptions};
pub use crate::safetensors::SafeTensors;
#[cfg(feature = "quantize")]
pub use crate::statistics::{Histogram, Scan, Statistics};
#[cfg(feature = "quantize")]
pub use crate::tensor::decodable;
#[cfg(feature = "std")]
pub use crate::tensor::{Part, SharedTensor};
pub use crate::tensor::{Tensor, Totals, common_name};
