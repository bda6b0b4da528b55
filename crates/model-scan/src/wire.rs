//! The wire format of protocol buffers.

use core::ops::Range;

use pickle_core::Error;

use crate::reader::Reader;

/// A field of a message.
pub(crate) enum Field {
    /// A number, of which nothing is needed.
    Number,
    /// A string or a message.
    Bytes(Range<u64>),
}

/// The fields of a message, in order.
pub(crate) struct Fields {
    rest: Range<u64>,
    /// Numbers of the groups that are open.
    groups: u32,
    pub(crate) is_malformed: bool,
}

impl Fields {
    pub(crate) const fn new(range: Range<u64>) -> Self {
        Self { rest: range, groups: 0, is_malformed: false }
    }

    /// The next field outside of groups with its number; `None` at the end and where the message is malformed.
    pub(crate) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Option<(u64, Field)>, Error> {
        while !self.rest.is_empty() {
            let Some(tag) = self.varint(reader)? else { return Ok(None) };
            let field = match tag & 7 {
                0 => self.varint(reader)?.map(|_| Field::Number),
                1 => self.take(8).map(|_| Field::Number),
                2 => self.varint(reader)?.and_then(|len| self.take(len)).map(Field::Bytes),
                3 => {
                    self.groups += 1;
                    continue;
                }
                4 if self.groups > 0 => {
                    self.groups -= 1;
                    continue;
                }
                5 => self.take(4).map(|_| Field::Number),
                _ => None,
            };
            let Some(field) = field.filter(|_| tag >> 3 != 0) else {
                self.is_malformed = true;
                return Ok(None);
            };
            if self.groups == 0 {
                return Ok(Some((tag >> 3, field)));
            }
        }
        Ok(None)
    }

    fn take(&mut self, len: u64) -> Option<Range<u64>> {
        let end = self.rest.start.checked_add(len).filter(|end| *end <= self.rest.end)?;
        let taken = self.rest.start..end;
        self.rest.start = end;
        Some(taken)
    }

    fn varint(&mut self, reader: &mut Reader<'_>) -> Result<Option<u64>, Error> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = if self.rest.is_empty() { None } else { reader.byte(self.rest.start)? };
            let Some(byte) = byte else { break };
            self.rest.start += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
            if byte < 0x80 {
                return Ok(Some(value));
            }
        }
        self.is_malformed = true;
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn fields_are_found_outside_of_groups() {
        const NUMBER: Range<u64> = 0..0;
        let max = [0xff; 9];
        let groups = b"\x08\x01\x0b\x10\x01\x13\x12\x01x\x14\x10\x01\x0c\x18\x01";
        for (bytes, expected, is_malformed) in [
            (b"\x08\x96\x01\x10\x05".as_slice(), &[(1, NUMBER), (2, NUMBER)][..], false),
            (b"\x09abcdefgh\x15abcd", &[(1, NUMBER), (2, NUMBER)], false),
            (b"\x09abcdefg", &[], true),
            (b"\x15abc", &[], true),
            (b"\x12\x03abc\x12\0", &[(2, 2..5), (2, 7..7)], false),
            (b"\x12\x04abc", &[], true),
            (b"\x82\x01\x01x", &[(16, 3..4)], false),
            (b"\x12\x81\x80\0x", &[(2, 4..5)], false),
            (groups, &[(1, NUMBER), (3, NUMBER)], false),
            (b"\x0b\x10\x01", &[], false),
            (b"\x0c", &[], true),
            (b"\x0b\x0c\x0c", &[], true),
            (b"\0\x01", &[], true),
            (b"\x02\x01x", &[], true),
            (b"\x0e", &[], true),
            (b"\x0f", &[], true),
            (b"\x08", &[], true),
            (b"\x88", &[], true),
            (&[&[8], max.as_slice(), &[1]].concat(), &[(1, NUMBER)], false),
            (&[&[8], max.as_slice(), &[0x81, 1]].concat(), &[], true),
            (&[&[0x12], max.as_slice(), &[1]].concat(), &[], true),
        ] {
            let source = [b"~", bytes].concat();
            let source = source.as_slice();
            let (mut reader, mut fields) = (Reader::new(&source), Fields::new(1..source.len() as u64));
            let mut found = Vec::new();
            while let Some((number, field)) = fields.next(&mut reader).expect("in memory") {
                let range = match field {
                    Field::Number => NUMBER,
                    Field::Bytes(range) => range.start - 1..range.end - 1,
                };
                found.push((number, range));
            }
            let found = (found.as_slice(), fields.is_malformed);
            assert_eq!(found, (expected, is_malformed), "{}", bytes.escape_ascii());
        }
    }
}
