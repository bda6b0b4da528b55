//! Teacher, student and the student of labels alone, compared on rows that none of the students learned from.

use alloc::borrow::Cow;
use std::io::Write as _;
use std::time::Instant;

use apr_container::Map;
use apr_models::{AnyModel, Float, Model as _, OutputKind, Predictions, RegressionScorer, Samples};
use serde::Serialize;

use super::Args;
use super::rows::{Labels, Rows};
use super::teacher::{Lessons, Teachers};
use crate::error::{CODE_NO_PREDICTION, Failure};
use crate::output::{Destination, Output, Run};
use crate::report::{self, Fields, Number};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, float, plural};
use crate::terminal::table::{Align, Table};

/// Equal parts of the range of confidences over which calibration is measured.
const BINS: usize = 15;

/// A model's name here and its metrics by name.
type Column = (&'static str, Vec<(&'static str, f64)>);

/// The metrics of teacher, student and baseline.
pub(super) struct Compared {
    columns: [Column; 3],
    microseconds: [f64; 3],
}

const TEACHER: &str = "teacher";
const STUDENT: &str = "student";
const BASELINE: &str = "labels_only";

/// Measures all three.
///
/// # Errors
///
/// Those of the models.
pub(super) fn compare(
    teachers: &Teachers,
    student: &AnyModel,
    baseline: &AnyModel,
    rows: &Rows,
) -> Result<Compared, Failure> {
    let begun = Instant::now();
    let lessons = teachers.answer(rows)?;
    let mut times = [begun.elapsed().as_secs_f64(), 0.0, 0.0];
    let mut columns = [(TEACHER, Vec::new()), (STUDENT, Vec::new()), (BASELINE, Vec::new())];
    columns[0].1 = match (&lessons, &rows.labels) {
        (Lessons::Classes(said), Labels::Classes(classes)) => {
            let said: Vec<f64> = said.as_slice().iter().map(|&value| value.into()).collect();
            of_classes(&said, &said, classes)
        }
        (Lessons::Numbers(said), Labels::Numbers(labels)) => of_numbers(said, said, labels)?,
        _ => Vec::new(),
    };
    for (place, model) in [(1, student), (2, baseline)] {
        let begun = Instant::now();
        columns[place].1 = match (&lessons, &rows.labels) {
            (Lessons::Classes(teacher), Labels::Classes(classes)) => {
                let said = probabilities(model, rows)?;
                times[place] = begun.elapsed().as_secs_f64();
                let teacher: Vec<f64> = teacher.as_slice().iter().map(|&value| value.into()).collect();
                of_classes(&said, &teacher, classes)
            }
            (Lessons::Numbers(teacher), Labels::Numbers(labels)) => {
                let said = numbers(model, rows)?;
                times[place] = begun.elapsed().as_secs_f64();
                of_numbers(&said, teacher, labels)?
            }
            _ => Vec::new(),
        };
    }
    Ok(Compared { columns, microseconds: times.map(|seconds| seconds * 1e6 / rows.n_rows() as f64) })
}

fn unexpected(model: &AnyModel) -> Failure {
    Failure::new(CODE_NO_PREDICTION, format!("a {} predicts something else", model.name()))
}

fn probabilities(model: &AnyModel, rows: &Rows) -> Result<Vec<f64>, Failure> {
    match model.predict(Samples::F64(&rows.features), rows.n_rows(), OutputKind::Probabilities)? {
        Predictions::Probabilities { values, .. } => Ok(values.iter().map(Float::to_f64).collect()),
        _ => Err(unexpected(model)),
    }
}

/// The numbers that a model predicts.
///
/// # Errors
///
/// Those of the model.
pub(super) fn numbers(model: &AnyModel, rows: &Rows) -> Result<Vec<f64>, Failure> {
    match model.predict(Samples::F64(&rows.features), rows.n_rows(), OutputKind::Predictions)? {
        Predictions::Values(values) | Predictions::Rows { values, n_columns: 1 } => {
            Ok(values.iter().map(Float::to_f64).collect())
        }
        _ => Err(unexpected(model)),
    }
}

/// Metrics of probabilities beside those of the teacher, both `[n_rows, n_classes]`.
fn of_classes(said: &[f64], teacher: &[f64], classes: &[Option<usize>]) -> Vec<(&'static str, f64)> {
    let width = said.len().checked_div(classes.len()).unwrap_or(1).max(1);
    let count = classes.len() as f64;
    let (mut agreement, mut divergence, mut right, mut loss) = (0.0, 0.0, 0.0, 0.0);
    let mut bins = [(0.0, 0.0); BINS];
    let least = |probability: f64| probability.clamp(f64::EPSILON, 1.0 - f64::EPSILON);
    for ((said, teacher), class) in said.chunks_exact(width).zip(teacher.chunks_exact(width)).zip(classes) {
        let (found, confidence) = largest(said);
        agreement += f64::from(u8::from(found == largest(teacher).0));
        let terms = teacher.iter().zip(said).filter(|(teacher, _)| **teacher > 0.0);
        divergence +=
            terms.map(|(teacher, said)| teacher * (teacher / said.max(f64::EPSILON)).ln()).sum::<f64>();
        let Some(class) = *class else { continue };
        let is_right = f64::from(u8::from(found == class));
        right += is_right;
        loss -= least(said.get(class).copied().unwrap_or_default()).ln();
        let bin = ((confidence * BINS as f64) as usize).min(BINS - 1);
        bins[bin].0 += is_right;
        bins[bin].1 += confidence;
    }
    let calibration: f64 = bins.iter().map(|(right, confidence)| (right - confidence).abs()).sum();
    vec![
        ("accuracy", right / count),
        ("agreement", agreement / count),
        // Not below 0, but for rounding.
        ("kl", (divergence / count).max(0.0)),
        ("log_loss", loss / count),
        ("calibration_error", calibration / count),
    ]
}

/// The place of the largest, of equal ones the first, and it.
fn largest(values: &[f64]) -> (usize, f64) {
    let mut best = (0, f64::NEG_INFINITY);
    for (place, &value) in values.iter().enumerate() {
        if value > best.1 {
            best = (place, value);
        }
    }
    best
}

fn of_numbers(
    said: &[f64],
    teacher: &[f64],
    labels: &[Option<f64>],
) -> Result<Vec<(&'static str, f64)>, Failure> {
    let (mut to_labels, mut to_teacher) = (RegressionScorer::default(), RegressionScorer::default());
    let labels: Vec<f64> = labels.iter().flatten().copied().collect();
    to_labels.add(&labels, said)?;
    to_teacher.add(teacher, said)?;
    let (to_labels, to_teacher) = (to_labels.metrics(), to_teacher.metrics());
    let mut metrics = vec![("rmse", to_labels.rmse), ("rmse_to_teacher", to_teacher.rmse)];
    metrics.extend(to_labels.r2.map(|r2| ("r2", r2)));
    metrics.extend(to_teacher.r2.map(|r2| ("r2_to_teacher", r2)));
    Ok(metrics)
}

impl Compared {
    /// For the metadata of the student: `test.accuracy`, `teacher.test.accuracy`, `labels_only.test.accuracy` and so on.
    pub(super) fn metrics(&self) -> Map<apr_container::Value> {
        let mut metrics: Map<apr_container::Value> = Map::default();
        for (model, values) in &self.columns {
            let prefix = if *model == STUDENT { String::new() } else { format!("{model}.") };
            for (name, value) in values {
                metrics.insert(format!("{prefix}test.{name}"), *value);
            }
        }
        metrics
    }

    fn value(&self, model: &str, metric: &str) -> Option<f64> {
        let (_, values) = self.columns.iter().find(|(name, _)| *name == model)?;
        values.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
    }

    /// Whether the student is nearer to the teacher than the one of labels alone.
    fn helped(&self) -> bool {
        let gain = |metric| {
            self.value(STUDENT, metric)
                .zip(self.value(BASELINE, metric))
                .map(|(student, baseline)| student - baseline)
        };
        gain("agreement").is_some_and(|gain| gain > 0.0)
            || gain("agreement").is_some_and(|more| more == 0.0) && gain("kl").is_some_and(|gain| gain < 0.0)
            || gain("rmse_to_teacher").is_some_and(|gain| gain < 0.0)
    }
}

/// Everything there is to say.
pub(super) struct Report<'r> {
    pub(super) args: &'r Args,
    pub(super) teachers: &'r Teachers,
    pub(super) destination: &'r Destination,
    pub(super) run: Run,
    pub(super) student: &'static str,
    pub(super) target: &'r str,
    /// Of the training, and held out.
    pub(super) rows: [usize; 2],
    pub(super) final_loss: f64,
    pub(super) bytes: u64,
    pub(super) compared: &'r Compared,
}

impl Report<'_> {
    /// Prints it, and writes it to a file if that is asked for.
    ///
    /// # Errors
    ///
    /// If one of them does not take it.
    pub(super) fn print(&self, file: Option<&Output>, console: &mut Console) -> Result<(), Failure> {
        if let Some(Output { destination, overwrite, run: Run::Write }) = file {
            destination.fill(*overwrite, |out| {
                report::write(&mut &mut *out, &self.json()).map_err(|error| destination.write_failure(&error))
            })?;
        }
        if !self.compared.helped() {
            console.remark("distilling did not help: the student of labels alone is as near to the teacher");
        }
        if console.is_json() {
            return console.report(&self.json());
        }
        let mut lines = self.table().lines();
        lines.push(String::new());
        lines.extend(self.comparison().lines());
        if *self.destination == Destination::Stdout && self.run == Run::Write {
            lines.iter().for_each(|line| console.note(line));
        } else {
            console.text(|out, _| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        let label = escape::path(self.destination.label());
        self.run.tell(&format!("{label}: .apr version 1, {}", exact_bytes(self.bytes)), console)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[Align::Left, Align::Left]);
        let mut line = |label: &str, text: String| table.row([label.to_owned(), text]);
        for path in self.teachers.paths() {
            line("teacher", escape::path(path));
        }
        let [learned, tested] = self.rows.map(|count| plural(count as u64, "row"));
        line(
            "data",
            format!("{learned} learned from, {tested} held out, from {}", escape::path(&self.args.data)),
        );
        line("target", escape::cut(self.target, 60));
        line("student", self.student.to_owned());
        line("temperature", float(self.args.temperature));
        line("alpha", float(self.args.alpha));
        line("final loss", float(self.final_loss));
        table
    }

    fn comparison(&self) -> Table {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right]);
        table.row(["on rows held out", "teacher", "student", "labels alone"]);
        let [teacher, student, baseline] = &self.compared.columns;
        for (((name, teacher), (_, student)), (_, baseline)) in
            teacher.1.iter().zip(&student.1).zip(&baseline.1)
        {
            table.row([(*name).to_owned(), float(*teacher), float(*student), float(*baseline)]);
        }
        let times = self.compared.microseconds.map(|time| format!("{time:.2}"));
        table.row(["microseconds a row".to_owned()].into_iter().chain(times));
        table
    }

    fn json(&self) -> DistillReport<'_> {
        let of = |model: usize| {
            let (_, values) = &self.compared.columns[model];
            let time = ("microseconds_per_row", self.compared.microseconds[model]);
            Fields(values.iter().copied().chain([time]).map(|(name, value)| (name, Number(value))).collect())
        };
        DistillReport {
            teachers: self.teachers.paths().map(report::path).collect(),
            data: report::path(&self.args.data),
            output: report::path(self.destination.label()),
            written: self.run == Run::Write,
            bytes: self.bytes,
            target: self.target,
            student: self.student,
            temperature: self.args.temperature,
            alpha: self.args.alpha,
            rows: self.rows[0],
            test_rows: self.rows[1],
            final_loss: self.final_loss,
            helped: self.compared.helped(),
            metrics: Fields(vec![(TEACHER, of(0)), (STUDENT, of(1)), (BASELINE, of(2))]),
        }
    }
}

/// The report.
#[derive(Serialize)]
struct DistillReport<'a> {
    teachers: Vec<Cow<'a, str>>,
    data: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    bytes: u64,
    target: &'a str,
    student: &'a str,
    temperature: f64,
    alpha: f64,
    rows: usize,
    test_rows: usize,
    final_loss: f64,
    helped: bool,
    metrics: Fields<&'a str, Fields<&'a str, Number>>,
}

impl report::Report for DistillReport<'_> {
    const SCHEMA: &'static str = "apr.distill/1";
}
