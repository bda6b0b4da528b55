//! The file being written: without a name where the system has such files, else created exclusively under a temporary
//! one; locked, removed unless it got its final name.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Seek as _};

use crate::folder::{Entry, Folder};
use crate::registry::{Pass, Registration, Unfinished};
use crate::sweep::claim;
use crate::temp_name::{Role, TempName};

/// Names repeat by accident only, and sweepers are rarely in the way: more attempts mean something is wrong.
const ATTEMPTS: u32 = 64;

/// Whether unnamed files are used: not any more once one could not get a name.
static UNNAMED: AtomicBool = AtomicBool::new(true);

/// A locked file in its folder, of mode 0600.
#[derive(Debug)]
pub(crate) struct Temp {
    pub(crate) folder: Arc<Folder>,
    pub(crate) file: File,
    /// The temporary name, which an unnamed file gets only for a moment or never.
    pub(crate) name: TempName,
    entry: Entry,
    /// `None` while the file is unnamed.
    registration: Option<Registration>,
}

/// A temp, and the access rights that a new file in its folder has: 0666 less the umask, or the defaults of the folder.
pub(crate) type Created = (Temp, Entry);

impl Temp {
    /// Creates and locks a temp for the target with this stem.
    pub(crate) fn create(folder: &Arc<Folder>, stem: &str, pass: &Pass) -> io::Result<Created> {
        match Self::unnamed(folder, stem) {
            Some(created) => Ok(created),
            None => Self::named(folder, stem, pass),
        }
    }

    /// `None` where there are no unnamed files that could get a name later.
    fn unnamed(folder: &Arc<Folder>, stem: &str) -> Option<Created> {
        if !UNNAMED.load(Ordering::Relaxed) {
            return None;
        }
        let (file, access) = folder.create_unnamed()?;
        // No other process can have the lock. Where there are no locks, no process sweeps either.
        _ = file.try_lock();
        let entry = Entry::of(&file).ok()?;
        let name = TempName::fresh(stem.to_owned(), Role::New);
        Some((Self { folder: Arc::clone(folder), file, name, entry, registration: None }, access))
    }

    pub(crate) fn named(folder: &Arc<Folder>, stem: &str, pass: &Pass) -> io::Result<Created> {
        for _ in 0..ATTEMPTS {
            let name = TempName::fresh(stem.to_owned(), Role::New);
            let path_name = name.to_os_string();
            let created = folder
                .default_access(&path_name)
                .and_then(|access| Ok((folder.create_file(&path_name)?, access)));
            let (file, access) = match created {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                result => result?,
            };
            let claimed = Entry::of(&file)
                .and_then(|entry| Ok(claim(folder, &path_name, &entry, file.try_lock())?.then_some(entry)));
            match claimed {
                Ok(Some(entry)) => {
                    let folder = Arc::clone(folder);
                    let mut temp = Self { folder, file, name, entry, registration: None };
                    temp.register(pass);
                    return Ok((temp, access));
                }
                Ok(None) => discard(folder, &path_name),
                Err(error) => {
                    discard(folder, &path_name);
                    return Err(error);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn register(&mut self, pass: &Pass) {
        let (folder, name) = (Arc::clone(&self.folder), self.name.to_os_string());
        let unfinished = Unfinished::File { folder, name, entry: self.entry };
        self.registration = Some(Registration::new(pass, unfinished));
    }

    /// Whether the file has no name yet.
    pub(crate) fn is_unnamed(&self) -> bool {
        self.registration.is_none()
    }

    /// Gives an unnamed file a name that does not exist.
    pub(crate) fn link(&self, name: &OsStr) -> io::Result<()> {
        self.folder.link_open(&self.file, name)
    }

    /// Sees to it that the file has its temporary name. Where an unnamed file gets none (a file system or a sandbox that
    /// takes back what it offered), this becomes a named copy of it.
    pub(crate) fn give_name(&mut self, pass: &Pass) -> io::Result<()> {
        if !self.is_unnamed() {
            return Ok(());
        }
        for _ in 0..ATTEMPTS {
            match self.link(&self.name.to_os_string()) {
                Ok(()) => {
                    self.register(pass);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.name = TempName::fresh(self.name.stem.clone(), Role::New);
                }
                Err(_) => break,
            }
        }
        UNNAMED.store(false, Ordering::Relaxed);
        let (mut copy, _) = Self::named(&self.folder, &self.name.stem, pass)?;
        self.file.rewind()?;
        io::copy(&mut self.file, &mut copy.file)?;
        Entry::of(&self.file)?.impose_access(&copy.file)?;
        copy.file.sync_all()?;
        *self = copy;
        Ok(())
    }

    /// Whether `name` leads to this very file, for certain.
    pub(crate) fn is_at(&self, name: &OsStr) -> io::Result<bool> {
        let found = self.folder.entry(name)?;
        Ok(found.is_some_and(|found| found.same_file(&self.entry) == Some(true)))
    }
}

impl Drop for Temp {
    /// The name goes first, if it is still there; no other process uses it. Then the entry in the registry, and the lock
    /// with the file.
    fn drop(&mut self) {
        if !self.is_unnamed() {
            discard(&self.folder, &self.name.to_os_string());
        }
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

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unnamed_file_that_cannot_get_a_name_is_copied() {
        use std::io::Write as _;
        use std::os::unix::fs::MetadataExt as _;
        let scratch = TestFolder::new();
        let folder = Arc::new(Folder::open(scratch.path()).unwrap());
        let pass = crate::registry::enter();
        let (file, access) = folder.create_unnamed().expect("the tests run where there are such files");
        let (entry, name) = (Entry::of(&file).unwrap(), TempName::fresh("m.bin".to_owned(), Role::New));
        let mut temp = Temp { folder: Arc::clone(&folder), file, name, entry, registration: None };
        temp.file.write_all(b"content").unwrap();
        access.impose_access(&temp.file).unwrap();
        let mode = temp.file.metadata().unwrap().mode();
        // A file that had a name once never gets another.
        temp.link(OsStr::new("once")).unwrap();
        folder.remove(OsStr::new("once")).unwrap();
        temp.give_name(&pass).unwrap();
        UNNAMED.store(true, Ordering::Relaxed);
        let path = scratch.path().join(temp.name.to_os_string());
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert_eq!(path.metadata().unwrap().mode(), mode);
        drop(temp);
        assert!(scratch.names().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_named_temp_is_for_its_owner_alone_and_knows_the_mode_of_a_new_file() {
        use std::os::unix::fs::MetadataExt as _;
        let scratch = TestFolder::new();
        let folder = Arc::new(Folder::open(scratch.path()).unwrap());
        let (temp, access) = Temp::named(&folder, "m.bin", &crate::registry::enter()).unwrap();
        assert_eq!(temp.file.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::write(scratch.path().join("plain"), "").unwrap();
        access.impose_access(&temp.file).unwrap();
        let plain = scratch.path().join("plain").metadata().unwrap();
        assert_eq!(temp.file.metadata().unwrap().mode(), plain.mode());
    }
}
