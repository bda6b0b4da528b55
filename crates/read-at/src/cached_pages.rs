//! The parts of a file that have arrived.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};
use crate::source::{ReadAt, check_range};

/// The parts of a file that have been fetched: a prefix, and ranges after it.
///
/// Reading a range that is not in the cache is [`ErrorKind::Missing`] with the range to fetch; [`missing_range`](crate::missing_range)
/// finds it in the error of a reader. The caller fetches the bytes, [inserts](Self::insert) them and calls the reader again: one
/// synchronous reader serves files in memory, on disk and of an asynchronous API.
///
/// ```
/// use read_at::{CachedPages, ErrorKind, ReadAt};
///
/// let mut pages = CachedPages::new(100);
/// let mut out = [0; 2];
/// let error = pages.read_exact_at(40, &mut out).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Missing { offset: 40, len: 2 });
/// pages.insert(32, &[7; 16])?;
/// pages.read_exact_at(40, &mut out)?;
/// assert_eq!(out, [7; 2]);
/// # Ok::<(), read_at::Error>(())
/// ```
#[derive(Debug)]
pub struct CachedPages {
    len: u64,
    prefix: Vec<u8>,
    /// Ranges after the prefix, in the order of their arrival.
    pages: Vec<(u64, Vec<u8>)>,
}

impl CachedPages {
    /// An empty cache of a file of `len` bytes.
    #[must_use]
    pub const fn new(len: u64) -> Self {
        Self { len, prefix: Vec::new(), pages: Vec::new() }
    }

    /// Adds the bytes that begin at `offset`. Bytes that continue the prefix extend it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if they end after the file; [`ErrorKind::OutOfMemory`].
    pub fn insert(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        check_range(offset, bytes.len(), self.len)?;
        let prefix_len = self.prefix.len() as u64;
        if offset <= prefix_len {
            let new = bytes.get((prefix_len - offset) as usize..).unwrap_or_default();
            append(&mut self.prefix, new)
        } else {
            let mut page = Vec::new();
            append(&mut page, bytes)?;
            self.pages.push((offset, page));
            Ok(())
        }
    }

    /// Drops every range but the prefix.
    pub fn clear_pages(&mut self) {
        self.pages = Vec::new();
    }

    /// Drops everything but the first `len` bytes, and releases the memory.
    pub fn truncate(&mut self, len: u64) {
        self.clear_pages();
        self.prefix.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        self.prefix.shrink_to_fit();
    }

    /// The bytes from the start of the file that have arrived.
    #[must_use]
    pub fn available_prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The first `len` bytes of the file, or all if it has fewer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Missing`] with the part of them that has not arrived.
    pub fn prefix(&self, len: u64) -> Result<&[u8], Error> {
        let (len, available) = (len.min(self.len), self.prefix.len() as u64);
        let prefix = usize::try_from(len).ok().and_then(|len| self.prefix.get(..len));
        prefix.ok_or_else(|| ErrorKind::Missing { offset: available, len: len - available }.into())
    }

    fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        fn within(start: u64, bytes: &[u8], offset: u64, len: usize) -> Option<&[u8]> {
            bytes.get(usize::try_from(offset.checked_sub(start)?).ok()?..)?.get(..len)
        }
        // One operation reads a handful of ranges, and its caller clears them afterwards.
        let mut pages = self.pages.iter().rev();
        within(0, &self.prefix, offset, len)
            .or_else(|| pages.find_map(|(start, page)| within(*start, page, offset, len)))
    }
}

/// Appends without spare capacity: a file that is fetched as a whole occupies its own length.
fn append(to: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Error> {
    let len = bytes.len();
    to.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory { len: len as u64 })?;
    to.extend_from_slice(bytes);
    Ok(())
}

impl ReadAt for CachedPages {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.len)?;
        let missing = || ErrorKind::Missing { offset, len: out.len() as u64 };
        out.copy_from_slice(self.get(offset, out.len()).ok_or_else(missing)?);
        Ok(())
    }

    fn in_memory(&self) -> Option<&[u8]> {
        (self.prefix.len() as u64 == self.len).then_some(&self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn ranges_are_found_in_the_prefix_and_in_pages() {
        let mut pages = CachedPages::new(20);
        let bytes: Vec<u8> = (0..20).collect();
        let read = |pages: &CachedPages, offset: u64, len: usize| {
            let mut out = vec![0; len];
            pages.read_exact_at(offset, &mut out).map(|()| out).map_err(|error| error.kind())
        };
        assert_eq!(pages.prefix(4).unwrap_err().kind(), ErrorKind::Missing { offset: 0, len: 4 });
        pages.insert(0, &bytes[..5]).unwrap();
        pages.insert(3, &bytes[3..8]).unwrap();
        pages.insert(10, &bytes[10..15]).unwrap();
        assert_eq!(pages.available_prefix(), &bytes[..8]);
        assert_eq!(pages.prefix(30).unwrap_err().kind(), ErrorKind::Missing { offset: 8, len: 12 });
        assert_eq!(read(&pages, 2, 6).unwrap(), &bytes[2..8]);
        assert_eq!(read(&pages, 11, 4).unwrap(), &bytes[11..15]);
        // A range over two pages is requested as a whole.
        assert_eq!(read(&pages, 7, 4), Err(ErrorKind::Missing { offset: 7, len: 4 }));
        assert_eq!(read(&pages, 19, 2), Err(ErrorKind::OutOfRange { offset: 19, len: 2, available: 20 }));
        assert!(pages.insert(18, &[0; 3]).is_err());
        pages.truncate(4);
        assert_eq!(read(&pages, 11, 1), Err(ErrorKind::Missing { offset: 11, len: 1 }));
        assert!(pages.in_memory().is_none());
        pages.insert(4, &bytes[4..]).unwrap();
        assert_eq!(pages.in_memory(), Some(&bytes[..]));
    }
}
