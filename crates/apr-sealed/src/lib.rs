#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - Writing: [`Plan`] lists the parts, [`SealOptions`] name the recipients; [`to_vec`] in memory; with `std` `Sealer` streams,
//!   `seal_file` replaces a file durably. Extra memory is a few MiB for any size.
//! - Reading: [`SealedReader`] over any [`ReadAt`](read_at::ReadAt). [`SealedHeader`] is the public part. [`verify`] checks
//!   signature and content without any key to decrypt.
//! - Other recipients: [`Rekeying`], with `std` `rekey`.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod directory;
mod engine;
mod error;
mod fields;
mod fixed;
mod header;
mod limits;
mod options;
mod plan;
mod reader;
mod recipients;
mod rekey;
#[cfg(feature = "std")]
mod sealer;
mod slot;
mod stored;

pub use crate::engine::{SealedLayout, to_vec};
pub use crate::error::{Error, ErrorKind};
pub use crate::fixed::Suite;
pub use crate::header::{SealedHeader, verify};
pub use crate::limits::SealedLimits;
pub use crate::options::SealOptions;
pub use crate::plan::{Part, PartKind, Plan};
pub use crate::reader::SealedReader;
#[cfg(all(feature = "std", any(unix, windows)))]
pub use crate::reader::open_file;
#[cfg(all(feature = "std", any(unix, windows)))]
pub use crate::rekey::rekey;
pub use crate::rekey::{RekeyOptions, Rekeying};
#[cfg(feature = "std")]
pub use crate::sealer::{Sealer, seal_file};
pub use crate::slot::StanzaKind;
pub use located_error::Subject;

/// How a sealed file begins: not with text, and damaged by whatever changes line ends.
pub const MAGIC: [u8; 8] = *b"\x89APRS\r\n\x1a";
