#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

/// A value, or the beginning of one that contains others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Token<'data> {
    /// Nothing.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer that fits into `i64`.
    Int(i64),
    /// An integer beyond `i64`.
    UInt(u64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A string, which should be UTF-8 and need not be.
    Text(&'data [u8]),
    /// Bytes.
    Bytes(&'data [u8]),
    /// Type and bytes of an extension.
    Ext(i8, &'data [u8]),
    /// So many values follow.
    Array(u32),
    /// So many pairs of key and value follow.
    Map(u32),
}

impl Token<'_> {
    /// A noun for its type.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::UInt(_) => "an integer",
            Self::F32(_) | Self::F64(_) => "a float",
            Self::Text(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Ext(..) => "an extension",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
        }
    }
}

/// Why bytes are not MessagePack, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    offset: usize,
}

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// They end within a value, or before one.
    End,
    /// The byte `c1`, which begins no value.
    Reserved,
    /// A list or a map declares more values than there are bytes.
    Count,
}

impl Error {
    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where the value begins.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::End => "the data end within a value",
            Self::Reserved => "the byte c1 begins no value",
            Self::Count => "a list or map declares more values than there are bytes",
        })
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)
    }
}

impl core::error::Error for Error {}

/// Reads values one after the other. After an error, it is where it was before.
#[derive(Clone, Debug)]
pub struct Scanner<'data> {
    rest: &'data [u8],
    len: usize,
}

impl<'data> Scanner<'data> {
    /// Begins at the first byte.
    #[must_use]
    pub const fn new(data: &'data [u8]) -> Self {
        Self { rest: data, len: data.len() }
    }

    /// Offset of the next byte.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.len - self.rest.len()
    }

    /// Whether no byte is left.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next value, or the beginning of a list or map.
    ///
    /// # Errors
    ///
    /// If there is none; the scanner does not move then.
    pub fn token(&mut self) -> Result<Token<'data>, Error> {
        let (before, offset) = (self.rest, self.offset());
        self.read().map_err(|kind| {
            self.rest = before;
            Error { kind, offset }
        })
    }

    /// Skips the next value with all that it contains.
    ///
    /// # Errors
    ///
    /// If it is none.
    pub fn skip(&mut self) -> Result<(), Error> {
        let mut n_left = 1_u64;
        while n_left > 0 {
            n_left -= 1;
            n_left = n_left.saturating_add(match self.token()? {
                Token::Array(count) => count.into(),
                Token::Map(count) => u64::from(count) * 2,
                _ => 0,
            });
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Token<'data>, ErrorKind> {
        let [marker] = self.array()?;
        let low = u32::from(marker);
        Ok(match marker {
            0x00..=0x7f => Token::Int(marker.into()),
            0x80..=0x8f => Token::Map(self.count(low & 0x0f, 2)?),
            0x90..=0x9f => Token::Array(self.count(low & 0x0f, 1)?),
            0xa0..=0xbf => Token::Text(self.take(low & 0x1f)?),
            0xc0 => Token::Nil,
            0xc1 => return Err(ErrorKind::Reserved),
            0xc2 | 0xc3 => Token::Bool(marker == 0xc3),
            0xc4..=0xc6 => Token::Bytes(self.sized(marker - 0xc4)?),
            0xc7..=0xc9 => {
                let len = self.length(marker - 0xc7)?;
                self.extension(len)?
            }
            0xca => Token::F32(f32::from_be_bytes(self.array()?)),
            0xcb => Token::F64(f64::from_be_bytes(self.array()?)),
            0xcc..=0xcf => {
                let value = self.unsigned(marker - 0xcc)?;
                i64::try_from(value).map_or(Token::UInt(value), Token::Int)
            }
            0xd0..=0xd3 => {
                let (width, value) = (marker - 0xd0, self.unsigned(marker - 0xd0)?);
                let unused = 64 - (8_u32 << width);
                Token::Int(((value << unused) as i64) >> unused)
            }
            0xd4..=0xd8 => self.extension(1 << (marker - 0xd4))?,
            0xd9..=0xdb => Token::Text(self.sized(marker - 0xd9)?),
            0xdc | 0xdd => {
                let count = self.length(marker - 0xdc + 1)?;
                Token::Array(self.count(count, 1)?)
            }
            0xde | 0xdf => {
                let count = self.length(marker - 0xde + 1)?;
                Token::Map(self.count(count, 2)?)
            }
            0xe0..=0xff => Token::Int((marker as i8).into()),
        })
    }

    /// A count of values of at least `width` bytes each.
    fn count(&self, count: u32, width: usize) -> Result<u32, ErrorKind> {
        let most = self.rest.len() / width;
        if usize::try_from(count).is_ok_and(|count| count <= most) {
            Ok(count)
        } else {
            Err(ErrorKind::Count)
        }
    }

    fn extension(&mut self, len: u32) -> Result<Token<'data>, ErrorKind> {
        let [number] = self.array()?;
        Ok(Token::Ext(number as i8, self.take(len)?))
    }

    fn sized(&mut self, width: u8) -> Result<&'data [u8], ErrorKind> {
        let len = self.length(width)?;
        self.take(len)
    }

    /// A length of `1 << width` bytes, at most four.
    fn length(&mut self, width: u8) -> Result<u32, ErrorKind> {
        Ok(self.unsigned(width)? as u32)
    }

    /// `1 << width` bytes, at most eight, the first in the highest place.
    fn unsigned(&mut self, width: u8) -> Result<u64, ErrorKind> {
        let bytes = self.take(1 << width)?;
        Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ErrorKind> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(ErrorKind::End)?;
        self.rest = rest;
        Ok(*bytes)
    }

    fn take(&mut self, len: u32) -> Result<&'data [u8], ErrorKind> {
        let parts = usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len));
        let (bytes, rest) = parts.ok_or(ErrorKind::End)?;
        self.rest = rest;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bytes: &[u8]) -> Result<Token<'_>, ErrorKind> {
        let mut scanner = Scanner::new(bytes);
        scanner.token().map_err(|error| error.kind())
    }

    #[test]
    fn every_form_is_read() {
        for (bytes, expected) in [
            (&b"\x7f"[..], Token::Int(127)),
            (b"\x81\x00\x00", Token::Map(1)),
            (b"\x92\x00\x00", Token::Array(2)),
            (b"\xa2ab", Token::Text(b"ab")),
            (b"\xc0", Token::Nil),
            (b"\xc2", Token::Bool(false)),
            (b"\xc3", Token::Bool(true)),
            (b"\xc4\x01a", Token::Bytes(b"a")),
            (b"\xc5\0\x01a", Token::Bytes(b"a")),
            (b"\xc6\0\0\0\x01a", Token::Bytes(b"a")),
            (b"\xc7\x02\x01ab", Token::Ext(1, b"ab")),
            (b"\xc9\0\0\0\x01\xffa", Token::Ext(-1, b"a")),
            (b"\xca\x3f\x80\0\0", Token::F32(1.0)),
            (b"\xcb\x3f\xf0\0\0\0\0\0\0", Token::F64(1.0)),
            (b"\xcc\xff", Token::Int(255)),
            (b"\xcd\x01\x02", Token::Int(0x102)),
            (b"\xce\xff\xff\xff\xff", Token::Int(0xffff_ffff)),
            (b"\xcf\x80\0\0\0\0\0\0\0", Token::UInt(1 << 63)),
            (b"\xcf\0\0\0\0\0\0\0\x05", Token::Int(5)),
            (b"\xd0\xff", Token::Int(-1)),
            (b"\xd1\x80\0", Token::Int(-32768)),
            (b"\xd2\xff\xff\xff\xfe", Token::Int(-2)),
            (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", Token::Int(-2)),
            (b"\xd4\x05a", Token::Ext(5, b"a")),
            (b"\xd8\x05abcdefghabcdefgh", Token::Ext(5, b"abcdefghabcdefgh")),
            (b"\xd9\x01a", Token::Text(b"a")),
            (b"\xdb\0\0\0\x01a", Token::Text(b"a")),
            (b"\xdc\0\x01\0", Token::Array(1)),
            (b"\xdd\0\0\0\x01\0", Token::Array(1)),
            (b"\xde\0\x01\0\0", Token::Map(1)),
            (b"\xdf\0\0\0\x01\0\0", Token::Map(1)),
            (b"\xe0", Token::Int(-32)),
        ] {
            assert_eq!(token(bytes), Ok(expected), "{bytes:x?}");
            for len in 0..bytes.len() {
                let cut = token(&bytes[..len]);
                assert!(matches!(cut, Err(ErrorKind::End | ErrorKind::Count)), "{bytes:x?} {len} {cut:?}");
            }
        }
        assert_eq!(token(b"\xc1"), Err(ErrorKind::Reserved));
    }

    #[test]
    fn counts_are_compared_with_the_bytes() {
        for bytes in [&b"\x81\x00"[..], b"\x91", b"\xdd\xff\xff\xff\xff\0", b"\xdf\xff\xff\xff\xff\0"] {
            assert_eq!(token(bytes), Err(ErrorKind::Count), "{bytes:x?}");
        }
        let mut scanner = Scanner::new(b"\x01\xa9ab");
        scanner.token().unwrap();
        let error = scanner.token().unwrap_err();
        assert_eq!((error.kind(), error.offset(), scanner.offset()), (ErrorKind::End, 1, 1));
    }

    #[test]
    fn values_are_skipped_whatever_they_contain() {
        let nested = [0x91; 100_000];
        assert_eq!(Scanner::new(&nested).skip().unwrap_err().kind(), ErrorKind::Count);
        let mut scanner = Scanner::new(b"\x82\xa1a\x92\x01\xc0\xa1b\x81\x01\x02\x05");
        scanner.skip().unwrap();
        assert_eq!((scanner.token(), scanner.is_at_end()), (Ok(Token::Int(5)), true));
    }

    #[test]
    fn what_rmp_serde_writes_is_read() {
        #[derive(serde::Serialize)]
        struct Row {
            age: i64,
            size: f64,
            note: Option<&'static str>,
        }
        let bytes = rmp_serde::to_vec_named(&Row { age: -70_000, size: 0.5, note: None }).unwrap();
        let mut scanner = Scanner::new(&bytes);
        let mut next = || scanner.token().unwrap();
        assert_eq!(next(), Token::Map(3));
        assert_eq!([next(), next()], [Token::Text(b"age"), Token::Int(-70_000)]);
        assert_eq!([next(), next()], [Token::Text(b"size"), Token::F64(0.5)]);
        assert_eq!([next(), next()], [Token::Text(b"note"), Token::Nil]);
        assert!(scanner.is_at_end());
    }
}
