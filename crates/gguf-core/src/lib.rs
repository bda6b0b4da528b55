//! GGUF files: bytes to views and views to bytes.
//!
//! A file is a header (typed keys and values, a table of tensors) and the tensors' bytes, each padded to an alignment.
//! This crate reads and writes all of it in memory; it knows nothing of files. How tensors are stored is
//! [`apr_quant::BlockFormat`]'s matter.
//!
//! ```
//! use apr_quant::BlockFormat;
//! use gguf_core::{Gguf, GgufBuilder};
//!
//! let mut builder = GgufBuilder::new();
//! builder.set("general.architecture", "demo")?;
//! builder.set_texts("demo.labels", ["cat", "dog"])?;
//! builder.add_tensor("weights", BlockFormat::F32, &[2])?;
//! let weights = [0.5f32, -1.5].map(f32::to_le_bytes);
//! let file = builder.layout()?.to_vec(&[weights.as_flattened()])?;
//!
//! let gguf = Gguf::from_bytes(&file)?;
//! let info = gguf.tensor("weights")?;
//! assert_eq!(gguf.tensor_data(info), Some(weights.as_flattened()));
//!
//! // Damaged or hostile input is an error that says what is wrong and where.
//! let error = Gguf::from_bytes(&file[..40]).expect_err("the file was cut off");
//! assert_eq!((error.code(), error.offset()), ("gg-count", Some(8)));
//! # Ok::<(), gguf_core::Error>(())
//! ```
//!
//! - Reading: [`Gguf`] for a file in memory, [`Header`] for what stands before the data, from as little of a large file as
//!   it takes. [`ReadOptions`] choose between llama.cpp's verdicts and more lenient ones, and set [`Limits`].
//! - Values: [`Value`] borrows from the file; an [`Array`] is decoded while it is iterated over.
//! - Writing: [`GgufBuilder`] collects, [`Layout`] fixes every offset, then [`Layout::to_vec`] or
//!   [`Layout::write_streamed`] puts the bytes in place.
//! - Changing: [`GgufBuilder::copy_of`] for a copy with other keys, [`Header::patch`] for a value where it stands.
//! - Several files: [`SplitPlan`], [`MergePlan`], [`ShardName`].
//!
//! # Features
//!
//! `std` (default) adds the doors that take an [`std::io::Write`]. Without it the crate needs only an allocator.
//!
//! # Security
//!
//! Input from strangers is what this crate is for: no input makes it panic, loop or ask for memory out of proportion to
//! the header (24 times its length at most). A [`Header`] is proof that every string and array lies inside the file and
//! that no tensor's size overflows, a [`Gguf`] that every tensor does too. Strings may hold any bytes, and must be escaped
//! where they are shown or used as paths. Nothing is said about the values of tensors; the format has no checksum.

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
mod shard;

pub use builder::GgufBuilder;
pub use cursor::Endian;
pub use error::{Error, ErrorKind, Subject};
pub use gguf::Gguf;
pub use header::{Entry, Header, MAGIC, Prefix};
pub use layout::{Layout, Planned};
pub use options::{Level, Limits, ReadOptions};
pub use patch::Patch;
pub use shard::{FirstShard, MergePlan, ShardLimit, ShardName, SplitKeys, SplitPlan};
#[cfg(feature = "std")]
pub use stream::TensorSink;
pub use tensor::{Dims, TensorInfo};
pub use value::{Array, Number, Text, Value, ValueType, Values};
