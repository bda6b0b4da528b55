//! Arrow IPC, uncompressed.

use alloc::sync::Arc;
use std::io::Write;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, RecordBatchOptions, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::cells::{CellType, Cells, ColumnSpec, Values};
use crate::error::{Error, ErrorKind};

/// Writes batches.
pub(super) struct Encoder<W: Write> {
    schema: SchemaRef,
    writer: Writer<W>,
}

enum Writer<W: Write> {
    File(FileWriter<W>),
    Stream(StreamWriter<W>),
}

impl<W: Write> Encoder<W> {
    pub(super) fn file(out: W, columns: &[ColumnSpec]) -> Result<Self, Error> {
        let schema = schema(columns);
        let writer = FileWriter::try_new(out, &schema).map_err(failed)?;
        Ok(Self { schema, writer: Writer::File(writer) })
    }

    pub(super) fn stream(out: W, columns: &[ColumnSpec]) -> Result<Self, Error> {
        let schema = schema(columns);
        let writer = StreamWriter::try_new(out, &schema).map_err(failed)?;
        Ok(Self { schema, writer: Writer::Stream(writer) })
    }

    pub(super) fn write(&mut self, group: Vec<Cells>, n_rows: usize) -> Result<(), Error> {
        let arrays = group.into_iter().map(array).collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options);
        let batch = batch.map_err(failed)?;
        match &mut self.writer {
            Writer::File(writer) => writer.write(&batch),
            Writer::Stream(writer) => writer.write(&batch),
        }
        .map_err(failed)
    }

    pub(super) fn finish(self) -> Result<W, Error> {
        match self.writer {
            Writer::File(writer) => writer.into_inner(),
            Writer::Stream(writer) => writer.into_inner(),
        }
        .map_err(failed)
    }
}

fn failed(error: ArrowError) -> Error {
    Error::caused(ErrorKind::Write {}, error)
}

fn schema(columns: &[ColumnSpec]) -> SchemaRef {
    let field = |column: &ColumnSpec| {
        let data_type = match column.cell_type {
            CellType::F32 => DataType::Float32,
            CellType::F64 => DataType::Float64,
            CellType::I64 => DataType::Int64,
            CellType::Bool => DataType::Boolean,
            CellType::Text => DataType::Utf8,
        };
        Field::new(&column.name, data_type, column.is_nullable)
    };
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

fn array(cells: Cells) -> Result<ArrayRef, ArrowError> {
    let nulls = cells.is_valid.map(NullBuffer::from);
    Ok(match cells.values {
        Values::F32(values) => primitive::<Float32Type>(values, nulls),
        Values::F64(values) => primitive::<Float64Type>(values, nulls),
        Values::I64(values) => primitive::<Int64Type>(values, nulls),
        Values::Bool(values) => Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
        Values::Text(texts) => {
            let offsets = OffsetBuffer::from_lengths(texts.lens());
            Arc::new(StringArray::try_new(offsets, Buffer::from_vec(texts.text.into_bytes()), nulls)?)
        }
    })
}

fn primitive<T: ArrowPrimitiveType>(values: Vec<T::Native>, nulls: Option<NullBuffer>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::from(values), nulls))
}
