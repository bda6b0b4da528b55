//! Rows of a dataset.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::Source;
use super::header::{Compression, Header};
use super::index::Chunk;
use super::payload::{Decompressed, Length, Section};
use crate::error::{Error, ErrorKind};
use crate::messages::Messages;

/// The record batches of a payload, or of chunks.
pub(crate) struct Rows {
    schema: Schema,
    current: Option<Current>,
    /// What is not begun yet.
    source: Source,
    chunks: VecDeque<Chunk>,
    compression: Compression,
}

/// One Arrow IPC stream.
struct Current {
    messages: Messages<Decompressed>,
    n_rows: u64,
    declared: u64,
}

impl Current {
    fn new(bytes: Decompressed, schema: &Schema, declared: u64) -> Result<Self, Error> {
        let messages = Messages::open(bytes)?;
        if messages.schema().fields() != schema.fields() {
            return Err(ErrorKind::AldSchema {}.into());
        }
        Ok(Self { messages, n_rows: 0, declared })
    }
}

impl Rows {
    pub(super) fn of_payload(payload: Section, header: &Header, schema: Schema) -> Result<Self, Error> {
        let bytes = Decompressed::new(payload, header.compression, Length::Cut(header.uncompressed))?;
        let current = Some(Current::new(bytes, &schema, header.n_rows)?);
        let source: Source = Arc::new(Vec::new());
        Ok(Self { schema, current, source, chunks: VecDeque::new(), compression: header.compression })
    }

    pub(super) fn of_chunks(source: Source, header: &Header, schema: Schema, chunks: Vec<Chunk>) -> Self {
        Self { schema, current: None, source, chunks: chunks.into(), compression: header.compression }
    }

    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let Some(mut current) = self.current.take() else {
                let Some(chunk) = self.chunks.pop_front() else { return Ok(None) };
                self.current = Some(self.begin(chunk)?);
                continue;
            };
            if let Some(batch) = current.messages.next_batch()? {
                current.n_rows += batch.num_rows() as u64;
                if current.n_rows > current.declared {
                    return Err(
                        ErrorKind::AldRows { declared: current.declared, found: current.n_rows }.into()
                    );
                }
                self.current = Some(current);
                return Ok(Some(batch));
            }
            if current.n_rows != current.declared {
                return Err(ErrorKind::AldRows { declared: current.declared, found: current.n_rows }.into());
            }
            current.messages.into_input().end()?;
        }
    }

    fn begin(&self, chunk: Chunk) -> Result<Current, Error> {
        let section = Section::new(Arc::clone(&self.source), chunk.stored);
        let bytes = match self.compression {
            Compression::Lz4 => Decompressed::lz4_block(section, chunk.uncompressed)?,
            other => Decompressed::new(section, other, Length::Exactly(chunk.uncompressed))?,
        };
        Current::new(bytes, &self.schema, chunk.n_rows)
    }
}
