//! Training data: samples with or without targets, or texts.

use alloc::collections::BTreeSet;

use apr_models::{Matrix, Vector, check_class_numbers};
use clap::Args;

use super::algorithms::SETTINGS;
use super::preparation::PreparationArgs;
use crate::commands::predict::texts;
use crate::error::{CODE_TABLE_CELL, CODE_TABLE_COLUMNS, CODE_USAGE, Failure};
use crate::tables::{Accepts, Categories, Dialect, Input, Table as Rows, Text, Wanted, is_missing, number};
use crate::terminal::escape;

/// What an algorithm predicts of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// A number.
    Numbers,
    /// A class: words, or numbers that do not look like values of a quantity.
    Classes,
    /// A class, also if it is any number.
    NumberedClasses,
    /// Either: a class if the column holds words.
    Either,
    /// Nothing: the column holds the names of the samples.
    Names,
}

/// What the target is, where the algorithm or the column would decide otherwise.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct ClassesArg {
    /// The target is a class even if it is a number.
    #[arg(long, help_heading = SETTINGS)]
    classes: bool,
}

impl ClassesArg {
    /// What is predicted: classes, or what the algorithm predicts without the option.
    pub(super) const fn or(self, needs: Needs) -> Needs {
        if self.classes { Needs::NumberedClasses } else { needs }
    }
}

/// What an algorithm learns from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Columns<'a> {
    /// Samples with a target each.
    Target { needs: Needs, target: &'a str, dropped: &'a [String], weight: Option<&'a str> },
    /// Samples.
    All { dropped: &'a [String] },
    /// Texts: lines, or the cells of a column.
    Texts { column: Option<&'a str> },
}

/// What was read.
#[derive(Debug)]
pub(super) enum Data {
    Table(Table),
    Texts(Vec<String>),
}

/// Samples.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) x: Matrix,
    pub(super) target: Target,
    features: Option<Vec<String>>,
    target_name: Option<String>,
    /// Of each sample, if there is a column of them.
    weights: Option<Vec<f32>>,
    /// Of each feature that has categories: their names in the order of their numbers.
    categories: Vec<Option<Vec<String>>>,
}

/// What is to be learned about each sample.
#[derive(Clone, Debug)]
pub(super) enum Target {
    None,
    /// Nothing: names of the samples.
    Names(Vec<String>),
    Numbers(Vector),
    Classes {
        /// Numbers of the classes, from 0.
        ids: Vec<usize>,
        /// Their names in that order.
        names: Vec<String>,
    },
}

impl Data {
    /// Reads everything.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, has no rows, or a cell is not what is needed.
    pub(super) fn read(
        input: Input,
        dialect: &Dialect,
        columns: &Columns<'_>,
        preparation: &PreparationArgs,
    ) -> Result<Self, Failure> {
        let (target, dropped, weight) = match *columns {
            Columns::Target { needs, target, dropped, weight } => (Some((needs, target)), dropped, weight),
            Columns::All { dropped } => (None, dropped, None),
            Columns::Texts { column } => {
                let mut all = Vec::new();
                texts::each(input, dialect, column, &mut |text, _| {
                    all.push(text);
                    Ok(())
                })?;
                return Ok(Self::Texts(all));
            }
        };
        let path = input.label().to_owned();
        let mut table = Rows::open(input, dialect)?;
        let needs = target.map(|(needs, _)| needs);
        let target = target.map(|(_, name)| table.column(name)).transpose()?;
        let dropped = dropped.iter().map(|name| table.column(name)).collect::<Result<BTreeSet<_>, _>>()?;
        if target.is_some_and(|target| dropped.contains(&target)) {
            return Err(Failure::new(CODE_USAGE, "the target is among the columns to drop"));
        }
        let weight = weight.map(|name| table.column(name)).transpose()?;
        if weight.is_some() && weight == target {
            return Err(Failure::new(CODE_USAGE, "the target is the column of weights"));
        }
        let columns: Vec<usize> = (0..table.n_columns())
            .filter(|column| ![target, weight].contains(&Some(*column)) && !dropped.contains(column))
            .collect();
        if columns.is_empty() {
            let failure = Failure::new(CODE_TABLE_COLUMNS, "the table has no column to learn from");
            return Err(failure.in_file(&path));
        }
        // Who predicts finds the columns by their names.
        for name in columns.iter().chain(&target).filter_map(|&column| table.names()?.get(column)) {
            table.column(name)?;
        }
        let categorical = preparation.categorical.iter().map(|name| {
            let column = table.column(name)?;
            // They are in the order of the table.
            columns.binary_search(&column).map(|place| (place, column)).map_err(|_| {
                let what = format!("`{name}` has categories, but is no feature");
                Failure::new(CODE_USAGE, what)
            })
        });
        let categorical = categorical.collect::<Result<Vec<_>, _>>()?;
        categorical.iter().for_each(|(_, column)| table.set_categories(*column, Categories::found()));
        let name = |column: &usize| table.names().and_then(|names| names.get(*column)).cloned();
        let features = columns.iter().map(name).collect();
        let target_name = target.as_ref().filter(|_| needs != Some(Needs::Names)).and_then(name);
        let numbers_of: Vec<usize> = columns.iter().copied().chain(weight).collect();
        let (values, cells) =
            read_rows(&mut table, (&numbers_of, preparation.accepts()), target).map_err(|failure| {
                let failure = failure.in_file(&path);
                match failure.code() {
                    CODE_TABLE_CELL => failure.help(
                        "fill in a number or remove the row; --missing fills missing values, --categorical takes words",
                    ),
                    _ => failure,
                }
            })?;
        let (mut values, weights) = match weight {
            Some(_) => split_last(&values, numbers_of.len()),
            None => (values, None),
        };
        let mut categories = vec![None; columns.len()];
        for (place, column) in categorical {
            let Some(found) = table.take_categories(column) else { continue };
            let (names, numbers) = sorted(found.into_names());
            for value in values.iter_mut().skip(place).step_by(columns.len()).filter(|value| !value.is_nan())
            {
                *value = numbers.get(*value as usize).map_or(*value, |&number| number as f32);
            }
            if let Some(place) = categories.get_mut(place) {
                *place = Some(names);
            }
        }
        let x = Matrix::from_vec(values.len() / columns.len(), columns.len(), values)?;
        let target = match (needs, target) {
            (_, None) | (None, _) => Target::None,
            (Some(Needs::Names), _) => Target::Names(cells.into_iter().map(|(_, cell)| cell).collect()),
            (Some(Needs::Numbers), Some(column)) => Target::Numbers(numbers(&cells, column, &table)?),
            // The first cell that is not missing decides, so that one wrong cell in a column of numbers does not make classes of them all.
            (Some(Needs::Either), Some(column))
                if is_number(cells.iter().find(|(_, cell)| !is_missing(cell))) =>
            {
                Target::Numbers(numbers(&cells, column, &table)?)
            }
            (Some(needs), Some(column)) => {
                classes(&cells, column, &table, needs).map_err(|failure| failure.in_file(&path))?
            }
        };
        Ok(Self::Table(Table { x, target, features, target_name, weights, categories }))
    }

    /// Names of the columns of which 32-bit floats keep few different values: large numbers that differ little, such as times in seconds.
    pub(super) fn coarse_columns(&self) -> Vec<String> {
        /// Steps of a float between the least and the greatest value.
        const FEW: f32 = 1024.0;
        let is_coarse = |values: &mut dyn Iterator<Item = f32>| {
            let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
            values.for_each(|value| (low, high) = (low.min(value), high.max(value)));
            let size = low.abs().max(high.abs());
            // Smaller integers are exact.
            size >= 16_777_216.0 && high - low <= FEW * size * f32::EPSILON
        };
        let Self::Table(table) = self else { return Vec::new() };
        let n_cols = table.x.n_cols();
        let mut found = Vec::new();
        for idx in 0..n_cols {
            if is_coarse(&mut table.x.as_slice().iter().skip(idx).step_by(n_cols).copied()) {
                let name = table.features.as_ref().and_then(|names| names.get(idx).cloned());
                found.push(name.unwrap_or_else(|| format!("column {}", idx + 1)));
            }
        }
        if let Target::Numbers(numbers) = &table.target
            && is_coarse(&mut numbers.as_slice().iter().copied())
        {
            found.push(table.target_name.clone().unwrap_or_else(|| "the target".to_owned()));
        }
        found
    }

    /// The samples.
    ///
    /// # Errors
    ///
    /// If there are texts instead.
    pub(super) fn table(&self) -> Result<&Table, Failure> {
        match self {
            Self::Table(table) => Ok(table),
            Self::Texts(_) => Err(Failure::new(CODE_USAGE, "this algorithm learns from a table")),
        }
    }

    /// The texts.
    ///
    /// # Errors
    ///
    /// If there are samples instead.
    pub(super) fn texts(&self) -> Result<&[String], Failure> {
        match self {
            Self::Texts(texts) => Ok(texts),
            Self::Table(_) => Err(Failure::new(CODE_USAGE, "this algorithm learns from texts")),
        }
    }

    pub(super) fn n_samples(&self) -> usize {
        match self {
            Self::Table(table) => table.x.n_rows(),
            Self::Texts(texts) => texts.len(),
        }
    }

    pub(super) fn features(&self) -> Option<&[String]> {
        match self {
            Self::Table(table) => table.features.as_deref(),
            Self::Texts(_) => None,
        }
    }

    /// Of each feature that has categories their names; nothing if none has.
    pub(super) fn categories(&self) -> Option<&[Option<Vec<String>>]> {
        match self {
            Self::Table(table) => Some(table.categories()).filter(|all| all.iter().any(Option::is_some)),
            Self::Texts(_) => None,
        }
    }

    pub(super) fn target_name(&self) -> Option<&str> {
        match self {
            Self::Table(table) => table.target_name.as_deref(),
            Self::Texts(_) => None,
        }
    }

    pub(super) fn class_names(&self) -> Option<&[String]> {
        match self {
            Self::Table(Table { target: Target::Classes { names, .. }, .. }) => Some(names),
            _ => None,
        }
    }
}

impl Table {
    /// Some of the rows, in this order.
    ///
    /// # Errors
    ///
    /// If memory lacks.
    pub(super) fn subset(&self, rows: &[usize]) -> Result<Self, Failure> {
        let n_cols = self.x.n_cols();
        let row = |&row: &usize| self.x.as_slice().get(row * n_cols..(row + 1) * n_cols).unwrap_or_default();
        let x = Matrix::from_vec(rows.len(), n_cols, rows.iter().flat_map(row).copied().collect())?;
        let target = match &self.target {
            Target::None => Target::None,
            Target::Names(names) => {
                Target::Names(rows.iter().filter_map(|&row| names.get(row).cloned()).collect())
            }
            Target::Numbers(numbers) => {
                let numbers = numbers.as_slice();
                Target::Numbers(Vector::from_vec(
                    rows.iter().filter_map(|&row| numbers.get(row).copied()).collect(),
                ))
            }
            Target::Classes { ids, names } => Target::Classes {
                ids: rows.iter().filter_map(|&row| ids.get(row).copied()).collect(),
                names: names.clone(),
            },
        };
        let weight = |weights: &Vec<f32>| rows.iter().filter_map(|&row| weights.get(row).copied()).collect();
        Ok(Self {
            x,
            target,
            features: self.features.clone(),
            target_name: self.target_name.clone(),
            weights: self.weights.as_ref().map(weight),
            categories: self.categories.clone(),
        })
    }

    /// The same samples with other features.
    pub(super) fn with_features(&self, x: Matrix, names: Vec<String>) -> Self {
        Self {
            x,
            target: self.target.clone(),
            features: Some(names),
            target_name: self.target_name.clone(),
            weights: self.weights.clone(),
            categories: Vec::new(),
        }
    }

    /// Of each feature that has categories their names in the order of their numbers.
    pub(super) fn categories(&self) -> &[Option<Vec<String>>] {
        &self.categories
    }

    /// The name of a feature, or the number of its column from 1.
    pub(super) fn feature(&self, place: usize) -> String {
        let name = self.features.as_ref().and_then(|names| names.get(place));
        name.map_or_else(|| format!("column {}", place + 1), Clone::clone)
    }

    /// The weight of each sample, if there is a column of them.
    pub(super) fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// The class of each row, if there are classes to learn.
    pub(super) fn class_ids(&self) -> Option<&[usize]> {
        match &self.target {
            Target::Classes { ids, .. } => Some(ids),
            _ => None,
        }
    }

    /// The numbers to learn.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(super) fn numbers(&self) -> Result<&Vector, Failure> {
        match &self.target {
            Target::Numbers(numbers) => Ok(numbers),
            _ => Err(Failure::new(CODE_USAGE, "this algorithm learns numbers")),
        }
    }

    /// The names of the samples.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(super) fn names(&self) -> Result<&[String], Failure> {
        match &self.target {
            Target::Names(names) => Ok(names),
            _ => Err(Failure::new(CODE_USAGE, "this algorithm needs names of the samples")),
        }
    }

    /// The classes to learn, and how many there are.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(super) fn classes(&self) -> Result<(&[usize], &[String]), Failure> {
        match &self.target {
            Target::Classes { ids, names } => Ok((ids, names)),
            _ => Err(Failure::new(CODE_USAGE, "this algorithm learns classes")),
        }
    }
}

/// Rows read at once.
const BATCH: usize = 8192;

fn read_rows(
    table: &mut Rows,
    (columns, accepts): (&[usize], Accepts),
    target: Option<usize>,
) -> Result<(Vec<f32>, Vec<Text>), Failure> {
    let wanted = Wanted { numbers: columns, accepts, text: target };
    let (mut values, mut cells) = (Vec::new(), Vec::new());
    let mut n_rows = 0;
    loop {
        let taken = table.next_rows::<f32>(wanted, BATCH)?;
        if taken.n_rows == 0 {
            break;
        }
        values.extend(taken.numbers);
        cells.extend(taken.texts.into_iter().map(|(place, text)| (place, text.trim().to_owned())));
        n_rows += taken.n_rows;
    }
    if n_rows == 0 {
        return Err(Failure::new(CODE_TABLE_COLUMNS, "the table has no rows"));
    }
    Ok((values, cells))
}

/// The last of each row of numbers apart from the others.
fn split_last(values: &[f32], n_cols: usize) -> (Vec<f32>, Option<Vec<f32>>) {
    let rows = || values.chunks_exact(n_cols).filter_map(<[f32]>::split_last);
    (rows().flat_map(|(_, rest)| rest).copied().collect(), Some(rows().map(|(last, _)| *last).collect()))
}

/// Also if it is none that can be learned from, as an infinite one.
fn is_number(cell: Option<&Text>) -> bool {
    cell.is_some_and(|(_, cell)| cell.trim().parse::<f32>().is_ok())
}

fn numbers(cells: &[Text], column: usize, table: &Rows) -> Result<Vector, Failure> {
    let numbers = cells
        .iter()
        .map(|(place, cell)| number(cell).map_err(|what| table.cell_failure(what, place.clone(), column)));
    Ok(Vector::from_vec(numbers.collect::<Result<_, _>>()?))
}

/// Classes in the order of their names: of numbers by value, of words by their characters.
fn classes(cells: &[Text], column: usize, table: &Rows, needs: Needs) -> Result<Target, Failure> {
    if let Some((place, _)) = cells.iter().find(|(_, cell)| cell.is_empty()) {
        return Err(table.cell_failure("the cell is empty".to_owned(), place.clone(), column));
    }
    let mut names: Vec<String> = cells.iter().map(|(_, cell)| cell.clone()).collect();
    sort(&mut names);
    names.dedup();
    // `none` may be a class among words; among numbers it is no value.
    let mut known = names.iter().filter(|name| !is_missing(name)).peekable();
    if known.peek().is_some()
        && known.all(|name| number(name).is_ok())
        && let Some((place, cell)) = cells.iter().find(|(_, cell)| is_missing(cell))
    {
        let what =
            format!("`{}` among classes that are numbers: the value is missing", escape::cut(cell, 60));
        return Err(table.cell_failure(what, place.clone(), column));
    }
    let numbers: Option<Vec<f64>> =
        names.iter().map(|name| number(name).ok().and_then(|_| name.parse().ok())).collect();
    if let Some(numbers) = numbers.filter(|_| needs != Needs::NumberedClasses) {
        check_class_numbers(numbers, cells.len()).map_err(|error| {
            Failure::from(error).help(
                "learn the numbers with gradient-boosting, random-forest, ridge, knn or mlp, for example `apr train gradient-boosting`, \
                 or add --classes if each number is a class",
            )
        })?;
    }
    let of: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().map(|(id, name)| (name.as_str(), id)).collect();
    let ids = cells.iter().filter_map(|(_, cell)| of.get(cell.as_str()).copied()).collect();
    Ok(Target::Classes { ids, names })
}

/// Sorts names: numbers by value, words by their characters.
fn sort(names: &mut [String]) {
    names.sort_unstable();
    // Integers of 64 bits are no floats of 64 bits.
    let integer = |name: &String| name.parse::<i64>().ok();
    let float = |name: &String| name.parse::<f64>().ok().filter(|number| number.is_finite());
    if names.iter().all(|name| integer(name).is_some()) {
        names.sort_by_key(integer);
    } else if names.iter().all(|name| float(name).is_some()) {
        names.sort_by(|a, b| float(a).unwrap_or_default().total_cmp(&float(b).unwrap_or_default()));
    }
}

/// Names in their order, and for each of those given its number there.
fn sorted(found: Vec<String>) -> (Vec<String>, Vec<usize>) {
    let mut names = found.clone();
    sort(&mut names);
    let of: std::collections::HashMap<&str, usize> =
        names.iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
    let numbers = found.iter().filter_map(|name| of.get(name.as_str()).copied()).collect();
    (names, numbers)
}
