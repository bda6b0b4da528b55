#![doc = include_str!("../README.md")]
//!
//! # Overview
//!
//! - [`write()`] and [`Replacement`] replace a file, or create one that must not exist yet.
//! - [`StagedDir`] does the same for a folder.
//! - [`check_listed`], [`check_below`] and [`move_below`]: files whose names come from a list that someone else wrote.
//! - [`Scratch`] is a temporary file without a final name.
//! - [`abandon_all`] removes all unfinished files, for a program that is interrupted.
//! - [`available_space`]: what a file system can still take.
//! - [`open_regular`] and [`read`] open regular files only, with a cap: a named pipe or `/dev/zero` is an error within
//!   milliseconds, not a hang.
//!
//! # Security
//!
//! Names are resolved once, then everything happens relative to an open folder. Temps have no names where the
//! system has such files, else names of their own under which they are created exclusively; until the commit only their owner can
//! open them. Symbolic links are
//! followed for the target (subject to the kernel's own rules for sticky folders), never for leftovers.
//! The crate has no features and no unsafe code.

#![forbid(unsafe_code)]

extern crate alloc;

mod error;
mod folder;
mod listed;
mod registry;
mod regular;
mod replacement;
mod scratch;
mod space;
mod staged;
mod sweep;
mod target;
mod temp;
mod temp_name;

#[cfg(test)]
mod test_folder;

pub use error::{Error, ErrorKind, FileKind, Operation};
pub use folder::sync_dir;
pub use listed::{check_below, check_listed, move_below, tool_of_listed};
pub use registry::abandon_all;
pub use regular::{RegularFile, open_regular, open_regular_for_update, read};
pub use replacement::{Replacement, write};
pub use scratch::Scratch;
pub use space::available_space;
pub use staged::StagedDir;
