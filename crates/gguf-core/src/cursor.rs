//! Reads fields in either byte order from a file of which only the beginning may be available.

use crate::error::{Error, ErrorKind};

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Endian {
    /// The least significant byte first: nearly every file.
    #[default]
    Little,
    /// The most significant byte first.
    Big,
}

/// Byte order and width of lengths in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) endian: Endian,
    /// Version 1 had 32 bits for every length, count and dimension.
    pub(crate) narrow: bool,
}

impl Form {
    /// Bytes of a length.
    pub(crate) const fn len_bytes(self) -> usize {
        if self.narrow { 4 } else { 8 }
    }

    /// An unsigned number of as many bytes as there are, 8 at most.
    pub(crate) fn number(self, bytes: &[u8]) -> u64 {
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self.endian {
            Endian::Little => bytes.iter().rev().fold(0, push),
            Endian::Big => bytes.iter().fold(0, push),
        }
    }
}

/// Why reading stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The file is invalid.
    Refused(Error),
    /// The input is a valid prefix; this many bytes are needed to continue.
    More(u64),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Stop {
    /// Adds what an error is about.
    pub(crate) fn map(self, about: impl FnOnce(Error) -> Error) -> Self {
        match self {
            Self::Refused(error) => Self::Refused(about(error)),
            more @ Self::More(_) => more,
        }
    }
}

/// Reads fields and remembers where it is.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'data> {
    prefix: &'data [u8],
    /// Never beyond the prefix.
    pos: usize,
    file_len: u64,
    pub(crate) form: Form,
}

impl<'data> Cursor<'data> {
    /// At the start of a file of `file_len` bytes that begins with `prefix`.
    pub(crate) fn new(prefix: &'data [u8], file_len: u64) -> Self {
        let len = usize::try_from(file_len).map_or(prefix.len(), |len| len.min(prefix.len()));
        let prefix = prefix.get(..len).unwrap_or(prefix);
        Self { prefix, pos: 0, file_len, form: Form { endian: Endian::Little, narrow: false } }
    }

    pub(crate) const fn offset(&self) -> u64 {
        self.pos as u64
    }

    /// Bytes of the file that are left.
    pub(crate) const fn left(&self) -> u64 {
        self.file_len - self.pos as u64
    }

    /// Available bytes that are left.
    pub(crate) const fn left_at_hand(&self) -> usize {
        self.prefix.len() - self.pos
    }

    /// The next `len` bytes. The cursor does not move if they are not there.
    pub(crate) fn take(&mut self, len: u64) -> Result<&'data [u8], Stop> {
        if len > self.left() {
            let kind = ErrorKind::Truncated { needed: len, available: self.left() };
            return Err(Error::from(kind).at(self.offset()).into());
        }
        // No overflow: the sum is at most the length of the file.
        let needed = self.offset() + len;
        let taken = usize::try_from(len).ok().and_then(|len| self.prefix.get(self.pos..)?.get(..len));
        let taken = taken.ok_or(Stop::More(needed))?;
        self.pos += taken.len();
        Ok(taken)
    }

    /// The bytes from an earlier offset up to here.
    pub(crate) fn since(&self, offset: u64) -> &'data [u8] {
        self.prefix.get(offset as usize..self.pos).unwrap_or_default()
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Stop> {
        // Four bytes give a number of 32 bits.
        self.take(4).map(|bytes| self.form.number(bytes) as u32)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Stop> {
        self.take(8).map(|bytes| self.form.number(bytes))
    }

    /// A length, count or dimension.
    pub(crate) fn len(&mut self) -> Result<u64, Stop> {
        let len = self.form.len_bytes() as u64;
        self.take(len).map(|bytes| self.form.number(bytes))
    }

    /// A string of at most `max` bytes.
    pub(crate) fn text(&mut self, max: u64) -> Result<&'data [u8], Stop> {
        let offset = self.offset();
        let len = self.len()?;
        if len > self.left() {
            let kind = ErrorKind::StringLength { len, available: self.left() };
            return Err(Error::from(kind).at(offset).into());
        }
        if len > max {
            let kind = ErrorKind::LimitExceeded { limit: "bytes of a string", max };
            return Err(Error::from(kind).at(offset).into());
        }
        self.take(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_file_is_not_the_end_of_the_prefix() {
        let mut cursor = Cursor::new(&[1, 0, 0, 0, 9], 12);
        assert_eq!(cursor.u32().unwrap_or(0), 1);
        assert!(matches!(cursor.u64(), Err(Stop::More(12))));
        assert!(matches!(cursor.take(9), Err(Stop::Refused(error)) if error.code() == "gg-truncated"));
        assert_eq!((cursor.offset(), cursor.left(), cursor.left_at_hand()), (4, 8, 1));
        // Bytes after the end are not read.
        assert_eq!(Cursor::new(&[0; 9], 4).left_at_hand(), 4);
    }

    #[test]
    fn numbers_in_both_orders() {
        let form = |endian| Form { endian, narrow: false };
        assert_eq!(form(Endian::Little).number(&[1, 2]), 0x0201);
        assert_eq!(form(Endian::Big).number(&[1, 2]), 0x0102);
    }
}
