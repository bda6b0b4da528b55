//! The native half of the npm package `apr-wasm`: what it knows of formats, models and keys.
//!
//! JavaScript holds the bytes of files, in memory or as ranges of something remote, and asks by messages: a number for what is
//! wanted, arguments as bytes ([`wire`]), an answer as bytes. Whatever of a file is needed and not there is an answer as well
//! ([`wire::Outcome::Need`]); JavaScript provides it and asks again. So every kind of file is read from whatever holds it by one
//! way, and the module imports nothing: no clock, no randomness, no console. Specification: `docs/wasm.md`.

#![deny(unsafe_code)]

extern crate alloc;

mod ffi;
pub mod wire;
mod failure;
mod json;
mod values;
mod file;
mod model;
#[cfg(feature = "crypto")]
mod keys;
#[cfg(feature = "quantize")]
mod blocks;
mod session;

pub use failure::Failure;
pub use session::{Operation, Session};
