//! Rows of a table in Arrow, which stays where it is.

use core::error::Error as _;
use core::ops::Range;
use std::collections::HashMap;

use apr_models::{Accepts, AnyModel, Matrix};
use apr_table::{Accepted, Batch, CellError, Problem, Table, Value};
use model_file::{Categories, CategoryError, CategoryNumbers};
use pyo3::prelude::*;

use super::loaded::Loaded;
use super::refusal::Refusal;
use crate::arrow::{self, BareColumn, Reader};

/// The rows of a table, of the columns that a model takes, in its order. The values stay in the columns of the table.
pub(crate) struct TableRows {
    batches: Vec<Batch>,
    names: Vec<String>,
    columns: Vec<usize>,
    /// Of each of these columns, if its cells are texts that stand for numbers; nothing if all are numbers.
    categories: Vec<Option<CategoryNumbers>>,
    n_rows: usize,
    accepts: Accepts,
}

impl TableRows {
    /// The table that an object is, for this model; nothing if it is none.
    pub(crate) fn of(object: &Bound<'_, PyAny>, loaded: &Loaded, bare: BareColumn) -> PyResult<Option<Self>> {
        let Some(reader) = arrow::table(object, bare)? else { return Ok(None) };
        let py = object.py();
        // pandas appends the columns of an index.
        let n_columns = match object.hasattr("index")? && object.hasattr("columns")? {
            true => Some(object.getattr("columns")?.len()?),
            false => None,
        };
        let features = loaded.features();
        let categories = loaded.categories.as_ref();
        py.detach(|| Self::read(reader, n_columns, &loaded.model, features.as_deref(), categories))
            .map(Some)
            .map_err(|refusal| refusal.raise(py, None))
    }

    fn read(
        reader: Reader,
        n_columns: Option<usize>,
        model: &AnyModel,
        features: Option<&[String]>,
        categories: Option<&Categories>,
    ) -> Result<Self, Refusal> {
        let mut table = Table::record_batches(reader);
        let names = table.names().to_vec();
        let columns = columns(&names, n_columns.unwrap_or(names.len()), features)?;
        let categories = categories.map_or(Ok(Vec::new()), |known| numbers_of(known, columns.len()))?;
        table.choose(&columns)?;
        let (mut batches, mut n_rows) = (Vec::new(), 0);
        while let Some(batch) = table.next_batch().map_err(unreadable)? {
            n_rows += batch.n_rows();
            batches.push(batch);
        }
        Ok(Self { batches, names, columns, categories, n_rows, accepts: model.capabilities().accepts() })
    }

    /// Rows and columns.
    pub(crate) const fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.columns.len())
    }

    /// Some of the rows.
    pub(crate) fn matrix(&self, rows: Range<usize>) -> Result<Matrix, Refusal> {
        Ok(Matrix::from_vec(rows.len(), self.columns.len(), self.numbers(rows)?)?)
    }

    /// The values of some of the rows, one after the other.
    pub(crate) fn numbers<T: Value + From<f32>>(&self, rows: Range<usize>) -> Result<Vec<T>, Refusal> {
        let mut values = Vec::with_capacity(rows.len() * self.columns.len());
        // Batches have the rows in order.
        let first = self
            .batches
            .partition_point(|batch| batch.first_row() + batch.n_rows() as u64 <= rows.start as u64);
        for batch in self.batches.iter().skip(first) {
            let begin = batch.first_row() as usize;
            if begin >= rows.end {
                break;
            }
            let part = batch.slice(rows.start.saturating_sub(begin), rows.end - begin);
            self.append(&part, &mut values)?;
        }
        Ok(values)
    }

    /// Appends the numbers of some rows, among them those of categories.
    fn append<T: Value + From<f32>>(&self, rows: &Batch, out: &mut Vec<T>) -> Result<(), Refusal> {
        let accepts = self.accepts;
        let accepted =
            Accepted { missing: accepts != Accepts::Finite, infinite: accepts == Accepts::Anything };
        if self.categories.is_empty() {
            return rows.append_rows(&self.columns, accepted, out).map_err(|error| self.refused(&error));
        }
        let columns = || self.columns.iter().copied().zip(&self.categories);
        let plain: Vec<usize> =
            columns().filter(|(_, categories)| categories.is_none()).map(|(column, _)| column).collect();
        let mut numbers: Vec<T> = Vec::with_capacity(rows.n_rows() * plain.len());
        rows.append_rows(&plain, accepted, &mut numbers).map_err(|error| self.refused(&error))?;
        let mut numbers = numbers.into_iter();
        for row in 0..rows.n_rows() {
            for (column, categories) in columns() {
                let Some(categories) = categories else {
                    out.extend(numbers.next());
                    continue;
                };
                let text = rows.text(row, column).map_err(|error| self.refused(&error))?;
                let number = categories.number(text.as_deref(), accepts);
                let place = |error| self.refused_category(&error, rows.first_row() + row as u64, column);
                out.push(number.map_err(place)?.into());
            }
        }
        Ok(())
    }

    /// The texts of the only column.
    pub(crate) fn texts(&self) -> Result<Vec<String>, Refusal> {
        let [column] = self.columns[..] else {
            let text = format!("texts are one column, this table has {}", self.columns.len());
            return Err(Refusal::Said { code: "am-feature-count", text });
        };
        let mut texts = Vec::with_capacity(self.n_rows);
        for batch in &self.batches {
            for row in 0..batch.n_rows() {
                let text = batch.text(row, column).map_err(|error| self.refused(&error))?;
                let text = text.ok_or_else(|| {
                    let row = batch.first_row() + row as u64;
                    self.refused(&CellError { row, column, problem: Problem::Null })
                })?;
                texts.push(text.into_owned());
            }
        }
        Ok(texts)
    }

    fn refused(&self, error: &CellError) -> Refusal {
        let text = format!("{}, {}", error.problem, self.place(error.row, error.column));
        let code =
            if matches!(error.problem, Problem::Text(_)) { "tb-type" } else { "am-feature-not-finite" };
        Refusal::Said { code, text }
    }

    fn refused_category(&self, error: &CategoryError<'_>, row: u64, column: usize) -> Refusal {
        if *error == CategoryError::Empty {
            return self.refused(&CellError { row, column, problem: Problem::Null });
        }
        Refusal::Said { code: "cli-table-cell", text: format!("{}: {error}", self.place(row, column)) }
    }

    /// A cell for messages. The only column of a list of texts has no name.
    fn place(&self, row: u64, column: usize) -> String {
        match self.names.get(column) {
            Some(name) if self.names.len() > 1 || !name.is_empty() => format!("row {row}, column {name:?}"),
            _ => format!("row {row}"),
        }
    }
}

/// The numbers of the categories of each feature that has some.
fn numbers_of(known: &Categories, n_columns: usize) -> Result<Vec<Option<CategoryNumbers>>, Refusal> {
    let n_features = known.of_features.len();
    if n_features != n_columns {
        let text = format!(
            "the table has {n_columns} columns of features, the model has categories of {n_features}"
        );
        return Err(Refusal::Said { code: "am-feature-count", text });
    }
    let numbers =
        |names: &Vec<String>| (!names.is_empty()).then(|| CategoryNumbers::new(names, known.unknown));
    Ok(known.of_features.iter().map(numbers).collect())
}

/// Why a batch cannot be read: what its exporter says, if it does.
fn unreadable(error: apr_table::Error) -> Refusal {
    match error.source() {
        Some(cause) => {
            Refusal::Said { code: error.code(), text: format!("the table cannot be read: {cause}") }
        }
        None => error.into(),
    }
}

/// The columns of the features: those of their names, if the table has any of these, otherwise all in their order.
fn columns(names: &[String], n_columns: usize, features: Option<&[String]>) -> Result<Vec<usize>, Refusal> {
    // The column of each name; none of a name that two have.
    let mut by_name: HashMap<&str, Option<usize>> = HashMap::new();
    for (column, name) in names.iter().enumerate().filter(|_| features.is_some()) {
        by_name.entry(name).and_modify(|column| *column = None).or_insert(Some(column));
    }
    let is_column = |name: &String| by_name.contains_key(name.as_str());
    let Some(features) = features.filter(|features| features.iter().any(is_column)) else {
        return Ok((0..n_columns.min(names.len())).collect());
    };
    let column_of = |feature: &String| match by_name.get(feature.as_str()) {
        Some(Some(column)) => Ok(*column),
        Some(None) => Err(format!("the table has two columns {feature:?}")),
        None => Err(format!("the table has no column {feature:?}, which is a feature of the model")),
    };
    let columns = features.iter().map(column_of).collect::<Result<_, _>>();
    columns.map_err(|text| Refusal::Said { code: "am-feature-count", text })
}
