//! Rows to learn from and to be measured on.

use std::path::Path;

use apr_models::{Accepts, Matrix};

use super::teacher::Teachers;
use crate::commands::predict::rows::columns;
use crate::error::{CODE_TABLE_CELL, CODE_TABLE_COLUMNS, Failure};
use crate::tables::{self, Dialect, Input, Number as _, Table, Text, Wanted};
use crate::terminal::Console;
use crate::terminal::escape;

/// Rows read at once.
const BATCH: usize = 4096;

/// Samples with their labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    /// `[n_rows, n_features]`, row-major.
    pub(super) features: Vec<f64>,
    pub(super) n_features: usize,
    pub(super) labels: Labels,
}

/// The labels of rows; rows without one come last.
#[derive(Clone, Debug)]
pub(super) enum Labels {
    /// Places among the teacher's classes.
    Classes(Vec<Option<usize>>),
    Numbers(Vec<Option<f64>>),
}

impl Default for Labels {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl Labels {
    fn len(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.len(),
            Self::Numbers(numbers) => numbers.len(),
        }
    }
}

impl Rows {
    pub(super) fn n_rows(&self) -> usize {
        self.labels.len()
    }

    /// The samples as models of 32 bits take them.
    pub(super) fn matrix(&self) -> Result<Matrix, Failure> {
        let values = self.features.iter().map(|&value| value as f32).collect();
        Ok(Matrix::from_vec(self.n_rows(), self.n_features, values)?)
    }

    /// The classes, if all rows have one.
    pub(super) fn class_ids(&self) -> Option<Vec<usize>> {
        match &self.labels {
            Labels::Classes(classes) => classes.iter().copied().collect(),
            Labels::Numbers(_) => None,
        }
    }

    /// The rows that are not marked, and those that are.
    pub(super) fn divide(&self, marks: &[bool]) -> (Self, Self) {
        let some = |wanted: bool| {
            let rows =
                || marks.iter().enumerate().filter(move |(_, mark)| **mark == wanted).map(|(row, _)| row);
            let width = self.n_features;
            let features = rows().flat_map(|row| self.features.iter().skip(row * width).take(width)).copied();
            let labels = match &self.labels {
                Labels::Classes(classes) => {
                    Labels::Classes(rows().filter_map(|row| classes.get(row).copied()).collect())
                }
                Labels::Numbers(numbers) => {
                    Labels::Numbers(rows().filter_map(|row| numbers.get(row).copied()).collect())
                }
            };
            Self { features: features.collect(), n_features: width, labels }
        };
        (some(false), some(true))
    }

    /// Appends rows without labels.
    pub(super) fn append(&mut self, unlabeled: Vec<f64>) {
        let n_rows = unlabeled.len().checked_div(self.n_features).unwrap_or(0);
        self.features.extend(unlabeled);
        match &mut self.labels {
            Labels::Classes(classes) => classes.extend((0..n_rows).map(|_| None)),
            Labels::Numbers(numbers) => numbers.extend((0..n_rows).map(|_| None)),
        }
    }
}

/// Reads rows and their labels.
///
/// # Errors
///
/// If the table cannot be read or does not fit the teachers, or a label is none of theirs.
pub(super) fn labeled(
    input: Input,
    dialect: &Dialect,
    teachers: &Teachers,
    target: &str,
    console: &Console,
) -> Result<Rows, Failure> {
    let path = input.label().to_owned();
    let mut table = Table::open(input, dialect)?;
    let target = table.column(target)?;
    let (features, n_features, cells) = read(&path, &mut table, teachers, Some(target), console)?;
    let wrong = |what, (place, _): &Text| table.cell_failure(what, place.clone(), target);
    let labels = match teachers.classes() {
        Some(classes) => {
            let place = |cell: &Text| {
                let text = cell.1.trim();
                let number = classes.number(text);
                let place = number.and_then(|number| classes.numbers.binary_search(&number).ok());
                place.map(Some).ok_or_else(|| {
                    let what = format!("`{}` is none of the teacher's classes", escape::cut(text, 60));
                    wrong(what, cell).because(tables::listed(&classes.names))
                })
            };
            Labels::Classes(cells.iter().map(place).collect::<Result<_, _>>()?)
        }
        None => {
            let number = |cell: &Text| {
                f64::parse(&cell.1, Accepts::Finite).map(Some).map_err(|what| wrong(what, cell))
            };
            Labels::Numbers(cells.iter().map(number).collect::<Result<_, _>>()?)
        }
    };
    Ok(Rows { features, n_features, labels })
}

/// Reads rows without labels: `[n_rows, n_features]`, row-major.
///
/// # Errors
///
/// If the table cannot be read or does not fit the teachers.
pub(super) fn unlabeled(
    input: Input,
    dialect: &Dialect,
    teachers: &Teachers,
    console: &Console,
) -> Result<Vec<f64>, Failure> {
    let path = input.label().to_owned();
    let mut table = Table::open(input, dialect)?;
    Ok(read(&path, &mut table, teachers, None, console)?.0)
}

fn read(
    path: &Path,
    table: &mut Table,
    teachers: &Teachers,
    target: Option<usize>,
    console: &Console,
) -> Result<(Vec<f64>, usize, Vec<Text>), Failure> {
    let in_table = |failure: Failure| failure.in_file(path);
    let columns = columns(teachers.first(), table, target, console).map_err(in_table)?;
    let wanted = Wanted { numbers: &columns, accepts: Accepts::Finite, text: target };
    let (mut values, mut cells) = (Vec::new(), Vec::new());
    loop {
        let taken = table.next_rows::<f64>(wanted, BATCH).map_err(|failure| match failure.code() {
            CODE_TABLE_CELL => failure.help(
                "mend the cell or leave the row out: a student has no place for missing values, even where its teacher fills them",
            ),
            _ => failure,
        })?;
        if taken.n_rows == 0 {
            break;
        }
        values.extend(taken.numbers);
        cells.extend(taken.texts);
    }
    match values.is_empty() {
        true => Err(in_table(Failure::new(CODE_TABLE_COLUMNS, "the table has no rows"))),
        false => Ok((values, columns.len(), cells)),
    }
}
