#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

extern crate alloc;
#[cfg(any(feature = "bzip2", feature = "lz4", feature = "xz"))]
extern crate std;

mod archive;
mod checks;
mod compressed;
mod crc;
mod end;
mod entry;
mod error;
mod fields;
mod limits;
mod member;
mod problem;
mod write;

pub use crate::archive::Archive;
pub use crate::compressed::{Compression, decompress};
pub use crate::crc::crc32;
pub use crate::entry::{Entry, Method};
pub use crate::error::{Error, ErrorKind};
pub use crate::limits::Limits;
pub use crate::member::{Checksum, Member};
pub use crate::problem::{Finding, Problem};
pub use crate::write::StoredArchive;
