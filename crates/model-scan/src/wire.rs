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
