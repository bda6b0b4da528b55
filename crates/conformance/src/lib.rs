//! Our readers and writers beside the peers, over the test vectors.
//!
//! `cargo run -p conformance` prints the matrix and writes `docs/conformance.md`; with `--check` it fails if
//! that page is not up to date. Every cell that is not what the sidecars say fails the run. The same
//! checks run as tests; the fuzz targets use the judges and oracles of this crate.
//!
//! ```
//! use conformance::vectors::Vectors;
//!
//! let vectors = Vectors::load()?;
//! assert!(vectors.files.len() > 200);
//! # Ok::<(), conformance::vectors::Error>(())
//! ```
//!
//! The vectors are untrusted by design: whatever reads them may refuse, and may not panic.

#![forbid(unsafe_code)]

extern crate alloc;

pub mod apr;
pub mod gguf;
pub mod vectors;
pub mod matrix;

pub mod content;
pub mod official;
pub mod ours;

pub mod huge;
pub mod index;
pub mod reading;
pub mod sharded;
pub mod slices;

pub mod protection;

pub mod digest;
pub mod judge;
pub mod oracle;
