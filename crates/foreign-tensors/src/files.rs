//! Files beside the file: external data, shards.

use alloc::boxed::Box;
#[cfg(feature = "std")]
use alloc::string::String;
#[cfg(feature = "std")]
use std::path::{Path, PathBuf};

use read_at::ReadAt;

use crate::error::{Error, ErrorKind};

/// Opens the files that belong to a file, by the relative paths that it names them with.
pub trait Companions {
    /// Opens a file of the model's folder, or of a folder in it. `/` separates folders.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CompanionPath`], [`ErrorKind::CompanionMissing`].
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error>;

    /// The name of the file itself in that folder, where it is known: some formats name the other files after it.
    fn file_name(&self) -> Option<&str> {
        None
    }
}

/// For a file without a folder: one in memory, or inside another.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCompanions;

impl Companions for NoCompanions {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        check(path)?;
        Err(Error::from(ErrorKind::CompanionMissing {}).of(located_error::Subject::key(path)))
    }
}

/// The folder of the model. Links are not followed, but for those of the hub's cache to its blobs, and only regular files with one name are
/// opened.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    file: Option<String>,
}

#[cfg(feature = "std")]
impl Folder {
    /// The folder at this path.
    #[must_use]
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().into(), file: None }
    }

    /// The folder that contains this file.
    #[must_use]
    pub fn of_file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = path.file_name().and_then(|name| name.to_str()).map(String::from);
        Self { file, ..Self::new(folder.unwrap_or_else(|| Path::new("."))) }
    }
}

#[cfg(feature = "std")]
impl Companions for Folder {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        check(path)?;
        let refuse =
            |problem| Error::from(ErrorKind::CompanionPath { problem }).of(located_error::Subject::key(path));
        let missing = |error: std::io::Error| Error::companion_missing(path, error);
        let mut whole = self.path.clone();
        for part in path.split('/') {
            whole.push(part);
            let found = whole.symlink_metadata().map_err(missing)?;
            if found.is_symlink() && !is_blob_of_hub(&self.path, &whole) {
                return Err(refuse("it leads through a symbolic link"));
            }
        }
        let file = durable_file::open_regular(&whole, u64::MAX);
        let file = file.map_err(|error| Error::companion_missing(path, error))?;
        let len = file.len();
        let file = file.into_file();
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            if file.metadata().map_err(missing)?.nlink() > 1 {
                return Err(refuse("the file has several names (hard links)"));
            }
        }
        Ok(Box::new(read_at::FileSource::with_len(file, len)))
    }

    fn file_name(&self) -> Option<&str> {
        self.file.as_deref()
    }
}

/// Whether a link leads to a blob of the same repository in the hub's cache: `REPOSITORY/snapshots/COMMIT/...` has links to
/// `REPOSITORY/blobs`, which its programs make.
#[cfg(feature = "std")]
fn is_blob_of_hub(folder: &Path, link: &Path) -> bool {
    let (Ok(folder), Ok(blob)) = (folder.canonicalize(), link.canonicalize()) else { return false };
    let snapshots = folder.ancestors().find(|above| above.ends_with("snapshots"));
    let repository = snapshots.and_then(Path::parent);
    repository.is_some_and(|repository| blob.parent() == Some(&*repository.join("blobs")))
}

/// The rules for paths in files. `..` is refused even where the path comes back.
fn check(path: &str) -> Result<(), Error> {
    let problem = if path.is_empty() {
        "it is empty"
    } else if path.contains('\0') {
        "it contains a NUL"
    } else if path.contains('\\') {
        "it contains a backslash"
    } else if path.contains(':') {
        "it names a drive or a server"
    } else if path.starts_with('/') {
        "it is absolute"
    } else if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        "it contains an empty part, `.` or `..`"
    } else {
        return Ok(());
    };
    Err(Error::from(ErrorKind::CompanionPath { problem }).of(located_error::Subject::key(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_paths_below_the_folder_are_opened() {
        for path in ["", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "C:x", "http://x", "a\\b", "a\0b"] {
            assert_eq!(
                NoCompanions.open(path).err().map(|error| error.code()),
                Some("ft-companion-path"),
                "{path:?}"
            );
        }
        assert_eq!(
            NoCompanions.open("data/blob 1.bin").err().map(|error| error.code()),
            Some("ft-companion-missing")
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_to_blobs_of_the_same_repository_alone() {
        use std::fs;
        use std::os::unix::fs::symlink;
        let root = std::env::temp_dir().join(alloc::format!("ft-hub-{}", std::process::id()));
        let snapshot = root.join("models--a/snapshots/0a");
        fs::create_dir_all(&snapshot).unwrap();
        for folder in ["models--a/blobs", "models--b/blobs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("1f"), "bytes").unwrap();
        }
        symlink("../../blobs/1f", snapshot.join("own.bin")).unwrap();
        symlink("../../../models--b/blobs/1f", snapshot.join("other.bin")).unwrap();
        symlink("../../blobs", snapshot.join("blobs")).unwrap();
        let open = |path| Folder::new(&snapshot).open(path).map(|file| file.total_len());
        assert_eq!(open("own.bin").unwrap(), 5);
        for path in ["other.bin", "blobs/1f"] {
            assert_eq!(open(path).err().map(|error| error.code()), Some("ft-companion-path"), "{path}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}
