//! Sinks of a payload's bytes.

use alloc::vec::Vec;

use crate::error::{Error, ErrorKind};

/// Takes bytes in order.
pub(crate) trait Sink {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error>;
}

/// Keeps the bytes.
impl Sink for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if self.try_reserve(bytes.len()).is_err() {
            return Err(ErrorKind::OutOfMemory { bytes: bytes.len() as u64 }.into());
        }
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// Discards the bytes: used where only their number matters, which the writer counts.
#[derive(Debug)]
pub(crate) struct Counting;

impl Sink for Counting {
    fn put(&mut self, _bytes: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}
