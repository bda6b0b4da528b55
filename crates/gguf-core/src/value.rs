//! Values of the metadata: numbers, texts, and arrays that are read when they are asked for.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::iter::FusedIterator;
use core::str::Utf8Error;

use crate::cursor::{Cursor, Endian, Form, Stop};
use crate::error::{Error, ErrorKind};
use crate::options::{Level, ReadOptions};

/// Deepest nesting that the fixed stack of [`skip_elements`] holds.
const MAX_NESTING: usize = 64;

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

/// A string of a file: a key, a tensor name, a value. UTF-8 in sound files; llama.cpp takes any bytes, and so does
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

    /// The text, with replacement characters for what is not UTF-8.
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

/// Elements of one type, decoded as they are iterated over: an array of any length costs nothing until then.
///
/// ```
/// use gguf_core::{Gguf, GgufBuilder};
///
/// let mut builder = GgufBuilder::new();
/// builder.set_texts("tokenizer.ggml.tokens", ["<s>", "</s>"])?;
/// let file = builder.layout()?.to_vec(&[])?;
///
/// let gguf = Gguf::from_bytes(&file)?;
/// let tokens = gguf.get("tokenizer.ggml.tokens").and_then(|value| value.as_array());
/// let tokens = tokens.expect("it was written");
/// assert_eq!(tokens.len(), 2);
/// assert!(tokens.iter().filter_map(|token| token.as_str()).eq(["<s>", "</s>"]));
/// # Ok::<(), gguf_core::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Array<'data> {
    element: ValueType,
    form: Form,
    count: u64,
    /// The elements, checked.
    bytes: &'data [u8],
}

impl<'data> Array<'data> {
    /// Type of the elements.
    #[must_use]
    pub const fn element_type(&self) -> ValueType {
        self.element
    }

    /// Number of elements.
    #[must_use]
    pub const fn len(&self) -> usize {
        // Every element has at least one byte in memory.
        self.count as usize
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements.
    #[must_use]
    pub const fn iter(&self) -> Values<'data> {
        Values { array: *self }
    }

    /// The element at `idx`: at once for numbers, by passing over those before it for strings and arrays.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<Value<'data>> {
        let size = self.element.size();
        if size == 0 {
            return self.iter().nth(idx);
        }
        let begin = idx.checked_mul(size)?;
        Value::scalar(self.element, self.bytes.get(begin..)?.get(..size)?, self.form)
    }

    /// The elements as they lie in the file.
    pub(crate) const fn encoded(&self) -> (&'data [u8], Form) {
        (self.bytes, self.form)
    }

    fn read(cursor: &mut Cursor<'data>, options: &ReadOptions) -> Result<Self, Stop> {
        let (element, count) = read_head(cursor, options)?;
        let begin = cursor.offset();
        if element == ValueType::Array && options.level == Level::Strict {
            return Err(Error::from(ErrorKind::NestedArray).at(begin).into());
        }
        skip_elements(cursor, element, count, options)?;
        Ok(Self { element, form: cursor.form, count, bytes: cursor.since(begin) })
    }
}

/// Type and number of the elements of an array.
fn read_head(cursor: &mut Cursor<'_>, options: &ReadOptions) -> Result<(ValueType, u64), Stop> {
    let offset = cursor.offset();
    let id = cursor.u32()?;
    let kind = ErrorKind::UnknownValueType { id };
    let element = ValueType::from_id(id).ok_or_else(|| Error::from(kind).at(offset))?;
    let offset = cursor.offset();
    let count = cursor.len()?;
    // What an element has at least: itself, the length of a string, type and count of an array.
    let size = match element {
        ValueType::Text => cursor.form.len_bytes(),
        ValueType::Array => cursor.form.len_bytes() + 4,
        _ => element.size(),
    };
    if count > cursor.left() / size as u64 {
        let kind = ErrorKind::ArrayLength { count, available: cursor.left() };
        return Err(Error::from(kind).at(offset).into());
    }
    if count > options.limits.array_count {
        let kind =
            ErrorKind::LimitExceeded { limit: "elements of an array", max: options.limits.array_count };
        return Err(Error::from(kind).at(offset).into());
    }
    Ok((element, count))
}

/// Passes over the elements of an array and proves them. Arrays within it are counted on a stack of fixed size.
fn skip_elements(
    cursor: &mut Cursor<'_>,
    element: ValueType,
    count: u64,
    options: &ReadOptions,
) -> Result<(), Stop> {
    let nesting = (options.limits.nesting as usize).clamp(1, MAX_NESTING);
    let mut open = [(ValueType::U8, 0); MAX_NESTING];
    let mut depth = 0;
    let (mut element, mut count) = (element, count);
    loop {
        match element {
            ValueType::Array if count > 0 => {
                let offset = cursor.offset();
                if depth + 1 >= nesting {
                    let kind =
                        ErrorKind::LimitExceeded { limit: "arrays within each other", max: nesting as u64 };
                    return Err(Error::from(kind).at(offset).into());
                }
                open[depth] = (element, count - 1);
                depth += 1;
                (element, count) = read_head(cursor, options)?;
                continue;
            }
            ValueType::Array => {}
            ValueType::Text => {
                for _ in 0..count {
                    cursor.text(options.limits.string_bytes)?;
                }
            }
            // No overflow: the head was compared with the bytes left.
            _ => {
                cursor.take(count * element.size() as u64)?;
            }
        }
        if depth == 0 {
            return Ok(());
        }
        depth -= 1;
        (element, count) = open[depth];
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.element == other.element && self.count == other.count && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Array<'_> {
    /// The first elements: there may be very many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let mut list = f.debug_list();
        list.entries(self.iter().take(SHOWN));
        if self.count > SHOWN as u64 { list.finish_non_exhaustive() } else { list.finish() }
    }
}

impl<'data> IntoIterator for Array<'data> {
    type Item = Value<'data>;
    type IntoIter = Values<'data>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterates over the elements of an [`Array`].
#[derive(Clone, Debug)]
pub struct Values<'data> {
    /// What is left of it.
    array: Array<'data>,
}

impl<'data> Iterator for Values<'data> {
    type Item = Value<'data>;

    fn next(&mut self) -> Option<Self::Item> {
        /// The array was read with limits at least as narrow.
        const WIDEST: ReadOptions = ReadOptions {
            level: Level::Compat,
            limits: crate::Limits {
                header_bytes: u64::MAX,
                keys: u64::MAX,
                tensors: u64::MAX,
                string_bytes: u64::MAX,
                array_count: u64::MAX,
                rank: u32::MAX,
                name_bytes: u64::MAX,
                nesting: u32::MAX,
            },
        };
        let left = self.array.count.checked_sub(1)?;
        let mut cursor = Cursor::new(self.array.bytes, self.array.bytes.len() as u64);
        cursor.form = self.array.form;
        let value = Value::read(&mut cursor, self.array.element, &WIDEST).ok()?;
        self.array.bytes = self.array.bytes.get(cursor.offset() as usize..)?;
        self.array.count = left;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.array.len(), Some(self.array.len()))
    }
}

impl ExactSizeIterator for Values<'_> {}
impl FusedIterator for Values<'_> {}

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
pub(crate) fn put_number(out: &mut alloc::vec::Vec<u8>, bits: u64, size: usize, endian: Endian) {
    match endian {
        Endian::Little => out.extend(bits.to_le_bytes().into_iter().take(size)),
        Endian::Big => out.extend(bits.to_be_bytes().into_iter().skip(8 - size)),
    }
}

/// Puts a value without its type.
pub(crate) fn put_value(out: &mut alloc::vec::Vec<u8>, value: &Value<'_>, form: Form) {
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
            put_number(out, array.element.id().into(), 4, form.endian);
            put_number(out, array.count, form.len_bytes(), form.endian);
            // Truth values are written as 0 and 1 whatever they were read from.
            let (bytes, old_form) = array.encoded();
            if old_form == form && array.element != ValueType::Bool {
                return out.extend_from_slice(bytes);
            }
            return array.iter().for_each(|element| put_value(out, &element, form));
        }
    };
    put_number(out, bits, value.value_type().size(), form.endian);
}

/// Puts a string with its length.
pub(crate) fn put_text(out: &mut alloc::vec::Vec<u8>, text: &[u8], form: Form) {
    put_number(out, text.len() as u64, form.len_bytes(), form.endian);
    out.extend_from_slice(text);
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

    #[test]
    fn arrays_within_arrays_end_at_the_limit() {
        // Array in array in array, each of one element; the innermost of one byte.
        let head = |element: u32| [&element.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
        let file = [head(9), head(9), head(0), alloc::vec![7]].concat();
        let read = |nesting| {
            let mut options = ReadOptions::COMPAT;
            options.limits.nesting = nesting;
            Value::read(&mut Cursor::new(&file, file.len() as u64), ValueType::Array, &options)
        };
        assert!(matches!(read(2), Err(Stop::Refused(error)) if error.code() == "gg-limit"));
        let Ok(Value::Array(outer)) = read(3) else { panic!("three levels are allowed") };
        let inner = outer.get(0).and_then(|value| value.as_array()?.get(0)?.as_array()).expect("two arrays");
        assert_eq!((inner.get(0), inner.get(1)), (Some(Value::U8(7)), None));
        let form = Form { endian: Endian::Little, narrow: false };
        let mut out = alloc::vec::Vec::new();
        put_value(&mut out, &Value::Array(outer), form);
        assert_eq!(out, file);
    }
}
