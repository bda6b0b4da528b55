//! Systems without folder handles: the same steps through paths, without owners, modes and folder syncs.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::Access;
use crate::error::FileKind;

/// A folder, by name.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Something to lock: a folder cannot be opened as a file everywhere.
    lock: Option<File>,
    path: PathBuf,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if fs::metadata(path)?.is_dir() {
            Ok(Self { lock: File::open(path).ok(), path: path.to_path_buf() })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    pub(crate) fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        let path = self.path.join(name);
        match fs::symlink_metadata(&path)?.is_symlink() {
            true => Err(io::ErrorKind::NotADirectory.into()),
            false => Self::open(&path),
        }
    }

    pub(crate) fn try_lock(&self) -> Result<(), TryLockError> {
        match &self.lock {
            Some(file) => file.try_lock(),
            None => Err(TryLockError::Error(io::ErrorKind::Unsupported.into())),
        }
    }

    pub(crate) fn own_entry(&self) -> io::Result<Entry> {
        Entry::behind(&self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match fs::symlink_metadata(self.path.join(name)) {
            Ok(metadata) => Ok(Some(Entry::from(metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(self.path.join(name))
    }

    /// Modes are left alone.
    pub(crate) fn default_access(&self, _: &OsStr) -> io::Result<Entry> {
        Ok(Entry { irregular: None, len: 0 })
    }

    /// There are no files without names.
    pub(crate) fn create_unnamed(&self) -> Option<(File, Entry)> {
        None
    }

    pub(crate) fn path_of_open(_: &File) -> PathBuf {
        PathBuf::new()
    }

    pub(crate) fn link_open(&self, _: &File, _: &OsStr) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name))
    }

    pub(crate) fn create_folder(&self, name: &OsStr) -> io::Result<()> {
        fs::create_dir(self.path.join(name))
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(crate) fn rename_into(&self, from: &OsStr, folder: &Self, to: &OsStr) -> io::Result<()> {
        fs::rename(self.path.join(from), folder.path.join(to))
    }

    pub(crate) fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        fs::hard_link(self.path.join(from), self.path.join(to))
    }

    pub(crate) fn place_file(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.link(from, to)
    }

    pub(crate) fn place_folder(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.rename(from, to)
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        fs::read_dir(&self.path)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The state of a name or an open file at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    irregular: Option<FileKind>,
    len: u64,
}

impl From<fs::Metadata> for Entry {
    fn from(metadata: fs::Metadata) -> Self {
        let irregular = if metadata.is_file() {
            None
        } else if metadata.is_dir() {
            Some(FileKind::Directory)
        } else if metadata.is_symlink() {
            Some(FileKind::Symlink)
        } else {
            Some(FileKind::Other)
        };
        Self { irregular, len: metadata.len() }
    }
}

impl Entry {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(Self::from)
    }

    pub(crate) fn behind(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(Self::from)
    }

    /// Files have no identity here that the standard library would show.
    pub(crate) fn same_file(&self, _: &Self) -> Option<bool> {
        None
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn irregular(&self) -> Option<FileKind> {
        self.irregular
    }

    pub(crate) fn impose_access(&self, _: &File) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn open_without_waiting(path: &Path, access: Access) -> io::Result<File> {
    File::options().read(true).write(access == Access::Update).open(path)
}

pub(crate) fn is_link_loop(_: &io::Error) -> bool {
    false
}
