//! Opens and reads regular files only, up to the caller's limit.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Operation};
use crate::folder::{Access, Entry, open_without_waiting};

/// Opens a regular file of at most `max_len` bytes for reading.
///
/// Symbolic links are followed. A named pipe, a device, a socket or a directory is refused within milliseconds: it is
/// opened without waiting, and nothing is read from it.
///
/// # Errors
///
/// [`ErrorKind::NotRegular`], [`ErrorKind::TooLarge`], or [`ErrorKind::Io`] if the operating system refuses.
///
/// # Examples
///
/// ```
/// # let path = std::env::temp_dir().join(format!("durable-file-open-{}", std::process::id()));
/// durable_file::write(&path, b"12345")?;
/// assert_eq!(durable_file::open_regular(&path, 5)?.len(), 5);
///
/// let error = durable_file::open_regular(&path, 4).expect_err("one byte too many");
/// assert_eq!(error.code(), "df-too-large");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn open_regular(path: &Path, max_len: u64) -> Result<RegularFile, Error> {
    open(path, max_len, Access::Read)
}

/// Opens a regular file for reading and for writing into it, with the checks of [`open_regular`]: one call opens it, and what
/// was opened is what is looked at, so that no other file can take its place in between. What is written is not durable by itself.
///
/// # Errors
///
/// As [`open_regular`].
pub fn open_regular_for_update(path: &Path, max_len: u64) -> Result<RegularFile, Error> {
    open(path, max_len, Access::Update)
}

fn open(path: &Path, max_len: u64, access: Access) -> Result<RegularFile, Error> {
    let refuse = |kind| Err(Error::new(kind, path));
    let check = |entry: &Entry| match entry.irregular() {
        Some(what) => Err(Error::new(ErrorKind::NotRegular { what }, path)),
        None => Ok(()),
    };
    let file = match open_without_waiting(path, access) {
        Ok(file) => file,
        Err(error) => {
            // What cannot be opened, such as a socket, is still called by its name.
            Entry::behind(path).map_or(Ok(()), |entry| check(&entry))?;
            return Err(Error::io(Operation::Open, path, error));
        }
    };
    let entry = Entry::of(&file).map_err(|error| Error::io(Operation::Inspect, path, error))?;
    check(&entry)?;
    let len = entry.len();
    if len > max_len {
        return refuse(ErrorKind::TooLarge { len, max: max_len });
    }
    Ok(RegularFile { file, path: path.to_path_buf(), len, max_len })
}

/// Reads a whole regular file of at most `max_len` bytes.
///
/// # Errors
///
/// As [`open_regular`]; [`ErrorKind::Changed`] if the file grew or shrank meanwhile, [`ErrorKind::OutOfMemory`] if its
/// content does not fit into memory.
///
/// # Examples
///
/// ```
/// # let path = std::env::temp_dir().join(format!("durable-file-read-{}", std::process::id()));
/// durable_file::write(&path, b"content")?;
/// assert_eq!(durable_file::read(&path, 1 << 20)?, b"content");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn read(path: &Path, max_len: u64) -> Result<Vec<u8>, Error> {
    open_regular(path, max_len)?.into_bytes()
}

/// An open file that was a regular one of acceptable length when it was opened.
#[derive(Debug)]
pub struct RegularFile {
    file: File,
    path: PathBuf,
    len: u64,
    max_len: u64,
}

impl RegularFile {
    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Length in bytes when it was opened. Files under `/proc` report 0 although they have content.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the length was 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Gives up the checks and keeps the file.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Reads from the current position, which is the start unless [`Self::file`] was used to move it, to the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Changed`], [`ErrorKind::OutOfMemory`], [`ErrorKind::Io`]; [`ErrorKind::TooLarge`] for a file
    /// that reported 0 and has more than the limit.
    ///
    /// # Examples
    ///
    /// ```
    /// # let path = std::env::temp_dir().join(format!("durable-file-bytes-{}", std::process::id()));
    /// durable_file::write(&path, b"content")?;
    /// assert_eq!(durable_file::open_regular(&path, 100)?.into_bytes()?, b"content");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn into_bytes(self) -> Result<Vec<u8>, Error> {
        let Self { file, path, len, max_len } = self;
        let mut bytes = Vec::new();
        let known = len > 0;
        // One byte more than there should be, to notice growth.
        let limit = if known { len } else { max_len }.saturating_add(1);
        if known {
            let no_memory = || Error::new(ErrorKind::OutOfMemory { len }, &path);
            let capacity = usize::try_from(limit).map_err(|_| no_memory())?;
            bytes.try_reserve_exact(capacity).map_err(|_| no_memory())?;
        }
        file.take(limit).read_to_end(&mut bytes).map_err(|error| Error::io(Operation::Read, &path, error))?;
        let found = bytes.len() as u64;
        if known && found != len {
            Err(Error::new(ErrorKind::Changed { expected: len, found }, &path))
        } else if found > max_len {
            Err(Error::new(ErrorKind::TooLarge { len: found, max: max_len }, &path))
        } else {
            Ok(bytes)
        }
    }
}
