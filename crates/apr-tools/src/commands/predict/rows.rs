//! Rows of a table as samples.

use apr_models::{Accepts, InputKind, Predictions, Samples};

use super::answer::Asked;
use crate::error::{CODE_TABLE_COLUMNS, Failure};
use crate::input::NamedModel;
use crate::tables::{self, CsvTable, Dialect, Input, number};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::plural;

/// Maximum rows per batch.
const BATCH: usize = 1024;

/// Reads the table and passes predictions on, in batches of the rows that have arrived.
///
/// # Errors
///
/// If the table cannot be read or does not fit the model, and those of `take`.
pub(super) fn ask(
    known: &NamedModel,
    asked: &Asked<'_>,
    input: Input,
    dialect: Dialect,
    console: &Console,
    take: &mut dyn FnMut(Predictions) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = input.label().to_owned();
    let mut table = CsvTable::open(input, dialect)?;
    if table.n_columns() == 0 {
        console.remark("the table has no rows");
        return Ok(());
    }
    let columns = columns(known, &table, console).map_err(|failure| failure.in_file(&path))?;
    let mut n_before = 0;
    if asked.input_kind == InputKind::F64 {
        let accepts = known.model.capabilities().accepts();
        return in_batches(
            &mut table,
            &columns,
            |cell| wide_number(cell, accepts),
            |n_rows, values| {
                let answers = asked.predict(Samples::F64(&values), n_rows);
                let answers = answers.map_err(|error| error.offset_rows(n_before))?;
                n_before += n_rows;
                take(answers)
            },
        );
    }
    in_batches(&mut table, &columns, number, |n_rows, values| {
        take(asked.predict(Samples::F32(&values), n_rows)?)
    })
}

/// Passes the rows of the table to `take`, as many at a time as have arrived: their number and the values of their columns.
fn in_batches<T>(
    table: &mut CsvTable,
    columns: &[usize],
    number: impl Fn(&str) -> Result<T, String>,
    mut take: impl FnMut(usize, Vec<T>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut values = Vec::new();
    loop {
        let (mut n_rows, mut outcome) = (0, Ok(true));
        while n_rows < BATCH && (n_rows == 0 || table.has_buffered()) {
            outcome = table.next_numbers(columns, &number, &mut values);
            if !matches!(outcome, Ok(true)) {
                break;
            }
            n_rows += 1;
        }
        // Rows before one that cannot be read are answered, however the input arrived.
        values.truncate(n_rows * columns.len());
        if n_rows > 0 {
            take(n_rows, core::mem::take(&mut values))?;
        }
        if !outcome? {
            return Ok(());
        }
    }
}

/// The columns of the features, in their order.
fn columns(known: &NamedModel, table: &CsvTable, console: &Console) -> Result<Vec<usize>, Failure> {
    let found = table.n_columns();
    if let (Some(features), Some(names)) = (&known.features, table.names()) {
        let columns = features.iter().map(|feature| table.column(feature)).collect::<Result<Vec<_>, _>>()?;
        let unused: Vec<String> = (0..found)
            .filter(|column| !columns.contains(column))
            .filter_map(|column| names.get(column).cloned())
            .collect();
        if !unused.is_empty() {
            console.remark(format_args!("not among the features: {}", tables::listed(&unused)));
        }
        return Ok(columns);
    }
    let expected = known.n_features();
    match expected {
        Some(expected) if expected != found => {
            let what = format!(
                "the table has {}, the model {}",
                plural(found as u64, "column"),
                plural(expected as u64, "feature")
            );
            Err(Failure::new(CODE_TABLE_COLUMNS, what))
        }
        _ => Ok((0..found).collect()),
    }
}

/// The number in a cell of a table for a pipeline, or its error. If the model accepts missing values, a cell may be empty or a
/// marker of a missing value ([`tables::is_missing`]).
fn wide_number(cell: &str, accepts: Accepts) -> Result<f64, String> {
    let text = cell.trim();
    if accepts != Accepts::Finite && tables::is_missing(text) {
        return Ok(f64::NAN);
    }
    if text.is_empty() {
        return Err("the cell is empty".to_owned());
    }
    let shown = escape::cut(text, 60);
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
            Err(format!("`{shown}` is beyond what a 64-bit float can hold"))
        }
        Ok(value) if accepts == Accepts::Anything => Ok(value),
        Ok(_) => Err(format!("`{shown}` is not a finite number")),
        Err(_) => Err(format!("`{shown}` is not a number")),
    }
}
