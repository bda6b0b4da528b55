//! Bytes to values of serde types.

use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::refusal::Refusal;
use crate::codec::PayloadReader;
use crate::error::{Error, ErrorKind};

/// Reason of errors for types that need self-describing input.
const NO_TYPES: ErrorKind = ErrorKind::Unsupported {
    what: "types of values, which untagged, internally tagged and flattened types ask for",
};
const NO_NAMES: ErrorKind = ErrorKind::Unsupported { what: "names of fields" };
const NO_SKIPPING: ErrorKind =
    ErrorKind::Unsupported { what: "values that can be passed over without their type" };

/// Reads one value after the other.
#[derive(Debug)]
pub(super) struct Decoder<'i, 'r> {
    input: &'i mut PayloadReader<'r>,
    /// Remaining levels of nesting: a recursive type recurses for each.
    levels_left: usize,
    /// Remaining elements without bytes: nothing else bounds their number.
    empty_left: u64,
    /// Elements that all open lists have announced in their size hints. A type may allocate for them, so their sum never exceeds
    /// the number of bytes, although each nested list alone could declare that many.
    hinted: u64,
}

impl<'i, 'r> Decoder<'i, 'r> {
    pub(super) const fn new(input: &'i mut PayloadReader<'r>) -> Self {
        let limits = input.limits();
        let (levels_left, empty_left) = (limits.payload_depth, limits.empty_elements);
        Self { input, levels_left, empty_left, hinted: 0 }
    }

    pub(super) const fn offset(&self) -> u64 {
        self.input.offset()
    }

    /// Reads values one level deeper.
    fn deeper<V>(&mut self, read: impl FnOnce(&mut Self) -> Result<V, Refusal>) -> Result<V, Refusal> {
        let Some(levels_left) = self.levels_left.checked_sub(1) else {
            let limit = self.input.limits().payload_depth as u64;
            let kind =
                ErrorKind::Limit { what: "levels of values within each other", found: limit + 1, limit };
            return Err(kind.at(self.offset()).into());
        };
        self.levels_left = levels_left;
        let value = read(self)?;
        self.levels_left += 1;
        Ok(value)
    }

    fn list<V>(
        &mut self,
        len: u64,
        at: u64,
        read: impl FnOnce(Elements<'_, 'i, 'r>) -> Result<V, Refusal>,
    ) -> Result<V, Refusal> {
        let available = self.input.remaining();
        if len > available.saturating_add(self.empty_left) {
            return Err(ErrorKind::Count { count: len, available }.at(at).into());
        }
        let hinted = len.min(available.saturating_sub(self.hinted));
        self.hinted += hinted;
        self.deeper(|decoder| read(Elements { decoder, left: len, hinted }))
    }

    fn char(&mut self) -> Result<char, Error> {
        let at = self.offset();
        let invalid = || ErrorKind::InvalidUtf8.at(at);
        let mut bytes = [self.input.u8()?, 0, 0, 0];
        let len = match bytes[0] {
            0x00..=0x7F => 1,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return Err(invalid()),
        };
        for byte in bytes.iter_mut().take(len).skip(1) {
            *byte = self.input.u8()?;
        }
        let text = bytes.get(..len).and_then(|bytes| core::str::from_utf8(bytes).ok());
        text.and_then(|text| text.chars().next()).ok_or_else(invalid)
    }
}

macro_rules! scalars {
    ($($deserialize:ident, $read:ident, $visit:ident;)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
            visitor.$visit(self.input.$read()?)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Decoder<'_, '_> {
    type Error = Refusal;

    scalars! {
        deserialize_bool, bool, visit_bool;
        deserialize_i8, i8, visit_i8;
        deserialize_i16, i16, visit_i16;
        deserialize_i32, i32, visit_i32;
        deserialize_i64, i64, visit_i64;
        deserialize_i128, i128, visit_i128;
        deserialize_u8, u8, visit_u8;
        deserialize_u16, u16, visit_u16;
        deserialize_u32, u32, visit_u32;
        deserialize_u64, u64, visit_u64;
        deserialize_u128, u128, visit_u128;
        deserialize_f32, f32, visit_f32;
        deserialize_f64, f64, visit_f64;
        deserialize_str, string, visit_string;
        deserialize_string, string, visit_string;
        deserialize_bytes, bytes, visit_byte_buf;
        deserialize_byte_buf, bytes, visit_byte_buf;
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_char(self.char()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.input.option()? {
            true => self.deeper(|decoder| visitor.visit_some(decoder)),
            false => visitor.visit_none(),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deeper(|decoder| visitor.visit_newtype_struct(decoder))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let at = self.offset();
        let len = self.input.u64()?;
        self.list(len, at, |elements| visitor.visit_seq(elements))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refusal> {
        self.deeper(|decoder| visitor.visit_seq(Fields { decoder, left: len }))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let at = self.offset();
        let len = self.input.u64()?;
        self.list(len, at, |elements| visitor.visit_map(elements))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        self.deeper(|decoder| visitor.visit_enum(decoder))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Refusal> {
        Err(NO_TYPES.into())
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Refusal> {
        Err(NO_NAMES.into())
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Refusal> {
        Err(NO_SKIPPING.into())
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> EnumAccess<'de> for &mut Decoder<'_, '_> {
    type Error = Refusal;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refusal> {
        let at = self.offset();
        let idx: U32Deserializer<Refusal> = self.input.u32()?.into_deserializer();
        match seed.deserialize(idx) {
            Ok(variant) => Ok((variant, self)),
            Err(Refusal(error)) => Err(error.moved_to(at).into()),
        }
    }
}

impl<'de> VariantAccess<'de> for &mut Decoder<'_, '_> {
    type Error = Refusal;

    fn unit_variant(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refusal> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_seq(Fields { decoder: self, left: len })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_seq(Fields { decoder: self, left: fields.len() })
    }
}

/// The fields of a struct: their number is given by the type, not by the file.
struct Fields<'d, 'i, 'r> {
    decoder: &'d mut Decoder<'i, 'r>,
    left: usize,
}

impl<'de> SeqAccess<'de> for Fields<'_, '_, '_> {
    type Error = Refusal;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refusal> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        seed.deserialize(&mut *self.decoder).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// The elements of a list, or the entries of a map: their number is declared by the file.
struct Elements<'d, 'i, 'r> {
    decoder: &'d mut Decoder<'i, 'r>,
    left: u64,
    hinted: u64,
}

impl Elements<'_, '_, '_> {
    /// Whether there is another one.
    fn next(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        true
    }

    /// After an element that began at `start`.
    fn count_empty(&mut self, start: u64) -> Result<(), Refusal> {
        if self.decoder.offset() > start {
            return Ok(());
        }
        let Some(empty_left) = self.decoder.empty_left.checked_sub(1) else {
            let limit = self.decoder.input.limits().empty_elements;
            let kind = ErrorKind::Limit { what: "list elements that take no bytes", found: limit + 1, limit };
            return Err(kind.at(start).into());
        };
        self.decoder.empty_left = empty_left;
        Ok(())
    }

    fn hint(&self) -> Option<usize> {
        usize::try_from(self.hinted.min(self.left)).ok()
    }
}

impl Drop for Elements<'_, '_, '_> {
    fn drop(&mut self) {
        self.decoder.hinted -= self.hinted;
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, '_, '_> {
    type Error = Refusal;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refusal> {
        if !self.next() {
            return Ok(None);
        }
        let start = self.decoder.offset();
        let element = seed.deserialize(&mut *self.decoder)?;
        self.count_empty(start)?;
        Ok(Some(element))
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}

impl<'de> MapAccess<'de> for Elements<'_, '_, '_> {
    type Error = Refusal;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refusal> {
        if !self.next() {
            return Ok(None);
        }
        let start = self.decoder.offset();
        let key = seed.deserialize(&mut *self.decoder)?;
        self.count_empty(start)?;
        Ok(Some(key))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        seed.deserialize(&mut *self.decoder)
    }

    fn size_hint(&self) -> Option<usize> {
        self.hint()
    }
}
