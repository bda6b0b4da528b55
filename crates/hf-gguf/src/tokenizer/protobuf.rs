//! The part of Protocol Buffers that SentencePiece models need: fields of one message, and messages within.

use crate::error::{Error, ErrorKind};

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field<'m> {
    /// An integer, a truth value or an enumeration.
    Varint(u64),
    Fixed64(u64),
    /// Bytes, a string or a message.
    Bytes(&'m [u8]),
    Fixed32(u32),
}

/// The fields of a message with their numbers, in order.
#[derive(Clone, Debug)]
pub(super) struct Fields<'m> {
    file: &'m str,
    rest: &'m [u8],
    /// Offset of `rest` in the file.
    offset: u64,
}

impl<'m> Fields<'m> {
    /// Fields of a message that begins at an offset of a file.
    pub(super) const fn new(file: &'m str, message: &'m [u8], offset: u64) -> Self {
        Self { file, rest: message, offset }
    }

    /// Offset of what comes next.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next field; `None` at the end of the message.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Field<'m>)>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.offset;
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let len = self.varint()?;
                Field::Bytes(self.take(usize::try_from(len).unwrap_or(usize::MAX))?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(self.wrong("a field has a wire type that is not in use", start)),
        };
        if tag >> 3 == 0 {
            return Err(self.wrong("a field has the number 0", start));
        }
        Ok(Some((tag >> 3, field)))
    }

    fn take(&mut self, len: usize) -> Result<&'m [u8], Error> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.wrong("a field ends after the message that it is in", self.offset));
        };
        self.rest = rest;
        self.offset += len as u64;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let bytes = self.take(N)?;
        Ok(core::array::from_fn(|idx| bytes[idx]))
    }

    fn varint(&mut self) -> Result<u64, Error> {
        let start = self.offset;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.wrong("an integer has more than 64 bits", start))
    }

    fn wrong(&self, what: &'static str, offset: u64) -> Error {
        Error::from(ErrorKind::Protobuf { file: self.file.into(), what }).at(offset)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn fields(message: &[u8]) -> Result<Vec<(u64, Field<'_>)>, Error> {
        let mut fields = Fields::new("x", message, 100);
        let mut all = Vec::new();
        while let Some(field) = fields.next()? {
            all.push(field);
        }
        Ok(all)
    }

    #[test]
    fn every_wire_type_in_use_is_read() {
        let message =
            [0x08, 0x96, 0x01, 0x12, 2, 7, 8, 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0, 0xf8, 0x07, 5];
        let expected = [
            (1, Field::Varint(150)),
            (2, Field::Bytes(&[7, 8])),
            (3, Field::Fixed32(1)),
            (4, Field::Fixed64(2)),
            (127, Field::Varint(5)),
        ];
        assert_eq!(fields(&message).unwrap(), expected);
        let max = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(fields(&max).unwrap(), [(1, Field::Varint(u64::MAX))]);
    }

    #[test]
    fn damage_is_refused_with_its_place() {
        let cases: [(&[u8], u64); 8] = [
            (&[0x08], 101),
            (&[0x12, 3, 1, 2], 102),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], 111),
            (&[0x1d, 1, 2, 3], 101),
            (&[0x0b], 100),
            (&[0x0f], 100),
            (&[0x00, 0x00], 100),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], 101),
        ];
        for (message, offset) in cases {
            let error = fields(message).unwrap_err();
            assert_eq!((error.code(), error.offset()), ("hg-protobuf", Some(offset)), "{message:x?}");
        }
    }
}
