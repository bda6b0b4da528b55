//! Types of elements.

use alloc::format;
use alloc::string::String;

use tensor_dtype::Dtype;

use crate::error::Error;
use crate::hdf5::file::Fields;
use crate::tensor::ElementType;

/// The type of the elements of a dataset or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Datatype {
    /// Bytes of an element.
    pub(crate) size: u64,
    pub(crate) kind: Kind,
}

/// What elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Numbers of a known type. `swap` is the length of what is in big-endian order, or 0.
    Number { element: ElementType, swap: usize },
    /// Integers with names.
    Enumeration { element: ElementType, swap: usize },
    /// Text of a fixed length.
    Text,
    /// Text of any length.
    VarText,
    /// Addresses of other objects.
    Reference,
    /// Bytes without a meaning.
    Opaque,
    /// Something else, named for messages.
    Other(String),
}

/// What begins a datatype.
struct Head {
    version: u8,
    class: u8,
    bits: u32,
    size: u32,
}

impl Head {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Error> {
        let first = fields.u8()?;
        let bits = fields.length_of(3)? as u32;
        Ok(Self { version: first >> 4, class: first & 15, bits, size: fields.u32()? })
    }
}

/// Reads a datatype message.
pub(crate) fn read(data: &[u8]) -> Result<Datatype, Error> {
    let mut fields = Fields::new(data);
    let head = Head::read(&mut fields)?;
    if head.size == 0 {
        return Err(Error::malformed("a type of elements has no size"));
    }
    let kind = match head.class {
        0 | 1 => number(&head, &mut fields)?,
        3 => Kind::Text,
        5 => Kind::Opaque,
        6 => compound(&head, fields)?,
        7 => Kind::Reference,
        8 => enumeration(&head, fields)?,
        9 if head.bits & 15 == 1 => Kind::VarText,
        11 => {
            let part = Head::read(&mut fields)?;
            complex(&number(&part, &mut fields)?, part.size, head.size)
        }
        class => Kind::Other(String::from(match class {
            2 => "times",
            4 => "bit fields",
            9 => "sequences of varying length",
            10 => "elements that are arrays",
            _ => "elements of an unknown type",
        })),
    };
    Ok(Datatype { size: head.size.into(), kind })
}

/// An integer or a float.
fn number(head: &Head, fields: &mut Fields<'_>) -> Result<Kind, Error> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let is_whole = offset == 0 && u64::from(precision) == u64::from(head.size) * 8;
    let big_endian = head.bits & 1 != 0;
    let dtype = match head.class {
        0 => {
            let signed = head.bits & 1 << 3 != 0;
            match (head.size, signed) {
                (1, true) => Some(Dtype::I8),
                (2, true) => Some(Dtype::I16),
                (4, true) => Some(Dtype::I32),
                (8, true) => Some(Dtype::I64),
                (1, false) => Some(Dtype::U8),
                (2, false) => Some(Dtype::U16),
                (4, false) => Some(Dtype::U32),
                (8, false) => Some(Dtype::U64),
                _ => None,
            }
        }
        1 => {
            let exponent = (fields.u8()?, fields.u8()?);
            let mantissa = (fields.u8()?, fields.u8()?);
            let bias = fields.u32()?;
            let sign = head.bits >> 8 & 0xff;
            // The highest bit of the mantissa is not stored; the order of bytes is not that of the VAX.
            let is_plain = head.bits >> 4 & 3 == 2 && head.bits & 1 << 6 == 0;
            match (head.size, sign, exponent, mantissa, bias) {
                (8, 63, (52, 11), (0, 52), 1023) if is_plain => Some(Dtype::F64),
                (4, 31, (23, 8), (0, 23), 127) if is_plain => Some(Dtype::F32),
                (2, 15, (10, 5), (0, 10), 15) if is_plain => Some(Dtype::F16),
                (2, 15, (7, 8), (0, 7), 127) if is_plain => Some(Dtype::Bf16),
                (1, 7, (3, 4), (0, 3), 7) if is_plain => Some(Dtype::F8E4M3),
                (1, 7, (2, 5), (0, 2), 15) if is_plain => Some(Dtype::F8E5M2),
                _ => None,
            }
        }
        _ => return Ok(Kind::Other("elements of an unknown type".into())),
    };
    Ok(match dtype.filter(|_| is_whole) {
        Some(dtype) => {
            let swap = if big_endian && head.size > 1 { head.size as usize } else { 0 };
            Kind::Number { element: ElementType::Known(dtype), swap }
        }
        None if head.class == 0 => Kind::Other(format!("integers of {precision} bits")),
        None => Kind::Other(format!("floating-point numbers of {precision} bits in another layout")),
    })
}

/// A complex number of two such parts.
fn complex(part: &Kind, part_size: u32, size: u32) -> Kind {
    let element = match part {
        Kind::Number { element: ElementType::Known(Dtype::F32), .. } => ElementType::Known(Dtype::C64),
        Kind::Number { element: ElementType::Known(Dtype::F64), .. } => ElementType::C128,
        _ => return Kind::Other("complex numbers of another type than F32 or F64".into()),
    };
    match part {
        Kind::Number { swap, .. } if part_size.checked_mul(2) == Some(size) => {
            Kind::Number { element, swap: *swap }
        }
        _ => Kind::Other("complex numbers with gaps".into()),
    }
}

/// Records: only those of h5py for complex numbers are numbers.
fn compound(head: &Head, mut fields: Fields<'_>) -> Result<Kind, Error> {
    let records = Kind::Other("records".into());
    let mut members = [(Kind::Opaque, 0, 0), (Kind::Opaque, 0, 0)];
    if head.bits & 0xffff != 2 {
        return Ok(records);
    }
    for (member, expected) in members.iter_mut().zip([b"r", b"i"]) {
        let name = name(&mut fields, head.version)?;
        let offset = match head.version {
            1 => {
                let offset = fields.u32()?;
                if fields.u8()? != 0 {
                    return Ok(records);
                }
                fields.take(27)?;
                offset.into()
            }
            2 => fields.u32()?.into(),
            _ => fields.length_of(crate::hdf5::file::bytes_for(head.size.into()))?,
        };
        let part = Head::read(&mut fields)?;
        if name != expected || !matches!(part.class, 0 | 1) {
            return Ok(records);
        }
        *member = (number(&part, &mut fields)?, offset, part.size);
    }
    let [(real, 0, part_size), (imaginary, offset, _)] = members else { return Ok(records) };
    if real != imaginary || offset != u64::from(part_size) {
        return Ok(records);
    }
    Ok(complex(&real, part_size, head.size))
}

/// Integers with names. FALSE and TRUE of one byte are what h5py makes of booleans.
fn enumeration(head: &Head, mut fields: Fields<'_>) -> Result<Kind, Error> {
    let base = Head::read(&mut fields)?;
    let (element, swap) = match (base.class, number(&base, &mut fields)?) {
        (0, Kind::Number { element, swap }) if base.size == head.size => (element, swap),
        _ => return Ok(Kind::Other("an enumeration of another type than integers".into())),
    };
    let is_pair = head.bits & 0xffff == 2 && base.size == 1;
    let is_bool = is_pair
        && name(&mut fields, head.version)? == b"FALSE"
        && name(&mut fields, head.version)? == b"TRUE"
        && fields.take(2)? == [0, 1];
    if is_bool {
        return Ok(Kind::Number { element: ElementType::Known(Dtype::Bool), swap: 0 });
    }
    Ok(Kind::Enumeration { element, swap })
}

/// The name of a member. Before version 3 it is padded to a multiple of 8 bytes.
fn name<'b>(fields: &mut Fields<'b>, version: u8) -> Result<&'b [u8], Error> {
    let len = fields.rest().iter().position(|byte| *byte == 0);
    let len = len.ok_or_else(|| Error::malformed("the name of a member of a type does not end"))?;
    let padded = if version < 3 { (len + 1).next_multiple_of(8) } else { len + 1 };
    let name = fields.take(padded)?;
    Ok(name.get(..len).unwrap_or(name))
}
