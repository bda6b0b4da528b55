//! Writing the new content of a file and putting it in place.

use alloc::sync::Arc;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation};
use crate::folder::{Entry, Folder};
use crate::registry::{self, Pass};
use crate::sweep::sweep_files;
use crate::target::Target;
use crate::temp::{Temp, discard};
use crate::temp_name::{Role, stem};

/// Replaces a file by `bytes`, or creates it: [`Replacement`] in one call.
///
/// # Errors
///
/// As [`Replacement::create`] and [`Replacement::commit`]; [`ErrorKind::Io`] with [`Operation::Write`] if the content
/// cannot be written. The old file is untouched.
///
/// # Examples
///
/// ```
/// # let path = std::env::temp_dir().join(format!("durable-file-write-{}", std::process::id()));
/// durable_file::write(&path, b"all or nothing")?;
/// assert_eq!(durable_file::read(&path, 1024)?, b"all or nothing");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut replacement = Replacement::create(path)?;
    replacement.write_all(bytes).map_err(|error| replacement.write_error(error))?;
    replacement.commit()
}

/// The new content of a file, until it replaces the old one.
///
/// Write to it (each call is a system call: put a [`BufWriter`](std::io::BufWriter) around it for small pieces), then
/// [`commit`](Self::commit). Until then, and after any error, the old file is untouched; dropping removes everything.
///
/// ```
/// use std::io::Write as _;
///
/// # let path = std::env::temp_dir().join(format!("durable-file-replacement-{}", std::process::id()));
/// let mut replacement = durable_file::Replacement::create(&path)?;
/// replacement.write_all(b"whole")?;
/// assert!(!path.exists());
/// replacement.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"whole");
///
/// // Abandoned: nothing happened.
/// let mut replacement = durable_file::Replacement::create(&path)?;
/// replacement.write_all(b"half of")?;
/// drop(replacement);
/// assert_eq!(std::fs::read(&path)?, b"whole");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Replacement {
    target: Target,
    temp: Temp,
    /// The access rights at the end: the old file's as they were at the start, or those of any new file.
    access: Entry,
    existing: Existing,
    incomplete: bool,
}

/// What to do with a file that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    Replace,
    Refuse,
}

impl Replacement {
    /// Begins to replace the file that `path` leads to, through symbolic links, or to create it.
    ///
    /// Removes the temporary files of writers of the same file that were killed.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NotRegular`] if something else than a regular file is there.
    /// - [`ErrorKind::NoFileName`], [`ErrorKind::ReservedName`], [`ErrorKind::SymlinkLoop`] for such paths.
    /// - [`ErrorKind::Io`] if the folder cannot be opened or nothing can be created in it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        Self::begin(Target::follow(path)?, Existing::Replace)
    }

    /// Begins to create a file that must not exist, now or at the commit.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`] if the name is taken, if only by a dangling symbolic link; otherwise as [`Self::create`].
    ///
    /// # Examples
    ///
    /// ```
    /// use durable_file::{ErrorKind, Replacement};
    ///
    /// # let path = std::env::temp_dir().join(format!("durable-file-create-new-{}", std::process::id()));
    /// Replacement::create_new(&path)?.commit()?;
    /// let error = Replacement::create_new(&path).expect_err("it exists by now");
    /// assert_eq!(error.kind(), ErrorKind::Exists);
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn create_new(path: &Path) -> Result<Self, Error> {
        Self::begin(Target::literal(path)?, Existing::Refuse)
    }

    fn begin(target: Target, existing: Existing) -> Result<Self, Error> {
        let fail = |operation| {
            let shown = &target.shown;
            move |source| Error::io(operation, shown, source)
        };
        let folder = Arc::new(Folder::open(&target.folder).map_err(fail(Operation::OpenFolder))?);
        let old = folder.entry(&target.name).map_err(fail(Operation::Inspect))?;
        existing.check(old.as_ref(), &target)?;
        let stem = stem(&target.name);
        sweep_files(&folder, &stem, &target.name);
        let pass = registry::enter();
        let (temp, new) = Temp::create(&folder, &stem, &pass).map_err(fail(Operation::CreateTemp))?;
        Ok(Self { target, temp, access: old.unwrap_or(new), existing, incomplete: false })
    }

    /// The file being written, for what [`Write`] and [`Seek`] do not offer.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.temp.file
    }

    /// Where the content will be: the end of all symbolic links, absolute.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.target.folder.join(&self.target.name)
    }

    /// Makes this crate's error of one that writing returned.
    #[must_use]
    pub fn write_error(&self, source: io::Error) -> Error {
        Error::io(Operation::Write, &self.target.shown, source)
    }

    /// Syncs the content and puts it in place; after success it survives a power cut.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Incomplete`] if a write failed before.
    /// - [`ErrorKind::Exists`] after [`Self::create_new`], if the name was taken meanwhile.
    /// - [`ErrorKind::NotRegular`] if the target was replaced by something else meanwhile.
    /// - [`ErrorKind::Io`] if the operating system refused a step.
    ///
    /// After each of these the old file is in place, byte for byte, and no temp is left. Only
    /// [`ErrorKind::Unconfirmed`] means that the new content is in place without being certain to stay.
    pub fn commit(mut self) -> Result<(), Error> {
        let now = self.ready()?;
        self.temp.file.sync_all().map_err(|e| self.fail(Operation::SyncFile, e))?;
        let pass = registry::enter();
        if now.is_some() {
            // The name of the temp shows sweepers that the backup is in use.
            self.name_temp(&pass)?;
        }
        let way_back = now.and_then(|_| WayBack::create(&self.temp, &self.target.name));
        self.place(&pass)?;
        if let Err(source) = self.temp.folder.sync() {
            return Err(if self.go_back(way_back.as_ref(), now.is_some()) {
                self.fail(Operation::SyncFolder, source)
            } else {
                registry::placed(&pass, self.path());
                Error::unconfirmed(&self.target.shown, source)
            });
        }
        registry::placed(&pass, self.path());
        Ok(())
    }

    /// Puts the content in place without waiting for the medium: whole for every program whatever happens to this
    /// one, but a power cut soon afterwards may leave the old file, the new one or, on some file systems, a damaged one.
    ///
    /// # Errors
    ///
    /// As [`Self::commit`] but for [`ErrorKind::Unconfirmed`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Write as _;
    ///
    /// # let path = std::env::temp_dir().join(format!("durable-file-unsynced-{}", std::process::id()));
    /// let mut replacement = durable_file::Replacement::create(&path)?;
    /// replacement.write_all(b"a copy of another file")?;
    /// replacement.commit_unsynced()?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn commit_unsynced(mut self) -> Result<(), Error> {
        self.ready()?;
        let pass = registry::enter();
        self.place(&pass)?;
        registry::placed(&pass, self.path());
        Ok(())
    }

    /// Gives the temp its access rights and returns what it replaces.
    fn ready(&self) -> Result<Option<Entry>, Error> {
        if self.incomplete {
            return Err(Error::new(ErrorKind::Incomplete, &self.target.shown));
        }
        let now = self.temp.folder.entry(&self.target.name).map_err(|e| self.fail(Operation::Inspect, e))?;
        self.existing.check(now.as_ref(), &self.target)?;
        let access = now.unwrap_or(self.access);
        access.impose_access(&self.temp.file).map_err(|e| self.fail(Operation::SetAccess, e))?;
        Ok(now)
    }

    /// Sees to it that the temp has a name.
    fn name_temp(&mut self, pass: &Pass) -> Result<(), Error> {
        self.temp.give_name(pass).map_err(|e| self.fail(Operation::CreateTemp, e))
    }

    /// Gives the temp its final name.
    fn place(&mut self, pass: &Pass) -> Result<(), Error> {
        if self.temp.is_unnamed() && self.temp.link(&self.target.name).is_ok() {
            return Ok(());
        }
        // Something is there, or the link was refused: the steps below find out.
        self.name_temp(pass)?;
        let (temp, name) = (self.temp.name.to_os_string(), &self.target.name);
        let placed = match self.existing {
            Existing::Replace => self.temp.folder.rename(&temp, name),
            Existing::Refuse => self.temp.folder.place_file(&temp, name),
        };
        placed.or_else(|error| match error.kind() {
            // A network file system may repeat a completed request and report the second result.
            _ if self.temp.is_at(name).unwrap_or(false) => Ok(()),
            io::ErrorKind::AlreadyExists => Err(Error::new(ErrorKind::Exists, &self.target.shown)),
            _ => Err(self.fail(Operation::Rename, error)),
        })
    }

    /// Undoes [`Self::place`]; whether the new content is out of place.
    fn go_back(&self, way_back: Option<&WayBack>, had_old: bool) -> bool {
        let (folder, name) = (&self.temp.folder, &self.target.name);
        match self.temp.is_at(name) {
            Ok(true) => match way_back {
                Some(way_back) => folder.rename(&way_back.name, name).is_ok(),
                None => !had_old && folder.remove(name).is_ok(),
            },
            // Another writer was faster; its file is kept.
            Ok(false) => true,
            Err(_) => false,
        }
    }

    fn fail(&self, operation: Operation, source: io::Error) -> Error {
        Error::io(operation, &self.target.shown, source)
    }
}

impl Existing {
    /// Refuses what may not be replaced.
    fn check(self, found: Option<&Entry>, target: &Target) -> Result<(), Error> {
        let kind = match (self, found) {
            (_, None) => return Ok(()),
            (Self::Refuse, Some(_)) => ErrorKind::Exists,
            (Self::Replace, Some(entry)) => match entry.irregular() {
                None => return Ok(()),
                Some(what) => ErrorKind::NotRegular { what },
            },
        };
        Err(Error::new(kind, &target.shown))
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.temp.file.write(bytes);
        match &written {
            Ok(0) if !bytes.is_empty() => self.incomplete = true,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => self.incomplete = true,
            _ => {}
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.file.flush()
    }
}

impl Seek for Replacement {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.temp.file.seek(to)
    }
}

/// A second link to the old file, kept while the commit may still have to put it back. It lives within one [`Pass`].
struct WayBack {
    folder: Arc<Folder>,
    name: OsString,
}

impl WayBack {
    /// `None` where the file system has no hard links or does not let us make one.
    fn create(temp: &Temp, target: &OsStr) -> Option<Self> {
        let name = temp.name.with_role(Role::Old).to_os_string();
        temp.folder.link(target, &name).is_ok().then(|| Self { folder: Arc::clone(&temp.folder), name })
    }
}

impl Drop for WayBack {
    fn drop(&mut self) {
        discard(&self.folder, &self.name);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;
    use crate::test_folder::TestFolder;

    /// A replacement ready to be placed.
    fn written(path: &Path) -> Replacement {
        let mut replacement = Replacement::create(path).expect("the folder is there");
        replacement.write_all(b"new").expect("the disk has space");
        replacement
    }

    fn place(replacement: &mut Replacement) -> Result<(), Error> {
        replacement.place(&registry::enter())
    }

    fn way_back(replacement: &mut Replacement) -> Option<WayBack> {
        replacement.name_temp(&registry::enter()).expect("the folder is there");
        WayBack::create(&replacement.temp, &replacement.target.name)
    }

    #[test]
    fn after_the_rename_the_way_back_leads_to_the_old_file() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        fs::write(&path, "old").unwrap();
        let mut replacement = written(&path);
        let way_back = way_back(&mut replacement);
        place(&mut replacement).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(replacement.go_back(way_back.as_ref(), true));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(way_back);
        drop(replacement);
        assert_eq!(scratch.names(), ["m.bin"]);
    }

    #[test]
    fn where_nothing_was_the_way_back_removes() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        let mut replacement = written(&path);
        assert!(way_back(&mut replacement).is_none());
        place(&mut replacement).unwrap();
        assert!(replacement.go_back(None, false));
        assert!(!path.exists());
    }

    #[test]
    fn a_rename_that_was_carried_out_but_reported_as_failed_counts() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        let mut replacement = written(&path);
        replacement.name_temp(&registry::enter()).unwrap();
        fs::rename(scratch.path().join(replacement.temp.name.to_os_string()), &path).unwrap();
        replacement.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_temp_that_was_taken_away_is_an_error_and_the_old_file_stays() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        fs::write(&path, "old").unwrap();
        let mut replacement = written(&path);
        replacement.name_temp(&registry::enter()).unwrap();
        fs::remove_file(scratch.path().join(replacement.temp.name.to_os_string())).unwrap();
        let error = replacement.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io { operation: Operation::Rename });
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(scratch.names(), ["m.bin"]);
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_known_to_be_undone() {
        let scratch = TestFolder::new();
        let mut replacement = written(&scratch.path().join("m.bin"));
        replacement.target.name = "longer than any file system allows".repeat(100).into();
        assert!(!replacement.go_back(None, false));
    }

    #[test]
    fn without_a_way_back_the_new_content_stays() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        fs::write(&path, "old").unwrap();
        let mut replacement = written(&path);
        place(&mut replacement).unwrap();
        assert!(!replacement.go_back(None, true));
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn what_another_writer_put_in_place_is_not_undone() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("m.bin");
        fs::write(&path, "old").unwrap();
        let mut replacement = written(&path);
        let way_back = way_back(&mut replacement);
        place(&mut replacement).unwrap();
        write(&path, b"newer").unwrap();
        assert!(replacement.go_back(way_back.as_ref(), true));
        drop(way_back);
        drop(replacement);
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        assert_eq!(scratch.names(), ["m.bin"]);
    }
}
