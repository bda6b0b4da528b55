//! A temporary file that never gets a final name.

use alloc::sync::Arc;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Operation};
use crate::folder::Folder;
use crate::registry;
use crate::sweep::sweep_files;
use crate::temp::Temp;

/// A file that only this process uses: readable by its owner alone, and removed on drop.
///
/// On Linux it has no name, so that nothing is left even of a killed process. Elsewhere the next scratch file with the
/// same name in the same folder removes what was left.
///
/// ```
/// use std::io::Write as _;
///
/// let mut scratch = durable_file::Scratch::create(&std::env::temp_dir(), "example")?;
/// scratch.write_all(b"read in any order")?;
/// assert_eq!(std::fs::read(scratch.path())?, b"read in any order");
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scratch {
    temp: Temp,
    path: PathBuf,
}

impl Scratch {
    /// Creates an empty file in `folder`; `stem` is the part of its name, where it has one, that describes its purpose.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) if the folder cannot be opened or nothing can be created in it.
    pub fn create(folder: &Path, stem: &str) -> Result<Self, Error> {
        let fail = |operation| move |source| Error::io(operation, folder, source);
        let pass = registry::enter();
        let opened = Arc::new(Folder::open(folder).map_err(fail(Operation::OpenFolder))?);
        sweep_files(&opened, stem, OsStr::new(stem));
        let (temp, _) = Temp::create(&opened, stem, &pass).map_err(fail(Operation::CreateTemp))?;
        let path = match temp.is_unnamed() {
            true => Folder::path_of_open(&temp.file),
            false => folder.join(temp.name.to_os_string()),
        };
        Ok(Self { temp, path })
    }

    /// Where this process can open it, while this lives.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file being written.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.temp.file
    }
}

impl Write for Scratch {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temp.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temp.file.flush()
    }
}
