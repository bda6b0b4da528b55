//! The Rust half of the npm package `apr-wasm`: formats, models and keys.
//!
//! JavaScript holds the bytes of files, in memory or as ranges of a remote file, and sends requests: the number of an operation and
//! its arguments as bytes ([`wire`]). If bytes of a file are missing, the response says which ([`wire::Outcome::Need`]); JavaScript
//! provides them and repeats the request. So there is one reader for files from every source, and the module imports nothing: no
//! clock, no randomness, no console. Specification: `docs/wasm.md`.

#![deny(unsafe_code)]

extern crate alloc;

mod ffi;
pub mod wire;
mod failure;
mod json;
mod values;
mod file;
#[cfg(feature = "apr")]
mod model;
#[cfg(feature = "crypto")]
mod keys;
#[cfg(feature = "quantize")]
mod blocks;
mod session;

pub use failure::Failure;
pub use session::{Operation, Session};
