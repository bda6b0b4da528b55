//! Values of serde types to bytes.

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use super::refusal::Refusal;
use crate::codec::PayloadWriter;
use crate::error::ErrorKind;

/// Writes one value.
pub(super) struct Encoder<'o, 'w> {
    out: &'o mut PayloadWriter<'w>,
}

impl<'o, 'w> Encoder<'o, 'w> {
    pub(super) const fn new(out: &'o mut PayloadWriter<'w>) -> Self {
        Self { out }
    }

    /// A struct, whose number of fields its type gives.
    const fn fields(self) -> Elements<'o, 'w> {
        Elements { out: self.out, announced: None, written: 0 }
    }

    fn list(self, len: Option<usize>) -> Result<Elements<'o, 'w>, Refusal> {
        let Some(len) = len else {
            return Err(ErrorKind::Unsupported {
                what: "lists and maps whose length is not known beforehand",
            }
            .into());
        };
        self.out.usize(len)?;
        Ok(Elements { out: self.out, announced: Some(len), written: 0 })
    }
}

macro_rules! scalars {
    ($($serialize:ident, $write:ident, $ty:ty;)*) => {
        $(#[inline]
        fn $serialize(self, value: $ty) -> Result<(), Refusal> {
            Ok(self.out.$write(value)?)
        })*
    };
}

impl<'o, 'w> Serializer for Encoder<'o, 'w> {
    type Ok = ();
    type Error = Refusal;
    type SerializeSeq = Elements<'o, 'w>;
    type SerializeTuple = Elements<'o, 'w>;
    type SerializeTupleStruct = Elements<'o, 'w>;
    type SerializeTupleVariant = Elements<'o, 'w>;
    type SerializeMap = Elements<'o, 'w>;
    type SerializeStruct = Elements<'o, 'w>;
    type SerializeStructVariant = Elements<'o, 'w>;

    scalars! {
        serialize_bool, bool, bool;
        serialize_i8, i8, i8;
        serialize_i16, i16, i16;
        serialize_i32, i32, i32;
        serialize_i64, i64, i64;
        serialize_i128, i128, i128;
        serialize_u8, u8, u8;
        serialize_u16, u16, u16;
        serialize_u32, u32, u32;
        serialize_u64, u64, u64;
        serialize_u128, u128, u128;
        serialize_f32, f32, f32;
        serialize_f64, f64, f64;
        serialize_str, str, &str;
        serialize_bytes, bytes, &[u8];
    }

    fn serialize_char(self, value: char) -> Result<(), Refusal> {
        Ok(self.out.bytes_raw(value.encode_utf8(&mut [0; 4]).as_bytes())?)
    }

    fn serialize_none(self) -> Result<(), Refusal> {
        Ok(self.out.option(false)?)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Refusal> {
        self.out.option(true)?;
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Refusal> {
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Refusal> {
        Ok(())
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        variant_index: u32,
        _variant: &'static str,
    ) -> Result<(), Refusal> {
        Ok(self.out.variant(variant_index)?)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Refusal> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        variant_index: u32,
        _variant: &'static str,
        value: &T,
    ) -> Result<(), Refusal> {
        self.out.variant(variant_index)?;
        value.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Elements<'o, 'w>, Refusal> {
        self.list(len)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Elements<'o, 'w>, Refusal> {
        Ok(self.fields())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Elements<'o, 'w>, Refusal> {
        Ok(self.fields())
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        variant_index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Elements<'o, 'w>, Refusal> {
        self.out.variant(variant_index)?;
        Ok(self.fields())
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Elements<'o, 'w>, Refusal> {
        self.list(len)
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Elements<'o, 'w>, Refusal> {
        Ok(self.fields())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        variant_index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<Elements<'o, 'w>, Refusal> {
        self.out.variant(variant_index)?;
        Ok(self.fields())
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Writes values one after the other.
pub(super) struct Elements<'o, 'w> {
    out: &'o mut PayloadWriter<'w>,
    announced: Option<usize>,
    written: usize,
}

impl Elements<'_, '_> {
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refusal> {
        value.serialize(Encoder::new(self.out))
    }

    /// A reader would misinterpret the following bytes as elements, or elements as the following bytes.
    fn finish(self) -> Result<(), Refusal> {
        match self.announced {
            Some(len) if len != self.written => Err(ErrorKind::InvalidValue {
                what: "a list or map of another length than its type announced",
            }
            .into()),
            _ => Ok(()),
        }
    }
}

macro_rules! elements {
    ($($trait:ident, $element:ident;)*) => {
        $(impl $trait for Elements<'_, '_> {
            type Ok = ();
            type Error = Refusal;

            fn $element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refusal> {
                self.written += 1;
                self.element(value)
            }

            fn end(self) -> Result<(), Refusal> {
                self.finish()
            }
        })*
    };
}

elements! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
    SerializeTupleVariant, serialize_field;
}

macro_rules! named_fields {
    ($($trait:ident;)*) => {
        $(impl $trait for Elements<'_, '_> {
            type Ok = ();
            type Error = Refusal;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                _name: &'static str,
                value: &T,
            ) -> Result<(), Refusal> {
                self.element(value)
            }

            fn end(self) -> Result<(), Refusal> {
                self.finish()
            }
        })*
    };
}

named_fields! {
    SerializeStruct;
    SerializeStructVariant;
}

impl SerializeMap for Elements<'_, '_> {
    type Ok = ();
    type Error = Refusal;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refusal> {
        self.written += 1;
        self.element(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refusal> {
        self.element(value)
    }

    fn end(self) -> Result<(), Refusal> {
        self.finish()
    }
}
