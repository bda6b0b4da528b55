//! A column of a row group, in pieces.

use alloc::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, NullArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use parquet::column::page::PageReader;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FixedLenByteArrayType, FloatType, Int32Type as StoredI32,
    Int64Type as StoredI64,
};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use super::too_few;
use super::types::Type;
use crate::error::within;

/// Longest text of a batch: values of a dictionary may stand in it thousands of times.
const MAX_TEXT: u64 = 256 << 20;

/// A column that is not nested, read from its first row.
pub(crate) enum Column {
    Boolean(ColumnReaderImpl<BoolType>),
    I32(ColumnReaderImpl<StoredI32>),
    U32(ColumnReaderImpl<StoredI32>),
    I64(ColumnReaderImpl<StoredI64>),
    U64(ColumnReaderImpl<StoredI64>),
    F16(ColumnReaderImpl<FixedLenByteArrayType>),
    F32(ColumnReaderImpl<FloatType>),
    F64(ColumnReaderImpl<DoubleType>),
    Text(ColumnReaderImpl<ByteArrayType>),
    Null,
}

impl Column {
    pub(crate) fn new(column_type: Type, descr: ColumnDescPtr, pages: Box<dyn PageReader>) -> Self {
        match column_type {
            Type::Boolean => Self::Boolean(ColumnReaderImpl::new(descr, pages)),
            Type::I32 => Self::I32(ColumnReaderImpl::new(descr, pages)),
            Type::U32 => Self::U32(ColumnReaderImpl::new(descr, pages)),
            Type::I64 => Self::I64(ColumnReaderImpl::new(descr, pages)),
            Type::U64 => Self::U64(ColumnReaderImpl::new(descr, pages)),
            Type::F16 => Self::F16(ColumnReaderImpl::new(descr, pages)),
            Type::F32 => Self::F32(ColumnReaderImpl::new(descr, pages)),
            Type::F64 => Self::F64(ColumnReaderImpl::new(descr, pages)),
            Type::Text => Self::Text(ColumnReaderImpl::new(descr, pages)),
            Type::Null => Self::Null,
        }
    }

    /// The next rows.
    ///
    /// # Errors
    ///
    /// If there are fewer, or a page cannot be read.
    pub(crate) fn take(&mut self, n_rows: usize) -> Result<ArrayRef> {
        Ok(match self {
            Self::Boolean(reader) => {
                let (values, nulls) = read(reader, n_rows)?;
                let values = spread(values, nulls.as_ref());
                Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls))
            }
            Self::I32(reader) => primitive::<Int32Type, _>(reader, n_rows, |value| value)?,
            Self::U32(reader) => primitive::<UInt32Type, _>(reader, n_rows, i32::cast_unsigned)?,
            Self::I64(reader) => primitive::<Int64Type, _>(reader, n_rows, |value| value)?,
            Self::U64(reader) => primitive::<UInt64Type, _>(reader, n_rows, i64::cast_unsigned)?,
            Self::F16(reader) => primitive::<Float16Type, _>(reader, n_rows, |bytes| {
                let bytes = bytes.data().first_chunk().copied().unwrap_or_default();
                <Float16Type as ArrowPrimitiveType>::Native::from_le_bytes(bytes)
            })?,
            Self::F32(reader) => primitive::<Float32Type, _>(reader, n_rows, |value| value)?,
            Self::F64(reader) => primitive::<Float64Type, _>(reader, n_rows, |value| value)?,
            Self::Text(reader) => texts(reader, n_rows)?,
            Self::Null => Arc::new(NullArray::new(n_rows)),
        })
    }

    /// Checks that no row follows.
    ///
    /// # Errors
    ///
    /// If one does, or a page cannot be read.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self {
            Self::Boolean(reader) => end(reader),
            Self::I32(reader) | Self::U32(reader) => end(reader),
            Self::I64(reader) | Self::U64(reader) => end(reader),
            Self::F16(reader) => end(reader),
            Self::F32(reader) => end(reader),
            Self::F64(reader) => end(reader),
            Self::Text(reader) => end(reader),
            Self::Null => Ok(()),
        }
    }
}

/// The values of the next rows that are not null, and which are.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n_rows: usize,
) -> Result<(Vec<T::T>, Option<NullBuffer>)> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (found, ..) = reader.read_records(n_rows, Some(&mut levels), None, &mut values)?;
    if found != n_rows {
        return Err(too_few());
    }
    if values.len() == n_rows {
        return Ok((values, None));
    }
    let nulls: NullBuffer = levels.iter().map(|&level| level > 0).collect::<BooleanBuffer>().into();
    match nulls.len() == n_rows && nulls.len() - nulls.null_count() == values.len() {
        true => Ok((values, Some(nulls))),
        false => Err(too_few()),
    }
}

/// A value for each row: anything where it is null.
fn spread<T: Default>(values: Vec<T>, nulls: Option<&NullBuffer>) -> Vec<T> {
    let Some(nulls) = nulls else { return values };
    let mut values = values.into_iter();
    let value = |is_there: bool| if is_there { values.next() } else { None };
    nulls.iter().map(value).map(Option::unwrap_or_default).collect()
}

fn primitive<A: ArrowPrimitiveType, T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    n_rows: usize,
    convert: impl Fn(T::T) -> A::Native,
) -> Result<ArrayRef> {
    let (values, nulls) = read(reader, n_rows)?;
    let values = spread(values.into_iter().map(convert).collect(), nulls.as_ref());
    Ok(Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(values), nulls)))
}

fn texts(reader: &mut ColumnReaderImpl<ByteArrayType>, n_rows: usize) -> Result<ArrayRef> {
    let (values, nulls) = read(reader, n_rows)?;
    let total = values.iter().map(|value| value.len() as u64).fold(0, u64::saturating_add);
    within("the texts of a batch", total, MAX_TEXT)
        .map_err(|error| ParquetError::External(Box::new(error)))?;
    let mut bytes = Vec::with_capacity(total as usize);
    let mut left = values.iter();
    let lens = (0..n_rows).map(|row| {
        let is_there = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let value = if is_there { left.next() } else { None };
        value.map_or(0, |value| {
            bytes.extend_from_slice(value.data());
            value.len()
        })
    });
    let offsets = OffsetBuffer::from_lengths(lens);
    let texts = StringArray::try_new(offsets, Buffer::from_vec(bytes), nulls);
    texts.map(|texts| Arc::new(texts) as ArrayRef).map_err(|error| ParquetError::External(Box::new(error)))
}

fn end<T: DataType>(reader: &mut ColumnReaderImpl<T>) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    match reader.read_records(1, Some(&mut levels), None, &mut values)? {
        (0, ..) => Ok(()),
        _ => Err(ParquetError::General("a column has more rows than its row group".to_owned())),
    }
}
