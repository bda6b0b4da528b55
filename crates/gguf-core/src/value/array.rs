//! Arrays, decoded on access.

use core::fmt;
use core::iter::FusedIterator;

use super::{Value, ValueType};
use crate::cursor::{Cursor, Form, Stop};
use crate::error::{Error, ErrorKind};
use crate::options::{Limits, ReadOptions, Strictness};

/// Deepest nesting that the fixed stack of [`skip_elements`] holds.
const MAX_NESTING: usize = 64;

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

    /// The element at `idx`: in constant time for numbers, by skipping those before it for strings and arrays.
    #[must_use]
    pub fn get(&self, idx: usize) -> Option<Value<'data>> {
        let size = self.element.size();
        if size == 0 {
            return self.iter().nth(idx);
        }
        let begin = idx.checked_mul(size)?;
        Value::scalar(self.element, self.bytes.get(begin..)?.get(..size)?, self.form)
    }

    /// The elements as in the file.
    pub(crate) const fn encoded(&self) -> (&'data [u8], Form) {
        (self.bytes, self.form)
    }

    pub(super) fn read(cursor: &mut Cursor<'data>, options: &ReadOptions) -> Result<Self, Stop> {
        let (element, count) = read_head(cursor, options)?;
        let begin = cursor.offset();
        if element == ValueType::Array && options.strictness == Strictness::Strict {
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
    /// The rest of it.
    array: Array<'data>,
}

impl<'data> Iterator for Values<'data> {
    type Item = Value<'data>;

    fn next(&mut self) -> Option<Self::Item> {
        /// The array was read with limits at least as narrow.
        const WIDEST: ReadOptions = ReadOptions {
            strictness: Strictness::Compat,
            limits: Limits {
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::put_value;
    use super::*;
    use crate::cursor::Endian;

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
        let mut out = Vec::new();
        put_value(&mut out, &Value::Array(outer), form);
        assert_eq!(out, file);
    }
}
