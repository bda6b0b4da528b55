//! safetensors files: bytes to views and views to bytes.
//!
//! The format is eight bytes of header length, a JSON header that names each tensor's type, shape and place,
//! and the tensors' bytes (little-endian, row-major, without gaps). This crate reads and writes all of it
//! in memory; it knows nothing of files.
//!
//! ```
//! use st_core::{Dtype, SafeTensors, TensorView, WriteOptions, to_vec};
//!
//! let weights = [0.5f32, -1.5].map(f32::to_le_bytes);
//! let view = TensorView::new(Dtype::F32, &[2], weights.as_flattened())?;
//! let file = to_vec(&[("weights", view)], &WriteOptions::default())?;
//!
//! let tensors = SafeTensors::from_bytes(&file)?;
//! assert!(tensors.tensor("weights")?.elements::<f32>()?.eq([0.5, -1.5]));
//!
//! // Damaged or hostile input is an error that says what is wrong and where.
//! let error = SafeTensors::from_bytes(&file[..file.len() - 1]).expect_err("one byte is missing");
//! assert_eq!(error.code(), "st-file-length");
//! # Ok::<(), st_core::Error>(())
//! ```
//!
//! - Reading: [`SafeTensors`] for a buffer, [`Header`] for the table alone, [`find()`] for one tensor without a
//!   table. [`ReadOptions`] choose between [`Strictness::Strict`] and the exact verdicts of the official
//!   reader, and set [`Limits`].
//! - Tensors: [`TensorView`] gives slices and iterators of Rust types, values of the 4-, 6- and 8-bit floats,
//!   and parts ([`Index`], [`SlicePlan`]).
//! - Writing: [`Layout`] fixes every offset, then [`Layout::to_vec`] or [`Layout::write_streamed`] puts the bytes
//!   in place; [`to_vec`] and [`write_to`] do both.
//! - Several files: [`ShardIndex`], [`ShardPlan`].
//!
//! # Features
//!
//! `std` (default) adds the doors that take an [`std::io::Write`]. Without it the crate needs only an
//! allocator, and [`find()`] not even that.
//!
//! # Security
//!
//! Input from strangers is what this crate is for: no input makes it panic, loop or ask for memory out of
//! proportion to the header (24 times its length at most). A [`Header`] is proof that the tensors cover the
//! data section exactly. It says nothing about the values: NaN and infinities pass, `BOOL` bytes may hold
//! anything, names and metadata are any UTF-8 text and must be escaped where they are shown or used as paths.
//! The format has no checksum.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod limits;
mod dtype;
mod json;
mod grammar;
mod canonical;
mod name_index;
mod table;
mod header;
mod view;
mod decode;
mod slice;
mod find;
mod header_text;
mod layout;
#[cfg(feature = "std")]
mod stream;
mod shard;

pub use decode::{ToF32, ToF64};
pub use dtype::byte_len;
pub use error::{Error, ErrorKind};
pub use find::{Dims, Found, find};
pub use header::{Header, Iter, Metadata, TensorInfo};
pub use layout::{Alignment, Layout, Order, Planned, TensorSpec, WriteOptions, to_vec};
pub use limits::{Limits, MAX_HEADER_LEN, ReadOptions, Strictness};
pub use shard::{PlannedShard, ShardIndex, ShardPlan, ShardProblem};
pub use slice::{Bounds, Index, Ranges, Slice, SlicePlan};
#[cfg(feature = "std")]
pub use stream::{TensorSink, write_to};
pub use tensor_dtype::{Dtype, Element, Elements};
pub use view::{SafeTensors, TensorView};
