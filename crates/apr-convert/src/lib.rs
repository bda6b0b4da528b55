//! Models in other formats, beginning with fewer bits: `quantize` decides what each tensor becomes, [`Transcoder`] makes it.
//!
//! ```
//! use apr_convert::quantize::{ModelFacts, Options, Plan, Target, TensorSpec};
//! use apr_convert::{Error, Piece, Transcoder};
//! use apr_quant::BlockFormat;
//!
//! let tensors = [
//!     TensorSpec { name: "norm.weight", shape: &[64], format: Some(BlockFormat::F32) },
//!     TensorSpec { name: "dense.weight", shape: &[4, 64], format: Some(BlockFormat::F32) },
//! ];
//! let options = Options::new(Target::from_name("q8_0")?);
//! let plan = Plan::new(&tensors, &ModelFacts::default(), &options)?;
//! let [norm, dense] = plan.decisions() else { unreachable!() };
//! assert_eq!((norm.to, dense.to), (Some(BlockFormat::F32), Some(BlockFormat::Q8_0)));
//!
//! let weights = [0.25_f32.to_le_bytes(); 4 * 64];
//! let mut blocks = Vec::new();
//! let mut transcoder = Transcoder::new(BlockFormat::F32, BlockFormat::Q8_0, tensors[1].shape)?;
//! let mut read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
//!     piece.copy_from_slice(&weights.as_flattened()[offset as usize..][..piece.len()]);
//!     Ok(())
//! };
//! let report = transcoder.run(&mut read, |piece: Piece<'_>| {
//!     blocks.extend_from_slice(piece.bytes);
//!     Ok::<(), Error>(())
//! })?;
//! assert_eq!(blocks.len(), 4 * 2 * 34);
//! assert!(report.is_some_and(|report| report.max_error < 0.001));
//! # Ok::<(), Error>(())
//! ```
//!
//! - [`quantize::Plan`]: a pure function from names, shapes and formats to a decision for each tensor, with its reason.
//! - [`Importance`]: which columns matter, from the files of `llama-imatrix`.
//! - [`Transcoder`]: the numbers of one tensor in another format; memory does not grow with the tensor.
//!
//! `docs/quantize.md` says which tensor becomes what, and why.
//!
//! # Features
//!
//! None: the crate uses `std` throughout.
//!
//! # Security
//!
//! Counts in files of importance are compared with the bytes that are there before anything is allocated. Expressions of
//! users run in time linear in the name. Input that no format can hold is an error that names the tensor's element.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod formats;
mod importance;
pub mod quantize;
mod transcode;

pub use crate::error::{Error, ErrorKind};
pub use crate::formats::{Container, format_of_apr, format_of_safetensors};
pub use crate::importance::Importance;
pub use crate::transcode::{Piece, Sample, Transcoder};
