//! Protocol buffers: the wire format.
//!
//! Source: <https://protobuf.dev/programming-guides/encoding/>. Fields are ranges of the file: what is skipped is not read.

use core::ops::Range;

use crate::error::Error;
use crate::reader::Reader;

/// Groups within groups that are skipped.
const MAX_GROUPS: usize = 64;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A varint.
    Number(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, a message or packed numbers.
    Bytes(Range<u64>),
    /// Four bytes.
    Fixed32(u32),
}

/// The fields of a message, in order.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    rest: Range<u64>,
}

impl Fields {
    /// Those of the message in this range.
    pub(crate) const fn new(range: Range<u64>) -> Self {
        Self { rest: range }
    }

    /// The next field outside of groups with its number; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the message is malformed.
    pub(crate) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Option<(u64, Value)>, Error> {
        let mut groups = [0; MAX_GROUPS];
        let mut depth = 0;
        while !self.rest.is_empty() {
            let at = self.rest.start;
            let malformed = |problem| Error::malformed(problem).at(at);
            let tag = self.varint(reader)?;
            let number = tag >> 3;
            if number == 0 || number > 0x1fff_ffff {
                return Err(malformed("invalid number of a field"));
            }
            let value = match tag & 7 {
                0 => Value::Number(self.varint(reader)?),
                1 => Value::Fixed64(u64::from_le_bytes(self.fixed(reader)?)),
                2 => {
                    let len = self.varint(reader)?;
                    Value::Bytes(self.take(len)?)
                }
                3 => {
                    let group = groups.get_mut(depth).ok_or_else(|| malformed("too many nested groups"))?;
                    (*group, depth) = (number, depth + 1);
                    continue;
                }
                4 => {
                    depth = depth.wrapping_sub(1);
                    if groups.get(depth) != Some(&number) {
                        return Err(malformed("the end of a group without its beginning"));
                    }
                    continue;
                }
                5 => Value::Fixed32(u32::from_le_bytes(self.fixed(reader)?)),
                _ => return Err(malformed("invalid wire type of a field")),
            };
            if depth == 0 {
                return Ok(Some((number, value)));
            }
        }
        if depth == 0 { Ok(None) } else { Err(Error::malformed("a group without its end").at(self.rest.end)) }
    }

    /// The next of packed varints; `None` at the end.
    pub(crate) fn next_packed(&mut self, reader: &mut Reader<'_>) -> Result<Option<u64>, Error> {
        if self.rest.is_empty() { Ok(None) } else { self.varint(reader).map(Some) }
    }

    /// The next `len` bytes.
    pub(crate) fn take(&mut self, len: u64) -> Result<Range<u64>, Error> {
        let start = self.rest.start;
        let end = start.checked_add(len).filter(|end| *end <= self.rest.end);
        self.rest.start = end.ok_or_else(|| Error::malformed("a field ends after its message").at(start))?;
        Ok(start..self.rest.start)
    }

    fn fixed<const N: usize>(&mut self, reader: &mut Reader<'_>) -> Result<[u8; N], Error> {
        let at = self.rest.start;
        if self.rest.end - at < N as u64 {
            return Err(Error::malformed("a field ends after its message").at(at));
        }
        self.rest.start += N as u64;
        reader.array(at)
    }

    fn varint(&mut self, reader: &mut Reader<'_>) -> Result<u64, Error> {
        let begin = self.rest.start;
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            if self.rest.is_empty() {
                return Err(Error::malformed("a varint ends after its message").at(begin));
            }
            let byte = reader.byte(self.rest.start)?;
            self.rest.start += 1;
            // Readers drop what is beyond 64 bits.
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::malformed("a varint of more than ten bytes").at(begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn fields(bytes: &[u8]) -> Result<Vec<(u64, Value)>, Error> {
        let bytes = bytes.to_vec();
        let (mut reader, mut fields) = (Reader::new(&bytes), Fields::new(0..bytes.len() as u64));
        let mut found = Vec::new();
        while let Some(field) = fields.next(&mut reader)? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn every_wire_type_is_read_and_groups_are_skipped() {
        let bytes =
            b"\x08\xac\x02\x12\x02ab\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0\x7b\x7b\x08\x01\x7c\x7c\x08\x80\x00";
        let expected = [
            (1, Value::Number(300)),
            (2, Value::Bytes(5..7)),
            (3, Value::Fixed32(1)),
            (4, Value::Fixed64(2)),
            (1, Value::Number(0)),
        ];
        assert_eq!(fields(bytes).unwrap(), expected);
        let minus_one = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(fields(minus_one).unwrap(), [(1, Value::Number(u64::MAX))]);
    }

    #[test]
    fn malformed_messages_are_refused() {
        for bytes in [
            &b"\x00\x01"[..],
            b"\x0e\x01",
            b"\x0f",
            b"\x08",
            b"\x08\x80",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x12\x03ab",
            b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x1d\0\0\0",
            b"\x21\0",
            b"\x7b",
            b"\x7c",
            b"\x7b\x84\x01",
            &[0x7b; 65],
        ] {
            assert_eq!(fields(bytes).map_err(|error| error.code()), Err("ft-malformed"), "{bytes:x?}");
        }
    }
}
