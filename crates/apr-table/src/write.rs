//! Tables that are written in batches.

use alloc::sync::Arc;
use core::fmt;
use std::io::{self, Write};
use std::sync::Mutex;

use located_error::Subject;

use crate::cells::{Cells, ColumnSpec, Values};
use crate::error::{Error, ErrorKind};
use crate::unpanicked::unpanicked;

mod arrow;
#[cfg(feature = "parquet")]
mod parquet;

/// The form of a table that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableFormat {
    /// An Arrow IPC file, uncompressed: it can be mapped.
    ArrowFile,
    /// An Arrow IPC stream, uncompressed.
    ArrowStream,
    /// A Parquet file, compressed with zstd.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// Writes a table batch by batch. Memory does not grow with it; the same cells give the same bytes, in whatever batches they come.
pub struct TableWriter<W: Write + Send> {
    columns: Vec<ColumnSpec>,
    encoder: Encoder<Sink<W>>,
    failure: Cause,
    /// What is not written yet.
    pending: Vec<Cells>,
    limits: Limits,
}

/// When what is pending is written.
#[derive(Clone, Copy)]
struct Limits {
    rows: usize,
    /// Bytes of memory.
    memory: usize,
}

enum Encoder<W: Write + Send> {
    Arrow(arrow::Encoder<W>),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Encoder<W>),
}

/// Why writing failed: what the libraries make of an error would hide it.
type Cause = Arc<Mutex<Option<io::Error>>>;

impl<W: Write + Send> fmt::Debug for TableWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl<W: Write + Send> TableWriter<W> {
    /// Begins a table of these columns.
    ///
    /// # Errors
    ///
    /// If `out` fails, or two columns have one name.
    pub fn new(out: W, format: TableFormat, columns: Vec<ColumnSpec>) -> Result<Self, Error> {
        let mut names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair.first() == pair.last()) {
            let name = pair.first().copied().unwrap_or_default();
            return Err(Error::from(ErrorKind::DuplicateColumn {}).of(Subject::column(name)));
        }
        let failure = Cause::default();
        let out = Sink { out, failure: Arc::clone(&failure) };
        let begun = match format {
            TableFormat::ArrowFile => arrow::Encoder::file(out, &columns).map(Encoder::Arrow),
            TableFormat::ArrowStream => arrow::Encoder::stream(out, &columns).map(Encoder::Arrow),
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => parquet::Encoder::new(out, &columns).map(Encoder::Parquet),
        };
        let limits = match format {
            TableFormat::ArrowFile | TableFormat::ArrowStream => Limits { rows: 64 << 10, memory: 16 << 20 },
            #[cfg(feature = "parquet")]
            TableFormat::Parquet => Limits { rows: 1 << 20, memory: 64 << 20 },
        };
        let encoder = begun.map_err(|error| cause_of(&failure, error))?;
        let pending = columns.iter().map(|column| Values::new(column.cell_type).into()).collect();
        Ok(Self { columns, encoder, failure, pending, limits })
    }

    /// Writes rows: the cells of each column, as many of each.
    ///
    /// # Errors
    ///
    /// If `out` fails, or the cells are not those of the columns.
    pub fn write(&mut self, batch: Vec<Cells>) -> Result<(), Error> {
        let mut lens = batch.iter().map(|cells| cells.values.len());
        let n_rows = lens.next().unwrap_or(0);
        let fits = batch.len() == self.columns.len()
            && lens.all(|len| len == n_rows)
            && batch.iter().zip(&self.columns).all(|(cells, column)| {
                cells.is_valid.as_ref().is_none_or(|is_valid| column.is_nullable && is_valid.len() == n_rows)
            });
        let fits = fits && self.pending.iter_mut().zip(batch).all(|(pending, cells)| pending.append(cells));
        if !fits {
            return Err(ErrorKind::Columns {}.into());
        }
        self.write_pending(false)
    }

    /// Writes the rest. What is returned is `out`.
    ///
    /// # Errors
    ///
    /// If `out` fails.
    pub fn finish(mut self) -> Result<W, Error> {
        self.write_pending(true)?;
        let finished = match self.encoder {
            Encoder::Arrow(encoder) => encoder.finish(),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(encoder) => encoder.finish(),
        };
        finished.map(|sink| sink.out).map_err(|error| cause_of(&self.failure, error))
    }

    /// Writes groups of rows; with the last one also what is no whole group.
    fn write_pending(&mut self, is_last: bool) -> Result<(), Error> {
        loop {
            let n_pending = self.pending.first().map_or(0, |cells| cells.values.len());
            let Some(n_rows) =
                self.whole_group(n_pending).or((is_last && n_pending > 0).then_some(n_pending))
            else {
                return Ok(());
            };
            let group: Vec<Cells> = self.pending.iter_mut().map(|cells| cells.take(n_rows)).collect();
            let written = unpanicked(|| match &mut self.encoder {
                Encoder::Arrow(encoder) => encoder.write(group, n_rows),
                #[cfg(feature = "parquet")]
                Encoder::Parquet(encoder) => encoder.write(group),
            });
            written
                .unwrap_or_else(|| Err(Error::from(ErrorKind::Write {})))
                .map_err(|error| cause_of(&self.failure, error))?;
        }
    }

    /// The rows of a group, if as many are pending: what was written before and in which batches does not matter.
    fn whole_group(&self, n_pending: usize) -> Option<usize> {
        let memory =
            |n_rows: usize| self.pending.iter().map(|cells| cells.values.memory(n_rows)).sum::<usize>();
        let is_whole = |n_rows: usize| n_rows >= self.limits.rows || memory(n_rows) >= self.limits.memory;
        if n_pending == 0 || !is_whole(n_pending) {
            return None;
        }
        let (mut few, mut enough) = (0, n_pending);
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if is_whole(middle) { enough = middle } else { few = middle }
        }
        Some(enough)
    }
}

/// The error of the sink, if that is why.
fn cause_of(failure: &Cause, error: Error) -> Error {
    let cause = failure.lock().ok().and_then(|mut failure| failure.take());
    cause.map_or(error, |cause| Error::caused(ErrorKind::Write {}, cause))
}

/// An output that keeps its first error.
struct Sink<W> {
    out: W,
    failure: Cause,
}

impl<W: Write> Sink<W> {
    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            if kind != io::ErrorKind::Interrupted
                && let Ok(mut failure) = self.failure.lock()
            {
                failure.get_or_insert(error);
            }
            kind.into()
        })
    }
}

impl<W: Write> Write for Sink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes);
        self.keep(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        self.keep(flushed)
    }
}
