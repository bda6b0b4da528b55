//! Requests and responses: little-endian numbers; strings and bytes after their length as a `u32`.
//!
//! A response is a status byte (0 done, 1 error, 2 more bytes of the file are needed), JSON after its length as a `u32`, and bytes
//! until the end.

use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::Failure;

/// Reads the arguments of a request.
#[derive(Clone, Debug)]
pub struct Arguments<'q> {
    rest: &'q [u8],
}

impl<'q> Arguments<'q> {
    /// The arguments in these bytes.
    #[must_use]
    pub const fn new(question: &'q [u8]) -> Self {
        Self { rest: question }
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    ///
    /// If there are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'q [u8], Failure> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(Failure::message)?;
        self.rest = rest;
        Ok(taken)
    }

    /// A byte.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn u8(&mut self) -> Result<u8, Failure> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    /// Four bytes.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn u32(&mut self) -> Result<u32, Failure> {
        self.take(4)?.try_into().map(u32::from_le_bytes).map_err(|_| Failure::message())
    }

    /// Eight bytes.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn u64(&mut self) -> Result<u64, Failure> {
        self.take(8)?.try_into().map(u64::from_le_bytes).map_err(|_| Failure::message())
    }

    /// Bytes after their length.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn bytes(&mut self) -> Result<&'q [u8], Failure> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// A string after its length.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take); if it is not UTF-8.
    pub fn text(&mut self) -> Result<&'q str, Failure> {
        core::str::from_utf8(self.bytes()?).map_err(|_| Failure::message())
    }

    /// The remaining bytes.
    #[must_use]
    pub fn rest(self) -> &'q [u8] {
        self.rest
    }
}

/// The result of an operation.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// JSON.
    pub json: String,
    /// Numbers or bytes.
    pub bytes: Vec<u8>,
}

/// Why an operation has no result.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It failed.
    Refused(Failure),
    /// These bytes of the file are needed.
    Need {
        /// Offset of the first one.
        offset: u64,
        /// Their number; all of them are within the file.
        len: u64,
    },
}

impl<E: Into<Failure>> From<E> for Outcome {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

/// The bytes of a response.
pub(crate) fn encode(result: Result<Answer, Outcome>) -> Vec<u8> {
    let (status, answer) = match result {
        Ok(answer) => (0, answer),
        Err(Outcome::Refused(failure)) => (1, Answer { json: failure.to_json(), bytes: Vec::new() }),
        Err(Outcome::Need { offset, len }) => {
            let bytes = [offset.to_le_bytes(), len.to_le_bytes()].concat();
            (2, Answer { json: String::new(), bytes })
        }
    };
    let mut out = Vec::with_capacity(5 + answer.json.len() + answer.bytes.len());
    out.push(status);
    out.extend_from_slice(&(answer.json.len() as u32).to_le_bytes());
    out.extend_from_slice(answer.json.as_bytes());
    out.extend_from_slice(&answer.bytes);
    out
}
