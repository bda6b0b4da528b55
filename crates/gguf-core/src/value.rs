//! Values of the metadata: numbers, strings, and arrays that are decoded on access.

mod array;
mod encode;

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::str::Utf8Error;

use crate::cursor::{Cursor, Form, Stop};
use crate::error::{Error, ErrorKind};
use crate::options::ReadOptions;

pub use self::array::{Array, Values};
pub use self::encode::Number;
pub(crate) use self::encode::{put_number, put_text, put_value};

macro_rules! value_types {
    ($($(#[$doc:meta])* $variant:ident = $id:literal, $name:literal, $size:literal;)*) => {
        /// Type of a value, or of the elements of an array.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ValueType {
            $($(#[$doc])* $variant,)*
        }

        impl ValueType {
            /// Number in files.
            #[must_use]
            pub const fn id(self) -> u32 {
                match self { $(Self::$variant => $id,)* }
            }

            /// The type with this number.
            #[must_use]
            pub const fn from_id(id: u32) -> Option<Self> {
                match id { $($id => Some(Self::$variant),)* _ => None }
            }

            /// Short name, for example `u32`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Bytes of a value; 0 for strings and arrays.
            pub(crate) const fn size(self) -> usize {
                match self { $(Self::$variant => $size,)* }
            }
        }
    };
}

value_types! {
    /// 8-bit unsigned integer.
    U8 = 0, "u8", 1;
    /// 8-bit integer.
    I8 = 1, "i8", 1;
    /// 16-bit unsigned integer.
    U16 = 2, "u16", 2;
    /// 16-bit integer.
    I16 = 3, "i16", 2;
    /// 32-bit unsigned integer.
    U32 = 4, "u32", 4;
    /// 32-bit integer.
    I32 = 5, "i32", 4;
    /// 32-bit float.
    F32 = 6, "f32", 4;
    /// One byte; anything but 0 is true.
    Bool = 7, "bool", 1;
    /// Bytes, as a rule UTF-8.
    Text = 8, "string", 0;
    /// Elements of one type.
    Array = 9, "array", 0;
    /// 64-bit unsigned integer.
    U64 = 10, "u64", 8;
    /// 64-bit integer.
    I64 = 11, "i64", 8;
    /// 64-bit float.
    F64 = 12, "f64", 8;
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A string of a file: a key, a tensor name, a value. UTF-8 in valid files; llama.cpp takes any bytes, and so does
/// this type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text<'data>(&'data [u8]);

impl<'data> Text<'data> {
    /// These bytes.
    #[must_use]
    pub const fn new(bytes: &'data [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(self) -> &'data [u8] {
        self.0
    }

    /// The text.
    ///
    /// # Errors
    ///
    /// If the bytes are not UTF-8.
    pub const fn to_str(self) -> Result<&'data str, Utf8Error> {
        core::str::from_utf8(self.0)
    }

    /// The string, with replacement characters for invalid UTF-8.
    #[must_use]
    pub fn to_str_lossy(self) -> Cow<'data, str> {
        String::from_utf8_lossy(self.0)
    }
}

impl<'data> From<&'data str> for Text<'data> {
    fn from(text: &'data str) -> Self {
        Self(text.as_bytes())
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.to_str_lossy(), f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str_lossy())
    }
}

/// A value of the metadata, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'data> {
    /// 8-bit unsigned integer.
    U8(u8),
    /// 8-bit integer.
    I8(i8),
    /// 16-bit unsigned integer.
    U16(u16),
    /// 16-bit integer.
    I16(i16),
    /// 32-bit unsigned integer.
    U32(u32),
    /// 32-bit integer.
    I32(i32),
    /// 32-bit float.
    F32(f32),
    /// Truth value.
    Bool(bool),
    /// String.
    Text(Text<'data>),
    /// Array.
    Array(Array<'data>),
    /// 64-bit unsigned integer.
    U64(u64),
    /// 64-bit integer.
    I64(i64),
    /// 64-bit float.
    F64(f64),
}

impl<'data> Value<'data> {
    /// Its type.
    #[must_use]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::F32(_) => ValueType::F32,
            Self::Bool(_) => ValueType::Bool,
            Self::Text(_) => ValueType::Text,
            Self::Array(_) => ValueType::Array,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F64(_) => ValueType::F64,
        }
    }

    /// The number, if it is an integer from 0 on, of whatever type.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        match *self {
            Self::U8(value) => Some(value.into()),
            Self::U16(value) => Some(value.into()),
            Self::U32(value) => Some(value.into()),
            Self::U64(value) => Some(value),
            _ => u64::try_from(self.to_i64()?).ok(),
        }
    }

    /// The number, if it is an integer that fits, of whatever type.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        match *self {
            Self::I8(value) => Some(value.into()),
            Self::I16(value) => Some(value.into()),
            Self::I32(value) => Some(value.into()),
            Self::I64(value) => Some(value),
            Self::U8(_) | Self::U16(_) | Self::U32(_) | Self::U64(_) => i64::try_from(self.to_u64()?).ok(),
            _ => None,
        }
    }

    /// The number, if it is one; 64-bit integers are rounded.
    #[must_use]
    pub fn to_f64(&self) -> Option<f64> {
        match *self {
            Self::F32(value) => Some(value.into()),
            Self::F64(value) => Some(value),
            Self::U64(value) => Some(value as f64),
            _ => self.to_i64().map(|value| value as f64),
        }
    }

    /// The truth value, if it is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The string, if it is one.
    #[must_use]
    pub const fn as_text(&self) -> Option<Text<'data>> {
        if let Self::Text(text) = self { Some(*text) } else { None }
    }

    /// The string, if it is one and UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&'data str> {
        self.as_text()?.to_str().ok()
    }

    /// The array, if it is one.
    #[must_use]
    pub const fn as_array(&self) -> Option<Array<'data>> {
        if let Self::Array(array) = self { Some(*array) } else { None }
    }

    /// A value that is neither string nor array, from exactly its bytes.
    fn scalar(value_type: ValueType, bytes: &[u8], form: Form) -> Option<Self> {
        let bits = form.number(bytes);
        // The bits beyond the type's are zero.
        Some(match value_type {
            ValueType::U8 => Self::U8(bits as u8),
            ValueType::I8 => Self::I8(bits as u8 as i8),
            ValueType::U16 => Self::U16(bits as u16),
            ValueType::I16 => Self::I16(bits as u16 as i16),
            ValueType::U32 => Self::U32(bits as u32),
            ValueType::I32 => Self::I32(bits as u32 as i32),
            ValueType::F32 => Self::F32(f32::from_bits(bits as u32)),
            ValueType::Bool => Self::Bool(bits != 0),
            ValueType::U64 => Self::U64(bits),
            ValueType::I64 => Self::I64(bits as i64),
            ValueType::F64 => Self::F64(f64::from_bits(bits)),
            ValueType::Text | ValueType::Array => return None,
        })
    }

    /// Reads a value of a type that was read before.
    pub(crate) fn read(
        cursor: &mut Cursor<'data>,
        value_type: ValueType,
        options: &ReadOptions,
    ) -> Result<Self, Stop> {
        match value_type {
            ValueType::Text => cursor.text(options.limits.string_bytes).map(|text| Self::Text(Text(text))),
            ValueType::Array => Array::read(cursor, options).map(Self::Array),
            _ => {
                let bytes = cursor.take(value_type.size() as u64)?;
                let kind = ErrorKind::UnknownValueType { id: value_type.id() };
                Self::scalar(value_type, bytes, cursor.form).ok_or_else(|| Error::from(kind).into())
            }
        }
    }
}

macro_rules! from_values {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Value<'_> {
            fn from(value: $from) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from_values! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, bool => Bool, u64 => U64, i64 => I64, f64 => F64,
}

impl<'data> From<&'data str> for Value<'data> {
    fn from(text: &'data str) -> Self {
        Self::Text(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_format() {
        for id in 0..13 {
            assert_eq!(ValueType::from_id(id).map(ValueType::id), Some(id));
        }
        assert_eq!(ValueType::from_id(13), None);
    }

    #[test]
    fn integers_convert_where_they_fit() {
        assert_eq!((Value::I8(-1).to_u64(), Value::I8(-1).to_i64()), (None, Some(-1)));
        assert_eq!((Value::U64(u64::MAX).to_i64(), Value::U64(u64::MAX).to_u64()), (None, Some(u64::MAX)));
        assert_eq!((Value::F32(0.5).to_f64(), Value::F32(1.0).to_u64()), (Some(0.5), None));
        assert_eq!(Value::Bool(true).to_u64(), None);
    }
}
