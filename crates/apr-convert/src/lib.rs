#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`quantize::Plan`]: a pure function from names, shapes and formats to a decision for each tensor, with its reason.
//! - [`Importance`]: which columns matter, from the files of `llama-imatrix`.
//! - [`Transcoder`]: the numbers of one tensor in another format; memory does not grow with the tensor.
//!
//! `docs/quantize.md` says which tensor becomes what, and why.
//!
//! # Security
//!
//! Counts in files of importance are compared with the bytes that are there before anything is allocated. Expressions of
//! users run in time linear in the name. Input that no format can hold is an error that names the tensor's element.

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
