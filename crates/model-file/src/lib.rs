//! Opens a model file, whatever its format.
//!
//! [`FileKind`] detects the format of a file by its first bytes: safetensors, `.apr` version 1 and 2, GGUF, sealed files, and by
//! name the formats that are not read.
//!
//! ```
//! use model_file::{FileKind, ModelFormat};
//!
//! assert_eq!(FileKind::of(b"GGUF\x03\0\0\0"), FileKind::Model(ModelFormat::Gguf));
//! let FileKind::Foreign(format) = FileKind::of(b"<!DOCTYPE html><html>") else { unreachable!() };
//! assert_eq!(format.title(), "a web page");
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "std")]
extern crate std;

mod kind;

pub use crate::kind::{FileKind, ModelFormat};
