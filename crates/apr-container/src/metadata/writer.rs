//! MessagePack writer: every length and number in its shortest form, maps sorted by key.

use alloc::format;
use alloc::vec::Vec;

use super::budget::Budget;
use super::reader::{DEEPEST, under};
use super::record::List;
use super::value::Value;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::map::Map;

/// A value that can be written.
pub(super) trait Written {
    /// Whether a structure leaves it out.
    fn is_absent(&self) -> bool {
        false
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error>;
}

/// Writes values one after the other, within the same limits as the reader's.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    budget: Budget,
    levels_left: usize,
    deepest: usize,
}

impl Writer {
    pub(super) fn new(limits: &Limits) -> Self {
        let deepest = limits.metadata_depth.min(DEEPEST);
        Self { bytes: Vec::new(), budget: Budget::open(), levels_left: deepest, deepest }
    }

    /// The bytes, if a reader with the same limits accepts them.
    pub(super) fn finish(mut self, limits: &Limits) -> Result<Vec<u8>, Error> {
        let (found, limit) = (self.bytes.len() as u64, limits.metadata_bytes);
        if found > limit {
            return Err(ErrorKind::Limit { what: "bytes of metadata", found, limit }.into());
        }
        if !self.budget.allow(found, limits) {
            return Err(self.budget.exceeded());
        }
        Ok(self.bytes)
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Error> {
        self.budget.charge(text.len() as u64)?;
        match text.len() {
            len @ 0..32 => self.bytes.push(0xA0 | len as u8),
            len => self.long_len(len, Some(0xD9), 0xDA)?,
        }
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    pub(super) fn unsigned(&mut self, value: u64) {
        match value {
            0..0x80 => self.bytes.push(value as u8),
            0x80..0x100 => self.bytes.extend_from_slice(&[0xCC, value as u8]),
            0x100..0x1_0000 => self.scalar(0xCD, (value as u16).to_be_bytes()),
            0x1_0000..0x1_0000_0000 => self.scalar(0xCE, (value as u32).to_be_bytes()),
            _ => self.scalar(0xCF, value.to_be_bytes()),
        }
    }

    pub(super) fn narrow_number(&mut self, value: f32) {
        self.scalar(0xCA, value.to_be_bytes());
    }

    pub(super) fn list(&mut self, list: &dyn List) -> Result<(), Error> {
        self.budget.charge_list(list.count(), list.element_size())?;
        match list.count() {
            len @ 0..16 => self.bytes.push(0x90 | len as u8),
            len => self.long_len(len, None, 0xDC)?,
        }
        self.enter()?;
        let mut idx = 0;
        while let Some(element) = list.get(idx) {
            element.write(self).map_err(|error| under(error, &format!("{idx}")))?;
            idx += 1;
        }
        self.levels_left += 1;
        Ok(())
    }

    pub(super) fn map(&mut self, entries: &Map<Value>) -> Result<(), Error> {
        self.charge_entries(entries.len())?;
        self.begin_entries(entries.len())?;
        for (key, value) in entries {
            self.entry(key, value)?;
        }
        self.levels_left += 1;
        Ok(())
    }

    /// Fields that are present and entries of no field, `extra`, sorted together.
    pub(super) fn structure<'v>(
        &mut self,
        mut fields: Vec<(&'v str, &'v dyn Written)>,
        extra: &'v Map<Value>,
    ) -> Result<(), Error> {
        self.charge_entries(extra.len())?;
        fields.extend(extra.iter().map(|(key, value)| (key.as_str(), value as &dyn Written)));
        fields.sort_unstable_by_key(|(key, _)| *key);
        self.begin_entries(fields.len())?;
        for (key, value) in fields {
            self.entry(key, value)?;
        }
        self.levels_left += 1;
        Ok(())
    }

    fn begin_entries(&mut self, len: usize) -> Result<(), Error> {
        match len {
            0..16 => self.bytes.push(0x80 | len as u8),
            len => self.long_len(len, None, 0xDE)?,
        }
        self.enter()
    }

    fn entry(&mut self, key: &str, value: &dyn Written) -> Result<(), Error> {
        self.text(key)?;
        value.write(self).map_err(|error| under(error, key))
    }

    fn signed(&mut self, value: i64) {
        match value {
            0.. => self.unsigned(value.unsigned_abs()),
            -0x20..0 => self.bytes.push(value as u8),
            -0x80..-0x20 => self.bytes.extend_from_slice(&[0xD0, value as u8]),
            -0x8000..-0x80 => self.scalar(0xD1, (value as i16).to_be_bytes()),
            -0x8000_0000..-0x8000 => self.scalar(0xD2, (value as i32).to_be_bytes()),
            _ => self.scalar(0xD3, value.to_be_bytes()),
        }
    }

    fn raw_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.budget.charge(bytes.len() as u64)?;
        self.long_len(bytes.len(), Some(0xC4), 0xC5)?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn extension(&mut self, number: i8, bytes: &[u8]) -> Result<(), Error> {
        self.budget.charge(bytes.len() as u64)?;
        match bytes.len() {
            len @ (1 | 2 | 4 | 8 | 16) => self.bytes.push(0xD4 + len.ilog2() as u8),
            len => self.long_len(len, Some(0xC7), 0xC8)?,
        }
        self.bytes.extend_from_slice(&number.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// A length of one byte after the marker `short`, if there is such a form; of two after `wide`, of four after the next marker.
    fn long_len(&mut self, len: usize, short: Option<u8>, wide: u8) -> Result<(), Error> {
        match (u8::try_from(len), short, u16::try_from(len), u32::try_from(len)) {
            (Ok(len), Some(marker), ..) => self.bytes.extend_from_slice(&[marker, len]),
            (_, _, Ok(len), _) => self.scalar(wide, len.to_be_bytes()),
            (_, _, _, Ok(len)) => self.scalar(wide + 1, len.to_be_bytes()),
            _ => {
                let (len, limit) = (len as u64, u32::MAX.into());
                return Err(ErrorKind::TooLargeForFormat { part: "metadata value", len, limit }.into());
            }
        }
        Ok(())
    }

    fn scalar<const N: usize>(&mut self, marker: u8, bytes: [u8; N]) {
        self.bytes.push(marker);
        self.bytes.extend_from_slice(&bytes);
    }

    fn charge_entries(&mut self, len: usize) -> Result<(), Error> {
        (0..len).try_for_each(|idx| self.budget.charge_entry(idx))
    }

    fn enter(&mut self) -> Result<(), Error> {
        let Some(levels_left) = self.levels_left.checked_sub(1) else {
            let limit = self.deepest as u64;
            return Err(
                ErrorKind::Limit { what: "nested levels of metadata", found: limit + 1, limit }.into()
            );
        };
        self.levels_left = levels_left;
        Ok(())
    }
}

impl Written for Value {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        match self {
            Self::Nil => out.bytes.push(0xC0),
            Self::Bool(value) => out.bytes.push(0xC2 | u8::from(*value)),
            Self::Int(value) => out.signed(*value),
            Self::UInt(value) => out.unsigned(*value),
            Self::F32(value) => out.narrow_number(*value),
            Self::F64(value) => out.scalar(0xCB, value.to_be_bytes()),
            Self::String(text) => return out.text(text),
            Self::Bytes(bytes) => return out.raw_bytes(bytes),
            Self::Ext(number, bytes) => return out.extension(*number, bytes),
            Self::Array(values) => return out.list(values),
            Self::Map(entries) => return out.map(entries),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::limits::Strictness;
    use crate::metadata::reader::Reader;

    fn written(value: &Value) -> Vec<u8> {
        let mut out = Writer::new(&Limits::DEFAULT);
        value.write(&mut out).unwrap();
        out.finish(&Limits::DEFAULT).unwrap()
    }

    #[test]
    fn lengths_and_numbers_take_their_shortest_form() {
        let text = |len| Value::from("x".repeat(len));
        let bytes = |len| Value::Bytes(vec![0; len]);
        let ext = |len| Value::Ext(-1, vec![0; len]);
        let list = |len| Value::Array(vec![Value::Nil; len]);
        let map = |len| Value::Map((0..len).map(|idx| (format!("{idx}"), Value::Nil)).collect());
        for (value, beginning, len) in [
            (Value::Int(127), &[0x7F][..], 1),
            (Value::Int(128), &[0xCC, 128], 2),
            (Value::Int(255), &[0xCC, 255], 2),
            (Value::Int(256), &[0xCD, 1, 0], 3),
            (Value::Int(0xFFFF), &[0xCD, 255, 255], 3),
            (Value::Int(0x1_0000), &[0xCE, 0, 1, 0, 0], 5),
            (Value::Int(0xFFFF_FFFF), &[0xCE, 255, 255, 255, 255], 5),
            (Value::Int(0x1_0000_0000), &[0xCF, 0, 0, 0, 1], 9),
            (Value::UInt(u64::MAX), &[0xCF, 255], 9),
            (Value::UInt(1), &[1], 1),
            (Value::Int(-1), &[0xFF], 1),
            (Value::Int(-32), &[0xE0], 1),
            (Value::Int(-33), &[0xD0, 0xDF], 2),
            (Value::Int(-128), &[0xD0, 0x80], 2),
            (Value::Int(-129), &[0xD1, 0xFF, 0x7F], 3),
            (Value::Int(-0x8000), &[0xD1, 0x80, 0], 3),
            (Value::Int(-0x8001), &[0xD2, 0xFF, 0xFF, 0x7F, 0xFF], 5),
            (Value::Int(-0x8000_0000), &[0xD2, 0x80, 0, 0, 0], 5),
            (Value::Int(-0x8000_0001), &[0xD3, 0xFF], 9),
            (Value::Int(i64::MIN), &[0xD3, 0x80], 9),
            (Value::F32(0.5), &[0xCA, 0x3F], 5),
            (Value::F64(0.5), &[0xCB, 0x3F, 0xE0], 9),
            (text(31), &[0xBF], 32),
            (text(32), &[0xD9, 32], 34),
            (text(255), &[0xD9, 255], 257),
            (text(256), &[0xDA, 1, 0], 259),
            (text(0xFFFF), &[0xDA, 255, 255], 0x1_0002),
            (text(0x1_0000), &[0xDB, 0, 1, 0, 0], 0x1_0005),
            (bytes(0), &[0xC4, 0], 2),
            (bytes(256), &[0xC5, 1, 0], 259),
            (bytes(0x1_0000), &[0xC6, 0, 1, 0, 0], 0x1_0005),
            (ext(0), &[0xC7, 0, 0xFF], 3),
            (ext(1), &[0xD4, 0xFF], 3),
            (ext(2), &[0xD5, 0xFF], 4),
            (ext(3), &[0xC7, 3, 0xFF], 6),
            (ext(4), &[0xD6, 0xFF], 6),
            (ext(8), &[0xD7, 0xFF], 10),
            (ext(16), &[0xD8, 0xFF], 18),
            (ext(256), &[0xC8, 1, 0, 0xFF], 260),
            (ext(0x1_0000), &[0xC9, 0, 1, 0, 0, 0xFF], 0x1_0006),
            (list(15), &[0x9F, 0xC0], 16),
            (list(16), &[0xDC, 0, 16, 0xC0], 19),
            (map(15), &[0x8F, 0xA1, b'0', 0xC0, 0xA1, b'1', 0xC0, 0xA2, b'1', b'0'], 51),
            (map(16), &[0xDE, 0, 16, 0xA1, b'0'], 57),
        ] {
            let found = written(&value);
            assert!(found.starts_with(beginning), "{:02x?}", found.get(..12));
            assert_eq!(found.len(), len, "{beginning:02x?}");
            let read = Reader::new(&found, Strictness::Strict, &Limits::DEFAULT).unwrap().value().unwrap();
            assert_eq!(written(&read), found);
        }
        let limits = Limits { metadata_memory: 1 << 30, ..Limits::DEFAULT };
        let mut out = Writer::new(&limits);
        list(0x1_0000).write(&mut out).unwrap();
        assert!(out.finish(&limits).unwrap().starts_with(&[0xDD, 0, 1, 0, 0, 0xC0]));
        let mut out = Writer::new(&limits);
        map(0x1_0000).write(&mut out).unwrap();
        assert!(out.finish(&limits).unwrap().starts_with(&[0xDF, 0, 1, 0, 0, 0xA1]));
    }

    #[test]
    fn what_the_reader_would_refuse_is_not_written() {
        let mut nested = Value::Nil;
        for _ in 0..65 {
            nested = Value::Array(vec![nested]);
        }
        let error = nested.write(&mut Writer::new(&Limits::DEFAULT)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { found: 65, limit: 64, .. }), "{error}");

        let mut out = Writer::new(&Limits::DEFAULT);
        Value::Array(vec![Value::Nil; 1 << 16]).write(&mut out).unwrap();
        assert_eq!(out.finish(&Limits::DEFAULT).unwrap_err().code(), "ac-metadata-dense");

        let limits = Limits { metadata_bytes: 3, ..Limits::DEFAULT };
        let mut out = Writer::new(&limits);
        Value::from("abc").write(&mut out).unwrap();
        let error = out.finish(&limits).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { found: 4, limit: 3, .. }), "{error}");
    }
}
