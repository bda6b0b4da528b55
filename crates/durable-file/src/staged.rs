//! A folder that appears atomically.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation};
use crate::folder::Folder;
use crate::registry::{self, Registration, Unfinished};
use crate::sweep::{claim, sweep_folders};
use crate::target::Target;
use crate::temp_name::{Role, TempName, stem};

/// As for files: see `Temp`.
const ATTEMPTS: u32 = 64;

/// A folder being filled, on its way to its final name.
///
/// Create files and folders below [`path`](Self::path), then [`commit`](Self::commit). Until then, and after any error,
/// the final name does not exist; dropping removes everything.
///
/// ```
/// # let base = std::env::temp_dir().join(format!("durable-file-staged-{}", std::process::id()));
/// # std::fs::create_dir_all(&base)?;
/// let step = base.join("step_100");
/// let staged = durable_file::StagedDir::create(&step)?;
/// std::fs::write(staged.path().join("model.bin"), b"weights")?;
/// std::fs::write(staged.path().join("meta.json"), b"{}")?;
/// assert!(!step.exists());
/// staged.commit()?;
/// assert_eq!(std::fs::read(step.join("model.bin"))?, b"weights");
/// # std::fs::remove_dir_all(&base)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StagedDir {
    target: Target,
    parent: Folder,
    name: OsString,
    /// Holds the lock.
    staged: Folder,
    /// `None` once the folder has its final name.
    registration: Option<Registration>,
}

impl StagedDir {
    /// Makes an empty folder beside `final_path`, which must not exist.
    ///
    /// Removes what killed processes left of such folders in the same parent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exists`] if the name is taken, [`ErrorKind::NoFileName`] or [`ErrorKind::ReservedName`] for such
    /// paths, [`ErrorKind::Io`] if the parent cannot be opened or nothing can be created in it.
    pub fn create(final_path: &Path) -> Result<Self, Error> {
        let target = Target::literal(final_path)?;
        let fail = |operation| move |source| Error::io(operation, final_path, source);
        let parent = Folder::open(&target.folder).map_err(fail(Operation::OpenFolder))?;
        refuse_existing(&parent, &target)?;
        sweep_folders(&parent);
        let pass = registry::enter();
        let (name, staged) = stage(&parent, &stem(&target.name)).map_err(fail(Operation::CreateTemp))?;
        let unfinished = Unfinished::Folder { path: staged.path().to_path_buf() };
        let registration = Some(Registration::new(&pass, unfinished));
        Ok(Self { target, parent, name, staged, registration })
    }

    /// The folder to fill.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.staged.path()
    }

    /// Brings everything below to the medium and gives the folder its final name; after success it survives a power
    /// cut.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::NotRegular`], with the path of the culprit, if something below is neither a regular file nor a
    ///   folder.
    /// - [`ErrorKind::Exists`] if the final name was taken meanwhile.
    /// - [`ErrorKind::Io`] if the operating system refused a step.
    ///
    /// After each of these the staged folder is gone and the final name is as it was. Only
    /// [`ErrorKind::Unconfirmed`] means that the folder has its final name without being certain to keep it.
    pub fn commit(mut self) -> Result<(), Error> {
        refuse_existing(&self.parent, &self.target)?;
        sync_tree(&self.staged)?;
        let pass = registry::enter();
        self.place()?;
        let shown = &self.target.shown;
        let synced = self.parent.sync().map_err(|error| {
            if self.parent.rename(&self.target.name, &self.name).is_ok() {
                Error::io(Operation::SyncFolder, shown, error)
            } else {
                Error::unconfirmed(shown, error)
            }
        });
        if synced.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::Unconfirmed) {
            self.registration = None;
            registry::placed(&pass, self.target.folder.join(&self.target.name));
        }
        synced
    }

    /// Gives the folder its final name.
    fn place(&self) -> Result<(), Error> {
        let shown = &self.target.shown;
        self.parent.place_folder(&self.name, &self.target.name).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists
            | io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::NotADirectory => Error::new(ErrorKind::Exists, shown),
            _ => Error::io(Operation::Rename, shown, error),
        })
    }
}

impl Drop for StagedDir {
    /// Removes the folder unless it got its final name: no other process uses the temporary one.
    fn drop(&mut self) {
        remove_tree(self.staged.path());
    }
}

fn refuse_existing(parent: &Folder, target: &Target) -> Result<(), Error> {
    match parent.entry(&target.name) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(Error::new(ErrorKind::Exists, &target.shown)),
        Err(error) => Err(Error::io(Operation::Inspect, &target.shown, error)),
    }
}

/// Makes and locks a folder with a temporary name.
fn stage(parent: &Folder, stem: &str) -> io::Result<(OsString, Folder)> {
    for _ in 0..ATTEMPTS {
        let name = TempName::fresh(stem.to_owned(), Role::Folder).to_os_string();
        match parent.create_folder(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            result => result?,
        }
        let claimed = parent.open_folder(&name).and_then(|staged| {
            let entry = staged.own_entry()?;
            Ok(claim(parent, &name, &entry, staged.try_lock())?.then_some(staged))
        });
        match claimed {
            Ok(Some(staged)) => return Ok((name, staged)),
            // A sweeper was here between creation and lock, and has removed or is removing the folder.
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                remove_tree(&parent.path().join(&name));
                return Err(error);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Brings every file and folder below to the medium, deepest first.
fn sync_tree(folder: &Folder) -> Result<(), Error> {
    let list = |error| Error::io(Operation::OpenFolder, folder.path(), error);
    for name in folder.names().map_err(list)? {
        let path: PathBuf = folder.path().join(&name);
        let fail = |operation| {
            let path = &path;
            move |error| Error::io(operation, path, error)
        };
        // A name that vanished between listing and here needs no sync; opening it reports that.
        let entry = folder.entry(&name).map_err(fail(Operation::Inspect))?;
        match entry.and_then(|entry| entry.irregular()) {
            None => {
                let file = folder.open_file(&name).map_err(fail(Operation::Open))?;
                file.sync_all().map_err(fail(Operation::SyncFile))?;
            }
            Some(crate::FileKind::Directory) => {
                sync_tree(&folder.open_folder(&name).map_err(fail(Operation::OpenFolder))?)?;
            }
            Some(what) => return Err(Error::new(ErrorKind::NotRegular { what }, &path)),
        }
    }
    folder.sync().map_err(|error| Error::io(Operation::SyncFolder, folder.path(), error))
}

/// With a second try, as for files.
fn remove_tree(path: &Path) {
    if fs::remove_dir_all(path).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_folder::TestFolder;

    #[test]
    fn a_name_taken_in_the_last_moment_is_refused() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("step");
        let staged = StagedDir::create(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), "old").unwrap();
        assert_eq!(staged.place().unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(fs::read(path.join("file")).unwrap(), b"old");
    }

    #[test]
    fn what_cannot_be_removed_is_tried_twice_and_left() {
        let scratch = TestFolder::new();
        let path = scratch.path().join("file");
        fs::write(&path, "no folder").unwrap();
        remove_tree(&path.join("below"));
        assert!(path.exists());
        remove_tree(&scratch.path().join("none"));
    }
}
