//! Entries of a checkpoint: `BundleHeaderProto` and `BundleEntryProto`.
//!
//! Source: `tensorflow/core/protobuf/tensor_bundle.proto` and `tensor_shape.proto`, `types.proto` of `tensorflow/core/framework`.

use alloc::vec::Vec;
use core::ops::Range;

use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::options::Limits;
use crate::protobuf::{Fields, Value};
use crate::reader::Reader;
use crate::tensor::ElementType;

use super::slices::Extent;

/// What a checkpoint says about itself.
#[derive(Debug, Default)]
pub(super) struct Header {
    pub(super) shards: u64,
    pub(super) is_big_endian: bool,
}

/// A tensor, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) dtype: u64,
    pub(super) shape: Vec<u64>,
    pub(super) shard: u64,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) checksum: u32,
    /// The parts that it consists of.
    pub(super) slices: Vec<Vec<Extent>>,
}

/// The most parts of a tensor: they are compared with each other.
const MAX_SLICES: usize = 1024;

impl Header {
    pub(super) fn read(reader: &mut Reader<'_>, range: Range<u64>) -> Result<Self, Error> {
        let mut header = Self::default();
        let at = range.start;
        let mut fields = Fields::new(range);
        while let Some((number, value)) = fields.next(reader)? {
            match (number, value) {
                (1, Value::Number(shards)) => header.shards = shards,
                (2, Value::Number(order)) => header.is_big_endian = order == 1,
                _ => {}
            }
        }
        // Their names have five digits.
        if header.shards > 99_999 {
            return Err(Error::malformed("the checkpoint has too many shards").at(at));
        }
        Ok(header)
    }
}

impl Entry {
    pub(super) fn read(reader: &mut Reader<'_>, range: Range<u64>, limits: &Limits) -> Result<Self, Error> {
        let mut entry = Self::default();
        let mut fields = Fields::new(range);
        while let Some((number, value)) = fields.next(reader)? {
            match (number, value) {
                (1, Value::Number(dtype)) => entry.dtype = dtype,
                (2, Value::Bytes(range)) => entry.shape = shape(reader, range, limits)?,
                (3, Value::Number(shard)) => entry.shard = shard,
                (4, Value::Number(offset)) => entry.offset = offset,
                (5, Value::Number(len)) => entry.len = len,
                (6, Value::Fixed32(checksum)) => entry.checksum = checksum,
                (7, Value::Bytes(range)) => {
                    if entry.slices.len() >= MAX_SLICES {
                        return Err(Error::unsupported("a variable of more than 1,024 parts"));
                    }
                    entry.slices.push(extents(reader, range, limits)?);
                }
                _ => {}
            }
        }
        Ok(entry)
    }
}

fn check_rank(rank: usize, limits: &Limits) -> Result<(), Error> {
    if rank < limits.rank {
        Ok(())
    } else {
        Err(ErrorKind::Limit { limit: "rank", allowed: limits.rank as u64 }.into())
    }
}

/// A `TensorShapeProto`.
fn shape(reader: &mut Reader<'_>, range: Range<u64>, limits: &Limits) -> Result<Vec<u64>, Error> {
    let mut shape = Vec::new();
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(reader)? {
        match (number, value) {
            (2, Value::Bytes(range)) => {
                check_rank(shape.len(), limits)?;
                let at = range.start;
                let (mut dim, mut fields) = (0, Fields::new(range));
                while let Some((number, value)) = fields.next(reader)? {
                    if let (1, Value::Number(size)) = (number, value) {
                        dim = size;
                    }
                }
                if dim > i64::MAX as u64 {
                    return Err(Error::malformed("a dimension is negative").at(at));
                }
                shape.push(dim);
            }
            (3, Value::Number(1)) => return Err(Error::unsupported("a tensor of unknown rank")),
            _ => {}
        }
    }
    Ok(shape)
}

/// A `TensorSliceProto`.
fn extents(reader: &mut Reader<'_>, range: Range<u64>, limits: &Limits) -> Result<Vec<Extent>, Error> {
    let mut extents = Vec::new();
    let mut fields = Fields::new(range);
    while let Some((number, value)) = fields.next(reader)? {
        let (1, Value::Bytes(range)) = (number, value) else { continue };
        check_rank(extents.len(), limits)?;
        let at = range.start;
        let (mut extent, mut fields) = ((0, None), Fields::new(range));
        while let Some((number, value)) = fields.next(reader)? {
            match (number, value) {
                (1, Value::Number(start)) => extent.0 = start,
                (2, Value::Number(len)) => extent.1 = Some(len),
                _ => {}
            }
        }
        if extent.0 > i64::MAX as u64 || extent.1.is_some_and(|len| len > i64::MAX as u64) {
            return Err(Error::malformed("a part of a variable has a negative extent").at(at));
        }
        extents.push(extent);
    }
    Ok(extents)
}

/// Elements of a `DataType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// These.
    Of(ElementType),
    /// Integers that stand for scaled numbers; their scale is elsewhere.
    Quantized(ElementType),
    /// Strings.
    Text,
    /// Something else.
    Other(&'static str),
}

pub(super) const fn elements(number: u64) -> Option<Elements> {
    use ElementType::Known;
    use Elements::{Of, Other, Quantized, Text};
    Some(match number {
        1 => Of(Known(Dtype::F32)),
        2 => Of(Known(Dtype::F64)),
        3 => Of(Known(Dtype::I32)),
        4 => Of(Known(Dtype::U8)),
        5 => Of(Known(Dtype::I16)),
        6 => Of(Known(Dtype::I8)),
        7 => Text,
        8 => Of(Known(Dtype::C64)),
        9 => Of(Known(Dtype::I64)),
        10 => Of(Known(Dtype::Bool)),
        11 => Quantized(Known(Dtype::I8)),
        12 => Quantized(Known(Dtype::U8)),
        13 => Quantized(Known(Dtype::I32)),
        14 => Of(Known(Dtype::Bf16)),
        15 => Quantized(Known(Dtype::I16)),
        16 => Quantized(Known(Dtype::U16)),
        17 => Of(Known(Dtype::U16)),
        18 => Of(ElementType::C128),
        19 => Of(Known(Dtype::F16)),
        20 => Other("a resource of TensorFlow"),
        21 => Other("a variant of TensorFlow"),
        22 => Of(Known(Dtype::U32)),
        23 => Of(Known(Dtype::U64)),
        24 => Of(Known(Dtype::F8E5M2)),
        25 => Of(Known(Dtype::F8E4M3)),
        26 => Of(Known(Dtype::F8E4M3Fnuz)),
        27 => Other("the element type float8_e4m3b11fnuz"),
        28 => Of(Known(Dtype::F8E5M2Fnuz)),
        // One in a byte, whose other bits are not defined.
        29 | 30 => Other("4-bit integers of TensorFlow"),
        31 | 32 => Other("2-bit integers of TensorFlow"),
        _ => return None,
    })
}
