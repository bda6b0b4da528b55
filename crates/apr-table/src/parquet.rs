//! Rows of Parquet files.

use alloc::sync::Arc;

use arrow_array::ArrayRef;
use parquet::basic::Compression;
use parquet::column::page::PageReader;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use self::column::Column;
use self::gzip::GzipPages;
use self::limits::{CheckedPages, Refusal};
use self::types::Type;
use crate::error::{Error, ErrorKind};
use crate::table::BATCH;
use crate::unpanicked::unpanicked;

mod column;
mod footer;
mod gzip;
mod limits;
mod thrift;
mod types;

/// Bytes of text that a batch of average rows has.
const MAX_TEXT: u64 = 64 << 20;

/// The rows of a file, from the first.
pub(crate) struct Rows {
    metadata: ParquetMetaData,
    /// Of the columns; of those whose type is not supported its name.
    types: Vec<Result<Type, &'static str>>,
    open: Box<OpenColumn>,
    /// The row group that is read next.
    next_group: usize,
    group: Option<Group>,
    refusal: Refusal,
}

/// Begins to read a column of a row group.
type OpenColumn = dyn Fn(&RowGroupMetaData, usize, Type) -> ParquetResult<Column> + Send;

/// The row group that is being read.
struct Group {
    columns: Vec<Column>,
    rows_left: u64,
    /// Most rows of a batch.
    rows_at_once: usize,
}

/// Some rows of the columns, and how many there are.
pub(crate) type Decoded = (Vec<ArrayRef>, usize);

impl Rows {
    pub(crate) fn open(source: impl ChunkReader + 'static) -> Result<Self, Error> {
        limits::check_footer(&source)?;
        let metadata = guarded(|| ParquetMetaDataReader::new().parse_and_finish(&source))?;
        let mut chunks = metadata.row_groups().iter().flat_map(RowGroupMetaData::columns);
        if !chunks.all(|chunk| is_read(chunk.compression())) {
            return Err(ErrorKind::Compression {}.into());
        }
        let types =
            unpanicked(|| types::of(metadata.file_metadata())).flatten().ok_or(ErrorKind::Parquet {})?;
        let pages = Arc::new(CheckedPages::new(source, &metadata)?);
        let refusal = Arc::clone(&pages.refusal);
        let open = move |group: &RowGroupMetaData, leaf: usize, column_type: Type| {
            let chunk = group.columns().get(leaf).ok_or_else(too_few)?;
            let n_rows = usize::try_from(group.num_rows()).map_err(|_| too_few())?;
            let pages: Box<dyn PageReader> = match chunk.compression() {
                Compression::GZIP(_) => Box::new(GzipPages::new(&pages, chunk, n_rows, leaf)?),
                _ => Box::new(SerializedPageReader::new(Arc::clone(&pages), chunk, n_rows, None)?),
            };
            Ok(Column::new(column_type, chunk.column_descr_ptr(), pages))
        };
        Ok(Self { metadata, types, open: Box::new(open), next_group: 0, group: None, refusal })
    }

    /// Name of each column, and that of its type if it is not supported.
    pub(crate) fn columns(&self) -> Vec<(String, Option<&'static str>)> {
        let fields = self.metadata.file_metadata().schema().get_fields();
        let names = fields.iter().map(|field| field.name().to_owned());
        names.zip(self.types.iter().map(|column_type| column_type.err())).collect()
    }

    /// The next rows of the columns, which are those of the first call.
    pub(crate) fn next_batch(&mut self, wanted: &[usize]) -> Result<Option<Decoded>, Error> {
        let batch = guarded(|| self.decode(wanted));
        let refused = self.refusal.lock().ok().and_then(|mut refusal| refusal.take());
        if refused.is_some() || batch.is_err() {
            (self.group, self.next_group) = (None, usize::MAX);
        }
        refused.map_or(batch, Err)
    }

    fn decode(&mut self, wanted: &[usize]) -> ParquetResult<Option<Decoded>> {
        let mut group = match self.group.take() {
            Some(group) => group,
            None => match self.next_group(wanted)? {
                Some(group) => group,
                None => return Ok(None),
            },
        };
        let n_rows = usize::try_from(group.rows_left).unwrap_or(usize::MAX).min(group.rows_at_once);
        let arrays = group.columns.iter_mut().map(|column| column.take(n_rows));
        let arrays = arrays.collect::<ParquetResult<Vec<_>>>()?;
        group.rows_left -= n_rows as u64;
        if group.rows_left > 0 {
            self.group = Some(group);
        } else {
            group.columns.iter_mut().try_for_each(Column::end)?;
        }
        Ok(Some((arrays, n_rows)))
    }

    /// The next row group that has rows.
    fn next_group(&mut self, wanted: &[usize]) -> ParquetResult<Option<Group>> {
        loop {
            let Some(group) = self.metadata.row_groups().get(self.next_group) else { return Ok(None) };
            self.next_group += 1;
            let n_rows = u64::try_from(group.num_rows()).map_err(|_| too_few())?;
            if n_rows == 0 {
                continue;
            }
            let mut text_len = 0_u64;
            let mut columns = Vec::new();
            for &column in wanted {
                let Some(Ok(column_type)) = self.types.get(column).copied() else { continue };
                let leaf = leaf_of(&self.metadata, column).ok_or_else(too_few)?;
                if column_type == Type::Text {
                    let chunk = group.columns().get(leaf).ok_or_else(too_few)?;
                    text_len = text_len.saturating_add(chunk.uncompressed_size().unsigned_abs());
                }
                columns.push((self.open)(group, leaf, column_type)?);
            }
            let rows_at_once = MAX_TEXT / (text_len / n_rows).max(1);
            let rows_at_once = usize::try_from(rows_at_once).unwrap_or(BATCH).clamp(1, BATCH);
            return Ok(Some(Group { columns, rows_left: n_rows, rows_at_once }));
        }
    }
}

/// The number among the leaves of the schema of a column that is not nested.
fn leaf_of(metadata: &ParquetMetaData, column: usize) -> Option<usize> {
    let schema = metadata.file_metadata().schema_descr();
    // Leaves are in the order of their columns, and a column has one at least.
    let (mut low, mut high) = (column, schema.num_columns());
    while low < high {
        let middle = low.midpoint(high);
        match schema.get_column_root_idx(middle) < column {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    (low < schema.num_columns() && schema.get_column_root_idx(low) == column).then_some(low)
}

/// A row group lacks rows or columns that the footer declares.
fn too_few() -> ParquetError {
    ParquetError::General("a row group has fewer rows or columns than the file declares".to_owned())
}

fn is_read(codec: Compression) -> bool {
    use Compression::{GZIP, LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(codec, UNCOMPRESSED | SNAPPY | GZIP(_) | LZ4 | LZ4_RAW | ZSTD(_))
}

fn guarded<T>(make: impl FnOnce() -> ParquetResult<T>) -> Result<T, Error> {
    let Some(result) = unpanicked(make) else { return Err(ErrorKind::Parquet {}.into()) };
    result.map_err(|error| match error {
        // One of ours, which passed through the library's.
        ParquetError::External(cause) if cause.is::<Error>() => {
            cause.downcast().map_or_else(|_| ErrorKind::Parquet {}.into(), |error| *error)
        }
        error => Error::caused(ErrorKind::Parquet {}, error),
    })
}
