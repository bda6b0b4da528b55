//! An open folder and the operations of a save in it: the interface between this crate and the operating system.

use std::path::Path;

use crate::error::{Error, Operation};

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub(crate) use unix::{Entry, Folder, is_link_loop, open_without_waiting};

#[cfg(not(unix))]
mod other;
#[cfg(not(unix))]
pub(crate) use other::{Entry, Folder, is_link_loop, open_without_waiting};

/// Access to an opened file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    /// Reading, and writing in place.
    Update,
}

/// Brings the names in a folder to the medium: after this, files created, renamed or removed in it stay so.
///
/// A file system that cannot sync folders on principle counts as synced. The content of files is not synced.
///
/// # Errors
///
/// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be opened or synced.
///
/// # Examples
///
/// ```
/// durable_file::sync_dir(&std::env::temp_dir())?;
/// # Ok::<(), durable_file::Error>(())
/// ```
pub fn sync_dir(path: &Path) -> Result<(), Error> {
    let folder = Folder::open(path).map_err(|source| Error::io(Operation::OpenFolder, path, source))?;
    folder.sync().map_err(|source| Error::io(Operation::SyncFolder, path, source))
}
