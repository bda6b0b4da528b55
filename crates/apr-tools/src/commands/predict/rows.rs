//! Rows of a table as samples.

use alloc::collections::BTreeSet;

use apr_models::{Accepts, InputKind, Predictions, Samples};

use super::answer::Asked;
use crate::error::{CODE_TABLE_COLUMNS, Failure};
use crate::input::NamedModel;
use crate::tables::{self, Categories, Dialect, Input, Number, Table, Wanted};
use crate::terminal::Console;
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
    dialect: &Dialect,
    console: &Console,
    take: &mut dyn FnMut(Predictions) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let path = input.label().to_owned();
    let mut table = Table::open(input, dialect)?;
    if table.n_columns() == 0 {
        console.remark("the table has no rows");
        return Ok(());
    }
    let columns = columns(known, &mut table, None, console).map_err(|failure| failure.in_file(&path))?;
    if asked.input_kind == InputKind::F64 {
        let wanted = Wanted { numbers: &columns, accepts: known.model.capabilities().accepts(), text: None };
        let mut n_before = 0;
        return in_batches(&mut table, wanted, |n_rows, values: Vec<f64>| {
            let answers = asked.predict(Samples::F64(&values), n_rows);
            let answers = answers.map_err(|error| error.offset_rows(n_before))?;
            n_before += n_rows;
            take(answers)
        });
    }
    let wanted = Wanted { numbers: &columns, accepts: Accepts::Finite, text: None };
    in_batches(&mut table, wanted, |n_rows, values: Vec<f32>| {
        take(asked.predict(Samples::F32(&values), n_rows)?)
    })
}

/// Passes the rows of the table to `take`, as many at a time as have arrived: their number and the values of their columns.
fn in_batches<T: Number>(
    table: &mut Table,
    wanted: Wanted<'_>,
    mut take: impl FnMut(usize, Vec<T>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let taken = table.next_rows(wanted, BATCH)?;
        if taken.n_rows == 0 {
            return Ok(());
        }
        take(taken.n_rows, taken.numbers)?;
    }
}

/// The columns of the features, in their order; none of them is `target`. Those of categories are read as such from then on.
///
/// # Errors
///
/// If one is missing, or there are more or fewer of them.
pub(crate) fn columns(
    known: &NamedModel,
    table: &mut Table,
    target: Option<usize>,
    console: &Console,
) -> Result<Vec<usize>, Failure> {
    let columns = feature_columns(known, table, target, console)?;
    if let Some(known) = &known.categories {
        if known.of_features.len() != columns.len() {
            let (found, expected) = (known.of_features.len() as u64, columns.len() as u64);
            let what = format!(
                "categories of {}, the model has {}",
                plural(found, "feature"),
                plural(expected, "feature")
            );
            return Err(Failure::new(CODE_TABLE_COLUMNS, what));
        }
        let with_names = columns.iter().zip(&known.of_features).filter(|(_, names)| !names.is_empty());
        with_names.for_each(|(column, names)| {
            table.set_categories(*column, Categories::known(names, known.unknown));
        });
    }
    Ok(columns)
}

fn feature_columns(
    known: &NamedModel,
    table: &Table,
    target: Option<usize>,
    console: &Console,
) -> Result<Vec<usize>, Failure> {
    let others = || (0..table.n_columns()).filter(|column| Some(*column) != target);
    if let (Some(features), Some(names)) = (&known.features, table.names()) {
        let columns = features.iter().map(|feature| table.column(feature)).collect::<Result<Vec<_>, _>>()?;
        let used: BTreeSet<usize> = columns.iter().copied().collect();
        let unused: Vec<String> = others()
            .filter(|column| !used.contains(column))
            .filter_map(|column| names.get(column).cloned())
            .collect();
        if !unused.is_empty() {
            console.remark(format_args!("not among the features: {}", tables::listed(&unused)));
        }
        return Ok(columns);
    }
    let found = others().count();
    match known.n_features() {
        Some(expected) if expected != found => {
            let what = format!(
                "the table has {}{}, the model {}",
                plural(found as u64, "column"),
                if target.is_some() { " besides the target" } else { "" },
                plural(expected as u64, "feature")
            );
            Err(Failure::new(CODE_TABLE_COLUMNS, what))
        }
        _ => Ok(others().collect()),
    }
}
