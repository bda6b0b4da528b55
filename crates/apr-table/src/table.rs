//! A table that is read in batches.

use core::fmt;
use std::io::Read;

use arrow_array::{ArrayRef, RecordBatchReader};
use located_error::Subject;

use crate::batch::{Batch, unsupported};
use crate::error::{Error, ErrorKind};
use crate::messages::Messages;

/// A table of named columns that is read from the beginning to the end.
pub struct Table<'r> {
    names: Vec<String>,
    /// Of the columns whose type is not supported its name.
    unsupported: Vec<Option<&'static str>>,
    /// The columns to read, in the order of the table.
    wanted: Vec<usize>,
    source: Source<'r>,
    /// What is left of the last message or page.
    rest: Option<Batch>,
    n_read: u64,
}

/// Most rows of a batch.
pub(crate) const BATCH: usize = 8192;

enum Source<'r> {
    Arrow(Box<Messages<Box<dyn Read + 'r>>>),
    Batches(Box<dyn RecordBatchReader + Send + 'r>),
    #[cfg(feature = "ald")]
    Ald(Box<crate::ald::Rows>),
    #[cfg(feature = "parquet")]
    Parquet(Box<crate::parquet::Rows>),
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
        Ok(Self::of_arrow(Messages::open(Box::new(source) as Box<dyn Read + 'r>)?))
    }

    /// The same, of a source whose batches and dictionaries have at most so many bytes in all when decompressed.
    ///
    /// # Errors
    ///
    /// Those of [`arrow`](Self::arrow); later [`ErrorKind::Limit`].
    pub fn arrow_within(source: impl Read + 'r, max_content: u64) -> Result<Self, Error> {
        Ok(Self::of_arrow(Messages::open_within(Box::new(source) as Box<dyn Read + 'r>, max_content)?))
    }

    /// Reads batches in memory, of a source that is trusted: of another library in the same process. Their columns are not copied.
    pub fn record_batches(batches: impl RecordBatchReader + Send + 'r) -> Self {
        let schema = batches.schema();
        let columns =
            schema.fields().iter().map(|field| (field.name().clone(), unsupported(field.data_type())));
        Self::new(columns.collect(), Source::Batches(Box::new(batches)))
    }

    fn of_arrow(messages: Messages<Box<dyn Read + 'r>>) -> Self {
        let schema = messages.schema();
        let columns =
            schema.fields().iter().map(|field| (field.name().clone(), unsupported(field.data_type())));
        Self::new(columns.collect(), Source::Arrow(Box::new(messages)))
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
        let columns = rows.columns();
        Self::new(columns, Source::Parquet(Box::new(rows)))
    }

    /// Reads a dataset of alimentar: compares its checksum, verifies its signature and decrypts it, as `access` demands and allows.
    ///
    /// # Errors
    ///
    /// If the source fails or is not valid, is encrypted or signed and `access` does not open or verify it, or is not and it has to be.
    #[cfg(feature = "ald")]
    pub fn ald(
        dataset: crate::ald::Ald,
        access: &apr_crypto::Access<'_>,
    ) -> Result<(Self, crate::ald::Verified), Error> {
        let columns =
            dataset.fields().map(|field| (field.name().clone(), unsupported(field.data_type()))).collect();
        let (rows, verified) = dataset.verified(access)?;
        Ok((Self::new(columns, Source::Ald(Box::new(rows))), verified))
    }

    /// Of columns with their names, and those of types that are not supported.
    fn new(columns: Vec<(String, Option<&'static str>)>, source: Source<'r>) -> Self {
        let (names, unsupported): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let wanted = unsupported.iter().enumerate().filter(|(_, unsupported)| unsupported.is_none());
        Self {
            names,
            wanted: wanted.map(|(column, _)| column).collect(),
            unsupported,
            source,
            rest: None,
            n_read: 0,
        }
    }

    /// Names of the columns. Nothing keeps a file from using one twice.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Chooses the columns to read, before the first batch: of Parquet, others are not even read. Without a choice all columns are
    /// read that have a supported type.
    ///
    /// # Errors
    ///
    /// If the type of one is not supported.
    pub fn choose(&mut self, columns: &[usize]) -> Result<(), Error> {
        for &column in columns {
            if let Some(found) = self.unsupported.get(column).copied().unwrap_or(Some("of no column")) {
                let name = self.names.get(column).map_or("", String::as_str);
                return Err(Error::from(ErrorKind::ColumnType { found }).of(Subject::column(name)));
            }
        }
        let mut wanted = columns.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        self.wanted = wanted;
        Ok(())
    }

    /// The next rows, at least one and at most 8,192; none at the end.
    ///
    /// # Errors
    ///
    /// If the source fails or its data are invalid.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, Error> {
        let whole = match self.rest.take() {
            Some(rest) => rest,
            None => loop {
                let Some((columns, n_rows)) = self.read()? else { return Ok(None) };
                if n_rows > 0 {
                    let at = (0..self.names.len()).map(|column| self.wanted.binary_search(&column).ok());
                    let first_row = self.n_read;
                    self.n_read += n_rows as u64;
                    break Batch::new(columns, n_rows, at.collect(), first_row);
                }
            },
        };
        if whole.n_rows() > BATCH {
            self.rest = Some(whole.slice(BATCH, whole.n_rows()));
        }
        Ok(Some(whole.slice(0, BATCH)))
    }

    /// The next rows of the columns to read, as they are stored.
    fn read(&mut self) -> Result<Option<(Vec<ArrayRef>, usize)>, Error> {
        let batch = match &mut self.source {
            Source::Arrow(messages) => messages.next_batch()?,
            Source::Batches(batches) => {
                batches.next().transpose().map_err(|error| Error::caused(ErrorKind::Arrow {}, error))?
            }
            #[cfg(feature = "ald")]
            Source::Ald(rows) => rows.next_batch()?,
            #[cfg(feature = "parquet")]
            Source::Parquet(rows) => return rows.next_batch(&self.wanted),
        };
        let Some(batch) = batch else { return Ok(None) };
        if batch.num_columns() != self.names.len() {
            return Err(ErrorKind::Columns {}.into());
        }
        let n_rows = batch.num_rows();
        let (_, columns, _) = batch.into_parts();
        let wanted = self.wanted.iter().filter_map(|&column| columns.get(column).cloned());
        Ok(Some((wanted.collect(), n_rows)))
    }
}
