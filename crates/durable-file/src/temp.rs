//! The file being written: created exclusively, locked, removed unless it got its final name.

use std::ffi::OsStr;
use std::fs::File;
use std::io;

use crate::folder::{Entry, Folder, Readers};
use crate::sweep::claim;
use crate::temp_name::{Role, TempName};

/// Names repeat by accident only, and sweepers are rarely in the way: more attempts mean something is wrong.
const ATTEMPTS: u32 = 64;

/// A locked file in its folder.
#[derive(Debug)]
pub(crate) struct Temp {
    pub(crate) folder: Folder,
    pub(crate) file: File,
    pub(crate) name: TempName,
    entry: Entry,
}

impl Temp {
    /// Creates and locks a temp for the target with this stem.
    pub(crate) fn create(folder: Folder, stem: &str, readers: Readers) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let name = TempName::fresh(stem.to_owned(), Role::New);
            let path_name = name.to_os_string();
            let file = match folder.create_file(&path_name, readers) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            };
            let claimed = Entry::of(&file)
                .and_then(|entry| Ok(claim(&folder, &path_name, &entry, file.try_lock())?.then_some(entry)));
            match claimed {
                Ok(Some(entry)) => return Ok(Self { folder, file, name, entry }),
                Ok(None) => discard(&folder, &path_name),
                Err(error) => {
                    discard(&folder, &path_name);
                    return Err(error);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Whether `name` leads to this very file, for certain.
    pub(crate) fn is_at(&self, name: &OsStr) -> io::Result<bool> {
        let found = self.folder.entry(name)?;
        Ok(found.is_some_and(|found| found.same_file(&self.entry) == Some(true)))
    }
}

impl Drop for Temp {
    /// The name goes first, if it is still there; nobody else ever has it. The lock goes after it, with the file.
    fn drop(&mut self) {
        discard(&self.folder, &self.name.to_os_string());
    }
}

/// Removes a name of ours, with a second try; what stays even then is swept by a later save.
pub(crate) fn discard(folder: &Folder, name: &OsStr) {
    if folder.remove(name).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        _ = folder.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn what_cannot_be_removed_is_tried_twice_and_left() {
        let scratch = TestFolder::new();
        let folder = Folder::open(scratch.path()).unwrap();
        let name = OsStr::new("folder");
        folder.create_folder(name).unwrap();
        discard(&folder, name);
        assert!(folder.entry(name).unwrap().is_some());
        discard(&folder, OsStr::new("none"));
    }
}
