//! MessagePack reader.
//!
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>. Every form of a number, string or list is read, not only the
//! shortest: other writers use them.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use super::budget::Budget;
use super::record::List;
use super::value::Value;
use crate::error::{Error, ErrorKind};
use crate::limits::{Limits, Strictness};
use crate::map::Map;

/// Maximum nesting whatever the limits are: reading and dropping values uses the stack.
pub(super) const DEEPEST: usize = 256;

/// The part of a file in error messages.
const PART: &str = "metadata";

/// The head of a value: the whole value, except for lists and maps.
enum Head<'data> {
    Nil,
    Bool(bool),
    Int(i64),
    UInt(u64),
    F32(f32),
    F64(f64),
    Text(&'data [u8]),
    Bytes(&'data [u8]),
    Ext(i8, &'data [u8]),
    Array(u32),
    Map(u32),
}

impl Head<'_> {
    const fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "truth value",
            Self::Int(_) | Self::UInt(_) => "integer",
            Self::F32(_) | Self::F64(_) => "number",
            Self::Text(_) => "text",
            Self::Bytes(_) => "bytes",
            Self::Ext(..) => "extension",
            Self::Array(_) => "array",
            Self::Map(_) => "map",
        }
    }
}

/// How a struct is encoded.
pub(super) enum Shape {
    /// Fields by name, and their number.
    Named(usize),
    /// Fields in order, and their number: accepted with [`Strictness::Compat`].
    Positional(usize),
}

/// Reads values one after the other.
#[derive(Debug)]
pub(super) struct Reader<'data> {
    rest: &'data [u8],
    offset: u64,
    strictness: Strictness,
    budget: Budget,
    /// Remaining levels of nesting.
    levels_left: usize,
    deepest: usize,
}

impl<'data> Reader<'data> {
    pub(super) fn new(bytes: &'data [u8], strictness: Strictness, limits: &Limits) -> Result<Self, Error> {
        let len = bytes.len() as u64;
        if len > limits.metadata_bytes {
            let limit = limits.metadata_bytes;
            return Err(ErrorKind::Limit { what: "bytes of metadata", found: len, limit }.at(0));
        }
        let deepest = limits.metadata_depth.min(DEEPEST);
        let budget = Budget::new(len, limits);
        Ok(Self { rest: bytes, offset: 0, strictness, budget, levels_left: deepest, deepest })
    }

    /// Offset of the next value.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Checks that no bytes are left over (strict).
    pub(super) fn finish(self) -> Result<(), Error> {
        match (self.rest.len() as u64, self.strictness) {
            (1.., Strictness::Strict) => {
                Err(ErrorKind::MetadataTrailing { count: self.rest.len() as u64 }.at(self.offset))
            }
            _ => Ok(()),
        }
    }

    /// Skips a nil, if one is next.
    pub(super) fn nil(&mut self) -> bool {
        match self.rest {
            [0xC0, rest @ ..] => {
                self.rest = rest;
                self.offset += 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn text(&mut self) -> Result<String, Error> {
        let at = self.offset;
        let text = match self.head()? {
            Head::Text(text) => text,
            // The format's other readers accept bytes as a string.
            Head::Bytes(bytes) if self.strictness == Strictness::Compat => bytes,
            head => return Err(wrong_type("text", &head, at)),
        };
        self.checked_text(text)
    }

    pub(super) fn unsigned(&mut self) -> Result<u64, Error> {
        let at = self.offset;
        match self.head()? {
            Head::Int(value) => u64::try_from(value)
                .map_err(|_| ErrorKind::InvalidValue { what: "a count cannot be negative" }.at(at)),
            Head::UInt(value) => Ok(value),
            head => Err(wrong_type("integer", &head, at)),
        }
    }

    /// A number for a field of 32 bits; writers in languages with one type of number use the wider form.
    pub(super) fn narrow_number(&mut self) -> Result<f32, Error> {
        let at = self.offset;
        let wide = match self.head()? {
            Head::F32(value) => return Ok(value),
            Head::F64(value) => value,
            Head::Int(value) => value as f64,
            Head::UInt(value) => value as f64,
            head => return Err(wrong_type("number", &head, at)),
        };
        let narrow = wide as f32;
        match narrow.is_infinite() && wide.is_finite() {
            true => Err(ErrorKind::InvalidValue { what: "number outside the range of 32-bit floats" }.at(at)),
            false => Ok(narrow),
        }
    }

    /// A list, read into an empty one.
    pub(super) fn list(&mut self, list: &mut dyn List) -> Result<(), Error> {
        let at = self.offset;
        match self.head()? {
            Head::Array(count) => self.elements(list, count, at),
            head => Err(wrong_type("array", &head, at)),
        }
    }

    /// Values by key.
    pub(super) fn map(&mut self) -> Result<Map<Value>, Error> {
        let at = self.offset;
        match self.head()? {
            Head::Map(count) => self.entries(count, at),
            head => Err(wrong_type("map", &head, at)),
        }
    }

    /// The beginning of a structure; [`leave`](Self::leave) is its end.
    pub(super) fn structure(&mut self) -> Result<Shape, Error> {
        let at = self.offset;
        match self.head()? {
            Head::Map(count) => Ok(Shape::Named(self.enter(count, 2, at)?)),
            Head::Array(count) if self.strictness == Strictness::Compat => {
                Ok(Shape::Positional(self.enter(count, 1, at)?))
            }
            head => Err(wrong_type("map", &head, at)),
        }
    }

    /// After the last element or entry of a list, map or structure.
    pub(super) const fn leave(&mut self) {
        self.levels_left += 1;
    }

    /// A key that is in none of the structure's fields, and its value.
    pub(super) fn extra(&mut self, key: String, at: u64, extra: &mut Map<Value>) -> Result<(), Error> {
        self.budget.charge_entry(extra.len()).map_err(|error| error.at(at))?;
        if extra.contains_key(&key) {
            return Err(ErrorKind::MetadataDuplicate.at(at).about(Subject::key(&key)));
        }
        let value = self.value().map_err(|error| under(error, &key))?;
        extra.insert(key, value);
        Ok(())
    }

    pub(super) fn value(&mut self) -> Result<Value, Error> {
        let at = self.offset;
        Ok(match self.head()? {
            Head::Nil => Value::Nil,
            Head::Bool(value) => Value::Bool(value),
            Head::Int(value) => Value::Int(value),
            Head::UInt(value) => Value::from(value),
            Head::F32(value) => Value::F32(value),
            Head::F64(value) => Value::F64(value),
            Head::Text(text) => Value::String(self.checked_text(text)?),
            Head::Bytes(bytes) => Value::Bytes(self.copied(bytes)?),
            Head::Ext(number, bytes) => Value::Ext(number, self.copied(bytes)?),
            Head::Array(count) => {
                let mut values: Vec<Value> = Vec::new();
                self.elements(&mut values, count, at)?;
                Value::Array(values)
            }
            Head::Map(count) => Value::Map(self.entries(count, at)?),
        })
    }

    fn elements(&mut self, list: &mut dyn List, count: u32, at: u64) -> Result<(), Error> {
        let count = self.enter(count, 1, at)?;
        let size = list.element_size();
        self.budget.charge_list(count, size).map_err(|error| error.at(at))?;
        if !list.reserve(count) {
            let bytes = (count as u64).saturating_mul(size as u64);
            return Err(ErrorKind::OutOfMemory { bytes }.at(at));
        }
        for idx in 0..count {
            list.add().read(self).map_err(|error| under(error, &format!("{idx}")))?;
        }
        self.leave();
        Ok(())
    }

    fn entries(&mut self, count: u32, at: u64) -> Result<Map<Value>, Error> {
        let count = self.enter(count, 2, at)?;
        let mut entries = Map::new();
        for _ in 0..count {
            let at = self.offset;
            let key = self.text()?;
            self.extra(key, at, &mut entries)?;
        }
        self.leave();
        Ok(entries)
    }

    /// Goes a level deeper, for `count` elements of at least `min_len` bytes each.
    fn enter(&mut self, count: u32, min_len: u64, at: u64) -> Result<usize, Error> {
        let available = self.rest.len() as u64;
        if u64::from(count) > available / min_len {
            return Err(ErrorKind::Count { count: count.into(), available }.at(at));
        }
        let Some(levels_left) = self.levels_left.checked_sub(1) else {
            let limit = self.deepest as u64;
            return Err(
                ErrorKind::Limit { what: "nested levels of metadata", found: limit + 1, limit }.at(at)
            );
        };
        self.levels_left = levels_left;
        Ok(count as usize) // No truncation: there are as many bytes in memory.
    }

    /// A string that was just read.
    fn checked_text(&mut self, bytes: &[u8]) -> Result<String, Error> {
        let start = self.offset - bytes.len() as u64;
        let text = core::str::from_utf8(bytes)
            .map_err(|error| ErrorKind::InvalidUtf8.at(start + error.valid_up_to() as u64))?;
        self.budget.charge(bytes.len() as u64).map_err(|error| error.at(start))?;
        Ok(text.to_owned())
    }

    fn copied(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        let start = self.offset - bytes.len() as u64;
        self.budget.charge(bytes.len() as u64).map_err(|error| error.at(start))?;
        Ok(bytes.to_vec())
    }

    fn head(&mut self) -> Result<Head<'data>, Error> {
        let at = self.offset;
        let marker = self.number(0)? as u8;
        Ok(match marker {
            0x00..=0x7F => Head::Int(marker.into()),
            0x80..=0x8F => Head::Map(u32::from(marker & 0x0F)),
            0x90..=0x9F => Head::Array(u32::from(marker & 0x0F)),
            0xA0..=0xBF => Head::Text(self.take(u32::from(marker & 0x1F))?),
            0xC0 => Head::Nil,
            0xC1 => return Err(ErrorKind::MetadataMarker { found: marker }.at(at)),
            0xC2 => Head::Bool(false),
            0xC3 => Head::Bool(true),
            0xC4..=0xC6 => {
                let len = self.len(marker - 0xC4)?;
                Head::Bytes(self.take(len)?)
            }
            0xC7..=0xC9 => {
                let len = self.len(marker - 0xC7)?;
                self.extension(len)?
            }
            0xCA => Head::F32(f32::from_bits(self.number(2)? as u32)),
            0xCB => Head::F64(f64::from_bits(self.number(3)?)),
            0xCC..=0xCF => Head::UInt(self.number(marker - 0xCC)?),
            0xD0..=0xD3 => Head::Int(self.signed(marker - 0xD0)?),
            0xD4..=0xD8 => self.extension(1 << (marker - 0xD4))?,
            0xD9..=0xDB => {
                let len = self.len(marker - 0xD9)?;
                Head::Text(self.take(len)?)
            }
            0xDC..=0xDD => Head::Array(self.len(marker - 0xDC + 1)?),
            0xDE..=0xDF => Head::Map(self.len(marker - 0xDE + 1)?),
            0xE0..=0xFF => Head::Int((marker as i8).into()),
        })
    }

    /// A length of `1 << width` bytes, at most four.
    fn len(&mut self, width: u8) -> Result<u32, Error> {
        Ok(self.number(width)? as u32)
    }

    fn extension(&mut self, len: u32) -> Result<Head<'data>, Error> {
        let number = self.signed(0)? as i8;
        Ok(Head::Ext(number, self.take(len)?))
    }

    /// `1 << width` bytes, at most eight, the first in the highest place.
    fn number(&mut self, width: u8) -> Result<u64, Error> {
        let bytes = self.take(1 << width)?;
        Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The same in two's complement.
    fn signed(&mut self, width: u8) -> Result<i64, Error> {
        let unused = 64 - (8 << width);
        Ok((self.number(width)? << unused) as i64 >> unused)
    }

    fn take(&mut self, len: u32) -> Result<&'data [u8], Error> {
        match usize::try_from(len).ok().and_then(|len| self.rest.split_at_checked(len)) {
            Some((bytes, rest)) => {
                self.rest = rest;
                self.offset += u64::from(len);
                Ok(bytes)
            }
            None => {
                let (needed, available) = (len.into(), self.rest.len() as u64);
                Err(ErrorKind::Truncated { part: PART, needed, available }.at(self.offset))
            }
        }
    }
}

fn wrong_type(expected: &'static str, found: &Head<'_>, at: u64) -> Error {
    ErrorKind::MetadataType { expected, found: found.type_name() }.at(at)
}

/// The same error, with its subject within `key`.
pub(super) fn under(error: Error, key: &str) -> Error {
    match error.subject().map(Subject::name) {
        Some(inner) => {
            let path = format!("{key}.{inner}");
            error.about(Subject::key(&path))
        }
        None => error.about(Subject::key(key)),
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Value, Error> {
        let mut reader = Reader::new(bytes, Strictness::Strict, &Limits::DEFAULT)?;
        let value = reader.value()?;
        reader.finish()?;
        Ok(value)
    }

    #[test]
    fn every_form_of_every_type_is_read() {
        let text = |text: &str| Value::from(text);
        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        let one_entry = || Value::Map([("a".to_owned(), Value::Nil)].into());
        for (form, value) in [
            (&b"\x7f"[..], Value::Int(127)),
            (b"\xe0", Value::Int(-32)),
            (b"\xc0", Value::Nil),
            (b"\xc2", Value::Bool(false)),
            (b"\xc3", Value::Bool(true)),
            (b"\xcc\x01", Value::Int(1)),
            (b"\xcd\x00\x01", Value::Int(1)),
            (b"\xce\x00\x00\x00\x01", Value::Int(1)),
            (b"\xcf\x00\x00\x00\x00\x00\x00\x00\x01", Value::Int(1)),
            (b"\xcf\x80\x00\x00\x00\x00\x00\x00\x00", Value::UInt(1 << 63)),
            (b"\xd0\xff", Value::Int(-1)),
            (b"\xd1\x80\x00", Value::Int(i16::MIN.into())),
            (b"\xd2\x80\x00\x00\x00", Value::Int(i32::MIN.into())),
            (b"\xd3\x80\x00\x00\x00\x00\x00\x00\x00", Value::Int(i64::MIN)),
            (b"\xd3\x00\x00\x00\x00\x00\x00\x00\x01", Value::Int(1)),
            (b"\xca\x3f\x00\x00\x00", Value::F32(0.5)),
            (b"\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00", Value::F64(0.5)),
            (b"\xa2hi", text("hi")),
            (b"\xd9\x02hi", text("hi")),
            (b"\xda\x00\x02hi", text("hi")),
            (b"\xdb\x00\x00\x00\x02hi", text("hi")),
            (b"\xc4\x01\xff", bytes(&[255])),
            (b"\xc5\x00\x01\xff", bytes(&[255])),
            (b"\xc6\x00\x00\x00\x01\xff", bytes(&[255])),
            (b"\xd4\xff\x07", Value::Ext(-1, vec![7])),
            (b"\xd5\x01\x07\x08", Value::Ext(1, vec![7, 8])),
            (b"\xd6\x01\x01\x02\x03\x04", Value::Ext(1, vec![1, 2, 3, 4])),
            (b"\xd7\x01abcdefgh", Value::Ext(1, b"abcdefgh".to_vec())),
            (b"\xd8\x01abcdefghabcdefgh", Value::Ext(1, b"abcdefghabcdefgh".to_vec())),
            (b"\xc7\x00\x05", Value::Ext(5, vec![])),
            (b"\xc8\x00\x01\x05\x06", Value::Ext(5, vec![6])),
            (b"\xc9\x00\x00\x00\x01\x05\x06", Value::Ext(5, vec![6])),
            (b"\x91\xc0", Value::from(vec![Value::Nil])),
            (b"\xdc\x00\x01\xc0", Value::from(vec![Value::Nil])),
            (b"\xdd\x00\x00\x00\x01\xc0", Value::from(vec![Value::Nil])),
            (b"\x81\xa1a\xc0", one_entry()),
            (b"\xde\x00\x01\xa1a\xc0", one_entry()),
            (b"\xdf\x00\x00\x00\x01\xd9\x01a\xc0", one_entry()),
        ] {
            assert_eq!(read(form).unwrap(), value, "{form:02x?}");
            for len in 0..form.len() {
                let error = read(&form[..len]).unwrap_err();
                assert!(matches!(error.code(), "ac-truncated" | "ac-count"), "{form:02x?}: {error}");
                assert!(error.offset().is_some_and(|at| at <= len as u64));
            }
        }
    }

    #[test]
    fn refusals_say_what_where_and_under_which_key() {
        for (form, code, at, name) in [
            (&b"\xc1"[..], "ac-metadata-marker", 0, None),
            (b"\xc0\xc0", "ac-metadata-trailing", 1, None),
            (b"\xa3a\xffb", "ac-utf8", 2, None),
            (b"\xdf\xff\xff\xff\xff", "ac-count", 0, None),
            (b"\x92\xc0", "ac-count", 0, None),
            (b"\x82\xa1a\xc0\xa1b", "ac-truncated", 6, Some("b")),
            (b"\x91\x91\xdb\xff\xff\xff\xff", "ac-truncated", 7, Some("0.0")),
            (b"\x82\xa1a\xc0\xa1a\xc0", "ac-metadata-duplicate", 4, Some("a")),
            (b"\x81\x01\xc0", "ac-metadata-type", 1, None),
            (b"\x81\xa1a\x92\x01\x81\xa1b\xc1", "ac-metadata-marker", 8, Some("a.1.b")),
        ] {
            let error = read(form).unwrap_err();
            assert_eq!(
                (error.code(), error.offset(), error.subject().map(Subject::name)),
                (code, Some(at), name),
                "{form:02x?}"
            );
        }
    }

    #[test]
    fn nesting_is_bounded_and_a_level_left_can_be_entered_again() {
        let limits = Limits { metadata_depth: 2, ..Limits::DEFAULT };
        let read = |bytes: &[u8]| Reader::new(bytes, Strictness::Strict, &limits).unwrap().value();
        assert!(read(b"\x93\x90\x91\x01\x80").is_ok());
        let error = read(b"\x91\x91\x91\x01").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { found: 3, limit: 2, .. }), "{error}");
        assert_eq!((error.offset(), error.subject().map(Subject::name)), (Some(2), Some("0.0")));
        // The cap that protects the stack holds whatever the limit.
        let limits = Limits { metadata_depth: usize::MAX, metadata_memory: u64::MAX, ..Limits::DEFAULT };
        let nested = [0x91; 100_000];
        let error = Reader::new(&nested, Strictness::Strict, &limits).unwrap().value().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Limit { limit: 256, .. }), "{error}");
        let mut allowed = [0x91_u8; 256].to_vec();
        allowed.push(0xC0);
        assert!(Reader::new(&allowed, Strictness::Strict, &limits).unwrap().value().is_ok());
    }

    #[test]
    fn very_many_small_values_are_refused_before_they_take_memory() {
        let mut nils = vec![0xDD, 0, 1, 0, 0];
        nils.resize(5 + (1 << 16), 0xC0);
        let error = read(&nils).unwrap_err();
        let needed = (size_of::<Value>() as u64) << 16;
        let allowed = (1 << 20) + 3 * nils.len() as u64;
        assert!(
            matches!(error.kind(), ErrorKind::MetadataTooDense { needed: n, allowed: a } if (*n, *a) == (needed, allowed))
        );
        assert_eq!(error.offset(), Some(0));
        let maps: Vec<u8> = [0xDD, 0, 0, 8, 0].into_iter().chain([0x81, 0xA0, 0xC0].repeat(2048)).collect();
        assert_eq!(read(&maps).unwrap_err().code(), "ac-metadata-dense");
        let limits = Limits { metadata_memory: 1 << 24, ..Limits::DEFAULT };
        assert!(Reader::new(&maps, Strictness::Strict, &limits).unwrap().value().is_ok());
    }
}
