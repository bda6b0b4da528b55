//! A range of a source.

use core::ops::Range;

use crate::error::{Error, ErrorKind};
use crate::source::{ReadAt, check_range};

/// A range of a source, as a source of its own.
///
/// ```
/// use read_at::{ReadAt, Window};
///
/// let part = Window::new(b"header|payload".as_slice(), 7, 7)?;
/// let mut out = [0; 3];
/// part.read_exact_at(0, &mut out)?;
/// assert_eq!((&out, part.total_len()), (b"pay", 7));
/// # Ok::<(), read_at::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Window<R> {
    source: R,
    offset: u64,
    len: u64,
}

impl<R: ReadAt> Window<R> {
    /// The `len` bytes at `offset`.
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
        // No overflow: the window is within the source.
        self.source.read_exact_at(self.offset + offset, out)
    }

    fn will_read(&self, range: Range<u64>) {
        let at = |at: u64| self.offset + at.min(self.len);
        self.source.will_read(at(range.start)..at(range.end));
    }

    fn in_memory(&self) -> Option<&[u8]> {
        let begin = usize::try_from(self.offset).ok()?;
        self.source.in_memory()?.get(begin..)?.get(..usize::try_from(self.len).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::rc::Rc;
    use alloc::sync::Arc;
    use alloc::vec;
    use core::cell::RefCell;

    use super::*;

    /// The range that it is told of.
    #[derive(Default)]
    struct Told(RefCell<Range<u64>>);

    impl ReadAt for Told {
        fn total_len(&self) -> u64 {
            100
        }

        fn read_exact_at(&self, _: u64, _: &mut [u8]) -> Result<(), Error> {
            Ok(())
        }

        fn will_read(&self, range: Range<u64>) {
            *self.0.borrow_mut() = range;
        }
    }

    #[test]
    fn the_source_is_told_of_its_own_range() {
        let told = Told::default();
        let window = Rc::new(Window::new(&told, 10, 50).unwrap());
        for (range, expected) in [(5..20, 15..30), (0..u64::MAX, 10..60)] {
            window.will_read(range);
            assert_eq!(*told.0.borrow(), expected);
        }
    }

    #[test]
    fn reading_past_the_end_is_an_error() {
        let source = vec![1, 2, 3, 4];
        let window = Window::new(&source, 1, 2).unwrap();
        let ranges =
            [(0, 0, true), (0, 2, true), (2, 0, true), (2, 1, false), (3, 0, false), (u64::MAX, 1, false)];
        for (offset, len, fits) in ranges {
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
}
