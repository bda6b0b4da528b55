#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`sniff()`] checks the first [`PREFIX`] bytes only.
//! - [`identify`] also reads the directory at the end of a ZIP archive, which distinguishes PyTorch, TorchScript, NumPy and
//!   Keras archives; it takes a function that reads bytes at an offset.
//!
//! A safetensors file has no magic number: `None` is returned for a file that may be one, and for every unknown format.
//!
//! # Limits
//!
//! No allocation. [`identify`] reads at most [`PREFIX`] bytes, the 64 KiB in which the end record of an archive may be, and
//! [`MAX_MEMBERS`] entries of its directory, and of unknown files and text eight bytes at the end and at each power of two up to 1 MiB. No input makes it panic.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod format;
mod sniff;
mod text;
mod zip;

pub use self::format::Format;
pub use self::sniff::{PREFIX, identify, sniff};
pub use self::zip::MAX_MEMBERS;
