//! Arrays: in one piece, or in chunks.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use json_scan::{Escape, Writer};
use read_at::ReadAt;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::model::json_number;
use crate::options::Limits;
use crate::reader::{Budget, Reader};
use crate::tensor::{Decode, ElementType, Place, Tensor, reserved};
use crate::view::View;

use super::token::{Token, Tokens};

/// The longest name of an element type.
const MAX_NAME: u64 = 64;

/// Shape, name of the element type, and bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    shape: Vec<u64>,
    dtype: String,
    bytes: Range<u64>,
}

/// The element type with a name of `NumPy` or `ml_dtypes`. Elements of fewer than 8 bits occupy a byte each there, and have none.
fn dtype(name: &str) -> Option<ElementType> {
    if name == "complex128" {
        return Some(ElementType::C128);
    }
    let known = Dtype::ELEMENTS.into_iter().find(|dtype| dtype.numpy_name() == Some(name));
    known.filter(|dtype| dtype.bits() >= 8).map(ElementType::Known)
}

impl Array {
    /// The content of an extension: an array of a shape, a name and bytes.
    pub(super) fn read(reader: &mut Reader<'_>, range: Range<u64>, limits: &Limits) -> Result<Self, Error> {
        let malformed =
            || Error::malformed("an array does not consist of shape, type and bytes").at(range.start);
        let mut tokens = Tokens { rest: range.clone() };
        let (Token::Array(3), Token::Array(rank)) = (tokens.next(reader)?, tokens.next(reader)?) else {
            return Err(malformed());
        };
        if rank > limits.rank as u64 {
            return Err(ErrorKind::Limit { limit: "rank", allowed: limits.rank as u64 }.into());
        }
        let mut shape = Vec::new();
        for _ in 0..rank {
            let Token::Unsigned(dim) = tokens.next(reader)? else { return Err(malformed()) };
            shape.push(dim);
        }
        let (Token::Text(name) | Token::Bytes(name)) = tokens.next(reader)? else { return Err(malformed()) };
        let dtype = reader.text(name, &mut Budget::new(MAX_NAME))?;
        // Early versions of MessagePack had one type for text and bytes.
        let (Token::Bytes(bytes) | Token::Text(bytes)) = tokens.next(reader)? else {
            return Err(malformed());
        };
        if tokens.rest.is_empty() { Ok(Self { shape, dtype, bytes }) } else { Err(malformed()) }
    }

    /// The tensor.
    pub(super) fn tensor(self, name: String, limits: &Limits) -> Result<Tensor, Error> {
        let len = self.bytes.end - self.bytes.start;
        tensor(name, &self.dtype, self.shape, (Place::Stored(0, self.bytes), len), limits)
    }

    /// A scalar as JSON; `None` of types without a form in it.
    pub(super) fn json(&self, reader: &mut Reader<'_>) -> Result<Option<String>, Error> {
        let at = self.bytes.start;
        let dtype = dtype(&self.dtype).filter(|_| self.shape.is_empty()).and_then(ElementType::known);
        let len = self.bytes.end - at;
        let Some(dtype) = dtype.filter(|dtype| u64::from(dtype.bits()) == 8 * len) else { return Ok(None) };
        Ok(Some(match dtype {
            Dtype::Bool => format!("{}", reader.byte(at)? != 0),
            Dtype::U8 => format!("{}", reader.byte(at)?),
            Dtype::I8 => format!("{}", reader.byte(at)? as i8),
            Dtype::U16 => format!("{}", u16::from_le_bytes(reader.array(at)?)),
            Dtype::I16 => format!("{}", i16::from_le_bytes(reader.array(at)?)),
            Dtype::U32 => format!("{}", u32::from_le_bytes(reader.array(at)?)),
            Dtype::I32 => format!("{}", i32::from_le_bytes(reader.array(at)?)),
            Dtype::U64 => format!("{}", u64::from_le_bytes(reader.array(at)?)),
            Dtype::I64 => format!("{}", i64::from_le_bytes(reader.array(at)?)),
            Dtype::Bf16 => {
                let bits = u32::from(u16::from_le_bytes(reader.array(at)?)) << 16;
                json_number(f32::from_bits(bits))
            }
            Dtype::F32 => json_number(f32::from_le_bytes(reader.array(at)?)),
            Dtype::F64 => json_number(f64::from_le_bytes(reader.array(at)?)),
            _ => return Ok(None),
        }))
    }
}

/// A complex number of Python: an extension with an array of two numbers.
pub(super) fn complex(reader: &mut Reader<'_>, range: Range<u64>) -> Result<String, Error> {
    let malformed = || Error::malformed("a complex number does not have two parts").at(range.start);
    let mut tokens = Tokens { rest: range.clone() };
    let Token::Array(2) = tokens.next(reader)? else { return Err(malformed()) };
    let mut json = Writer::compact(Escape::Minimal);
    json.begin_object();
    for key in ["real", "imag"] {
        json.key(key);
        match tokens.next(reader)? {
            Token::F64(value) => json.plain(json_number(value)),
            Token::F32(value) => json.plain(json_number(value)),
            Token::Unsigned(value) => json.plain(value),
            Token::Signed(value) => json.plain(value),
            _ => return Err(malformed()),
        };
    }
    json.end_object();
    if tokens.rest.is_empty() { Ok(json.finish()) } else { Err(malformed()) }
}

fn tensor(
    name: String,
    type_name: &str,
    shape: Vec<u64>,
    (place, len): (Place, u64),
    limits: &Limits,
) -> Result<Tensor, Error> {
    let Some(dtype) = dtype(type_name) else {
        return Ok(Tensor::unsupported(name, shape, format!("the element type `{type_name}`")));
    };
    let tensor = Tensor::new(name, dtype, shape, (place, len), View::whole(), limits)?;
    if tensor.byte_len() == len {
        Ok(tensor)
    } else {
        let error = Error::view("its data has another length than its shape");
        Err(error.of(located_error::Subject::tensor(tensor.name())))
    }
}

/// Ranges of the file, one after the other.
#[derive(Debug)]
struct Pieces {
    ranges: Vec<Range<u64>>,
    len: u64,
}

impl Decode for Pieces {
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let mut whole = reserved(self.len)?;
        whole.resize(self.len as usize, 0);
        let mut rest = whole.as_mut_slice();
        for range in &self.ranges {
            let len = (range.end - range.start) as usize;
            let short = || Error::view("its chunks are longer than its shape");
            let (piece, after) = rest.split_at_mut_checked(len).ok_or_else(short)?;
            file.read_exact_at(range.start, piece)?;
            rest = after;
        }
        Ok(whole)
    }
}

/// Reads what follows the key that marks an array in chunks: its shape, and its chunks, by their numbers as text.
pub(super) fn chunked(
    reader: &mut Reader<'_>,
    tokens: &mut Tokens,
    name: String,
    pairs: u64,
    limits: &Limits,
) -> Result<Tensor, Error> {
    let at = tokens.rest.start;
    let malformed = || Error::malformed("an array in chunks does not have shape and chunks").at(at);
    let (mut shape, mut chunks) = (None, None);
    if tokens.next(reader)? != Token::Bool(true) {
        return Err(malformed());
    }
    for _ in 1..pairs {
        let key = text(reader, tokens)?;
        let Token::Map(count) = tokens.next(reader)? else { return Err(malformed()) };
        match key.as_str() {
            "shape" if shape.is_none() => {
                if count > limits.rank as u64 {
                    return Err(ErrorKind::Limit { limit: "rank", allowed: limits.rank as u64 }.into());
                }
                let mut dims = Vec::new();
                for number in 0..count {
                    let key = text(reader, tokens)?;
                    let Token::Unsigned(dim) = tokens.next(reader)? else { return Err(malformed()) };
                    if key != format!("{number}") {
                        return Err(malformed());
                    }
                    dims.push(dim);
                }
                shape = Some(dims);
            }
            "chunks" if chunks.is_none() => {
                let mut arrays: Vec<(u64, Array)> = Vec::new();
                for _ in 0..count {
                    let key = text(reader, tokens)?;
                    let Token::Extension(1, range) = tokens.next(reader)? else { return Err(malformed()) };
                    let number = key.parse().map_err(|_| malformed())?;
                    arrays.push((number, Array::read(reader, range, limits)?));
                }
                // Their order is that of their numbers, and writers may sort keys as text.
                arrays.sort_unstable_by_key(|(number, _)| *number);
                if arrays.iter().zip(0..).any(|((number, _), expected)| *number != expected) {
                    return Err(malformed());
                }
                chunks = Some(arrays);
            }
            _ => return Err(malformed()),
        }
    }
    let (shape, chunks) = shape.zip(chunks).ok_or_else(malformed)?;
    let first = chunks.first().map(|(_, array)| array.dtype.clone()).ok_or_else(malformed)?;
    if chunks.iter().any(|(_, array)| array.dtype != first || array.shape.len() != 1) {
        return Err(malformed());
    }
    let ranges: Vec<Range<u64>> = chunks.into_iter().map(|(_, array)| array.bytes).collect();
    let len = ranges.iter().map(|range| range.end - range.start).sum();
    let place = Place::Encoded(Arc::new(Pieces { ranges, len }));
    tensor(name, &first, shape, (place, len), limits)
}

/// A short text.
fn text(reader: &mut Reader<'_>, tokens: &mut Tokens) -> Result<String, Error> {
    let at = tokens.rest.start;
    match tokens.next(reader)? {
        Token::Text(range) | Token::Bytes(range) => reader.text(range, &mut Budget::new(MAX_NAME)),
        _ => Err(Error::malformed("a key is not text").at(at)),
    }
}
