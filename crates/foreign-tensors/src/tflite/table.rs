//! Tables of flatbuffers. Every offset is compared with the file before it is followed.
//!
//! Source: <https://flatbuffers.dev/internals/>.

use alloc::string::String;
use core::ops::Range;

use crate::error::Error;
use crate::reader::{Budget, Reader};

/// A table and the offsets of its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    at: u64,
    len: u64,
    fields: u64,
    fields_len: u64,
}

/// A vector of values of one width.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Vector {
    pub(super) at: u64,
    pub(super) count: u64,
}

fn malformed(problem: &'static str, at: u64) -> Error {
    Error::malformed(problem).at(at)
}

/// Where the offset at `at` leads to.
fn follow(reader: &mut Reader<'_>, at: u64) -> Result<u64, Error> {
    let offset = u32::from_le_bytes(reader.array(at)?);
    let target = at + u64::from(offset);
    if offset < 4 || target >= reader.len() {
        return Err(malformed("an offset leads out of the file", at));
    }
    Ok(target)
}

impl Table {
    /// The root of the file.
    pub(super) fn root(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let at = follow(reader, 0)?;
        Self::new(reader, at)
    }

    fn new(reader: &mut Reader<'_>, at: u64) -> Result<Self, Error> {
        let back = i64::from(i32::from_le_bytes(reader.array(at)?));
        let fields = at.checked_add_signed(-back).filter(|fields| *fields < reader.len());
        let fields = fields.ok_or_else(|| malformed("the fields of a table are out of the file", at))?;
        let [fields_len, len] =
            [fields, fields + 2].map(|at| reader.array(at).map(|len| u64::from(u16::from_le_bytes(len))));
        let table = Self { at, len: len?, fields, fields_len: fields_len? };
        let fits = |start: u64, len: u64| len >= 4 && start + len <= reader.len();
        if fits(fields, table.fields_len) && fits(at, table.len) {
            Ok(table)
        } else {
            Err(malformed("a table ends after the file", at))
        }
    }

    /// Where a field of `width` bytes is; `None` if the table does not have it.
    fn field(&self, reader: &mut Reader<'_>, number: u64, width: u64) -> Result<Option<u64>, Error> {
        let slot = 4 + 2 * number;
        if slot + 2 > self.fields_len {
            return Ok(None);
        }
        let offset = u64::from(u16::from_le_bytes(reader.array(self.fields + slot)?));
        if offset == 0 {
            return Ok(None);
        }
        if offset < 4 || offset + width > self.len {
            return Err(malformed("a field is out of its table", self.at));
        }
        Ok(Some(self.at + offset))
    }

    pub(super) fn u8(&self, reader: &mut Reader<'_>, number: u64) -> Result<u8, Error> {
        self.field(reader, number, 1)?.map_or(Ok(0), |at| reader.byte(at))
    }

    pub(super) fn u32(&self, reader: &mut Reader<'_>, number: u64) -> Result<u32, Error> {
        self.field(reader, number, 4)?.map_or(Ok(0), |at| reader.array(at).map(u32::from_le_bytes))
    }

    pub(super) fn u64(&self, reader: &mut Reader<'_>, number: u64) -> Result<u64, Error> {
        self.field(reader, number, 8)?.map_or(Ok(0), |at| reader.array(at).map(u64::from_le_bytes))
    }

    pub(super) fn table(&self, reader: &mut Reader<'_>, number: u64) -> Result<Option<Self>, Error> {
        let Some(at) = self.field(reader, number, 4)? else { return Ok(None) };
        let at = follow(reader, at)?;
        Self::new(reader, at).map(Some)
    }

    /// A vector of values of `width` bytes; an empty one if the table does not have it.
    pub(super) fn vector(&self, reader: &mut Reader<'_>, number: u64, width: u64) -> Result<Vector, Error> {
        let Some(at) = self.field(reader, number, 4)? else { return Ok(Vector::default()) };
        let at = follow(reader, at)?;
        let count = u64::from(u32::from_le_bytes(reader.array(at)?));
        if count * width > reader.len() - at - 4 {
            return Err(malformed("a vector ends after the file", at));
        }
        Ok(Vector { at: at + 4, count })
    }

    pub(super) fn string(
        &self,
        reader: &mut Reader<'_>,
        number: u64,
        budget: &mut Budget,
    ) -> Result<String, Error> {
        let bytes = self.vector(reader, number, 1)?.range(1);
        if bytes.is_empty() { Ok(String::new()) } else { reader.text(bytes, budget) }
    }
}

impl Vector {
    /// Its bytes.
    pub(super) const fn range(self, width: u64) -> Range<u64> {
        self.at..self.at + self.count * width
    }

    fn element(self, number: u64, width: u64) -> Result<u64, Error> {
        if number < self.count {
            Ok(self.at + number * width)
        } else {
            Err(malformed("a vector has no such element", self.at))
        }
    }

    /// An element of a vector of tables.
    pub(super) fn table(self, reader: &mut Reader<'_>, number: u64) -> Result<Table, Error> {
        let at = follow(reader, self.element(number, 4)?)?;
        Table::new(reader, at)
    }

    /// An element of a vector of numbers.
    pub(super) fn number<const N: usize>(
        self,
        reader: &mut Reader<'_>,
        number: u64,
    ) -> Result<[u8; N], Error> {
        reader.array(self.element(number, N as u64)?)
    }
}
