//! The bytes of a file that have arrived.

#[cfg(not(any(feature = "foreign", feature = "scan")))]
pub(super) use read_at::CachedPages as Pages;

#[cfg(any(feature = "foreign", feature = "scan"))]
pub(super) use recorded::Pages;

#[cfg(any(feature = "foreign", feature = "scan"))]
mod recorded {
    use core::cell::Cell;
    use core::ops::{Deref, DerefMut, Range};

    use read_at::{CachedPages, Error, ErrorKind, ReadAt};

    /// Most bytes that are requested at once.
    const MAX: u64 = 64 << 20;

    /// They and the first range that a reader missed. Readers of other programs' files may take an error of reading for the end of what
    /// they look for: their answer counts only if no byte was missing.
    #[derive(Debug)]
    pub(crate) struct Pages {
        cached: CachedPages,
        missing: Cell<Option<(u64, u64)>>,
        requested: Cell<(u64, u64)>,
    }

    impl Pages {
        pub(crate) const fn new(len: u64) -> Self {
            let (missing, requested) = (Cell::new(None), Cell::new((0, 0)));
            Self { cached: CachedPages::new(len), missing, requested }
        }

        /// The first range that was missed since the last call.
        pub(crate) fn take_missing(&self) -> Option<Range<u64>> {
            self.missing.take().map(|(offset, len)| offset..offset.saturating_add(len))
        }

        /// How many bytes to request for a range of `len`: twice as many as before if it continues the last one, because the reader
        /// begins anew each time.
        pub(crate) fn request(&self, offset: u64, len: u64) -> u64 {
            let (start, end) = self.requested.get();
            let continues = (start..=end).contains(&offset) && end > start;
            let len = if continues { len.max(((end - start) * 2).min(MAX)) } else { len };
            self.requested.set((offset, offset.saturating_add(len)));
            len
        }
    }

    impl Deref for Pages {
        type Target = CachedPages;

        fn deref(&self) -> &CachedPages {
            &self.cached
        }
    }

    impl DerefMut for Pages {
        fn deref_mut(&mut self) -> &mut CachedPages {
            &mut self.cached
        }
    }

    impl ReadAt for Pages {
        fn total_len(&self) -> u64 {
            self.cached.total_len()
        }

        fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
            self.cached.read_exact_at(offset, out).inspect_err(|error| match error.kind() {
                ErrorKind::Missing { offset, len } if self.missing.get().is_none() => {
                    self.missing.set(Some((offset, len)));
                }
                _ => {}
            })
        }

        fn in_memory(&self) -> Option<&[u8]> {
            self.cached.in_memory()
        }
    }
}
