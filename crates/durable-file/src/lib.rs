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
//! - [`open_regular`] and [`read`] open regular files only, with a cap: a named pipe or `/dev/zero` is an error within
//!   milliseconds, not a hang.
//!
//! # Security
//!
//! Names are resolved once, then everything happens relative to an open folder. Temps have names of their own, are created
//! exclusively, and are readable by nobody else while they will replace a file that may be private. Symbolic links are
//! followed for the target (subject to the kernel's own rules for sticky folders), never for leftovers.
//! The crate has no features and no unsafe code.

#![forbid(unsafe_code)]

mod error;
mod folder;
mod regular;
mod replacement;
mod staged;
mod sweep;
mod target;
mod temp;
mod temp_name;

#[cfg(test)]
mod test_folder;

pub use error::{Error, ErrorKind, FileKind, Operation};
pub use folder::sync_dir;
pub use regular::{RegularFile, open_regular, read};
pub use replacement::{Replacement, write};
pub use staged::StagedDir;
