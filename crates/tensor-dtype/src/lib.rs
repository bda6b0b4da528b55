#![doc = include_str!("../README.md")]
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
