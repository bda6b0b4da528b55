#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod dtype;
#[cfg(feature = "elements")]
mod element;
mod id;
mod size;
#[cfg(feature = "std")]
mod stream;
mod tensor_type;

pub use dtype::Dtype;
#[cfg(feature = "elements")]
pub use element::{Element, Elements};
pub use id::{AprType, GgmlType, RemovedType};
pub use size::SizeError;
#[cfg(feature = "std")]
pub use stream::write_exact;
pub use tensor_type::TensorType;
