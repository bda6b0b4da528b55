//! Lists that a payload is decoded into, independent of the element type.

use alloc::vec::Vec;

/// A list whose memory is reserved once.
pub(super) trait List {
    /// Bytes of memory that an element takes.
    fn element_size(&self) -> usize;

    /// Reserves memory for this many elements; `false` if there is none.
    fn reserve(&mut self, count: usize) -> bool;
}

impl<T> List for Vec<T> {
    fn element_size(&self) -> usize {
        size_of::<T>()
    }

    fn reserve(&mut self, count: usize) -> bool {
        self.try_reserve_exact(count).is_ok()
    }
}

/// A list that is decoded from bytes.
pub(super) trait Pieces {
    fn as_list(&mut self) -> &mut dyn List;

    /// Decodes and appends these bytes, which are whole elements.
    fn take(&mut self, bytes: &[u8]);
}

/// Numbers of `N` bytes each.
pub(super) struct Decoded<T, F, const N: usize> {
    pub(super) values: Vec<T>,
    pub(super) from_bytes: F,
}

impl<T, F: FnMut(&[u8; N]) -> T, const N: usize> Pieces for Decoded<T, F, N> {
    fn as_list(&mut self) -> &mut dyn List {
        &mut self.values
    }

    fn take(&mut self, bytes: &[u8]) {
        let (elements, _) = bytes.as_chunks::<N>();
        self.values.extend(elements.iter().map(&mut self.from_bytes));
    }
}
