//! Rows of Arrow IPC streams, and predictions as such.

use alloc::collections::VecDeque;

use apr_models::{Accepts, ColumnValues, InputKind, Predictions};
use apr_table::{
    Accepted, Batch, CellError, CellType, Cells, ColumnSpec, ErrorKind, Problem, Table, TableFormat,
    TableWriter, Value, Values,
};
use hyper::StatusCode;
use located_error::Located as _;

use crate::categories::{self, Takes};
use crate::features::Named;
use crate::json::columns;
use crate::model::Model;
use crate::options::Options;
use crate::refusal::Refusal;

const HELP: &str = "the body is an Arrow IPC stream whose columns are numbers or booleans, one for each input of the model, for features with categories also strings; for models of texts one column of strings";

/// Bytes of the name of a category that do not count towards [`ArrowRows::text_left`]. Few names are longer; blanks without a limit would
/// be looked through once for each row.
const SHORT_NAME: usize = 256;

/// What the messages of any body may have when decompressed.
const MIN_CONTENT: usize = 64 << 10;
/// The same for each byte of a body.
const MAX_RATIO: usize = 16;

/// Bytes in memory for each byte that a schema may have: its columns before the model's are found.
const SCHEMA_MEMORY: usize = 32;
/// Where the root of a message without a length before it may be: polars 2 writes such files.
const MAX_ROOT: usize = 32;
/// Bytes of a column of a batch beside its content.
const ARRAY_MEMORY: usize = 256;

/// Bytes that the messages of a body may have when decompressed, in all.
fn max_content(body_len: usize, max_body: usize) -> usize {
    MIN_CONTENT.saturating_add(body_len.saturating_mul(MAX_RATIO)).min(max_body).max(body_len)
}

/// The rows of a body, decompressed.
#[derive(Debug)]
pub(crate) struct ArrowRows {
    /// The columns in the order of the model's inputs.
    columns: Vec<usize>,
    batches: VecDeque<Batch>,
    /// Bytes of the batches, about.
    memory: usize,
    /// Bytes of texts, and of long names of categories, that may follow: a dictionary repeats them.
    text_left: usize,
    n_rows: usize,
}

impl ArrowRows {
    /// Reads a body. A model that knows the names of its features gets the columns of these names. `reserve` is called with the bytes in
    /// memory before they are taken.
    ///
    /// # Errors
    ///
    /// Those of `reserve`. If the body is no stream, is longer than `options` allow or has more rows, or its columns are not those that the model takes.
    pub(crate) fn new(
        body: &[u8],
        options: &Options,
        model: &Model,
        mut reserve: impl FnMut(usize) -> Result<(), Refusal>,
    ) -> Result<Self, Refusal> {
        let max_content = max_content(body.len(), options.max_body);
        // The messages are copied, and may be held beside what they decompress to.
        let mut memory = max_content.saturating_add(body.len());
        reserve(memory.saturating_add(max_schema(body).saturating_mul(SCHEMA_MEMORY)))?;
        let mut table = Table::arrow_within(body, max_content as u64).map_err(|error| refused(&error))?;
        let n_columns = table.names().len();
        let expected = if model.input_kind() == InputKind::Text { Some(1) } else { model.n_inputs() };
        let order = match model.features() {
            Some(features) => {
                let mut named = Named::default();
                named.begin(features);
                let mut order = vec![0; features.names().len()];
                for (column, name) in table.names().iter().enumerate() {
                    let feature = named.next(features, name)?;
                    if let Some(place) = order.get_mut(feature) {
                        *place = column;
                    }
                }
                named.end(features)?;
                order
            }
            None => match expected {
                Some(expected) if expected != n_columns => return Err(columns(expected, n_columns)),
                _ => (0..n_columns).collect(),
            },
        };
        table.choose(&order).map_err(|error| refused(&error))?;
        let (mut batches, mut n_rows) = (VecDeque::new(), 0);
        while let Some(batch) = table.next_batch().map_err(|error| refused(&error))? {
            n_rows += batch.n_rows();
            // Rows of nulls take no bytes.
            if n_rows > options.max_rows {
                return Err(Refusal::too_many_rows(options.max_rows));
            }
            batches.push_back(batch);
            memory = memory.saturating_add(n_columns * ARRAY_MEMORY);
            reserve(memory)?;
        }
        Ok(Self { columns: order, batches, memory, text_left: max_content, n_rows })
    }

    /// Bytes that they take.
    pub(crate) const fn memory(&self) -> usize {
        self.memory
    }

    /// Values of all rows.
    pub(crate) fn n_numbers(&self) -> usize {
        self.n_rows.saturating_mul(self.columns.len())
    }

    /// Values of a row.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Appends the values of the next rows, at most so many; returns how many, 0 at the end.
    ///
    /// # Errors
    ///
    /// If a cell is no number that the model takes.
    pub(crate) fn next_rows<T: Value + From<f32>>(
        &mut self,
        at_most: usize,
        takes: Takes<'_>,
        out: &mut Vec<T>,
    ) -> Result<usize, Refusal> {
        let Some(batch) = self.next_batch(at_most) else { return Ok(0) };
        let accepts = takes.accepts;
        let accepted =
            Accepted { missing: accepts != Accepts::Finite, infinite: accepts == Accepts::Anything };
        let (begin, width) = (out.len(), self.columns.len());
        out.resize(begin + batch.n_rows() * width, T::default());
        for (feature, &column) in self.columns.iter().enumerate() {
            let cells = out.get_mut(begin + feature..).unwrap_or_default().iter_mut().step_by(width);
            let Some(categories) = takes.categories.and_then(|categories| categories.of(feature)) else {
                batch.write_column(column, accepted, cells).map_err(|error| not_taken(&error, feature))?;
                continue;
            };
            for (row, cell) in cells.enumerate() {
                let name = batch.text(row, column).map_err(|error| not_taken(&error, feature))?;
                let long = name.as_ref().map_or(0, |name| name.len().saturating_sub(SHORT_NAME));
                self.text_left = self.text_left.checked_sub(long).ok_or_else(too_long)?;
                *cell = categories::number(categories, name.as_deref(), accepts).map_err(|refusal| {
                    refusal.at(format_args!("row {}, column {feature}", batch.first_row() + row as u64))
                })?;
            }
        }
        Ok(batch.n_rows())
    }

    /// Appends the next texts, at most so many; returns how many, 0 at the end.
    ///
    /// # Errors
    ///
    /// If a text is missing, or all of them are longer than the body may be.
    pub(crate) fn next_texts<T: From<String>>(
        &mut self,
        at_most: usize,
        out: &mut Vec<T>,
    ) -> Result<usize, Refusal> {
        let Some(batch) = self.next_batch(at_most) else { return Ok(0) };
        for row in 0..batch.n_rows() {
            let text = batch.text(row, 0).ok().flatten();
            let text = text.ok_or_else(|| {
                Refusal::of_body("sv-arrow", "a text is missing", HELP)
                    .at(format_args!("row {}", batch.first_row() + row as u64))
            })?;
            self.text_left = self.text_left.checked_sub(text.len()).ok_or_else(too_long)?;
            out.push(text.into_owned().into());
        }
        Ok(batch.n_rows())
    }

    fn next_batch(&mut self, at_most: usize) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        let n_rows = batch.n_rows();
        if n_rows > at_most {
            self.batches.push_front(batch.slice(at_most, n_rows));
        }
        Some(batch.slice(0, at_most))
    }
}

/// A cell that is no number that the model takes.
fn not_taken(error: &CellError, feature: usize) -> Refusal {
    let what: &dyn core::fmt::Display = match &error.problem {
        Problem::Null => &"a missing value, and the model takes none",
        problem => problem,
    };
    Refusal::of_body("sv-number", what, "GET /model says what the model takes")
        .at(format_args!("row {}, column {feature}", error.row))
}

/// Bytes that the schema of a body may have: the length that its first message declares, behind the marks of streams and files and the
/// zeros of the latter.
fn max_schema(body: &[u8]) -> usize {
    let (words, _) = body.strip_prefix(b"ARROW1\0\0").unwrap_or(body).as_chunks::<4>();
    let mut lengths = words.iter().map(|word| u32::from_le_bytes(*word)).skip_while(|&word| word == 0);
    let declared = lengths.find(|&word| word != u32::MAX).map_or(0, |len| len as usize);
    // So small a number is no length: the file has messages without one.
    if declared <= MAX_ROOT { body.len() } else { declared.min(body.len()) }
}

fn too_long() -> Refusal {
    let what = "the content of the body is too long";
    let help = "send it without compression and dictionaries, or fewer rows at a time";
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "sv-body-size", what, help)
}

/// An error of the reader.
fn refused(error: &apr_table::Error) -> Refusal {
    if matches!(error.kind(), ErrorKind::Limit { .. }) {
        return too_long();
    }
    match error.location().offset {
        Some(offset) => Refusal::of_body("sv-arrow", error.message(), HELP).at(format_args!("byte {offset}")),
        None => Refusal::of_body("sv-arrow", error, HELP),
    }
}

/// Predictions as an Arrow IPC stream.
#[derive(Debug)]
pub(crate) struct Columns {
    writer: Option<TableWriter<Vec<u8>>>,
    /// Bytes of the values, about.
    len: usize,
}

impl Columns {
    pub(crate) const fn new() -> Self {
        Self { writer: None, len: 0 }
    }

    /// Bytes of the answer, about.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Appends predictions.
    ///
    /// # Errors
    ///
    /// If they have no columns.
    pub(crate) fn push(&mut self, model: &Model, predictions: Predictions) -> Result<(), Refusal> {
        let columns = model.columns(predictions).ok_or_else(|| {
            let help = "ask for application/json or application/msgpack";
            Refusal::new(StatusCode::NOT_ACCEPTABLE, "sv-accept", "weights of terms are no columns", help)
        })?;
        let writer = match &mut self.writer {
            Some(writer) => writer,
            writer => {
                let specs = columns.iter().map(|column| ColumnSpec {
                    name: column.name.clone(),
                    cell_type: cell_type(&column.values),
                    is_nullable: false,
                });
                let begun = TableWriter::new(Vec::new(), TableFormat::ArrowStream, specs.collect());
                writer.insert(begun.map_err(|error| unwritten(&error))?)
            }
        };
        let cells: Vec<_> = columns.into_iter().map(|column| values(column.values)).collect();
        self.len += cells.iter().map(memory).sum::<usize>();
        writer.write(cells.into_iter().map(Cells::from).collect()).map_err(|error| unwritten(&error))
    }

    /// The stream.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub(crate) fn end(self) -> Result<Vec<u8>, Refusal> {
        match self.writer {
            Some(writer) => writer.finish().map_err(|error| unwritten(&error)),
            None => Ok(Vec::new()),
        }
    }
}

/// Two classes of one name have no columns.
fn unwritten(error: &apr_table::Error) -> Refusal {
    let help = "ask for application/json or application/msgpack";
    Refusal::new(StatusCode::NOT_ACCEPTABLE, "sv-accept", error.message(), help)
}

fn cell_type(values: &ColumnValues) -> CellType {
    match values {
        ColumnValues::F32(_) => CellType::F32,
        ColumnValues::F64(_) => CellType::F64,
        ColumnValues::I64(_) => CellType::I64,
        ColumnValues::Bool(_) => CellType::Bool,
        ColumnValues::Text(_) => CellType::Text,
    }
}

fn values(values: ColumnValues) -> Values {
    match values {
        ColumnValues::F32(values) => Values::F32(values),
        ColumnValues::F64(values) => Values::F64(values),
        ColumnValues::I64(values) => Values::I64(values),
        ColumnValues::Bool(values) => Values::Bool(values),
        ColumnValues::Text(values) => Values::Text(values.iter().map(String::as_str).collect()),
    }
}

fn memory(values: &Values) -> usize {
    match values {
        Values::F32(values) => values.len() * 4,
        Values::Bool(values) => values.len(),
        Values::Text(texts) => texts.memory(),
        values => values.len() * 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_schema_is_behind_the_marks() {
        let message = [&[0xff; 4][..], &[200, 0, 0, 0], &[7; 992]].concat();
        assert_eq!(max_schema(&message), 200);
        // Of old writers.
        assert_eq!(max_schema(&message[4..]), 200);
        for n_zeros in [0, 8, 56] {
            let file = [&b"ARROW1\0\0"[..], &vec![0; n_zeros], &message].concat();
            assert_eq!(max_schema(&file), 200, "{n_zeros}");
        }
        // Of polars 2: the place of the root of the message.
        let unprefixed = [&b"ARROW1\0\0"[..], &[16, 0, 0, 0], &[7; 500]].concat();
        assert_eq!(max_schema(&unprefixed), unprefixed.len());
        assert_eq!(max_schema(&[0xff, 0xff, 0xff, 0xff, 0, 1, 0, 0, 9]), 9);
        // No length: whatever the body has.
        assert_eq!((max_schema(&[0; 100]), max_schema(b"")), (100, 0));
    }
}
