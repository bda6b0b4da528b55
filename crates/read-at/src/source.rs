//! The trait, and its implementations for memory and pointers.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use crate::error::{Error, ErrorKind};

/// Bytes of known length that can be read at any offset: memory, a file, a mapped file, a range of a remote object.
///
/// Readers validate or authenticate what they read. A source whose bytes change while they are read leads to errors, not to wrong data.
pub trait ReadAt {
    /// Length of the source in bytes; does not change.
    fn total_len(&self) -> u64;

    /// Fills all of `out` with the bytes that begin at `offset`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] beyond the end; [`ErrorKind::Missing`] if the bytes have not arrived yet; [`ErrorKind::Source`]
    /// (see [`Error::from_source`]) if reading fails. The contents of `out` are unspecified then.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error>;

    /// Says that a range will be read from its beginning to its end, in pieces: a source that fetches its bytes can fetch exactly these.
    /// Others do nothing.
    fn will_read(&self, range: Range<u64>) {
        let _ = range;
    }

    /// All bytes of the source if they are in memory, so that readers can borrow instead of copy.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }

    /// The open file that the bytes are those of, which several threads can read.
    #[cfg(feature = "std")]
    fn as_file(&self) -> Option<&crate::FileSource> {
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

macro_rules! forward_to_target {
    ($($pointer:ty),*) => {
        $(impl<R: ReadAt + ?Sized> ReadAt for $pointer {
            fn total_len(&self) -> u64 {
                (**self).total_len()
            }

            fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
                (**self).read_exact_at(offset, out)
            }

            fn will_read(&self, range: Range<u64>) {
                (**self).will_read(range);
            }

            fn in_memory(&self) -> Option<&[u8]> {
                (**self).in_memory()
            }

            #[cfg(feature = "std")]
            fn as_file(&self) -> Option<&crate::FileSource> {
                (**self).as_file()
            }
        })*
    };
}

forward_to_target!(&R, Box<R>, Rc<R>, Arc<R>);

/// For a cache that is filled between reads: `Rc<RefCell<CachedPages>>` is held by the reader and by the code that adds bytes.
///
/// # Panics
///
/// If the cell is mutably borrowed while a reader reads.
impl<R: ReadAt + ?Sized> ReadAt for RefCell<R> {
    fn total_len(&self) -> u64 {
        self.borrow().total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.borrow().read_exact_at(offset, out)
    }

    fn will_read(&self, range: Range<u64>) {
        self.borrow().will_read(range);
    }
}

#[cold]
fn out_of_range(offset: u64, len: usize, available: u64) -> Error {
    ErrorKind::OutOfRange { offset, len: len as u64, available }.into()
}

/// Checks that `len` bytes at `offset` are within `available` bytes; for implementations of [`ReadAt`].
///
/// # Errors
///
/// [`ErrorKind::OutOfRange`].
pub fn check_range(offset: u64, len: usize, available: u64) -> Result<(), Error> {
    let end = offset.checked_add(len as u64);
    if end.is_some_and(|end| end <= available) { Ok(()) } else { Err(out_of_range(offset, len, available)) }
}
