//! Rows that are held out of the training, and metrics on them.

use alloc::collections::BTreeMap;
use core::time::Duration;
use std::time::Instant;

use apr_container::{Map, Value};
use apr_models::{AnyModel, EarlyStopping, Samples, Workers, folds, held_out};
use clap::Args;

use super::Trained;
use super::algorithms::{SETTINGS, Training, named};
use super::data::{Data, Table, Target};
use crate::error::{CODE_TABLE_COLUMNS, CODE_USAGE, Failure};
use crate::scoring::{Expected, Scorer};
use crate::tables;
use crate::terminal::human::plural;
use crate::threads::Threads;

#[derive(Clone, Copy, Debug, Default, Args)]
pub(super) struct ValidationArgs {
    /// Train on the other rows, and measure the model on this share of them, of each class the same.
    #[arg(long, value_name = "SHARE", value_parser = crate::args::share)]
    test_share: Option<f64>,
    /// Also train N models, each on all training rows but one part of N, and measure each on that part (cross-validation).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..))]
    folds: Option<u16>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct EarlyStoppingArgs {
    /// Stop early: keep the model as it was when it predicted this share of the samples best, which are not learned from.
    #[arg(long, value_name = "SHARE", help_heading = SETTINGS)]
    early_stopping: Option<f64>,
    /// Stages of boosting, or epochs, without improvement after which to stop early.
    #[arg(long, value_name = "N", default_value = "10", requires = "early_stopping", help_heading = SETTINGS)]
    patience: usize,
}

impl EarlyStoppingArgs {
    pub(super) fn options(self) -> Option<EarlyStopping> {
        let patience = self.patience;
        self.early_stopping.map(|validation_share| EarlyStopping { validation_share, patience })
    }

    pub(super) fn settings(self) -> Map<Value> {
        let settings =
            |share: f64| named([("early_stopping", share.into()), ("patience", self.patience.into())]);
        self.early_stopping.map(settings).unwrap_or_default()
    }

    /// How the training ended, as metrics: how many stages or epochs are kept, and their loss, if some samples were set aside.
    pub(super) fn metrics(name: &'static str, kept: usize, losses: &[f64]) -> Map<Value> {
        let best = kept.checked_sub(1).and_then(|best| losses.get(best));
        best.map(|&loss| named([(name, kept.into()), ("validation_loss", loss.into())])).unwrap_or_default()
    }
}

/// Rows measured at once.
const BATCH: usize = 4096;

/// Trains as the arguments say, and gives the time that the model itself took. Metrics on the rows of the training are named `train.`, those on rows that were held out `test.`; of
/// those of the folds there are `cv.NAME.mean` and `cv.NAME.std`, the standard deviation.
pub(super) fn train(
    args: ValidationArgs,
    seed: u64,
    data: &mut Data,
    train: &Training<'_>,
    threads: Threads<'_>,
) -> Result<(Trained, Duration), Failure> {
    let timed = |data: &Data| {
        let begun = Instant::now();
        let trained = train(data, &threads)?;
        Ok((trained, begun.elapsed()))
    };
    let table = match data {
        Data::Table(table) if matches!(table.target, Target::Numbers(_) | Target::Classes { .. }) => table,
        _ => return timed(data),
    };
    let test = args.test_share.map(|share| divide(table, share, seed)).transpose()?;
    let of_folds =
        args.folds.map(|n_folds| cross_validate(table, n_folds.into(), seed, train, threads)).transpose()?;
    let (mut trained, time) = timed(data)?;
    let Data::Table(table) = &*data else { return Ok((trained, time)) };
    trained.metrics.extend(measured("train.", &trained.model, table)?);
    if let Some(test) = &test {
        trained.metrics.insert("test.samples".to_owned(), test.x.n_rows());
        trained.metrics.extend(measured("test.", &trained.model, test)?);
    }
    trained.metrics.extend(of_folds.into_iter().flatten());
    let of_validation = [
        ("test_share", args.test_share.map(Value::from)),
        ("folds", args.folds.map(|folds| usize::from(folds).into())),
        ("seed", (args.test_share.is_some() || args.folds.is_some()).then(|| seed.into())),
    ];
    for (name, value) in of_validation {
        trained.hyperparameters.extend(value.map(|value| (name.to_owned(), value)));
    }
    Ok((trained, time))
}

/// Leaves the rows of the training in the table, and returns the others.
fn divide(table: &mut Table, share: f64, seed: u64) -> Result<Table, Failure> {
    let n_rows = table.x.n_rows();
    let out = held_out(n_rows, table.class_ids(), share, seed);
    let rows = |wanted: bool| -> Vec<usize> {
        out.iter().enumerate().filter(|(_, out)| **out == wanted).map(|(row, _)| row).collect()
    };
    let (kept, tested) = (rows(false), rows(true));
    if kept.is_empty() || tested.is_empty() {
        let what =
            format!("--test-share {share} of {} leaves no row on one side", plural(n_rows as u64, "row"));
        return Err(Failure::new(CODE_USAGE, what));
    }
    let test = table.subset(&tested)?;
    *table = table.subset(&kept)?;
    Ok(test)
}

fn cross_validate(
    table: &Table,
    n_folds: usize,
    seed: u64,
    train: &Training<'_>,
    threads: Threads<'_>,
) -> Result<Map<Value>, Failure> {
    let n_rows = table.x.n_rows();
    if n_rows < n_folds {
        let what = format!("--folds {n_folds} of {}", plural(n_rows as u64, "row"));
        return Err(Failure::new(CODE_USAGE, what));
    }
    if let Target::Classes { ids, names } = &table.target {
        let mut counts = vec![0_usize; names.len()];
        ids.iter().filter_map(|&id| counts.get_mut(id).map(|count| *count += 1)).count();
        let single: Vec<String> = names
            .iter()
            .zip(&counts)
            .filter(|(_, count)| **count == 1)
            .map(|(name, _)| name.clone())
            .collect();
        if !single.is_empty() {
            let what =
                format!("a class with one row cannot be in every training: {}", tables::listed(&single));
            return Err(Failure::new(CODE_TABLE_COLUMNS, what).help("leave these rows, or --folds, out"));
        }
    }
    let of_row = folds(n_rows, table.class_ids(), n_folds, seed);
    let rows = |fold: usize, is_in: bool| -> Vec<usize> {
        of_row.iter().enumerate().filter(|(_, of)| (**of == fold) == is_in).map(|(row, _)| row).collect()
    };
    let measure = |fold: usize, workers: &dyn Workers| {
        let trained = train(&Data::Table(table.subset(&rows(fold, false))?), workers)?;
        score(&trained.model, &table.subset(&rows(fold, true))?)
    };
    let workers: &dyn Workers = &threads;
    let of_folds = match workers.count() {
        1 => (0..n_folds).map(|fold| measure(fold, workers)).collect(),
        _ => workers.map(n_folds, |fold| measure(fold, &threads.alone())),
    };
    let mut figures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for of_fold in of_folds {
        for (name, value) in of_fold? {
            figures.entry(name).or_default().push(value);
        }
    }
    let mut metrics = Map::new();
    for (name, values) in figures {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        metrics.insert(format!("cv.{name}.mean"), mean);
        metrics.insert(format!("cv.{name}.std"), deviation);
    }
    Ok(metrics)
}

fn measured(prefix: &str, model: &AnyModel, table: &Table) -> Result<Map<Value>, Failure> {
    let metrics = score(model, table)?.into_iter();
    Ok(metrics.map(|(name, value)| (format!("{prefix}{name}"), value.into())).collect())
}

/// The metrics of the model on the rows of a table.
fn score(model: &AnyModel, table: &Table) -> Result<Vec<(&'static str, f64)>, Failure> {
    let (n_rows, n_cols) = table.x.shape();
    let (n_names, ids, numbers) = match &table.target {
        Target::Classes { ids, names } => (names.len(), ids.as_slice(), Vec::new()),
        Target::Numbers(values) => (0, [].as_slice(), values.iter().map(f64::from).collect()),
        Target::None | Target::Names(_) => (0, [].as_slice(), Vec::new()),
    };
    let mut scorer = Scorer::new(model, n_names)?;
    for begin in (0..n_rows).step_by(BATCH) {
        let end = n_rows.min(begin + BATCH);
        let expected = match &table.target {
            Target::Classes { .. } => Expected::Classes(ids.get(begin..end).unwrap_or_default()),
            _ => Expected::Values(numbers.get(begin..end).unwrap_or_default()),
        };
        let rows = table.x.as_slice().get(begin * n_cols..end * n_cols).unwrap_or_default();
        scorer.add(Samples::F32(rows), end - begin, expected)?;
    }
    Ok(scorer.metrics().named())
}
