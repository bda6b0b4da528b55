//! The bytes of a file that are at hand.

use alloc::vec::Vec;

use crate::failure::Failure;
use crate::wire::Outcome;

/// Bytes from the start of a file, and pieces elsewhere in it.
#[derive(Debug)]
pub(crate) struct Pages {
    len: u64,
    head: Vec<u8>,
    /// Those elsewhere, in the order in which they came.
    pieces: Vec<(u64, Vec<u8>)>,
    /// What a reader at any place asked for last and did not find.
    #[cfg(feature = "crypto")]
    missing: core::cell::Cell<Option<(u64, u64)>>,
}

impl Pages {
    /// Of a file of so many bytes, none of which is here.
    pub(crate) fn new(len: u64) -> Self {
        Self {
            len,
            head: Vec::new(),
            pieces: Vec::new(),
            #[cfg(feature = "crypto")]
            missing: core::cell::Cell::new(None),
        }
    }

    /// Bytes of the file.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Puts bytes in their place.
    ///
    /// # Errors
    ///
    /// If there is no memory for them, or the file does not reach so far.
    pub(crate) fn provide(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        if offset.checked_add(bytes.len() as u64).is_none_or(|end| end > self.len) {
            return Err(Failure::message());
        }
        let head = self.head.len() as u64;
        if offset <= head {
            let new = bytes.get((head - offset) as usize..).unwrap_or_default();
            // A file that is going to be here as a whole is not copied twice as it grows.
            reserve(&mut self.head, new.len())?;
            self.head.extend_from_slice(new);
        } else {
            let mut piece = Vec::new();
            reserve(&mut piece, bytes.len())?;
            piece.extend_from_slice(bytes);
            self.pieces.push((offset, piece));
        }
        Ok(())
    }

    /// Forgets all pieces but the beginning of the file.
    pub(crate) fn forget_pieces(&mut self) {
        self.pieces = Vec::new();
    }

    /// Forgets everything behind the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: u64) {
        self.forget_pieces();
        self.head.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        self.head.shrink_to_fit();
    }

    /// The bytes from the start of the file that are here.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The first `len` bytes.
    ///
    /// # Errors
    ///
    /// The rest of them, if they are not all here.
    pub(crate) fn prefix(&self, len: u64) -> Result<&[u8], Outcome> {
        let len = len.min(self.len);
        let here = self.head.len() as u64;
        match usize::try_from(len).ok().and_then(|len| self.head.get(..len)) {
            Some(prefix) => Ok(prefix),
            None => Err(Outcome::Need { offset: here, len: len - here }),
        }
    }

    /// All bytes.
    ///
    /// # Errors
    ///
    /// Those that are not here; if they are more than this module can address.
    pub(crate) fn whole(&self) -> Result<&[u8], Outcome> {
        if self.len > MOST {
            let what = "the file is larger than the memory of a module: this needs all of it at once";
            return Err(Failure::new("aw-memory", what).into());
        }
        self.prefix(self.len)
    }

    #[cfg(feature = "crypto")]
    fn get(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let within = |start: u64, bytes: &'_ [u8]| {
            let from = usize::try_from(offset.checked_sub(start)?).ok()?;
            let end = from.checked_add(len)?;
            (end <= bytes.len()).then_some((from, end))
        };
        if let Some((from, end)) = within(0, &self.head) {
            return self.head.get(from..end);
        }
        // One operation asks for a handful of pieces; they are forgotten when it is done.
        self.pieces.iter().rev().find_map(|(start, piece)| {
            let (from, end) = within(*start, piece)?;
            piece.get(from..end)
        })
    }

    /// What a reader found missing since this was asked last.
    #[cfg(feature = "crypto")]
    pub(crate) fn take_missing(&self) -> Option<(u64, u64)> {
        self.missing.take()
    }
}

/// Most bytes of a file in a module's memory: half of what 32 bits address.
const MOST: u64 = 1 << 31;

fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<(), Failure> {
    bytes
        .try_reserve_exact(more)
        .map_err(|_| Failure::new("aw-memory", "no memory for these bytes of the file"))
}

#[cfg(feature = "crypto")]
impl apr_crypto::ReadAt for Pages {
    fn total_len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        let len = out.len() as u64;
        if offset.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(apr_crypto::ErrorKind::OutOfRange { offset, len, available: self.len }.into());
        }
        if let Some(bytes) = self.get(offset, out.len()) {
            out.copy_from_slice(bytes);
            return Ok(());
        }
        self.missing.set(Some((offset, len)));
        Err(apr_crypto::ErrorKind::Source.into())
    }
}

/// Read by whoever holds the reader over them and by whoever provides bytes.
#[cfg(feature = "crypto")]
#[derive(Clone, Debug)]
pub(crate) struct Shared(pub(crate) alloc::rc::Rc<core::cell::RefCell<Pages>>);

#[cfg(feature = "crypto")]
impl apr_crypto::ReadAt for Shared {
    fn total_len(&self) -> u64 {
        self.0.borrow().total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), apr_crypto::Error> {
        self.0.borrow().read_exact_at(offset, out)
    }
}
