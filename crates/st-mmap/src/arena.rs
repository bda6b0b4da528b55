//! A reusable buffer for tensors, and tensors loaded into one.

use alloc::sync::Arc;
use core::fmt;

use memmap2::MmapMut;
use st_core::{Header, TensorView};

use crate::error::{Error, ErrorKind};
use crate::views;

/// Smallest buffer, and the unit it grows by.
const GRAIN: u64 = 64 << 10;

/// A buffer that [`SafeTensorsFile::load`](crate::SafeTensorsFile::load) fills, again and again.
///
/// Fresh memory has to be faulted in page by page, which costs several times as much as reading a cached
/// file. An arena keeps its pages from load to load and grows when a file needs more. Its first byte is
/// aligned to a page, thus to 64 bytes.
///
/// Growing reserves up to an eighth more address space than asked for; memory is used when it is written.
///
/// # Examples
///
/// ```
/// use st_mmap::Arena;
///
/// let mut arena = Arena::with_limit(1 << 30); // Never more than 1 GiB.
/// arena.reserve(1 << 20)?;
/// assert!(arena.capacity() >= 1 << 20);
/// assert!(arena.reserve(2 << 30).is_err());
/// # Ok::<(), st_mmap::Error>(())
/// ```
#[derive(Default)]
pub struct Arena {
    // Anonymous memory of our own, not a file: failing to get it is an error instead of an abort, it comes
    // zeroed without being touched, and it is aligned.
    pages: Option<MmapMut>,
    limit: Option<u64>,
}

impl Arena {
    /// An empty arena that may grow as far as memory goes.
    #[must_use]
    pub const fn new() -> Self {
        Self { pages: None, limit: None }
    }

    /// An empty arena that refuses more than `limit` bytes of tensors.
    #[must_use]
    pub const fn with_limit(limit: u64) -> Self {
        Self { pages: None, limit: Some(limit) }
    }

    /// Bytes that can be loaded without growing.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pages.as_ref().map_or(0, |pages| pages.len())
    }

    /// Allocates `len` bytes. The old pages go first, so at no time there are two buffers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ArenaLimit`], [`ErrorKind::AddressSpace`] or [`ErrorKind::OutOfMemory`].
    pub fn reserve(&mut self, len: u64) -> Result<(), Error> {
        self.space(len)?;
        Ok(())
    }

    /// Gives the memory back.
    pub fn clear(&mut self) {
        self.pages = None;
    }

    /// `len` bytes of whatever was there before.
    pub(crate) fn space(&mut self, len: u64) -> Result<&mut [u8], ErrorKind> {
        if let Some(limit) = self.limit.filter(|limit| len > *limit) {
            return Err(ErrorKind::ArenaLimit { needed: len, limit });
        }
        let needed = usize::try_from(len).map_err(|_| ErrorKind::AddressSpace { len })?;
        if needed == 0 {
            return Ok(&mut []);
        }
        if self.capacity() < needed {
            self.pages = None;
            let capacity = usize::try_from(rounded(len)).unwrap_or(needed);
            let pages = MmapMut::map_anon(capacity).or_else(|_| MmapMut::map_anon(needed));
            self.pages = Some(pages.map_err(|_| ErrorKind::OutOfMemory { needed: len })?);
        }
        let pages = self.pages.as_deref_mut().unwrap_or_default();
        pages.get_mut(..needed).ok_or(ErrorKind::OutOfMemory { needed: len })
    }
}

/// A set of files differs a little in length: rounding up spares all but the first a new buffer.
fn rounded(len: u64) -> u64 {
    let grain = len.checked_next_power_of_two().map_or(GRAIN, |power| (power / 16).max(GRAIN));
    len.checked_next_multiple_of(grain).unwrap_or(len)
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("capacity", &self.capacity()).field("limit", &self.limit).finish()
    }
}

/// Tensors in an [`Arena`]: independent of the file they came from.
#[derive(Clone, Debug)]
pub struct LoadedSafeTensors<'arena> {
    header: Arc<Header>,
    data: &'arena [u8],
}

impl<'arena> LoadedSafeTensors<'arena> {
    /// `data` is the data section of `header`, in full.
    pub(crate) fn new(header: Arc<Header>, data: &'arena [u8]) -> Self {
        debug_assert_eq!(header.data_len(), data.len() as u64);
        Self { header, data }
    }

    /// The table of tensors.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The data section: all tensors, back to back. Begins on a multiple of 64 unless it is empty.
    #[must_use]
    pub const fn data(&self) -> &'arena [u8] {
        self.data
    }

    /// A tensor by name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Format`] if there is no such tensor.
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, Error> {
        views::tensor(&self.header, self.data, name)
    }

    /// All tensors in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, TensorView<'_>)> {
        views::iter(&self.header, self.data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_keeps_and_refuses() {
        let mut arena = Arena::with_limit(1 << 20);
        assert_eq!((arena.capacity(), arena.space(0).unwrap().len(), arena.capacity()), (0, 0, 0));
        let first = arena.space(1).unwrap();
        assert_eq!(first.as_ptr().align_offset(64), 0);
        let kept = first.as_ptr();
        assert_eq!(arena.space(GRAIN).unwrap().as_ptr(), kept, "within the first grain nothing moves");
        assert_eq!(arena.space(1 << 20).unwrap().len(), 1 << 20);
        assert!(matches!(arena.space((1 << 20) + 1), Err(ErrorKind::ArenaLimit { limit: 0x10_0000, .. })));
        arena.clear();
        assert_eq!(arena.capacity(), 0);
    }

    #[test]
    fn more_than_there_is_is_an_error() {
        let mut arena = Arena::new();
        assert!(arena.space(u64::MAX).is_err());
        assert!(arena.space(u64::MAX >> 1).is_err());
        assert!(arena.space(1 << 60).is_err());
        assert!(arena.space(100).is_ok());
    }

    #[test]
    fn rounding_is_at_most_an_eighth_above() {
        for len in [1, GRAIN, GRAIN + 1, 1 << 20, (1 << 20) + 1, 5_000_000_000, u64::MAX] {
            let capacity = rounded(len);
            assert!(capacity >= len && capacity - len <= (len / 8).max(GRAIN), "{len} {capacity}");
        }
    }
}
