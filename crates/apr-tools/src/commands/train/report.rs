//! The report of the training as text and as JSON.

use core::time::Duration;
use std::io::Write;
use std::path::Path;

use apr_container::{Compression, Map, Value};
use apr_models::Model as _;
use serde::Serialize;

use super::Trained;
use super::data::Data;
use crate::error::Failure;
use crate::output::{Destination, Run};
use crate::report::{self, Fields, Written};
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, exact_bytes, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::value;

/// Most important features that are shown.
const SHOWN_FEATURES: usize = 5;

/// Everything there is to say.
pub(super) struct Report<'r> {
    pub(super) algorithm: &'static str,
    pub(super) source: &'r Path,
    pub(super) destination: &'r Destination,
    pub(super) run: Run,
    pub(super) data: &'r Data,
    pub(super) trained: &'r Trained,
    pub(super) time: Duration,
    pub(super) bytes: u64,
    pub(super) compression: Compression,
}

impl Report<'_> {
    /// Prints settings and measures as data, and what was written as narration. If the model itself goes to standard
    /// output, everything is narration.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&self.json());
        }
        let lines = self.table().lines();
        if *self.destination == Destination::Stdout && self.run == Run::Write {
            lines.iter().for_each(|line| console.note(line));
        } else {
            console.text(|out, _| lines.iter().try_for_each(|line| writeln!(out, "{line}")))?;
        }
        let compression = match self.compression {
            Compression::None => String::new(),
            other => format!(", {other}"),
        };
        let label = escape::path(self.destination.label());
        let (model, bytes) = (self.trained.model.name(), exact_bytes(self.bytes));
        let text = format!("{label}: .apr version 1, {model}{compression}, {bytes}");
        self.run.tell(&text, console)
    }

    fn table(&self) -> Table {
        let mut table = Table::new(&[Align::Left, Align::Left]);
        let mut line = |label: &str, text: String| table.row([label.to_owned(), text]);
        line("model", self.trained.model.name().to_owned());
        let samples = plural(self.data.n_samples() as u64, "sample");
        let features =
            self.trained.model.n_features().map(|n| format!(" of {}", plural(n as u64, "feature")));
        line("data", format!("{samples}{} from {}", features.unwrap_or_default(), escape::path(self.source)));
        if let Some(target) = self.data.target_name() {
            line("target", escape::cut(target, 60));
        }
        if let Some(classes) = self.data.class_names() {
            line("classes", crate::tables::listed(classes));
        }
        for (name, setting) in &self.trained.hyperparameters {
            line(&escaped(name), value::line(setting, Some(100)));
        }
        for (name, measure) in &self.trained.metrics {
            let text = match measure {
                Value::F64(number) => human::float(*number),
                other => value::line(other, Some(100)),
            };
            line(&escaped(name), text);
        }
        if let Some(ranked) = self.trained.ranked_importances(self.data.features()) {
            let shown = ranked.iter().take(SHOWN_FEATURES);
            let shown: Vec<String> = shown
                .map(|(name, value)| format!("{} {}", value::line(name, Some(40)), human::float(*value)))
                .collect();
            line("importances", shown.join(", "));
        }
        table
    }

    fn json(&self) -> TrainReport<'_> {
        let Trained { model, hyperparameters, metrics, .. } = self.trained;
        TrainReport {
            algorithm: self.algorithm,
            file: Written::new(self.source, self.destination.label(), self.run, self.bytes),
            compression: self.compression.name(),
            model: model.name(),
            samples: self.data.n_samples(),
            features: self.data.features(),
            target: self.data.target_name(),
            classes: self.data.class_names(),
            hyperparameters: values(hyperparameters),
            metrics: values(metrics),
            seconds: self.time.as_secs_f64(),
        }
    }
}

/// A trained model.
#[derive(Serialize)]
struct TrainReport<'a> {
    algorithm: &'a str,
    #[serde(flatten)]
    file: Written<'a>,
    compression: Option<&'a str>,
    model: &'a str,
    samples: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    features: Option<&'a [String]>,
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<&'a [String]>,
    hyperparameters: Values<'a>,
    metrics: Values<'a>,
    seconds: f64,
}

impl report::Report for TrainReport<'_> {
    const SCHEMA: &'static str = "apr.train/1";
}

/// Values by name.
type Values<'a> = Fields<&'a String, value::Json<'a>>;

fn values(map: &Map<Value>) -> Values<'_> {
    Fields(map.iter().map(|(name, value)| (name, value::Json(value))).collect())
}
