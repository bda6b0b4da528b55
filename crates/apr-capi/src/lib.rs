#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! The functions and types of C are in `ffi`, the only module with unsafe code: it turns pointers into references and back, and calls
//! [`File`] and [`Model`], which do the work. Specification: `docs/c.md` in the repository.

#![deny(unsafe_code)]

extern crate alloc;

mod failure;
mod file;
mod model;
mod options;
mod types;
mod ffi;

pub use crate::failure::{Failure, Status};
pub use crate::ffi::*;
pub use crate::file::{File, TensorInfo};
pub use crate::model::{Model, Table};
pub use crate::options::{Keys, Options};
pub use crate::types::*;
