//! Data types of tensors: one table of the element types and block types of safetensors, `.apr`, GGUF and `NumPy`, with the
//! name, the size and the identifier of each type in every format.
//!
//! A tensor is stored row-major, and multi-byte fields are little-endian. An *element type* stores each element on its own
//! (`F32`, `BF16`, `F8_E4M3`); a *block type* stores a fixed number of neighbouring elements of a row together (`Q4_K`: 256
//! elements in 144 bytes). [`Dtype`] is either. Identifiers as files store them are [`GgmlType`] and [`AprType`], which
//! also represent numbers that no version of the format has assigned.
//!
//! ```
//! use tensor_dtype::{AprType, Dtype, GgmlType};
//!
//! let dtype = Dtype::Q4_K;
//! assert_eq!((dtype.name(), dtype.block_len(), dtype.block_bytes()), ("Q4_K", 256, 144));
//! assert_eq!((dtype.ggml_type(), dtype.apr_type()), (Some(GgmlType(12)), Some(AprType(12))));
//! assert_eq!(Dtype::Bf16.byte_len(&[3, 5]), Ok(30));
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

mod dtype;
#[cfg(feature = "elements")]
mod element;
mod id;
mod size;
mod tensor_type;

pub use dtype::Dtype;
#[cfg(feature = "elements")]
pub use element::{Element, Elements};
pub use id::{AprType, GgmlType, RemovedType};
pub use size::SizeError;
pub use tensor_type::TensorType;
