#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`quantize::Plan`]: a pure function from names, shapes and types to a decision for each tensor, with its reason.
//! - [`Importance`]: importance of columns, from the files of `llama-imatrix`.
//! - [`Transcoder`]: converts the values of one tensor to another type, in constant memory.
//!
//! `docs/quantize.md` specifies the type of each tensor, with reasons.
//!
//! # Security
//!
//! Counts in importance files are compared with the length of the file before memory is allocated. User-defined expressions run
//! in time linear in the name. A value that no type can hold is an error that names the element of the tensor.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod target_format;
mod importance;
pub mod quantize;
mod transcode;

pub use crate::error::{Error, ErrorKind};
pub use crate::importance::Importance;
pub use crate::target_format::TargetFormat;
pub use crate::transcode::{Piece, Sample, Transcoder};
pub use located_error::Subject;
