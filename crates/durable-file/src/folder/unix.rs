//! Unix: every name is looked up relative to the open folder, so that renaming the folder does not redirect a save.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Dir, FileType, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::{Errno, retry_on_intr};

use super::Access;
use crate::error::FileKind;

/// For opening what may be something else than it looks: never waits, never becomes a controlling terminal.
const CAUTIOUS: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The mode of a file while it is written.
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
/// Read and write access for everyone: the mode of new files before the umask is applied.
const ANYONE: Mode = Mode::from_raw_mode(0o666);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder, following symbolic links.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = retry_on_intr(|| fs::open(path, flags, Mode::empty()))?;
        Ok(Self { handle: handle.into(), path: path.to_path_buf() })
    }

    /// Opens a folder in this one, never through a symbolic link.
    pub(crate) fn open_folder(&self, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = retry_on_intr(|| fs::openat(&self.handle, name, flags, Mode::empty()))?;
        Ok(Self { handle: handle.into(), path: self.path.join(name) })
    }

    /// Locks the folder itself for as long as it is open.
    pub(crate) fn try_lock(&self) -> Result<(), TryLockError> {
        self.handle.try_lock()
    }

    /// The state of the open folder.
    pub(crate) fn own_entry(&self) -> io::Result<Entry> {
        Entry::of(&self.handle)
    }

    /// How the folder was named when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The state of a name, without following a symbolic link; `None` if it does not exist.
    pub(crate) fn entry(&self, name: &OsStr) -> io::Result<Option<Entry>> {
        match fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Entry(stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Creates a file for writing and reading that did not exist and that only its owner can open.
    pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
        self.create_with(name, OWNER_ONLY)
    }

    fn create_with(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(retry_on_intr(|| fs::openat(&self.handle, name, flags, mode))?.into())
    }

    /// The access rights of any new file in this folder, found out with an empty one that goes again. Only the kernel
    /// knows them: of the umask, or of defaults that the folder has.
    pub(crate) fn default_access(&self, name: &OsStr) -> io::Result<Entry> {
        let found = Entry::of(&self.create_with(name, ANYONE)?);
        match self.remove(name) {
            // A sweeper was faster.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => found,
        }
    }

    /// Creates a file without a name, which [`Self::link_open`] can give it, and the access rights of any new file. No one
    /// else can open it. `None` where that is not possible: file systems without such files, no `/proc`.
    #[cfg(target_os = "linux")]
    pub(crate) fn create_unnamed(&self) -> Option<(File, Entry)> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file: File = retry_on_intr(|| fs::openat(&self.handle, ".", flags, ANYONE)).ok()?.into();
        let access = Entry::of(&file).ok()?;
        fs::fchmod(&file, OWNER_ONLY).ok()?;
        let behind = Entry::behind(&Self::path_of_open(&file)).ok()?;
        (behind.same_file(&access) == Some(true)).then_some((file, access))
    }

    /// Other systems have no such files.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn create_unnamed(&self) -> Option<(File, Entry)> {
        None
    }

    /// The path of an open file for this process, whatever its name is.
    pub(crate) fn path_of_open(file: &File) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    /// Gives an open file without a name its first one, never one that exists.
    pub(crate) fn link_open(&self, file: &File, name: &OsStr) -> io::Result<()> {
        let path = Self::path_of_open(file);
        Ok(fs::linkat(fs::CWD, &path, &self.handle, name, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Opens a name without following a symbolic link and without blocking, in order to lock or sync it. For writing if
    /// possible: some network file systems lock nothing else exclusively.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = CAUTIOUS | OFlags::NOFOLLOW;
        let open = |access| retry_on_intr(|| fs::openat(&self.handle, name, flags | access, Mode::empty()));
        let opened = match open(OFlags::RDWR) {
            Err(Errno::ACCESS) => open(OFlags::RDONLY),
            other => other,
        };
        Ok(opened?.into())
    }

    /// Makes a folder that did not exist.
    pub(crate) fn create_folder(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::mkdirat(&self.handle, name, Mode::RWXU | Mode::RWXG | Mode::RWXO)?)
    }

    /// Renames a file over whatever is there.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    /// Renames a file into another folder, replacing a file of that name.
    pub(crate) fn rename_into(&self, from: &OsStr, folder: &Self, to: &OsStr) -> io::Result<()> {
        Ok(fs::renameat(&self.handle, from, &folder.handle, to)?)
    }

    /// Gives a file a second name, never one that exists.
    pub(crate) fn link(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?)
    }

    /// Gives a file its final name, never one that exists. The old name may stay.
    pub(crate) fn place_file(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_exclusively(from, to) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.link(from, to),
            result => Ok(result?),
        }
    }

    /// Gives a folder its final name, never one that exists.
    pub(crate) fn place_folder(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        match self.rename_exclusively(from, to) {
            // Without the flag: the kernel refuses to rename a folder over a file or over a folder that holds
            // anything, so all that can be lost is an empty folder that another process created at this moment.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.rename(from, to),
            result => Ok(result?),
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn rename_exclusively(&self, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
        fs::renameat_with(&self.handle, from, &self.handle, to, fs::RenameFlags::NOREPLACE)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn rename_exclusively(&self, _: &OsStr, _: &OsStr) -> Result<(), Errno> {
        Err(Errno::NOSYS)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// The names in the folder, in the order of the file system.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_os_string());
            }
        }
        Ok(names)
    }

    /// Brings the names to the medium, as far as the file system can do that for folders at all.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.handle.sync_all().or_else(|error| match Errno::from_io_error(&error) {
            Some(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(()),
            _ => Err(error),
        })
    }
}

/// The state of a name or an open file at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(Stat);

impl Entry {
    /// Of an open file.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self(fs::fstat(file)?))
    }

    /// At the end of a path, following symbolic links.
    pub(crate) fn behind(path: &Path) -> io::Result<Self> {
        Ok(Self(fs::stat(path)?))
    }

    /// Whether both are one and the same file; `None` where that cannot be known.
    pub(crate) fn same_file(&self, other: &Self) -> Option<bool> {
        Some((self.0.st_dev, self.0.st_ino) == (other.0.st_dev, other.0.st_ino))
    }

    /// Length in bytes.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }

    /// `None` for a regular file.
    pub(crate) fn irregular(&self) -> Option<FileKind> {
        match FileType::from_raw_mode(self.0.st_mode) {
            FileType::RegularFile => None,
            FileType::Directory => Some(FileKind::Directory),
            FileType::Symlink => Some(FileKind::Symlink),
            FileType::Fifo => Some(FileKind::Fifo),
            FileType::Socket => Some(FileKind::Socket),
            FileType::CharacterDevice => Some(FileKind::CharDevice),
            FileType::BlockDevice => Some(FileKind::BlockDevice),
            FileType::Unknown => Some(FileKind::Other),
        }
    }

    /// Gives `file` the owner, group and mode of this entry, as far as the process may, and never more readers.
    pub(crate) fn impose_access(&self, file: &File) -> io::Result<()> {
        let new = fs::fstat(file)?;
        if (new.st_uid, new.st_gid) != (self.0.st_uid, self.0.st_gid) {
            let group = Some(Gid::from_raw(self.0.st_gid));
            // Only root may give files away, but a member of the group may keep the group.
            if !allowed(fs::fchown(file, Some(Uid::from_raw(self.0.st_uid)), group))? {
                allowed(fs::fchown(file, None, group))?;
            }
        }
        let new = fs::fstat(file)?;
        let mut mode = Mode::from_raw_mode(self.0.st_mode);
        if new.st_uid != self.0.st_uid {
            mode.remove(Mode::SUID);
        }
        if new.st_gid != self.0.st_gid {
            let others = mode & Mode::RWXO;
            mode.remove(Mode::SGID | (Mode::RWXG - Mode::from_raw_mode(others.bits() << 3)));
        }
        Ok(fs::fchmod(file, mode)?)
    }
}

/// Distinguishes missing permission (also an owner outside of this user namespace) from failures.
fn allowed(result: Result<(), Errno>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Opens, following symbolic links; a named pipe or a terminal does not keep us waiting.
pub(crate) fn open_without_waiting(path: &Path, access: Access) -> io::Result<File> {
    let flags = match access {
        Access::Read => OFlags::RDONLY,
        Access::Update => OFlags::RDWR,
    };
    Ok(retry_on_intr(|| fs::open(path, CAUTIOUS | flags, Mode::empty()))?.into())
}

/// Whether the kernel gave up on symbolic links.
pub(crate) fn is_link_loop(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::LOOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn not_being_allowed_is_no_failure() {
        assert!(allowed(Ok(())).unwrap());
        for errno in [Errno::PERM, Errno::INVAL, Errno::NOSYS, Errno::NOTSUP] {
            assert!(!allowed(Err(errno)).unwrap());
        }
        assert_eq!(allowed(Err(Errno::IO)).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    }
}
