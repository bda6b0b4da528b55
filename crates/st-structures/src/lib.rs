#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`to_vec`] and [`from_bytes`] turn values of serde types into files and back; [`Tensor`] among their fields is a tensor of
//!   the file, borrowed as [`Tensor<&[u8]>`](Tensor).
//! - [`Structure`] and its [`Node`]s are the data without Rust types: every Python type of the layout.
//! - [`Outline`] is the shape of the data without tensors, for tools that show a file.
//! - [`Limits`] bound the resources that a file may use.
//!
//! # Security
//!
//! Names in a file are compared with a fixed list and never looked up elsewhere. No input makes the crate panic or allocate
//! memory out of proportion to the file; trees are at most 128 levels deep. Numbers and strings are those of the file.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod limits;
mod json;
mod number;
mod tensor;
mod node;
mod schema;
mod structure;
mod outline;
mod ser;
mod de;

pub use error::{Error, ErrorKind};
pub use limits::Limits;
pub use located_error::Subject;
pub use node::{Dataclass, Entry, EnumNode, Factory, NamedTuple, Node};
pub use outline::{Content, Outline};
pub use schema::{SCHEMA_KEY, VERSION, VERSION_KEY};
pub use structure::{Structs, Structure, WriteOptions, from_bytes, from_bytes_with, to_vec, to_vec_with};
pub use tensor::{Library, Tensor};
