//! Encodes values as bytes.

use alloc::vec::Vec;

use super::{Value, ValueType};
use crate::cursor::{Endian, Form};

/// A number as an element of an array to be written.
pub trait Number: private::Sealed + Copy {
    /// Its type.
    const TYPE: ValueType;

    /// It as a value.
    fn value(self) -> Value<'static>;
}

mod private {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($number:ty => $variant:ident),* $(,)?) => {
        $(
            impl private::Sealed for $number {}

            impl Number for $number {
                const TYPE: ValueType = ValueType::$variant;

                fn value(self) -> Value<'static> {
                    Value::$variant(self)
                }
            }
        )*
    };
}

numbers! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool, u64 => U64, i64 => I64, f64 => F64,
}

/// Puts the least significant `size` bytes of a number.
pub(crate) fn put_number(out: &mut Vec<u8>, bits: u64, size: usize, endian: Endian) {
    match endian {
        Endian::Little => out.extend(bits.to_le_bytes().into_iter().take(size)),
        Endian::Big => out.extend(bits.to_be_bytes().into_iter().skip(8 - size)),
    }
}

/// Puts a value without its type.
pub(crate) fn put_value(out: &mut Vec<u8>, value: &Value<'_>, form: Form) {
    let bits = match *value {
        Value::U8(value) => value.into(),
        Value::I8(value) => u64::from(value as u8),
        Value::U16(value) => value.into(),
        Value::I16(value) => u64::from(value as u16),
        Value::U32(value) => value.into(),
        Value::I32(value) => u64::from(value as u32),
        Value::F32(value) => value.to_bits().into(),
        Value::Bool(value) => value.into(),
        Value::U64(value) => value,
        Value::I64(value) => value as u64,
        Value::F64(value) => value.to_bits(),
        Value::Text(text) => return put_text(out, text.as_bytes(), form),
        Value::Array(array) => {
            put_number(out, array.element_type().id().into(), 4, form.endian);
            put_number(out, array.len() as u64, form.len_bytes(), form.endian);
            // Truth values are written as 0 and 1 whatever they were read from.
            let (bytes, old_form) = array.encoded();
            if old_form == form && array.element_type() != ValueType::Bool {
                return out.extend_from_slice(bytes);
            }
            return array.iter().for_each(|element| put_value(out, &element, form));
        }
    };
    put_number(out, bits, value.value_type().size(), form.endian);
}

/// Puts a string with its length.
pub(crate) fn put_text(out: &mut Vec<u8>, text: &[u8], form: Form) {
    put_number(out, text.len() as u64, form.len_bytes(), form.endian);
    out.extend_from_slice(text);
}
