//! Resolves a path to the folder and the name in it that a save replaces.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{self, Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation};
use crate::folder::{Entry, is_link_loop};
use crate::temp_name::TempName;

/// Links that are followed before the chain counts as a circle; the kernel's own limit on Linux.
const MAX_LINKS: u32 = 40;

/// The folder and name that a save creates or replaces.
#[derive(Debug)]
pub(crate) struct Target {
    /// The path as the caller named it, for errors.
    pub(crate) shown: PathBuf,
    /// Absolute path of the folder.
    pub(crate) folder: PathBuf,
    /// Name in the folder.
    pub(crate) name: OsString,
}

impl Target {
    /// Follows symbolic links; the end of the path must be a regular file or nothing.
    pub(crate) fn follow(shown: &Path) -> Result<Self, Error> {
        // The kernel resolves the link first because it may refuse one that another user created in a sticky folder.
        match Entry::behind(shown) {
            Ok(entry) => {
                if let Some(what) = entry.irregular() {
                    return Err(Error::new(ErrorKind::NotRegular { what }, shown));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if is_link_loop(&error) => return Err(Error::new(ErrorKind::SymlinkLoop, shown)),
            Err(error) => return Err(Error::io(Operation::Inspect, shown, error)),
        }
        Self::end_of_links(shown)
    }

    fn end_of_links(shown: &Path) -> Result<Self, Error> {
        let mut place = shown.to_path_buf();
        let fail = |error| Error::io(Operation::Inspect, shown, error);
        for _ in 0..MAX_LINKS {
            match fs::symlink_metadata(&place) {
                Ok(found) if found.is_symlink() => {}
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
                _ => return Self::at(shown, &place),
            }
            let next = fs::read_link(&place).map_err(fail)?;
            // Relative to the folder of the link; an absolute path replaces it all.
            place.pop();
            place.push(next);
        }
        Err(Error::new(ErrorKind::SymlinkLoop, shown))
    }

    /// Takes the path as it is: for what must not exist yet.
    pub(crate) fn literal(shown: &Path) -> Result<Self, Error> {
        Self::at(shown, shown)
    }

    fn at(shown: &Path, place: &Path) -> Result<Self, Error> {
        let refuse = |kind| Err(Error::new(kind, shown));
        // `Path::file_name` sees through `a/` and `a/.`, which the kernel takes for folders.
        let bytes = place.as_os_str().as_encoded_bytes();
        let last = bytes.rsplit(|byte| path::is_separator(char::from(*byte))).next();
        let name = match place.file_name() {
            Some(name) if !matches!(last, Some(b"" | b".")) => name,
            _ => return refuse(ErrorKind::NoFileName),
        };
        if TempName::parse(name).is_some() {
            return refuse(ErrorKind::ReservedName);
        }
        // Absolute, so that a change of the working directory between create and commit changes nothing.
        let mut folder =
            path::absolute(place).map_err(|error| Error::io(Operation::Inspect, shown, error))?;
        folder.pop();
        Ok(Self { shown: shown.to_path_buf(), folder, name: name.to_os_string() })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn links_that_became_a_circle_after_the_kernel_looked_are_an_error() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("link");
        symlink("link", &path).unwrap();
        assert_eq!(Target::end_of_links(&path).unwrap_err().kind(), ErrorKind::SymlinkLoop);
    }
}
