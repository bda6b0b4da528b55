//! Tokens of MessagePack. Lengths and counts are compared with what is left of the file.
//!
//! Source: <https://github.com/msgpack/msgpack/blob/master/spec.md>.

use core::ops::Range;

use crate::error::Error;
use crate::reader::Reader;

/// A value, or the beginning of one that contains others.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Nil,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    F32(f32),
    F64(f64),
    Text(Range<u64>),
    Bytes(Range<u64>),
    /// So many values follow.
    Array(u64),
    /// So many pairs of values follow.
    Map(u64),
    /// Type and bytes.
    Extension(i8, Range<u64>),
}

/// What is left to read.
#[derive(Clone, Debug)]
pub(super) struct Tokens {
    pub(super) rest: Range<u64>,
}

impl Tokens {
    fn take(&mut self, len: u64) -> Result<Range<u64>, Error> {
        let start = self.rest.start;
        let end = start.checked_add(len).filter(|end| *end <= self.rest.end);
        self.rest.start = end.ok_or_else(|| Error::malformed("a value ends after the file").at(start))?;
        Ok(start..self.rest.start)
    }

    fn bytes<const N: usize>(&mut self, reader: &mut Reader<'_>) -> Result<[u8; N], Error> {
        let range = self.take(N as u64)?;
        reader.array(range.start)
    }

    /// A big-endian number of `width` bytes.
    fn number(&mut self, reader: &mut Reader<'_>, width: u32) -> Result<u64, Error> {
        let range = self.take(u64::from(width))?;
        let mut number = 0;
        for at in range {
            number = number << 8 | u64::from(reader.byte(at)?);
        }
        Ok(number)
    }

    fn sized(&mut self, reader: &mut Reader<'_>, width: u32) -> Result<Range<u64>, Error> {
        let len = self.number(reader, width)?;
        self.take(len)
    }

    fn extension(&mut self, reader: &mut Reader<'_>, len: u64) -> Result<Token, Error> {
        let [kind] = self.bytes(reader)?;
        Ok(Token::Extension(kind as i8, self.take(len)?))
    }

    /// A count, where each of its values has `width` bytes or more.
    fn count(&self, count: u64, width: u64) -> Result<u64, Error> {
        if count * width <= self.rest.end - self.rest.start {
            Ok(count)
        } else {
            Err(Error::malformed("more values than the file has bytes").at(self.rest.start))
        }
    }

    /// The next token.
    ///
    /// # Errors
    ///
    /// At the end too.
    pub(super) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Token, Error> {
        let at = self.rest.start;
        let [first] = self.bytes(reader)?;
        let low = u64::from(first);
        Ok(match first {
            0x00..=0x7f => Token::Unsigned(low),
            0x80..=0x8f => Token::Map(self.count(low & 0x0f, 2)?),
            0x90..=0x9f => Token::Array(self.count(low & 0x0f, 1)?),
            0xa0..=0xbf => Token::Text(self.take(low & 0x1f)?),
            0xc0 => Token::Nil,
            0xc1 => return Err(Error::malformed("a byte that MessagePack does not use").at(at)),
            0xc2 | 0xc3 => Token::Bool(first == 0xc3),
            0xc4..=0xc6 => Token::Bytes(self.sized(reader, 1 << (first - 0xc4))?),
            0xc7..=0xc9 => {
                let len = self.number(reader, 1 << (first - 0xc7))?;
                self.extension(reader, len)?
            }
            0xca => Token::F32(f32::from_be_bytes(self.bytes(reader)?)),
            0xcb => Token::F64(f64::from_be_bytes(self.bytes(reader)?)),
            0xcc..=0xcf => Token::Unsigned(self.number(reader, 1 << (first - 0xcc))?),
            0xd0 => Token::Signed(i64::from(i8::from_be_bytes(self.bytes(reader)?))),
            0xd1 => Token::Signed(i64::from(i16::from_be_bytes(self.bytes(reader)?))),
            0xd2 => Token::Signed(i64::from(i32::from_be_bytes(self.bytes(reader)?))),
            0xd3 => Token::Signed(i64::from_be_bytes(self.bytes(reader)?)),
            0xd4..=0xd8 => self.extension(reader, 1 << (first - 0xd4))?,
            0xd9..=0xdb => Token::Text(self.sized(reader, 1 << (first - 0xd9))?),
            0xdc | 0xdd => {
                let count = self.number(reader, 2 << (first - 0xdc))?;
                Token::Array(self.count(count, 1)?)
            }
            0xde | 0xdf => {
                let count = self.number(reader, 2 << (first - 0xde))?;
                Token::Map(self.count(count, 2)?)
            }
            0xe0..=0xff => Token::Signed(i64::from(first as i8)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bytes: &[u8]) -> Result<Token, &'static str> {
        let bytes = bytes.to_vec();
        let mut tokens = Tokens { rest: 0..bytes.len() as u64 };
        tokens.next(&mut Reader::new(&bytes)).map_err(|error| error.code())
    }

    #[test]
    fn every_kind_is_read() {
        for (bytes, expected) in [
            (&b"\x7f"[..], Token::Unsigned(127)),
            (b"\x81\x00\x00", Token::Map(1)),
            (b"\x92\x00\x00", Token::Array(2)),
            (b"\xa2ab", Token::Text(1..3)),
            (b"\xc0", Token::Nil),
            (b"\xc3", Token::Bool(true)),
            (b"\xc5\0\x01a", Token::Bytes(3..4)),
            (b"\xc7\x02\x01ab", Token::Extension(1, 3..5)),
            (b"\xc9\0\0\0\x01\xffa", Token::Extension(-1, 6..7)),
            (b"\xca\x3f\x80\0\0", Token::F32(1.0)),
            (b"\xcb\x3f\xf0\0\0\0\0\0\0", Token::F64(1.0)),
            (b"\xcd\x01\x02", Token::Unsigned(0x102)),
            (b"\xcf\x80\0\0\0\0\0\0\0", Token::Unsigned(1 << 63)),
            (b"\xd0\xff", Token::Signed(-1)),
            (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xfe", Token::Signed(-2)),
            (b"\xd5\x05ab", Token::Extension(5, 2..4)),
            (b"\xd9\x01a", Token::Text(2..3)),
            (b"\xdc\0\x01\0", Token::Array(1)),
            (b"\xdf\0\0\0\x01\0\0", Token::Map(1)),
            (b"\xe0", Token::Signed(-32)),
        ] {
            assert_eq!(token(bytes), Ok(expected), "{bytes:x?}");
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        for bytes in [
            &b""[..],
            b"\xc1",
            b"\xa2a",
            b"\x81\x00",
            b"\x91",
            b"\xdd\xff\xff\xff\xff\0",
            b"\xdf\xff\xff\xff\xff\0",
            b"\xc6\xff\xff\xff\xff\0",
            b"\xcb\0",
            b"\xd8\x01a",
        ] {
            assert_eq!(token(bytes), Err("ft-malformed"), "{bytes:x?}");
        }
    }
}
