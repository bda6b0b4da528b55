//! The folder of parts: what has arrived of files that are not complete.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::{CODE_OUTPUT_KIND, CODE_USAGE, Failure};

/// The folder of parts.
pub(in crate::commands) const PARTS: &str = ".apr-get";
/// Bytes of the names of parts, in hexadecimal digits: those of the path, then those of the version.
const PATH_BYTES: usize = 4;
const VERSION_BYTES: usize = 12;
/// How often a part is opened that another process has completed or removed in this moment.
const TRIES: usize = 16;

/// The parts below a folder that gets files.
#[derive(Debug)]
pub(super) struct Parts(PathBuf);

impl Parts {
    pub(super) fn of(folder: &Path) -> Self {
        Self(folder.join(PARTS))
    }

    /// # Errors
    ///
    /// If its place is taken by a link or a file.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.0.symlink_metadata() {
            Ok(found) if !found.is_dir() => {
                let failure = Failure::new(CODE_OUTPUT_KIND, "this name is used for the folder of parts");
                Err(failure
                    .in_file(&self.0)
                    .help("remove or rename it: it is a link or a file, not a folder"))
            }
            _ => Ok(()),
        }
    }

    /// The parts of all versions of the file with this path.
    pub(super) fn of_file(&self, path: &str) -> impl Iterator<Item = fs::DirEntry> {
        let begin = digits::<PATH_BYTES>(path);
        // Not through a link.
        let entries = self.check().ok().and_then(|()| fs::read_dir(&self.0).ok());
        entries.into_iter().flatten().flatten().filter(move |entry| {
            let is_part =
                entry.file_name().to_str().is_some_and(|name| is_part(name) && name.starts_with(&begin));
            is_part && entry.file_type().is_ok_and(|kind| kind.is_file())
        })
    }

    /// Opens and locks the part of this version of a file, which is empty if it is new.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or another process is writing it.
    pub(super) fn open(&self, path: &str, version: &str) -> Result<(PathBuf, File), Failure> {
        let name = digits::<PATH_BYTES>(path) + &digits::<VERSION_BYTES>(&format!("{path}\n{version}"));
        let part = self.0.join(name);
        let failed = |error: io::Error| Failure::io("write the file", &part, &error);
        for _ in 0..TRIES {
            self.check()?;
            if part.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                return Err(Failure::new(CODE_USAGE, "it is not a regular file").in_file(&part));
            }
            let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&part);
            let file = match opened {
                Ok(file) => file,
                // The folder is new, or another process has removed it because it was empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(&self.0)
                        .map_err(|error| Failure::io("create the folder", &self.0, &error))?;
                    continue;
                }
                Err(error) => return Err(failed(error)),
            };
            match file.try_lock() {
                // Another process may have completed or removed what was opened.
                Ok(()) if is_at(&part, &file) => return Ok((part, file)),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let failure = Failure::new(CODE_USAGE, "another process is writing this file");
                    return Err(failure.help("wait until it has ended"));
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(Failure::new(CODE_USAGE, "other processes are writing this file"))
    }

    /// Removes the parts of a file that no other process is writing.
    pub(super) fn remove(&self, path: &str) {
        for part in self.of_file(path) {
            let path = part.path();
            if let Ok(file) = File::open(&path)
                && file.try_lock().is_ok()
                && is_at(&path, &file)
            {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Removes the folder if it is empty.
    pub(super) fn remove_folder(&self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn digits<const N: usize>(text: &str) -> String {
    base16ct::lower::encode_string(&Sha256::digest(text)[..N])
}

/// Whether it is a name of [`Parts::open`].
fn is_part(name: &str) -> bool {
    name.len() == 2 * (PATH_BYTES + VERSION_BYTES)
        && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a path still names the file that was opened there.
fn is_at(path: &Path, file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let (Ok(found), Ok(opened)) = (path.symlink_metadata(), file.metadata()) else { return false };
        (found.dev(), found.ino()) == (opened.dev(), opened.ino())
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        path.symlink_metadata().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_a_path_and_a_version() {
        let folder = std::env::temp_dir().join(format!("apr-parts-{}", std::process::id()));
        let parts = Parts::of(&folder);
        let (part, file) = parts.open("a", "1").unwrap();
        assert!(is_part(part.file_name().unwrap().to_str().unwrap()));
        assert_eq!(parts.open("a", "1").unwrap_err().what(), "another process is writing this file");
        drop(parts.open("a", "2").unwrap());
        drop(parts.open("b", "1").unwrap());
        for name in ["notes.txt", "0123456789abcdef0123456789abcdeF"] {
            fs::write(folder.join(PARTS).join(name), "mine").unwrap();
        }
        assert_eq!((parts.of_file("a").count(), parts.of_file("b").count()), (2, 1));
        parts.remove("a");
        // The lock keeps the other one.
        assert_eq!((parts.of_file("a").count(), parts.of_file("b").count()), (1, 1));
        drop(file);
        parts.remove("a");
        assert_eq!(fs::read_dir(folder.join(PARTS)).unwrap().count(), 3);
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_part_that_was_completed_meanwhile_is_not_taken_for_one() {
        let folder = std::env::temp_dir().join(format!("apr-part-{}", std::process::id()));
        let parts = Parts::of(&folder);
        let (part, file) = parts.open("a", "1").unwrap();
        drop(file);
        let opened = File::open(&part).unwrap();
        assert!(is_at(&part, &opened));
        fs::rename(&part, folder.join("a")).unwrap();
        assert!(opened.try_lock().is_ok() && !is_at(&part, &opened), "the lock is that of the complete file");
        drop(parts.open("a", "1").unwrap());
        assert!(!is_at(&part, &opened), "another file has the name");
        fs::remove_dir_all(folder).unwrap();
    }
}
