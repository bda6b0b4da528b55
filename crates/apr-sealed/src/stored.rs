//! The stored payload, verified if the file is signed.

use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::Range;

use apr_crypto::{Error as CryptoError, ErrorKind as CryptoErrorKind, VerifiedReader};
use read_at::{ReadAt, Window};

use crate::SealedHeader;
use crate::error::Error;

/// Most that is kept of what was read last.
const HELD_MAX: u64 = 1 << 20;

/// The stored payload, for one read.
#[derive(Debug)]
pub(crate) enum Stored<'r, R> {
    /// Not signed.
    AsIs(Window<&'r R>),
    /// Every byte compared with the tree's root.
    Verified(Held<'r, R>),
}

impl<'r, R: ReadAt> Stored<'r, R> {
    pub(crate) fn new(source: &'r R, header: &SealedHeader) -> Result<Self, Error> {
        let window = |range: &Range<u64>| Window::new(source, range.start, range.end - range.start);
        let payload = header.stored_payload(source)?;
        Ok(match header.root_declared() {
            None => Self::AsIs(payload),
            Some(root) => {
                let mut reader = VerifiedReader::new(*root, payload, window(&header.places.outboard)?)?;
                if let Some(upper) = &header.upper {
                    reader = reader.with_upper(upper)?;
                }
                Self::Verified(Held { reader, held: RefCell::new((0, Vec::new())) })
            }
        })
    }
}

impl<R: ReadAt> ReadAt for Stored<'_, R> {
    fn total_len(&self) -> u64 {
        match self {
            Self::AsIs(window) => window.total_len(),
            Self::Verified(held) => held.reader.total_len(),
        }
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        match self {
            Self::AsIs(window) => window.read_exact_at(offset, out),
            Self::Verified(held) => Ok(held.read(offset, out)?),
        }
    }

    fn will_read(&self, range: Range<u64>) {
        match self {
            Self::AsIs(window) => window.will_read(range),
            Self::Verified(held) => held.reader.will_read(range),
        }
    }
}

/// Whole leaves that were verified, kept until the next are read: chunks and leaves have different lengths, and without
/// that a leaf in which one chunk ends and the next begins would be read and hashed twice.
#[derive(Debug)]
pub(crate) struct Held<'r, R> {
    reader: VerifiedReader<Window<&'r R>, Window<&'r R>>,
    /// Where they begin, and their bytes.
    held: RefCell<(u64, Vec<u8>)>,
}

impl<R: ReadAt> Held<'_, R> {
    fn read(&self, mut offset: u64, mut out: &mut [u8]) -> Result<(), CryptoError> {
        let mut held = self.held.borrow_mut();
        while !out.is_empty() {
            let (begin, bytes) = &mut *held;
            let fresh = offset.checked_sub(*begin).and_then(|skip| bytes.get(usize::try_from(skip).ok()?..));
            if let Some(fresh) = fresh.filter(|fresh| !fresh.is_empty()) {
                let (now, rest) = out.split_at_mut(fresh.len().min(out.len()));
                now.iter_mut().zip(fresh).for_each(|(to, from)| *to = *from);
                offset += now.len() as u64;
                out = rest;
                continue;
            }
            let leaves = self.reader.root().leaves(offset, (out.len() as u64).min(HELD_MAX))?;
            let len = leaves.end - leaves.start;
            bytes.clear();
            // A MiB and a leaf more; nothing is held if reading fails.
            bytes.try_reserve(len as usize).map_err(|_| CryptoErrorKind::OutOfMemory { len })?;
            bytes.resize(len as usize, 0);
            *begin = leaves.start;
            if let Err(error) = self.reader.read_exact_at(leaves.start, bytes) {
                bytes.clear();
                return Err(error);
            }
        }
        Ok(())
    }
}
