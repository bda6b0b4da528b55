#![doc = include_str!("../README.md")]
//!
//! # Security
//!
//! A manifest exists only with a key that verified it, or of files that were just read. Names out of a bundle are compared
//! with what the folder holds; none is ever opened. Symbolic links are refused. The length of a bundle and the number
//! of files have [`Limits`]; nothing is allocated for what a bundle merely claims. A signature shows that the holder of a
//! key signed these files, not who that is. `docs/model-signing.md` is the specification.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod limits;
mod digest;
mod name;
mod manifest;
mod statement;
mod bundle;
mod walk;
mod hashing;
mod model;
mod detached;

pub use crate::bundle::{Bundle, key_hint};
pub use crate::detached::{
    VerifiedFile, minisign_path, read_signature, sign_file, verify_file, verify_file_any,
};
pub use crate::digest::{Digest, HashAlgorithm};
pub use crate::error::{Differences, Error, ErrorKind};
pub use crate::hashing::Watch;
pub use crate::limits::Limits;
pub use crate::manifest::{FileEntry, Manifest, Method, Part};
pub use crate::model::{SignOptions, Verified, model_name, sign_model, verify_model, verify_model_file};
pub use located_error::Subject;
