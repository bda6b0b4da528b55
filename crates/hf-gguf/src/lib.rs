#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`Texts`]: the small files of a model folder, read by the caller.
//! - [`Config`]: `config.json` with the defaults of its class.
//! - [`Keys`]: keys of a GGUF file, in order.
//! - [`Tokenizer`]: the tokenizer's keys.
//! - [`Restoration`]: the way back, from keys and tensors to the files of a folder.
//!
//! `docs/hf-gguf.md` specifies what is read, written and refused.
//!
//! # Security
//!
//! The folder is untrusted: lengths, counts and nesting are compared with limits before memory is allocated, and nothing
//! of the folder is run.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod json;
mod text;
mod texts;
mod keys;
mod config;
mod rope;
mod parameters;
mod architecture;
mod tensors;
mod produce;
mod whole;
mod lost;
mod conversion;
mod adapter;
mod split;
mod characters;
mod regex;
mod tokenizer;
mod authorship;
mod restore;

/// Version of transformers whose configurations are read and written.
pub(crate) const TRANSFORMERS: &str = "4.57.6";

pub use crate::config::Config;
pub use crate::conversion::{Conversion, Options, Target, classes};
pub use crate::error::{Error, ErrorKind};
pub use crate::json::{Json, Object};
pub use crate::keys::{Key, Keys, Value};
pub use crate::produce::{Flaws, Producer};
pub use crate::restore::{Part, Restoration, RestoreOptions, restored_architectures};
pub use crate::split::{SplitLimit, split};
pub use crate::tensors::input::{Gptq, Input, Packed, Values};
pub use crate::tensors::leftover::{CodedTensor, coded_tensor, is_small_float};
pub use crate::tensors::output::{Content, Output, OutputType, ParameterCount, Shift};
pub use crate::tensors::view::{Axis, View};
pub use crate::tensors::{PartFormat, Parts, SourceTensor};
pub use crate::texts::Texts;
pub use crate::tokenizer::Tokenizer;
pub use located_error::Subject;
pub use tensor_dtype::Dtype;
