#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - Reading: [`Gguf`] for a file in memory, [`Header`] for what precedes the data, from the first
//!   bytes of a large file. [`ReadOptions`] choose between llama.cpp's rules and more permissive ones, and set [`Limits`].
//! - Values: [`Value`] borrows from the file; an [`Array`] is decoded while it is iterated over.
//! - Writing: [`GgufBuilder`] collects, [`Layout`] fixes every offset, then [`Layout::to_vec`] or
//!   [`Layout::write_streamed`] puts the bytes in place.
//! - Changing: [`GgufBuilder::copy_of`] for a copy with other keys, [`Header::patch`] for a value in place.
//! - Known keys: [`KeyType`] for their types, [`Header::key_problems`] for values that programs refuse.
//! - Several files: [`SplitPlan`], [`MergePlan`], [`ShardName`].
//!
//! # Security
//!
//! The crate is made for untrusted input: no input makes it panic, loop or allocate memory out of proportion to the header (24
//! times its length at most). A [`Header`] is proof that every string and array is inside the file and that no tensor's size
//! overflows, a [`Gguf`] that every tensor does too. Strings may hold any bytes, and must be escaped where they are shown or
//! used as paths. Values of tensors are not checked; the format has no checksum.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod options;
mod cursor;
mod value;
mod tensor;
mod header;
mod gguf;
mod builder;
mod layout;
#[cfg(feature = "std")]
mod stream;
mod patch;
mod known_keys;
mod shard;

pub use builder::GgufBuilder;
pub use cursor::Endian;
pub use error::{Error, ErrorKind};
pub use gguf::Gguf;
pub use header::{Entry, Header, MAGIC, Prefix};
pub use known_keys::{KeyProblem, KeyType};
pub use layout::{Layout, Planned};
pub use located_error::Subject;
pub use options::{Limits, ReadOptions, Strictness};
pub use patch::Patch;
pub use shard::{FirstShard, MergePlan, ShardLimit, ShardName, SplitKeys, SplitPlan};
pub use tensor::{Dims, TensorInfo};
pub use tensor_dtype::{Dtype, GgmlType};
pub use value::{Array, Number, Text, Value, ValueType, Values};
