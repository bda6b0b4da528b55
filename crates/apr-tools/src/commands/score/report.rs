//! The metrics as text and as JSON.

use alloc::borrow::Cow;
use std::io::Write as _;
use std::path::Path;

use apr_models::{ClassMetrics, Model as _, PredictionKind};
use serde::Serialize;

use crate::error::Failure;
use crate::input::NamedModel;
use crate::report::{self, Fields, Number};
use crate::scoring::Metrics;
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{float, grouped, plural};
use crate::terminal::table::{Align, Table};

/// Everything there is to say.
pub(super) struct Report<'r> {
    pub(super) model: &'r Path,
    pub(super) data: &'r Path,
    /// Of a language model none.
    pub(super) target: Option<&'r str>,
    pub(super) known: &'r NamedModel,
    pub(super) metrics: &'r Metrics,
    /// Of the classes, in the order of the metrics.
    pub(super) names: &'r [String],
}

impl Report<'_> {
    /// Prints it.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&self.json());
        }
        let mut lines = self.table().lines();
        if let Some(classes) = self.class_table() {
            lines.push(String::new());
            lines.extend(classes.lines());
        }
        console.text(|out, _| lines.iter().try_for_each(|line| writeln!(out, "{line}")))
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[Align::Left, Align::Left]);
        let mut line = |label: &str, text: String| table.row([label.to_owned(), text]);
        line("model", format!("{} in {}", self.known.model.name(), escape::path(self.model)));
        let rows = plural(self.metrics.n_samples() as u64, "row");
        line("data", format!("{rows} from {}", escape::path(self.data)));
        if let Some(target) = self.target {
            line("target", escape::cut(target, 60));
        }
        for (name, value) in self.metrics.named() {
            line(name, float(value));
        }
        table
    }

    fn class_table(&self) -> Option<Table> {
        let Metrics::Classes(metrics) = self.metrics else { return None };
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right, Align::Right, Align::Right]);
        table.row(["class", "rows", "precision", "recall", "f1"]);
        for (name, class) in self.names.iter().zip(&metrics.classes) {
            let ClassMetrics { n_samples, precision, recall, f1, .. } = *class;
            let shares = [precision, recall, f1].map(|share| format!("{share:.4}"));
            table.row([escaped(name), grouped(n_samples)].into_iter().chain(shares));
        }
        Some(table)
    }

    fn json(&self) -> ScoreReport<'_> {
        let (mut classes, mut confusion) = (Vec::new(), Vec::new());
        if let Metrics::Classes(metrics) = self.metrics {
            confusion = metrics.confusion.chunks_exact(self.names.len().max(1)).collect();
            classes = self.names.iter().zip(&metrics.classes).map(ClassReport::new).collect();
        }
        ScoreReport {
            file: report::path(self.model),
            data: report::path(self.data),
            model: self.known.model.name(),
            kind: self.known.model.capabilities().prediction().map(PredictionKind::name),
            target: self.target,
            rows: self.metrics.n_samples(),
            metrics: Fields(
                self.metrics.named().into_iter().map(|(name, value)| (name, Number(value))).collect(),
            ),
            classes,
            confusion,
        }
    }
}

/// The report.
#[derive(Serialize)]
struct ScoreReport<'a> {
    file: Cow<'a, str>,
    data: Cow<'a, str>,
    model: &'a str,
    kind: Option<&'a str>,
    target: Option<&'a str>,
    rows: usize,
    metrics: Fields<&'a str, Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassReport<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    confusion: Vec<&'a [u64]>,
}

impl report::Report for ScoreReport<'_> {
    const SCHEMA: &'static str = "apr.score/1";
}

/// The metrics of a class.
#[derive(Serialize)]
struct ClassReport<'a> {
    class: &'a str,
    rows: u64,
    precision: f64,
    recall: f64,
    f1: f64,
}

impl<'a> ClassReport<'a> {
    fn new((class, metrics): (&'a String, &ClassMetrics)) -> Self {
        let ClassMetrics { n_samples, precision, recall, f1, .. } = *metrics;
        Self { class, rows: n_samples, precision, recall, f1 }
    }
}
