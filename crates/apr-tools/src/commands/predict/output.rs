//! Predictions in a file whose ending names its format.

use std::path::Path;

use apr_models::{ColumnValues, Float, PredictionColumn, Predictions};
#[cfg(feature = "tables")]
use apr_table::{CellType, Cells, ColumnSpec, TableFormat, TableWriter, Values};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::answer::Asked;
use super::report::FloatValue;
use crate::error::{CODE_OUTPUT_FORMAT, Failure};
use crate::input::NamedModel;
use crate::output::ending::names_model;
use crate::output::{Destination, Overwrite};
use crate::report::Fields;
#[cfg(feature = "tables")]
use crate::tables::{output_failure, table_format};
use crate::terminal::escape;

/// Endings of tables, databases and archives that are not text, and not written here.
const BINARY: [&str; 14] =
    ["xlsx", "xls", "ods", "orc", "avro", "db", "sqlite", "mat", "zip", "gz", "zst", "bz2", "xz", "7z"];
#[cfg(feature = "tables")]
const ENDINGS: &str = "name it .txt or .csv for lines of text, .jsonl for JSON lines, or .parquet, .arrow or .feather for a table";
#[cfg(not(feature = "tables"))]
const ENDINGS: &str = "name it .txt or .csv for lines of text, or .jsonl for JSON lines";

/// The format of the predictions in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A line of text for each.
    Lines,
    /// An object on a line for each.
    JsonLines,
    #[cfg(feature = "tables")]
    Table(TableFormat),
}

impl Form {
    /// By the ending of the name; lines of text for endings of nothing else.
    pub(super) fn of(destination: &Destination) -> Result<Self, Failure> {
        let Destination::File(path) = destination else { return Ok(Self::Lines) };
        if is_named(path, "jsonl") {
            return Ok(Self::JsonLines);
        }
        #[cfg(feature = "tables")]
        if let Some(format) = table_format(path) {
            return Ok(Self::Table(format));
        }
        #[cfg(not(feature = "tables"))]
        if ["arrow", "arrows", "feather", "parquet"].iter().any(|ending| is_named(path, ending)) {
            let failure =
                Failure::new(CODE_OUTPUT_FORMAT, "this build of apr writes no such tables").in_file(path);
            return Err(failure.help("write .jsonl, or build apr with the feature `tables`"));
        }
        if names_model(path) || BINARY.iter().any(|ending| is_named(path, ending)) {
            let ending = path.extension().unwrap_or_default().to_string_lossy();
            let what = format!("predictions are not written as .{} files", escape::escaped(&ending));
            return Err(Failure::new(CODE_OUTPUT_FORMAT, what).in_file(path).help(ENDINGS));
        }
        Ok(Self::Lines)
    }
}

fn is_named(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending))
}

/// Passes predictions on, batch by batch.
type Ask<'a> = dyn FnOnce(&mut dyn FnMut(Predictions) -> Result<(), Failure>) -> Result<(), Failure> + 'a;

/// Writes the predictions that `ask` passes on. Returns how many there were.
///
/// # Errors
///
/// Those of `ask` and of writing. A file appears, or is replaced, as a whole.
pub(super) fn write(
    form: Form,
    (known, asked): (&NamedModel, &Asked<'_>),
    destination: &Destination,
    overwrite: Overwrite,
    ask: Box<Ask<'_>>,
) -> Result<u64, Failure> {
    match form {
        #[cfg(feature = "tables")]
        Form::Table(format) => write_table(format, (known, asked), destination, overwrite, ask),
        _ => write_json_lines((known, asked), destination, overwrite, ask),
    }
}

fn write_json_lines(
    (known, asked): (&NamedModel, &Asked<'_>),
    destination: &Destination,
    overwrite: Overwrite,
    ask: Box<Ask<'_>>,
) -> Result<u64, Failure> {
    let mut n_rows = 0;
    destination.fill(overwrite, |out| {
        let mut lines = Vec::new();
        ask(&mut |predictions| {
            n_rows += predictions.len() as u64;
            lines.clear();
            let mut line = |object: &dyn erased::Object| {
                object.write(&mut lines);
                lines.push(b'\n');
            };
            match predictions {
                Predictions::Terms(rows) => {
                    for idx in 0..rows.n_rows() {
                        let terms =
                            rows.row(idx).map(|(term, value)| (asked.term(term), FloatValue::from(value)));
                        line(&Fields(terms.collect()));
                    }
                }
                predictions => {
                    let n_rows = predictions.len();
                    let columns = known.model.prediction_columns(predictions, known.classes.as_deref());
                    let columns = columns.unwrap_or_default();
                    (0..n_rows).for_each(|idx| line(&Row { columns: &columns, idx }));
                }
            }
            out.write_all(&lines).map_err(|error| destination.write_failure(&error))
        })
    })?;
    Ok(n_rows)
}

mod erased {
    /// What becomes a JSON object.
    pub(super) trait Object {
        fn write(&self, out: &mut Vec<u8>);
    }

    impl<T: serde::Serialize> Object for T {
        fn write(&self, out: &mut Vec<u8>) {
            // Strings and numbers have a form in JSON, and memory takes them.
            let _ = serde_json::to_writer(out, self);
        }
    }
}

/// A row of columns as an object.
struct Row<'c> {
    columns: &'c [PredictionColumn],
    idx: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.columns.len()))?;
        for PredictionColumn { name, values } in self.columns {
            let idx = self.idx;
            match values {
                ColumnValues::F32(values) => object.serialize_entry(
                    name,
                    &values.get(idx).map(|value| FloatValue::from(Float::F32(*value))),
                ),
                ColumnValues::F64(values) => object.serialize_entry(
                    name,
                    &values.get(idx).map(|value| FloatValue::from(Float::F64(*value))),
                ),
                ColumnValues::I64(values) => object.serialize_entry(name, &values.get(idx)),
                ColumnValues::Bool(values) => object.serialize_entry(name, &values.get(idx)),
                ColumnValues::Text(values) => object.serialize_entry(name, &values.get(idx)),
            }?;
        }
        object.end()
    }
}

#[cfg(feature = "tables")]
fn write_table(
    format: TableFormat,
    (known, asked): (&NamedModel, &Asked<'_>),
    destination: &Destination,
    overwrite: Overwrite,
    ask: Box<Ask<'_>>,
) -> Result<u64, Failure> {
    let columns = |predictions| {
        known.model.prediction_columns(predictions, known.classes.as_deref()).ok_or_else(|| {
            let failure = Failure::new(CODE_OUTPUT_FORMAT, "weights of terms are no columns of a table");
            failure.help("write them as JSON lines: a name that ends in .jsonl")
        })
    };
    let failed = |error| output_failure(error, destination);
    // Known before the first row, so that a table without rows has its columns.
    let specs = columns(asked.predict_nothing()?)?.iter().map(spec).collect();
    let mut n_rows = 0;
    crate::output::replace(destination.label(), overwrite, |file| {
        let mut writer = TableWriter::new(file, format, specs).map_err(failed)?;
        ask(&mut |predictions| {
            n_rows += predictions.len() as u64;
            let cells = columns(predictions)?.into_iter().map(|column| Cells::from(values(column.values)));
            writer.write(cells.collect()).map_err(failed)
        })?;
        writer.finish().map(drop).map_err(failed)
    })?;
    Ok(n_rows)
}

#[cfg(feature = "tables")]
fn spec(column: &PredictionColumn) -> ColumnSpec {
    let cell_type = match column.values {
        ColumnValues::F32(_) => CellType::F32,
        ColumnValues::F64(_) => CellType::F64,
        ColumnValues::I64(_) => CellType::I64,
        ColumnValues::Bool(_) => CellType::Bool,
        ColumnValues::Text(_) => CellType::Text,
    };
    ColumnSpec { name: column.name.clone(), cell_type, is_nullable: false }
}

#[cfg(feature = "tables")]
fn values(values: ColumnValues) -> Values {
    match values {
        ColumnValues::F32(values) => Values::F32(values),
        ColumnValues::F64(values) => Values::F64(values),
        ColumnValues::I64(values) => Values::I64(values),
        ColumnValues::Bool(values) => Values::Bool(values),
        ColumnValues::Text(values) => Values::Text(values.iter().map(String::as_str).collect()),
    }
}
