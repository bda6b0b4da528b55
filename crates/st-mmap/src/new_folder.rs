//! Creates folders durably.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::{Error, ErrorKind};

/// Makes `folder` and whatever is missing above it; each new name is flushed before anything is put below it.
pub(crate) fn make(folder: &Path) -> Result<(), Error> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // An empty path and the root are folders or cannot be made: the recursion ends.
    if parent != folder {
        make(parent)?;
    }
    match fs::create_dir(folder) {
        // Another process was faster; what it created may be a file, which the next step reports.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(ErrorKind::Io { operation: "create", error }.at(folder))
        }
        _ => Ok(durable_file::sync_dir(parent)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_what_is_missing_and_nothing_else() {
        let base = std::env::temp_dir().join(format!("st-mmap-new-folder-{}", std::process::id()));
        let deep = base.join("a").join("b");
        make(&deep).unwrap();
        make(&deep).unwrap();
        make(Path::new(".")).unwrap();
        assert!(deep.is_dir());
        fs::write(base.join("file"), b"").unwrap();
        assert_eq!(make(&base.join("file").join("x")).unwrap_err().code(), "sm-io");
        fs::remove_dir_all(base).unwrap();
    }
}
