//! Open files as sources.

use std::fs::File;
use std::io;

use crate::error::{Error, ErrorKind};
use crate::source::{ReadAt, check_range};

/// An open file as a source. Its length is the one it had when the source was created.
///
/// Reads use offsets of their own where the system has them, on Unix and Windows: any number of threads can read at once. Elsewhere
/// a lock guards the cursor.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("read-at-doc-{}", std::process::id()));
/// # std::fs::write(&path, b"weights").unwrap();
/// use read_at::{FileSource, ReadAt};
///
/// let source = FileSource::new(std::fs::File::open(&path).unwrap())?;
/// assert_eq!(source.total_len(), 7);
/// # let mut out = [0; 2];
/// # source.read_exact_at(5, &mut out)?;
/// # assert_eq!(&out, b"ts");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), read_at::Error>(())
/// ```
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
    #[cfg(not(any(unix, windows)))]
    cursor: std::sync::Mutex<()>,
}

impl FileSource {
    /// Takes ownership of an open file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRegular`] for a directory, pipe or device; [`ErrorKind::Source`] if its length cannot be determined.
    pub fn new(file: File) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(Error::from_source)?;
        if !metadata.is_file() {
            return Err(ErrorKind::NotRegular.into());
        }
        Ok(Self::with_len(file, metadata.len()))
    }

    /// Takes ownership of a file that is known to be regular and to have `len` bytes.
    #[must_use]
    pub fn with_len(file: File, len: u64) -> Self {
        Self {
            file,
            len,
            #[cfg(not(any(unix, windows)))]
            cursor: std::sync::Mutex::default(),
        }
    }

    /// The file.
    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// Returns the file.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Fills `out` with the bytes that begin at `offset`, like [`ReadAt::read_exact_at`], with the error of the system.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] beyond the end of the file.
    #[cfg(unix)]
    pub fn read_file_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, out, offset)
    }

    /// Fills `out` with the bytes that begin at `offset`, like [`ReadAt::read_exact_at`], with the error of the system.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] beyond the end of the file.
    #[cfg(windows)]
    pub fn read_file_at(&self, mut offset: u64, mut out: &mut [u8]) -> io::Result<()> {
        while !out.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(&self.file, out, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    out = out.split_at_mut(read).1;
                    offset += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fills `out` with the bytes that begin at `offset`, like [`ReadAt::read_exact_at`], with the error of the system.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::UnexpectedEof`] beyond the end of the file.
    #[cfg(not(any(unix, windows)))]
    pub fn read_file_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        use std::io::{Read as _, Seek as _, SeekFrom};
        let _guard = self.cursor.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (&self.file).seek(SeekFrom::Start(offset))?;
        (&self.file).read_exact(out)
    }
}

impl ReadAt for FileSource {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.len)?;
        self.read_file_at(offset, out).map_err(Error::from_source)
    }

    fn as_file(&self) -> Option<&FileSource> {
        Some(self)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn devices_are_refused_and_files_that_shrink_are_errors() {
        let error = FileSource::new(File::open("/dev/zero").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotRegular);

        let path = std::env::temp_dir().join(std::format!("read-at-shrink-{}", std::process::id()));
        std::fs::write(&path, [7; 100]).unwrap();
        let source = FileSource::new(File::open(&path).unwrap()).unwrap();
        std::fs::write(&path, [7; 10]).unwrap();
        let mut out = [0; 20];
        assert_eq!(source.read_exact_at(0, &mut out).unwrap_err().kind(), ErrorKind::Source);
        let out_of_range = ErrorKind::OutOfRange { offset: 90, len: 20, available: 100 };
        assert_eq!(source.read_exact_at(90, &mut out).unwrap_err().kind(), out_of_range);
        source.read_exact_at(0, &mut out[..10]).unwrap();
        assert_eq!(out[..10], [7; 10]);
        std::fs::remove_file(&path).unwrap();
    }
}
