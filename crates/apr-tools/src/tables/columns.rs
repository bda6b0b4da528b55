//! Rows of tables that are stored by columns: Arrow IPC, Parquet, datasets of alimentar.

use alloc::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use apr_table::ald::Ald;
use apr_table::{Accepted, Batch, CellError, Error, Table};

use super::number::{Accepts, Number};
use super::{Categories, Stop, Taken, Wanted};
use crate::error::{Failure, Place};
use crate::secrets::Keys;

/// Such a table.
pub(super) struct Columns {
    table: Table<'static>,
    /// What is left of the last batch.
    batch: Option<Batch>,
    is_chosen: bool,
}

impl Columns {
    pub(super) fn arrow(source: impl Read + 'static) -> Result<Self, Failure> {
        Ok(Self::new(Table::arrow(source)?))
    }

    pub(super) fn parquet(file: File) -> Result<Self, Failure> {
        Ok(Self::new(Table::parquet(file)?))
    }

    pub(super) fn ald(dataset: Ald, keys: &Keys) -> Result<Self, Failure> {
        let access = keys.decryption().with_trust(keys.trusted().trust());
        Ok(Self::new(Table::ald(dataset, &access)?.0))
    }

    fn new(table: Table<'static>) -> Self {
        Self { table, batch: None, is_chosen: false }
    }

    pub(super) fn names(&self) -> &[String] {
        self.table.names()
    }

    /// Takes the next rows, at most `limit`, until the first one at fault.
    pub(super) fn take<T: Number>(
        &mut self,
        wanted: Wanted<'_>,
        categories: &mut BTreeMap<usize, Categories>,
        limit: usize,
        taken: &mut Taken<T>,
    ) -> Result<(), Stop> {
        let Some(batch) = self.next_batch(wanted)? else { return Ok(()) };
        let mut rows = batch.slice(0, limit);
        if batch.n_rows() > limit {
            self.batch = Some(batch.slice(limit, batch.n_rows()));
        }
        let accepted = accepted(wanted.accepts);
        let mut result = Ok(());
        let of_numbers = wanted.numbers.iter().copied().filter(|column| !categories.contains_key(column));
        let of_numbers: Vec<usize> = of_numbers.collect();
        // Another column may have a cell at fault before the first one that is found.
        while let Err(error) = rows.append_rows(&of_numbers, accepted, &mut taken.numbers) {
            rows = rows.slice(0, usize::try_from(error.row - rows.first_row()).unwrap_or_default());
            result = Err(error.into());
            if rows.n_rows() == 0 {
                break;
            }
        }
        if of_numbers.len() < wanted.numbers.len() {
            let numbers = core::mem::take(&mut taken.numbers);
            let (n_rows, stop) = add_categories(&rows, wanted, categories, &numbers, &mut taken.numbers)?;
            rows = rows.slice(0, n_rows);
            result = stop.map_or(result, Err);
        }
        if let Some(column) = wanted.text {
            for row in 0..rows.n_rows() {
                let place = Place::row(rows.first_row() + row as u64 + 1);
                taken.texts.push((place, rows.text(row, column)?.unwrap_or_default().into_owned()));
            }
        }
        taken.n_rows = rows.n_rows();
        result
    }

    fn next_batch(&mut self, wanted: Wanted<'_>) -> Result<Option<Batch>, Error> {
        if !core::mem::replace(&mut self.is_chosen, true) {
            let columns: Vec<usize> = wanted.numbers.iter().copied().chain(wanted.text).collect();
            self.table.choose(&columns)?;
        }
        match self.batch.take() {
            Some(batch) => Ok(Some(batch)),
            None => self.table.next_batch(),
        }
    }
}

/// Puts the numbers of categories between those of the other columns; the number of rows before the first one at fault, and what is wrong
/// with that.
fn add_categories<T: Number>(
    rows: &Batch,
    wanted: Wanted<'_>,
    categories: &mut BTreeMap<usize, Categories>,
    numbers: &[T],
    out: &mut Vec<T>,
) -> Result<(usize, Option<Stop>), CellError> {
    let mut numbers = numbers.iter();
    for row in 0..rows.n_rows() {
        let begin = out.len();
        for &column in wanted.numbers {
            let Some(categories) = categories.get_mut(&column) else {
                out.extend(numbers.next());
                continue;
            };
            match categories.number(rows.text(row, column)?.as_deref(), wanted.accepts) {
                Ok(number) => out.push(number.into()),
                Err(what) => {
                    out.truncate(begin);
                    let place = Place::row(rows.first_row() + row as u64 + 1);
                    return Ok((row, Some(Stop::Cell { what, place, column })));
                }
            }
        }
    }
    Ok((rows.n_rows(), None))
}

/// What cells a model accepts.
pub(super) fn accepted(accepts: Accepts) -> Accepted {
    Accepted { missing: accepts != Accepts::Finite, infinite: accepts == Accepts::Anything }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Table(error.into())
    }
}

impl From<CellError> for Stop {
    fn from(error: CellError) -> Self {
        let place = Place::row(error.row + 1);
        Self::Cell { what: error.problem.to_string(), place, column: error.column }
    }
}
