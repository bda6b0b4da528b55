//! Parquet, a row group at a time.

use alloc::sync::Arc;
use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::writer::{ColumnCloseResult, ColumnWriterImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int64Type};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, Type};

use crate::cells::{CellType, Cells, ColumnSpec, Texts, Values};
use crate::error::{Error, ErrorKind};

/// Writes row groups.
pub(super) struct Encoder<W: Write + Send> {
    writer: SerializedFileWriter<W>,
}

impl<W: Write + Send> Encoder<W> {
    pub(super) fn new(out: W, columns: &[ColumnSpec]) -> Result<Self, Error> {
        let schema = schema(columns).map_err(failed)?;
        let zstd = ZstdLevel::try_new(3).map_err(failed)?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(zstd))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_dictionary_enabled(false);
        for column in columns.iter().filter(|column| column.cell_type == CellType::Text) {
            // Of one part: names may have dots.
            properties = properties.set_column_dictionary_enabled(vec![column.name.clone()].into(), true);
        }
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()));
        Ok(Self { writer: writer.map_err(failed)? })
    }

    pub(super) fn write(&mut self, group: Vec<Cells>) -> Result<(), Error> {
        self.write_group(group).map_err(failed)
    }

    fn write_group(&mut self, group: Vec<Cells>) -> ParquetResult<()> {
        let columns = self.writer.schema_descr().columns().to_vec();
        let properties = Arc::clone(self.writer.properties());
        let mut out = self.writer.next_row_group()?;
        for (cells, descr) in group.into_iter().zip(columns) {
            let mut pages = TrackedWrite::new(Vec::new());
            let written = write_column(cells, descr, &properties, &mut pages)?;
            out.append_column(&Bytes::from(pages.into_inner()?), written)?;
        }
        out.close().map(|_| ())
    }

    pub(super) fn finish(self) -> Result<W, Error> {
        self.writer.into_inner().map_err(failed)
    }
}

fn failed(error: ParquetError) -> Error {
    Error::caused(ErrorKind::Write {}, error)
}

fn schema(columns: &[ColumnSpec]) -> ParquetResult<Type> {
    let field = |column: &ColumnSpec| {
        let (physical, logical) = match column.cell_type {
            CellType::F32 => (Physical::FLOAT, None),
            CellType::F64 => (Physical::DOUBLE, None),
            CellType::I64 => (Physical::INT64, None),
            CellType::Bool => (Physical::BOOLEAN, None),
            CellType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = if column.is_nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(&column.name, physical);
        field.with_repetition(repetition).with_logical_type(logical).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<ParquetResult<_>>()?;
    Type::group_type_builder("schema").with_fields(fields).build()
}

/// The pages of a column.
fn write_column(
    cells: Cells,
    descr: ColumnDescPtr,
    properties: &WriterPropertiesPtr,
    pages: &mut TrackedWrite<Vec<u8>>,
) -> ParquetResult<ColumnCloseResult> {
    let is_valid = cells.is_valid.as_deref();
    let column = PageTarget { descr, properties, pages };
    match cells.values {
        Values::F32(values) => column.write::<FloatType>(&there(values, is_valid), is_valid),
        Values::F64(values) => column.write::<DoubleType>(&there(values, is_valid), is_valid),
        Values::I64(values) => column.write::<Int64Type>(&there(values, is_valid), is_valid),
        Values::Bool(values) => column.write::<BoolType>(&there(values, is_valid), is_valid),
        Values::Text(texts) => column.write::<ByteArrayType>(&there(byte_arrays(texts), is_valid), is_valid),
    }
}

/// Where the pages of a column go.
struct PageTarget<'p> {
    descr: ColumnDescPtr,
    properties: &'p WriterPropertiesPtr,
    pages: &'p mut TrackedWrite<Vec<u8>>,
}

impl PageTarget<'_> {
    fn write<T: DataType>(
        self,
        values: &[T::T],
        is_valid: Option<&[bool]>,
    ) -> ParquetResult<ColumnCloseResult> {
        let levels: Option<Vec<i16>> = match (is_valid, self.descr.max_def_level()) {
            (_, 0) => None,
            (None, _) => Some(vec![1; values.len()]),
            (Some(is_valid), _) => Some(is_valid.iter().map(|&is_valid| i16::from(is_valid)).collect()),
        };
        let pages = Box::new(SerializedPageWriter::new(self.pages));
        let mut writer = ColumnWriterImpl::<T>::new(self.descr, Arc::clone(self.properties), pages);
        writer.write_batch(values, levels.as_deref(), None)?;
        writer.close()
    }
}

/// The values that are not null.
fn there<T>(values: Vec<T>, is_valid: Option<&[bool]>) -> Vec<T> {
    let Some(is_valid) = is_valid else { return values };
    values.into_iter().zip(is_valid).filter(|(_, is_valid)| **is_valid).map(|(value, _)| value).collect()
}

fn byte_arrays(texts: Texts) -> Vec<ByteArray> {
    let lens: Vec<usize> = texts.lens().collect();
    let mut bytes = Bytes::from(texts.text.into_bytes());
    lens.into_iter().map(|len| bytes.split_to(len).into()).collect()
}
