//! A table that is read in batches.

use core::fmt;
use std::io::Read;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use located_error::Subject;

use crate::batch::{Batch, is_supported};
use crate::error::{Error, ErrorKind};
use crate::messages::Messages;

/// A table of named columns that is read from the beginning to the end.
pub struct Table<'r> {
    names: Vec<String>,
    supported: Vec<bool>,
    /// Those to read; all of them if none were chosen.
    wanted: Option<Vec<usize>>,
    source: Source<'r>,
    n_read: u64,
}

enum Source<'r> {
    Arrow(Messages<Box<dyn Read + 'r>>),
    #[cfg(feature = "parquet")]
    Parquet(crate::parquet::Rows),
}

impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("names", &self.names)
            .field("n_read", &self.n_read)
            .finish_non_exhaustive()
    }
}

impl<'r> Table<'r> {
    /// Reads an Arrow IPC stream, or an Arrow IPC file as the stream that it contains; a pipe does.
    ///
    /// # Errors
    ///
    /// If the source fails or does not begin with the schema of a table.
    pub fn arrow(source: impl Read + 'r) -> Result<Self, Error> {
        let messages = Messages::open(Box::new(source) as Box<dyn Read + 'r>)?;
        let schema = messages.schema();
        Ok(Self::new(&schema, Source::Arrow(messages)))
    }

    /// Reads a Parquet file.
    ///
    /// # Errors
    ///
    /// If the file fails or its footer is invalid.
    #[cfg(feature = "parquet")]
    pub fn parquet(file: std::fs::File) -> Result<Self, Error> {
        Ok(Self::of_parquet(crate::parquet::Rows::open(file)?))
    }

    /// Reads a Parquet file in memory.
    ///
    /// # Errors
    ///
    /// Those of [`parquet`](Self::parquet).
    #[cfg(feature = "parquet")]
    pub fn parquet_in_memory(bytes: Vec<u8>) -> Result<Self, Error> {
        Ok(Self::of_parquet(crate::parquet::Rows::open(bytes::Bytes::from(bytes))?))
    }

    #[cfg(feature = "parquet")]
    fn of_parquet(rows: crate::parquet::Rows) -> Self {
        let schema = rows.schema();
        Self::new(&schema, Source::Parquet(rows))
    }

    fn new(schema: &Schema, source: Source<'r>) -> Self {
        let fields = schema.fields();
        Self {
            names: fields.iter().map(|field| field.name().clone()).collect(),
            supported: fields.iter().map(|field| is_supported(field.data_type())).collect(),
            wanted: None,
            source,
            n_read: 0,
        }
    }

    /// Names of the columns. Nothing keeps a file from using one twice.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Chooses the columns to read, before the first batch: others are not decoded, of Parquet not even read.
    ///
    /// # Errors
    ///
    /// If the type of one is not supported.
    pub fn choose(&mut self, columns: &[usize]) -> Result<(), Error> {
        for &column in columns {
            if self.supported.get(column) != Some(&true) {
                let name = self.names.get(column).map_or("", String::as_str);
                return Err(Error::from(ErrorKind::ColumnType {}).of(Subject::column(name)));
            }
        }
        let mut wanted = columns.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        self.wanted = Some(wanted);
        Ok(())
    }

    /// The next rows, at least one; none at the end.
    ///
    /// # Errors
    ///
    /// If the source fails or its data are invalid.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            let (batch, is_chosen) = match &mut self.source {
                Source::Arrow(messages) => (messages.next_batch()?, false),
                #[cfg(feature = "parquet")]
                Source::Parquet(rows) => (rows.next_batch(self.wanted.as_deref())?, true),
            };
            let Some(batch) = batch else { return Ok(None) };
            if batch.num_rows() == 0 {
                continue;
            }
            let at = self.columns_of(&batch, is_chosen)?;
            let first_row = self.n_read;
            self.n_read += batch.num_rows() as u64;
            return Ok(Some(Batch::new(batch, at, first_row)));
        }
    }

    fn columns_of(&self, batch: &RecordBatch, is_chosen: bool) -> Result<Vec<Option<usize>>, Error> {
        let wanted = self.wanted.as_deref().filter(|_| is_chosen);
        let expected = wanted.map_or(self.names.len(), <[usize]>::len);
        if batch.num_columns() != expected {
            return Err(ErrorKind::Columns {}.into());
        }
        let at = |column: usize| match wanted {
            Some(wanted) => wanted.binary_search(&column).ok(),
            None => Some(column),
        };
        Ok((0..self.names.len()).map(at).collect())
    }
}
