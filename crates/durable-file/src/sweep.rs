//! Locks on files that are being written, and removal of files that terminated writers left.
//!
//! Nothing here fails: files that cannot be inspected, locked or removed are kept.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;

use crate::folder::{Entry, Folder};
use crate::temp_name::{Role, TempName};

/// Locks a temp just created by `lock`. `false`: a sweeper came between creation and lock, take another name.
pub(crate) fn claim(
    folder: &Folder,
    name: &OsStr,
    entry: &Entry,
    lock: Result<(), TryLockError>,
) -> io::Result<bool> {
    match lock {
        Err(TryLockError::WouldBlock) => Ok(false),
        // No locks on this file system: then no sweep here either.
        Err(TryLockError::Error(_)) => Ok(true),
        Ok(()) => Ok(folder.entry(name)?.is_some_and(|found| found.same_file(entry) != Some(false))),
    }
}

/// Removes temps and backups of the target with this stem, whose final name is `target`.
pub(crate) fn sweep_files(folder: &Folder, stem: &str, target: &OsStr) {
    for name in leftovers(folder) {
        if name.stem != stem || name.role == Role::Folder {
            continue;
        }
        let new = name.with_role(Role::New).to_os_string();
        // The order matters: an active writer whose temp is gone has renamed it, so its lock is on the target.
        let dead = match (writer(folder, &new), name.role) {
            (Writer::Dead(lock), _) => Some(Some(lock)),
            (Writer::Gone, Role::Old) => match writer(folder, target) {
                Writer::Dead(lock) => Some(Some(lock)),
                Writer::Gone => Some(None),
                Writer::Alive => None,
            },
            _ => None,
        };
        if let Some(_held_while_removing) = dead {
            // Not permitted, or another process removed it first: neither is an error.
            _ = folder.remove(&name.to_os_string());
        }
    }
}

/// Removes folders that dead writers were filling.
pub(crate) fn sweep_folders(folder: &Folder) {
    for name in leftovers(folder) {
        if name.role != Role::Folder {
            continue;
        }
        let name = name.to_os_string();
        if let Ok(staged) = folder.open_folder(&name)
            && staged.try_lock().is_ok()
            && staged.own_entry().is_ok_and(|entry| folder.entry(&name).is_ok_and(|found| is(found, &entry)))
        {
            _ = fs::remove_dir_all(staged.path());
        }
    }
}

fn leftovers(folder: &Folder) -> impl Iterator<Item = TempName> {
    folder.names().unwrap_or_default().into_iter().filter_map(|name| TempName::parse(&name))
}

/// The state of the writer of a file.
enum Writer {
    /// It holds the lock, or nothing can be known.
    Alive,
    /// The lock was free; it is ours while this handle lives.
    Dead(File),
    /// There is no such file.
    Gone,
}

fn writer(folder: &Folder, name: &OsStr) -> Writer {
    let file = match folder.open_file(name) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Writer::Gone,
        Err(_) => return Writer::Alive,
    };
    if file.try_lock().is_err() {
        return Writer::Alive;
    }
    match (Entry::of(&file), folder.entry(name)) {
        (Ok(entry), Ok(found)) if is(found, &entry) => Writer::Dead(file),
        // The name changed hands in this moment: a matter for the next save.
        _ => Writer::Alive,
    }
}

fn is(found: Option<Entry>, entry: &Entry) -> bool {
    found.is_some_and(|found| found.same_file(entry) != Some(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_temp_is_claimed_unless_a_sweeper_was_faster() {
        let scratch = TestFolder::new();
        let folder = Folder::open(scratch.path()).unwrap();
        let name = OsStr::new("temp");
        let file = folder.create_file(name).unwrap();
        let entry = Entry::of(&file).unwrap();
        let claim = |lock| claim(&folder, name, &entry, lock).unwrap();
        assert!(claim(Ok(())));
        assert!(claim(Err(TryLockError::Error(io::ErrorKind::Unsupported.into()))), "no sweep here");
        assert!(!claim(Err(TryLockError::WouldBlock)), "a sweeper holds it");
        folder.remove(name).unwrap();
        assert!(!claim(Ok(())), "a sweeper has removed it");
        drop(folder.create_file(name).unwrap());
        #[cfg(unix)]
        assert!(!claim(Ok(())), "another file has the name");
    }

    #[test]
    fn a_name_that_changed_hands_is_left_alone() {
        let scratch = TestFolder::new();
        let folder = Folder::open(scratch.path()).unwrap();
        let name = OsStr::new("temp");
        let file = folder.create_file(name).unwrap();
        let entry = Entry::of(&file).unwrap();
        assert!(is(folder.entry(name).unwrap(), &entry));
        assert!(!is(None, &entry));
        assert!(matches!(writer(&folder, name), Writer::Dead(_)));
        file.lock().unwrap();
        assert!(matches!(writer(&folder, name), Writer::Alive));
        assert!(matches!(writer(&folder, OsStr::new("none")), Writer::Gone));
        folder.create_folder(OsStr::new("folder")).unwrap();
        assert!(matches!(writer(&folder, OsStr::new("folder")), Writer::Alive));
    }

    #[cfg(unix)]
    #[test]
    fn leftovers_of_long_names_and_of_names_that_are_no_text_are_swept() {
        use std::os::unix::ffi::OsStrExt as _;
        let long = "x".repeat(255);
        for name in [OsStr::new(&long), OsStr::from_bytes(b"model\xff\xfe.bin"), OsStr::new("~")] {
            let scratch = TestFolder::new();
            let leftover = TempName::fresh(crate::temp_name::stem(name), Role::New).to_os_string();
            fs::write(scratch.path().join(leftover), "half").unwrap();
            crate::write(&scratch.path().join(name), b"new").unwrap();
            assert_eq!(scratch.names(), [name]);
        }
    }
}
