//! Free space of a file system.

use std::path::Path;

/// Bytes that this user may still write to the file system of a folder; `None` where the system does not say.
///
/// The number is a snapshot: others may write in the meantime, and a write that does not fit fails as before.
///
/// ```
/// assert_ne!(durable_file::available_space(&std::env::temp_dir()), Some(0));
/// ```
#[must_use]
pub fn available_space(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let found = rustix::fs::statvfs(folder).ok()?;
        // Some file systems have no limit, and say 0 blocks of all.
        if found.f_blocks == 0 { None } else { found.f_bavail.checked_mul(found.f_frsize) }
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}
