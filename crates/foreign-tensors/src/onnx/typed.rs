//! Values in typed fields: one number each, packed or not.

use alloc::vec::Vec;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::Error;
use crate::protobuf::{Fields, Value};
use crate::reader::Reader;
use crate::tensor::{Decode, ElementType, reserved};

/// What the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// Four bytes each.
    Bits32,
    /// Eight bytes each.
    Bits64,
    /// Varints of signed numbers of this many bytes.
    Signed(usize),
    /// Varints of unsigned numbers, or patterns of bits, of this many bytes.
    Unsigned(usize),
    /// Varints of 0 or 1.
    Bool,
    /// Varints of bytes with several elements.
    Packed,
}

impl Number {
    /// Bytes of a value in the file; `None` of varints.
    pub(super) const fn width(self) -> Option<u64> {
        match self {
            Self::Bits32 => Some(4),
            Self::Bits64 => Some(8),
            _ => None,
        }
    }

    /// Values of `count` elements: two of a complex number, one of several packed elements.
    pub(super) fn values(self, dtype: ElementType, count: u64) -> Result<u64, Error> {
        let len = dtype.byte_len(count)?;
        Ok(if self == Self::Packed { len } else { len / dtype.number_width().max(1) as u64 })
    }

    /// Appends a varint's value; `None` if it is not one of the type.
    fn push(self, value: u64, out: &mut Vec<u8>) -> Option<()> {
        let (low, width) = match self {
            Self::Signed(width) => {
                // Of 32 bits: writers extend the sign to 64 bits, or not.
                let extended = if width <= 4 && u32::try_from(value).is_ok() {
                    i64::from(value as u32 as i32)
                } else {
                    value as i64
                };
                let unused = 64 - 8 * width as u32;
                (((extended << unused) >> unused) == extended).then_some((extended as u64, width))?
            }
            Self::Unsigned(width) => (value >> (8 * width as u32 - 1) <= 1).then_some((value, width))?,
            Self::Bool => (value <= 1).then_some((value, 1))?,
            Self::Packed => (value <= 0xff).then_some((value, 1))?,
            Self::Bits32 | Self::Bits64 => return None,
        };
        out.extend_from_slice(low.to_le_bytes().get(..width)?);
        Some(())
    }
}

/// The values of a field of a message, as little-endian numbers.
#[derive(Debug)]
pub(super) struct Typed {
    pub(super) message: Range<u64>,
    pub(super) field: u64,
    pub(super) number: Number,
    /// How many values there have to be.
    pub(super) values: u64,
    /// Their bytes.
    pub(super) len: u64,
}

impl Decode for Typed {
    fn decode(&self, file: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let mut reader = Reader::new(file);
        let mut out = reserved(self.len)?;
        let mut left = self.values;
        let mut fields = Fields::new(self.message.clone());
        let wrong = |at| Error::malformed("a value is out of the range of its type").at(at);
        let mut one = |value, at, out: &mut Vec<u8>| {
            left = left.checked_sub(1).ok_or_else(|| Error::view("it has more values than its shape"))?;
            self.number.push(value, out).ok_or_else(|| wrong(at))
        };
        while let Some((number, value)) = fields.next(&mut reader)? {
            if number != self.field {
                continue;
            }
            match (self.number.width(), value) {
                (Some(_), Value::Bytes(range)) => {
                    if range.end - range.start > self.len - out.len() as u64 {
                        return Err(Error::view("it has more values than its shape").at(range.start));
                    }
                    out.append(&mut reader.bytes(range)?);
                }
                (Some(4), Value::Fixed32(value)) => out.extend_from_slice(&value.to_le_bytes()),
                (Some(8), Value::Fixed64(value)) => out.extend_from_slice(&value.to_le_bytes()),
                (None, Value::Number(value)) => one(value, self.message.start, &mut out)?,
                (None, Value::Bytes(range)) => {
                    let at = range.start;
                    let mut packed = Fields::new(range);
                    while let Some(value) = packed.next_packed(&mut reader)? {
                        one(value, at, &mut out)?;
                    }
                }
                _ => return Err(Error::malformed("a value of another wire type than its field")),
            }
        }
        if out.len() as u64 == self.len {
            Ok(out)
        } else {
            Err(Error::view("it has fewer values than its shape").at(self.message.start))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_range_of_their_type() {
        for (number, value, expected) in [
            (Number::Signed(1), (-128_i64) as u64, Some(&[0x80][..])),
            (Number::Signed(1), 0xffff_ff80, Some(&[0x80])),
            (Number::Signed(1), 128, None),
            (Number::Signed(2), (-2_i64) as u64, Some(&[0xfe, 0xff])),
            (Number::Signed(4), u64::from(u32::MAX), Some(&[0xff; 4])),
            (Number::Signed(4), 1 << 32, None),
            (Number::Signed(8), u64::MAX, Some(&[0xff; 8])),
            (Number::Unsigned(1), 255, Some(&[255])),
            (Number::Unsigned(1), 256, None),
            (Number::Unsigned(2), 0xffff, Some(&[0xff, 0xff])),
            (Number::Unsigned(2), 0x1_0000, None),
            (Number::Unsigned(8), u64::MAX, Some(&[0xff; 8])),
            (Number::Bool, 1, Some(&[1])),
            (Number::Bool, 2, None),
            (Number::Packed, 0xff, Some(&[0xff])),
            (Number::Packed, 0x100, None),
        ] {
            let mut out = Vec::new();
            let found = number.push(value, &mut out).map(|()| &out[..]);
            assert_eq!(found, expected, "{number:?} {value:#x}");
        }
    }
}
