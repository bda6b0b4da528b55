//! `.apr` version 2: named tensors with one index.
//!
//! A file is a header, metadata as JSON, an index of tensors, the tensors, and a checksum, each part padded to 64 bytes.
//!
//! ```
//! use apr_container::v2::{Container, AprType, Metadata, TensorView, WriteOptions, to_vec};
//!
//! let weights = [0.5f32, -1.5].map(f32::to_le_bytes);
//! let view = TensorView::new("weights", AprType::F32, &[2], weights.as_flattened())?;
//! let file = to_vec(&[view], &WriteOptions::new(Metadata::new("linear")))?;
//!
//! let container = Container::from_bytes(&file)?;
//! assert_eq!(container.metadata().model_type, "linear");
//! assert!(container.tensor("weights")?.elements::<f32>()?.eq([0.5, -1.5]));
//! # Ok::<(), apr_container::Error>(())
//! ```
//!
//! - Reading: [`Container`] for a file in memory, [`Index`] for the parts before the tensors, [`Stored`] for files that may be
//!   compressed as a whole. [`ReadOptions`](crate::ReadOptions) set strictness and limits.
//! - Tensors: [`TensorView`] gives slices, elements and `f32` values; [`AprType`] lists the types.
//! - Writing: [`Layout`] fixes every offset, then [`Layout::to_vec`] or [`Layout::write_streamed`] puts the bytes in place;
//!   [`to_vec`], [`write_to`] and [`save`] do both.
//! - Several files: [`ShardManifest`].

mod error;
mod dtype;
mod flags;
mod header;
mod json;
mod metadata;
mod table;
mod sections;
mod warning;
mod body;
mod index;
mod container;
mod stored;
mod decode;
mod view;
mod layout;
#[cfg(feature = "std")]
mod stream;
#[cfg(feature = "std")]
mod verify;
mod shards;

pub use container::{Container, Footer};
pub use dtype::byte_len;
pub use error::{Error, ErrorKind};
pub use flags::Flags;
pub use header::{Header, Magic};
pub use index::{Index, Iter, TensorInfo};
pub use json::Json;
pub use layout::{Layout, Order, Planned, TensorSpec, WriteOptions, to_vec};
pub use metadata::{Metadata, Sharding};
pub use shards::{Shard, ShardManifest, ShardProblem};
pub use stored::{Inflated, Stored};
#[cfg(feature = "std")]
pub use stream::{save, write_to};
pub use tensor_dtype::{AprType, Dtype, Element, Elements};
pub use view::TensorView;
pub use warning::Warning;
