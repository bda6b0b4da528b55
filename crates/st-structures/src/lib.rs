//! Nested data in safetensors files: lists, maps, structs and enums around tensors.
//!
//! The layout is that of the Python package safestructures 1.0.0, whose files are read and written; `docs/structures.md` of
//! the repository specifies it and our additions. Types derive nothing but serde's traits.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use st_structures::Tensor;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Layer {
//!     name: String,
//!     dropout: Option<f32>,
//!     weight: Tensor,
//! }
//!
//! let weight = Tensor::from_f32(&[2, 2], &[1.0, 0.5, -0.5, 2.0])?;
//! let file = st_structures::to_vec(&[Layer { name: "in".into(), dropout: None, weight }])?;
//!
//! let layers: Vec<Layer> = st_structures::from_bytes(&file)?;
//! assert_eq!(layers[0].weight.shape(), [2, 2]);
//!
//! // Refusals say what is wrong and where.
//! let error = st_structures::from_bytes::<Vec<f32>>(&file).expect_err("these are no numbers");
//! assert_eq!((error.code(), error.path()), ("ss-custom", "[0]"));
//! # Ok::<(), st_structures::Error>(())
//! ```
//!
//! - [`to_vec`] and [`from_bytes`] turn values of serde types into files and back; [`Tensor`] among their fields is a tensor of
//!   the file, borrowed as [`Tensor<&[u8]>`](Tensor).
//! - [`Structure`] and its [`Node`]s are the data without a type of their own: every type of Python that the layout knows.
//! - [`Limits`] bound what a file may ask for.
//!
//! # Features
//!
//! `std` (default) turns errors into [`std::io::Error`]. Without it the crate needs only an allocator.
//!
//! # Security
//!
//! Names in a file are compared with a fixed list and never looked up elsewhere. No input makes the crate panic or ask for
//! memory out of proportion to the file; trees are at most 128 levels deep. Numbers and texts are whatever the file says.

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
mod ser;
mod de;

pub use error::{Error, ErrorKind};
pub use limits::Limits;
pub use node::{Dataclass, Entry, EnumNode, Factory, NamedTuple, Node};
pub use schema::{SCHEMA_KEY, VERSION, VERSION_KEY};
pub use structure::{Structs, Structure, WriteOptions, from_bytes, from_bytes_with, to_vec, to_vec_with};
pub use tensor::{Library, Tensor};
