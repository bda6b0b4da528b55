//! Rows of Parquet files.

use alloc::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::ChunkReader;

use self::limits::{CheckedPages, Refusal};
use crate::error::{Error, ErrorKind};
use crate::table::BATCH;
use crate::unpanicked::unpanicked;

mod limits;
mod thrift;

/// The rows of a file, from the first.
pub(crate) struct Rows {
    state: State,
    schema: SchemaRef,
    refusal: Refusal,
}

/// Begins to read the columns.
type Begin = dyn FnOnce(&[usize]) -> Result<ParquetRecordBatchReader, ParquetError>;

enum State {
    /// Nothing was read but the footer.
    Opened(Box<Begin>),
    Reading(ParquetRecordBatchReader),
    Ended,
}

impl Rows {
    pub(crate) fn open(source: impl ChunkReader + 'static) -> Result<Self, Error> {
        limits::check_footer(&source)?;
        let metadata = guarded(|| ArrowReaderMetadata::load(&source, Default::default()))?;
        let mut chunks = metadata.metadata().row_groups().iter().flat_map(RowGroupMetaData::columns);
        if !chunks.all(|chunk| is_read(chunk.compression())) {
            return Err(ErrorKind::Compression {}.into());
        }
        let pages = CheckedPages::new(source, metadata.metadata())?;
        let refusal = Arc::clone(&pages.refusal);
        let schema = metadata.schema().clone();
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(pages, metadata).with_batch_size(BATCH);
        let begin = move |wanted: &[usize]| {
            let mask = ProjectionMask::roots(builder.parquet_schema(), wanted.iter().copied());
            builder.with_projection(mask).build()
        };
        Ok(Self { state: State::Opened(Box::new(begin)), schema, refusal })
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next rows of the columns, which are those of the first call.
    pub(crate) fn next_batch(&mut self, wanted: &[usize]) -> Result<Option<RecordBatch>, Error> {
        let batch = self.decode(wanted);
        let refused = self.refusal.lock().ok().and_then(|mut refusal| refusal.take());
        refused.map_or(batch, Err)
    }

    fn decode(&mut self, wanted: &[usize]) -> Result<Option<RecordBatch>, Error> {
        // It has ended unless this call succeeds.
        let mut reader = match core::mem::replace(&mut self.state, State::Ended) {
            State::Opened(begin) => guarded(|| begin(wanted))?,
            State::Reading(reader) => reader,
            State::Ended => return Ok(None),
        };
        let batch = guarded(|| reader.next().transpose())?;
        if batch.is_some() {
            self.state = State::Reading(reader);
        }
        Ok(batch)
    }
}

fn is_read(codec: Compression) -> bool {
    use Compression::{LZ4, LZ4_RAW, SNAPPY, UNCOMPRESSED, ZSTD};
    matches!(codec, UNCOMPRESSED | SNAPPY | LZ4 | LZ4_RAW | ZSTD(_))
}

fn guarded<T, E: core::error::Error + Send + Sync + 'static>(
    make: impl FnOnce() -> Result<T, E>,
) -> Result<T, Error> {
    match unpanicked(make) {
        Some(result) => result.map_err(|error| Error::caused(ErrorKind::Parquet {}, error)),
        None => Err(ErrorKind::Parquet {}.into()),
    }
}
