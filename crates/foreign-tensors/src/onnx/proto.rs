//! `TensorProto`: type, shape and the one place of its data.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use located_error::Subject;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::protobuf::{Fields, Value};
use crate::tensor::{ElementType, Place, Tensor};
use crate::view::View;

use super::Context;
use super::typed::{Number, Typed};

/// Fields with values of a type: `float_data`, `int32_data`, `int64_data`, `double_data`, `uint64_data`.
const TYPED: [u64; 5] = [4, 5, 7, 10, 11];

/// The data type of text.
const STRING: u64 = 8;

/// A `TensorProto`, of which only small fields have been read.
#[derive(Debug, Default)]
pub(super) struct Proto {
    range: Range<u64>,
    pub(super) name: Range<u64>,
    pub(super) dims: Vec<u64>,
    data_type: u64,
    raw: Option<Range<u64>>,
    /// Number of the field with typed values, and its bytes; those of values that are not packed count as well.
    typed: Option<(u64, u64)>,
    external: Vec<Range<u64>>,
    is_external: bool,
    is_segment: bool,
}

/// Appends a dimension.
fn push(dims: &mut Vec<u64>, dim: u64, context: &Context<'_>) -> Result<(), Error> {
    let limit = context.options.limits.rank;
    if dims.len() >= limit {
        return Err(ErrorKind::Limit { limit: "rank", allowed: limit as u64 }.into());
    }
    if dim > i64::MAX as u64 {
        return Err(Error::malformed("a dimension is negative"));
    }
    dims.push(dim);
    Ok(())
}

/// Dimensions, packed or not.
pub(super) fn dims(dims: &mut Vec<u64>, value: Value, context: &mut Context<'_>) -> Result<(), Error> {
    match value {
        Value::Number(dim) => push(dims, dim, context),
        Value::Bytes(range) => {
            let mut packed = Fields::new(range);
            while let Some(dim) = packed.next_packed(&mut context.reader)? {
                push(dims, dim, context)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

impl Proto {
    /// The fields of a message. A field that may occur once occurs once.
    pub(super) fn read(context: &mut Context<'_>, range: Range<u64>) -> Result<Self, Error> {
        let mut proto = Self { range: range.clone(), ..Self::default() };
        let mut seen = 0_u32;
        let mut fields = Fields::new(range);
        while let Some((number, value)) = fields.next(&mut context.reader)? {
            if matches!(number, 2 | 3 | 8 | 9 | 14) {
                let bit = 1 << number;
                if seen & bit != 0 {
                    return Err(Error::malformed("a field of a tensor is repeated").at(proto.range.start));
                }
                seen |= bit;
            }
            match (number, value) {
                (1, value) => dims(&mut proto.dims, value, context)?,
                (2, Value::Number(data_type)) => proto.data_type = data_type,
                (3, _) => proto.is_segment = true,
                (8, Value::Bytes(name)) => proto.name = name,
                (9, Value::Bytes(raw)) => proto.raw = Some(raw),
                (13, Value::Bytes(entry)) => {
                    if proto.external.len() >= 16 {
                        return Err(Error::malformed("too many keys of external data").at(entry.start));
                    }
                    proto.external.push(entry);
                }
                (14, Value::Number(location)) => proto.is_external = location == 1,
                (number, value) if TYPED.contains(&number) => proto.typed(number, &value)?,
                _ => {}
            }
        }
        Ok(proto)
    }

    fn typed(&mut self, number: u64, value: &Value) -> Result<(), Error> {
        let len = match value {
            Value::Bytes(range) => range.end - range.start,
            Value::Fixed32(_) => 4,
            Value::Fixed64(_) => 8,
            Value::Number(_) => 1,
        };
        let (first, sum) = self.typed.get_or_insert((number, 0));
        if *first != number && len > 0 && *sum > 0 {
            return Err(Error::malformed("a tensor has values of two types").at(self.range.start));
        }
        if len > 0 {
            (*first, *sum) = (number, *sum + len);
        }
        Ok(())
    }

    /// Whether its elements are text.
    pub(super) const fn is_text(&self) -> bool {
        self.data_type == STRING
    }

    /// Where the fields are.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The tensor, as `name`.
    pub(super) fn tensor(self, context: &mut Context<'_>, name: String) -> Result<Tensor, Error> {
        let at = self.range.start;
        let subject = Subject::tensor(&name);
        self.located(context, name).map_err(|error| error.of(subject).at(at))
    }

    fn located(self, context: &mut Context<'_>, name: String) -> Result<Tensor, Error> {
        if self.is_segment {
            return Err(Error::unsupported("a tensor in segments"));
        }
        let (dtype, field, number) = match data_type(self.data_type) {
            Some(known) => known,
            None if matches!(self.data_type, 27 | 28) => {
                return Ok(Tensor::unsupported(name, self.dims, "6-bit floats"));
            }
            None => return Err(Error::malformed("unknown data type of a tensor")),
        };
        let count = self.dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim));
        let count = count.ok_or_else(|| Error::view("its size overflows"))?;
        let len = dtype.byte_len(count)?;
        let raw = self.raw.filter(|raw| !raw.is_empty());
        let typed = self.typed.filter(|(_, len)| *len > 0);
        if usize::from(raw.is_some()) + usize::from(typed.is_some()) + usize::from(self.is_external) > 1 {
            return Err(Error::malformed("a tensor has its data in two places"));
        }
        let place = if self.is_external {
            context.external.place(&mut context.reader, &mut context.model, (&self.external, &name), len)?
        } else if let Some(raw) = raw {
            if raw.end - raw.start != len {
                return Err(Error::view("its data has another length than its shape"));
            }
            if dtype == ElementType::Known(Dtype::Bool) && has_other_bools(context, raw.clone())? {
                context.model.note(name.as_str(), "some of its truth values are neither 0 nor 1");
            }
            Place::Stored(0, raw)
        } else if let Some((found, bytes)) = typed {
            if found != field {
                return Err(Error::malformed("a tensor has values in the field of another type"));
            }
            // Each value occupies a byte or more: memory stays proportional to the file.
            let values = number.values(dtype, count)?;
            let is_possible = match number.width() {
                Some(width) => values.checked_mul(width) == Some(bytes),
                None => values <= bytes,
            };
            if !is_possible {
                return Err(Error::view("its data has another length than its shape"));
            }
            Place::Encoded(Arc::new(Typed { message: self.range, field, number, values, len }))
        } else if len == 0 {
            Place::Memory(Arc::from([]))
        } else {
            return Err(Error::view("its data has another length than its shape"));
        };
        Tensor::new(name, dtype, self.dims, (place, len), View::whole(), &context.options.limits)
    }
}

/// Whether bytes are neither 0 nor 1.
fn has_other_bools(context: &mut Context<'_>, mut range: Range<u64>) -> Result<bool, Error> {
    while !range.is_empty() {
        let end = range.end.min(range.start + (1 << 16));
        if context.reader.bytes(range.start..end)?.iter().any(|value| *value > 1) {
            return Ok(true);
        }
        range.start = end;
    }
    Ok(false)
}

/// The type of elements, the field of values that are not raw, and what these values are.
fn data_type(number: u64) -> Option<(ElementType, u64, Number)> {
    use ElementType::Known;
    Some(match number {
        1 => (Known(Dtype::F32), 4, Number::Bits32),
        2 => (Known(Dtype::U8), 5, Number::Unsigned(1)),
        3 => (Known(Dtype::I8), 5, Number::Signed(1)),
        4 => (Known(Dtype::U16), 5, Number::Unsigned(2)),
        5 => (Known(Dtype::I16), 5, Number::Signed(2)),
        6 => (Known(Dtype::I32), 5, Number::Signed(4)),
        7 => (Known(Dtype::I64), 7, Number::Signed(8)),
        9 => (Known(Dtype::Bool), 5, Number::Bool),
        10 => (Known(Dtype::F16), 5, Number::Unsigned(2)),
        11 => (Known(Dtype::F64), 10, Number::Bits64),
        12 => (Known(Dtype::U32), 11, Number::Unsigned(4)),
        13 => (Known(Dtype::U64), 11, Number::Unsigned(8)),
        14 => (Known(Dtype::C64), 4, Number::Bits32),
        15 => (ElementType::C128, 10, Number::Bits64),
        16 => (Known(Dtype::Bf16), 5, Number::Unsigned(2)),
        17 => (Known(Dtype::F8E4M3), 5, Number::Unsigned(1)),
        18 => (Known(Dtype::F8E4M3Fnuz), 5, Number::Unsigned(1)),
        19 => (Known(Dtype::F8E5M2), 5, Number::Unsigned(1)),
        20 => (Known(Dtype::F8E5M2Fnuz), 5, Number::Unsigned(1)),
        21 => (ElementType::U4, 5, Number::Packed),
        22 => (ElementType::I4, 5, Number::Packed),
        23 => (Known(Dtype::F4), 5, Number::Packed),
        24 => (Known(Dtype::F8E8M0), 5, Number::Unsigned(1)),
        25 => (ElementType::U2, 5, Number::Packed),
        26 => (ElementType::I2, 5, Number::Packed),
        _ => return None,
    })
}

/// The name of a data type, for descriptions of inputs and outputs.
pub(super) fn type_name(number: u64) -> Option<&'static str> {
    match number {
        STRING => Some("STRING"),
        number => data_type(number).map(|(dtype, ..)| dtype.name()),
    }
}
