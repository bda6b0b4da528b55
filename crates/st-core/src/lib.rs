#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - Reading: [`SafeTensors`] for a buffer, [`Header`] for the table alone, [`find()`] for one tensor without a
//!   table. [`ReadOptions`] choose between [`Strictness::Strict`] and the exact results of the official
//!   reader, and set [`Limits`].
//! - Tensors: [`TensorView`] gives slices and iterators of Rust types, values of the 4-, 6- and 8-bit floats,
//!   and parts ([`Index`], [`SlicePlan`]).
//! - Writing: [`Layout`] fixes every offset, then [`Layout::to_vec`] or [`Layout::write_streamed`] puts the bytes
//!   in place; [`to_vec`] and [`write_to`] do both.
//! - Several files: [`ShardIndex`], [`ShardPlan`].
//! - Defective headers that can be repaired: [`Repair`].
//!
//! # Security
//!
//! The crate is made for untrusted input: no input makes it panic, loop or allocate memory out of proportion to the header (24
//! times its length at most). A [`Header`] is proof that the tensors cover the data section exactly. The values are not
//! checked: NaN and infinities pass, `BOOL` bytes may hold anything, names and metadata are any UTF-8 text and must be escaped
//! where they are shown or used as paths. The format has no checksum.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod error;
mod limits;
mod dtype;
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
mod repair;
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
pub use located_error::Subject;
pub use repair::{Change, Repair};
pub use shard::{PlannedShard, ShardIndex, ShardPlan, ShardProblem};
pub use slice::{Bounds, Index, Ranges, Slice, SlicePlan};
#[cfg(feature = "std")]
pub use stream::write_to;
pub use tensor_dtype::{Dtype, Element, Elements};
pub use view::{SafeTensors, TensorView};
