//! Elements of a tensor as text.

use core::fmt;
use std::io::{self, Write};

use apr_quant::Dtype;
use serde::{Serialize, Serializer};
use st_core::TensorView;

use crate::report;
use crate::terminal::number::Number;

/// One element.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    F32(f32),
    F64(f64),
    Integer(i128),
    Complex(f32, f32),
}

impl Value {
    /// As 32 bits, rounded to nearest.
    pub(super) const fn to_f32(self) -> f32 {
        match self {
            Self::F32(value) | Self::Complex(value, _) => value,
            Self::F64(value) => value as f32,
            Self::Integer(value) => value as f32,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::F32(value) => Number::F32(value).fmt(f),
            Self::F64(value) => Number::F64(value).fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Complex(real, imaginary) => {
                let sign = if imaginary.is_sign_negative() { "" } else { "+" };
                write!(f, "{}{sign}{}j", Number::F32(real), Number::F32(imaginary))
            }
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::F32(value) => report::Narrow(value).serialize(serializer),
            Self::F64(value) => report::Number(value).serialize(serializer),
            Self::Integer(value) => serializer.serialize_i128(value),
            Self::Complex(real, imaginary) => {
                [report::Narrow(real), report::Narrow(imaginary)].serialize(serializer)
            }
        }
    }
}

/// Passes each element of whole elements to `take`.
pub(super) fn for_each<E>(
    dtype: Dtype,
    bytes: &[u8],
    mut take: impl FnMut(Value) -> Result<(), E>,
) -> Result<(), E> {
    macro_rules! integers {
        ($int:ident) => {{
            let (words, _) = bytes.as_chunks::<{ size_of::<$int>() }>();
            words.iter().try_for_each(|&word| take(Value::Integer($int::from_le_bytes(word).into())))
        }};
    }
    let floats = |bytes: &[u8]| -> (f32, f32) {
        let mut halves = bytes.as_chunks().0.iter().map(|&half| f32::from_le_bytes(half));
        (halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
    };
    match dtype {
        Dtype::Bool | Dtype::U8 => integers!(u8),
        Dtype::I8 => integers!(i8),
        Dtype::I16 => integers!(i16),
        Dtype::U16 => integers!(u16),
        Dtype::I32 => integers!(i32),
        Dtype::U32 => integers!(u32),
        Dtype::I64 => integers!(i64),
        Dtype::U64 => integers!(u64),
        Dtype::F64 => {
            bytes.as_chunks().0.iter().try_for_each(|&word| take(Value::F64(f64::from_le_bytes(word))))
        }
        Dtype::C64 => bytes.chunks_exact(8).try_for_each(|pair| {
            let (real, imaginary) = floats(pair);
            take(Value::Complex(real, imaginary))
        }),
        _ => {
            let shape = [(bytes.len() as u64 * 8).checked_div(dtype.bits().into()).unwrap_or(0) as usize];
            let values = TensorView::new(dtype, &shape, bytes).and_then(|view| view.to_f32());
            values.into_iter().flatten().try_for_each(|value| take(Value::F32(value)))
        }
    }
}

/// What is between two values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Text,
    Csv,
}

/// Writes values in rows.
pub(super) struct Rows<'o> {
    layout: Layout,
    /// Values of a row, and of a matrix.
    row: u64,
    matrix: u64,
    count: u64,
    out: &'o mut dyn Write,
}

impl<'o> Rows<'o> {
    pub(super) fn new(layout: Layout, shape: &[usize], out: &'o mut dyn Write) -> Self {
        let product = |dims: &[usize]| dims.iter().map(|&dim| dim as u64).product::<u64>();
        let row = product(shape.last_chunk::<1>().map_or(&[], |dims| dims));
        let matrix = shape.last_chunk::<2>().filter(|_| shape.len() > 2).map_or(0, |dims| product(dims));
        Self { layout, row, matrix, count: 0, out }
    }

    pub(super) fn value(&mut self, value: &Value) -> io::Result<()> {
        let starts = |len: u64| len > 0 && self.count > 0 && self.count.is_multiple_of(len);
        let before = match self.layout {
            Layout::Text if starts(self.matrix) => "\n\n",
            _ if starts(self.row) => "\n",
            _ if self.count == 0 => "",
            Layout::Text => " ",
            Layout::Csv => ",",
        };
        self.count += 1;
        write!(self.out, "{before}{value}")
    }

    pub(super) fn end(self) -> io::Result<()> {
        if self.count > 0 { self.out.write_all(b"\n") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(layout: Layout, shape: &[usize], dtype: Dtype, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        let mut rows = Rows::new(layout, shape, &mut out);
        for_each(dtype, bytes, |value| rows.value(&value)).unwrap();
        rows.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_those_of_the_last_dimension() {
        let bytes: Vec<u8> = (0..12).collect();
        assert_eq!(text(Layout::Text, &[12], Dtype::U8, &bytes), "0 1 2 3 4 5 6 7 8 9 10 11\n");
        assert_eq!(text(Layout::Csv, &[2, 6], Dtype::U8, &bytes), "0,1,2,3,4,5\n6,7,8,9,10,11\n");
        assert_eq!(text(Layout::Text, &[2, 2, 3], Dtype::U8, &bytes), "0 1 2\n3 4 5\n\n6 7 8\n9 10 11\n");
        assert_eq!(text(Layout::Csv, &[2, 2, 3], Dtype::U8, &bytes), "0,1,2\n3,4,5\n6,7,8\n9,10,11\n");
        assert_eq!(text(Layout::Text, &[], Dtype::I16, &[0xfe, 0xff]), "-2\n");
        assert_eq!(text(Layout::Text, &[0, 3], Dtype::F32, &[]), "");
    }

    #[test]
    fn values_have_the_digits_that_give_them_back() {
        let floats = [0.1_f32, 1e-9, 1e30, -0.0, f32::NAN, f32::NEG_INFINITY].map(f32::to_le_bytes).concat();
        assert_eq!(text(Layout::Text, &[6], Dtype::F32, &floats), "0.1 1e-9 1e30 -0 NaN -inf\n");
        assert_eq!(
            text(Layout::Text, &[2], Dtype::U64, &[0xff; 16]),
            "18446744073709551615 18446744073709551615\n"
        );
        let complex = [1.5_f32, -2.0].map(f32::to_le_bytes).concat();
        assert_eq!(text(Layout::Text, &[1], Dtype::C64, &complex), "1.5-2j\n");
        assert_eq!(text(Layout::Text, &[2], Dtype::F8E4M3, &[0x38, 0x7f]), "1 NaN\n");
        assert_eq!(text(Layout::Text, &[2], Dtype::Bf16, &[0x80, 0x3f, 0xcd, 0x3d]), "1 0.100097656\n");
    }
}
