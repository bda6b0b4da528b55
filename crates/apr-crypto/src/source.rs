//! Where bytes come from: any source that can be read at a place.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};

/// Bytes of a known length, read at any place: memory, a file, a mapping, a range of a remote object.
///
/// What is read is not trusted: readers over a `ReadAt` authenticate every byte before they hand it on. A source whose
/// bytes change while they are read leads to errors, not to wrong data.
///
/// ```
/// use apr_crypto::ReadAt;
///
/// let bytes = b"weights".as_slice();
/// let mut out = [0; 4];
/// bytes.read_exact_at(3, &mut out)?;
/// assert_eq!(&out, b"ghts");
/// assert_eq!(bytes.read_exact_at(4, &mut out).unwrap_err().code(), "cy-range");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
pub trait ReadAt {
    /// Bytes there are; does not change.
    fn total_len(&self) -> u64;

    /// Fills all of `out` with the bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] beyond the end; [`ErrorKind::Source`] (see [`Error::wrap`]) if reading fails. What
    /// `out` holds then is not specified.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error>;

    /// All bytes of the source, where they lie in memory: they are opened from there, without a copy between.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }
}

impl ReadAt for [u8] {
    fn total_len(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let from = usize::try_from(offset).ok().and_then(|from| self.get(from..));
        let bytes = from.and_then(|rest| rest.get(..out.len()));
        out.copy_from_slice(bytes.ok_or_else(|| out_of_range(offset, out.len(), self.total_len()))?);
        Ok(())
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl ReadAt for Vec<u8> {
    fn total_len(&self) -> u64 {
        self.as_slice().total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.as_slice().read_exact_at(offset, out)
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(self)
    }
}

macro_rules! forwards {
    ($($pointer:ty),*) => {
        $(impl<R: ReadAt + ?Sized> ReadAt for $pointer {
            fn total_len(&self) -> u64 {
                (**self).total_len()
            }

            fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
                (**self).read_exact_at(offset, out)
            }

            fn in_memory(&self) -> Option<&[u8]> {
                (**self).in_memory()
            }
        })*
    };
}

forwards!(&R, Box<R>, Arc<R>);

/// A part of a source, as a source of its own.
///
/// ```
/// use apr_crypto::{ReadAt, Window};
///
/// let part = Window::new(b"header|payload".as_slice(), 7, 7)?;
/// let mut out = [0; 3];
/// part.read_exact_at(0, &mut out)?;
/// assert_eq!((&out, part.total_len()), (b"pay", 7));
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Window<R> {
    source: R,
    offset: u64,
    len: u64,
}

impl<R: ReadAt> Window<R> {
    /// The `len` bytes from `offset` on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if the source does not have them.
    pub fn new(source: R, offset: u64, len: u64) -> Result<Self, Error> {
        let available = source.total_len();
        if offset.checked_add(len).is_none_or(|end| end > available) {
            return Err(ErrorKind::OutOfRange { offset, len, available }.into());
        }
        Ok(Self { source, offset, len })
    }
}

impl<R: ReadAt> ReadAt for Window<R> {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.len)?;
        // The window lies within the source.
        self.source.read_exact_at(self.offset + offset, out)
    }

    fn in_memory(&self) -> Option<&[u8]> {
        let begin = usize::try_from(self.offset).ok()?;
        self.source.in_memory()?.get(begin..)?.get(..usize::try_from(self.len).ok()?)
    }
}

/// An open file as a source. Its length is the one it had when it was taken over.
///
/// ```
/// # let path = std::env::temp_dir().join(format!("apr-crypto-doc-{}", std::process::id()));
/// # std::fs::write(&path, b"weights").unwrap();
/// use apr_crypto::{FileSource, ReadAt};
///
/// let source = FileSource::new(std::fs::File::open(&path).unwrap())?;
/// assert_eq!(source.total_len(), 7);
/// # let mut out = [0; 2];
/// # source.read_exact_at(5, &mut out)?;
/// # assert_eq!(&out, b"ts");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[cfg(all(feature = "std", any(unix, windows)))]
#[derive(Debug)]
pub struct FileSource {
    file: std::fs::File,
    len: u64,
}

#[cfg(all(feature = "std", any(unix, windows)))]
impl FileSource {
    /// Takes a file over.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotRegular`] for a folder, pipe or device; [`ErrorKind::Source`] if its length cannot be had.
    pub fn new(file: std::fs::File) -> Result<Self, Error> {
        let metadata = file.metadata().map_err(|error| Error::wrap(ErrorKind::Source, error))?;
        if !metadata.is_file() {
            return Err(ErrorKind::NotRegular.into());
        }
        Ok(Self { file, len: metadata.len() })
    }
}

#[cfg(all(feature = "std", any(unix, windows)))]
impl ReadAt for FileSource {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.len)?;
        read_file_at(&self.file, offset, out).map_err(|error| Error::wrap(ErrorKind::Source, error))
    }
}

#[cfg(all(feature = "std", unix))]
fn read_file_at(file: &std::fs::File, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(all(feature = "std", windows))]
fn read_file_at(file: &std::fs::File, mut offset: u64, mut out: &mut [u8]) -> std::io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                out = out.split_at_mut(read).1;
                offset += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn out_of_range(offset: u64, len: usize, available: u64) -> Error {
    ErrorKind::OutOfRange { offset, len: len as u64, available }.into()
}

/// Whether `len` bytes from `offset` on lie within `available`.
pub(crate) fn check_range(offset: u64, len: usize, available: u64) -> Result<(), Error> {
    let end = offset.checked_add(len as u64);
    if end.is_some_and(|end| end <= available) { Ok(()) } else { Err(out_of_range(offset, len, available)) }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn reading_past_the_end_is_an_error() {
        let source = vec![1, 2, 3, 4];
        let window = Window::new(&source, 1, 2).unwrap();
        let places =
            [(0, 0, true), (0, 2, true), (2, 0, true), (2, 1, false), (3, 0, false), (u64::MAX, 1, false)];
        for (offset, len, fits) in places {
            assert_eq!(window.read_exact_at(offset, &mut vec![0; len]).is_ok(), fits, "{offset} {len}");
        }
        let mut out = [0; 2];
        Arc::new(Box::new(window)).read_exact_at(0, &mut out).unwrap();
        assert_eq!(out, [2, 3]);
        assert!(source.read_exact_at(u64::MAX, &mut [0]).is_err());
        assert!(source.read_exact_at(5, &mut []).is_err());
        for (offset, len) in [(0, 5), (5, 0), (u64::MAX, 2), (1, u64::MAX)] {
            let error = Window::new(&source, offset, len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfRange { offset, len, available: 4 });
        }
    }

    #[cfg(all(feature = "std", unix))]
    #[test]
    fn devices_are_no_sources_and_files_that_shrink_are_errors() {
        let error = FileSource::new(std::fs::File::open("/dev/zero").unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotRegular);

        let path = std::env::temp_dir().join(std::format!("apr-crypto-shrink-{}", std::process::id()));
        std::fs::write(&path, [7; 100]).unwrap();
        let source = FileSource::new(std::fs::File::open(&path).unwrap()).unwrap();
        std::fs::write(&path, [7; 10]).unwrap();
        let mut out = [0; 20];
        assert_eq!(source.read_exact_at(0, &mut out).unwrap_err().kind(), ErrorKind::Source);
        assert_eq!(source.read_exact_at(90, &mut out).unwrap_err().code(), "cy-range");
        source.read_exact_at(0, &mut out[..10]).unwrap();
        assert_eq!(out[..10], [7; 10]);
        std::fs::remove_file(&path).unwrap();
    }
}
