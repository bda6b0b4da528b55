//! Replaces a file so that a crash, a full disk or a power cut leaves the old one or the new one, never a torn one.
//!
//! The new content goes into a second file beside the first, is brought to the medium, and takes the first one's
//! place in one step that the file system does whole or not at all. Whatever fails, and whenever, the old file is
//! there byte for byte; what killed writers leave behind is removed by the next save. The protocol, what each step
//! protects against and what is *not* promised are written down in `docs/durable-file.md`.
//!
//! ```
//! use std::io::{BufWriter, Write as _};
//!
//! # let folder = std::env::temp_dir().join(format!("durable-file-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let path = folder.join("model.bin");
//!
//! // The content is at hand: one call.
//! durable_file::write(&path, b"first")?;
//!
//! // The content is made on the way: write, then commit. Without the commit nothing changes.
//! let mut replacement = durable_file::Replacement::create(&path)?;
//! let mut out = BufWriter::new(&mut replacement);
//! for part in ["sec", "ond"] {
//!     out.write_all(part.as_bytes())?;
//! }
//! out.flush()?;
//! drop(out);
//! assert_eq!(durable_file::read(&path, 1024)?, b"first");
//! replacement.commit()?;
//! assert_eq!(durable_file::read(&path, 1024)?, b"second");
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - [`write()`] and [`Replacement`] replace a file, or create one that must not exist yet.
//! - [`StagedDir`] does the same for a folder full of files.
//! - [`Scratch`] is a temporary file that is never put in place.
//! - [`abandon_all`] removes everything unfinished, for a program that was interrupted.
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
mod registry;
mod regular;
mod replacement;
mod scratch;
mod staged;
mod sweep;
mod target;
mod temp;
mod temp_name;

#[cfg(test)]
mod test_folder;

pub use error::{Error, ErrorKind, FileKind, Operation};
pub use folder::sync_dir;
pub use registry::abandon_all;
pub use regular::{RegularFile, open_regular, open_regular_for_update, read};
pub use replacement::{Replacement, write};
pub use scratch::Scratch;
pub use staged::StagedDir;
