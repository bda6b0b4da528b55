//! The predictions as lines of text and as JSON.

use alloc::borrow::Cow;
use core::fmt::{self, Write as _};
use std::path::Path;

use apr_models::{Float, Label, Predictions};

use serde::{Serialize, Serializer};

use super::answer::Asked;
use crate::error::Failure;
use crate::input::NamedModel;
use crate::output::{Destination, Overwrite};
use crate::report::{self, Fields, List, Narrow};
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::plural;

/// How predictions are shown.
pub(super) struct Report<'k> {
    known: &'k NamedModel,
    asked: &'k Asked<'k>,
    delimiter: char,
    names: Names,
}

/// How names that a model gives are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// For people: what a terminal would not show is escaped.
    Shown,
    /// For programs: every character is itself.
    Exact,
}

impl Names {
    /// For what is written there.
    pub(super) fn of(destination: &Destination, console: &Console) -> Self {
        match destination {
            Destination::Stdout if console.out_is_terminal() => Self::Shown,
            _ => Self::Exact,
        }
    }

    /// Appends a name, in quotes if it would be taken for more than one cell.
    pub(super) fn push(self, name: &str, delimiter: char, out: &mut String) {
        let name = match self {
            Self::Shown => Cow::Owned(escaped(name)),
            Self::Exact => Cow::Borrowed(name),
        };
        if name.contains([delimiter, '"', '\n', '\r']) {
            out.push('"');
            out.push_str(&name.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&name);
        }
    }
}

impl<'k> Report<'k> {
    pub(super) fn new(known: &'k NamedModel, asked: &'k Asked<'k>, delimiter: u8) -> Self {
        Self { known, asked, delimiter: delimiter.into(), names: Names::Shown }
    }

    #[must_use]
    pub(super) fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Appends predictions to those of the JSON report.
    ///
    /// # Errors
    ///
    /// If they are more than memory should hold and cannot be written to a temporary file.
    pub(super) fn push(&self, predictions: &Predictions, list: &mut List) -> Result<(), Failure> {
        let is_nested = is_nested(predictions);
        (0..predictions.len())
            .try_for_each(|idx| list.push(&Prediction { report: self, predictions, idx }, is_nested))
    }

    /// Writes a line for each prediction that `ask` passes on, at once. Returns how many there were.
    ///
    /// # Errors
    ///
    /// Those of `ask` and of writing. A file appears only if there was none.
    pub(super) fn stream(
        &self,
        destination: &Destination,
        overwrite: Overwrite,
        ask: impl FnOnce(&mut dyn FnMut(Predictions) -> Result<(), Failure>) -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let mut n_rows = 0;
        destination.fill(overwrite, |out| {
            let mut lines = String::new();
            ask(&mut |answers| {
                n_rows += answers.len() as u64;
                lines.clear();
                for idx in 0..answers.len() {
                    self.line(&answers, idx, &mut lines);
                    lines.push('\n');
                }
                let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
                written.map_err(|error| destination.write_failure(&error))
            })
        })?;
        Ok(n_rows)
    }

    /// One prediction on one line, without its end.
    fn line(&self, predictions: &Predictions, idx: usize, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match predictions {
            Predictions::Values(values) => separated(self.delimiter, values.row(idx, 1).map(Number), out),
            Predictions::Rows { values, n_columns } => {
                separated(self.delimiter, values.row(idx, *n_columns).map(Number), out)
            }
            Predictions::Classes(classes) => {
                self.push_label(classes.get(idx).copied().unwrap_or_default(), out);
                Ok(())
            }
            Predictions::Probabilities { classes, values, n_columns } => {
                self.push_label(classes.get(idx).copied().unwrap_or_default(), out);
                let mut row = values.row(idx, *n_columns);
                row.try_for_each(|value| write!(out, "{}{}", self.delimiter, Number(value)))
            }
            Predictions::Outliers(marks) => write!(out, "{}", marks.get(idx).copied().unwrap_or_default()),
            Predictions::Terms(rows) => {
                let row = rows.row(idx);
                separated(' ', row.map(|(term, value)| format!("{term}:{}", Number(value))), out)
            }
            _ => Ok(()),
        };
    }

    /// The label of a class or cluster, or a mark, on a line.
    pub(super) fn name(&self, class: usize) -> String {
        let mut name = String::new();
        self.push_label(class, &mut name);
        name
    }

    fn push_label(&self, class: usize, out: &mut String) {
        self.names.push(&name(self.known.label(class)), self.delimiter, out);
    }

    /// Prints, or writes, the JSON report: predictions by the model in the first file, of the rows in the second one.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(super) fn json(
        &self,
        predictions: &List,
        files: [&Path; 2],
        destination: &Destination,
        overwrite: Overwrite,
        console: &mut Console,
    ) -> Result<(), Failure> {
        let report = self.report(predictions.len(), files, None);
        if *destination == Destination::Stdout {
            return console.report_with_list(&report, PREDICTIONS, predictions);
        }
        destination.fill(overwrite, |out| {
            report::write_with_list(out, &report, PREDICTIONS, predictions)
                .map_err(|error| destination.write_failure(&error))
        })?;
        console.report(&self.report(predictions.len(), files, Some(destination.label())))
    }

    /// Reports the file with the predictions.
    ///
    /// # Errors
    ///
    /// If standard output does not take the report.
    pub(super) fn written(
        &self,
        n_rows: u64,
        files: [&Path; 2],
        destination: &Destination,
        console: &mut Console,
    ) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(&self.report(n_rows, files, Some(destination.label())));
        }
        wrote(destination, n_rows, console);
        Ok(())
    }

    /// The report with a place for the predictions, or with the file they are in.
    fn report<'r>(
        &'r self,
        rows: u64,
        [model, input]: [&'r Path; 2],
        output: Option<&'r Path>,
    ) -> PredictReport<'r> {
        use apr_models::Model as _;
        PredictReport {
            file: report::path(model),
            input: report::path(input),
            model: self.known.model.name(),
            kind: self.asked.kind(),
            rows,
            predictions: output.is_none().then_some([]),
            output: output.map(report::path),
        }
    }

    /// A class by its name, or its label in the type it has.
    fn label(&self, index: usize) -> LabelValue<'_> {
        match self.known.label(index) {
            Some(Label::Integer(value)) => LabelValue::Integer(value),
            Some(Label::Text(text)) => LabelValue::Text(text),
            Some(Label::Boolean(value)) => LabelValue::Boolean(value),
            Some(Label::Number(value)) => LabelValue::Number(report::Number(value)),
            _ => LabelValue::None,
        }
    }
}

/// The report.
#[derive(Serialize)]
pub(super) struct PredictReport<'a> {
    pub(super) file: Cow<'a, str>,
    pub(super) input: Cow<'a, str>,
    pub(super) model: &'a str,
    pub(super) kind: Option<&'a str>,
    pub(super) rows: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) predictions: Option<[(); 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Cow<'a, str>>,
}

impl report::Report for PredictReport<'_> {
    const SCHEMA: &'static str = "apr.predict/1";
}

/// The field of the predictions.
pub(super) const PREDICTIONS: &str = "predictions";

/// Whether a prediction of these is a list or an object.
fn is_nested(predictions: &Predictions) -> bool {
    matches!(
        predictions,
        Predictions::Probabilities { .. } | Predictions::Rows { .. } | Predictions::Terms(_)
    )
}

/// A label in the type it has.
#[derive(Serialize)]
#[serde(untagged)]
enum LabelValue<'a> {
    Text(&'a str),
    Integer(i64),
    Boolean(bool),
    Number(report::Number),
    None,
}

/// A class with its probabilities by class.
#[derive(Serialize)]
struct ClassFields<'a> {
    class: LabelValue<'a>,
    probabilities: Fields<String, FloatValue>,
}

/// A value in the precision it has.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum FloatValue {
    F32(Narrow),
    F64(report::Number),
}

impl From<Float> for FloatValue {
    fn from(value: Float) -> Self {
        match value {
            Float::F32(value) => Self::F32(Narrow(value)),
            Float::F64(value) => Self::F64(report::Number(value)),
        }
    }
}

/// One prediction.
struct Prediction<'a> {
    report: &'a Report<'a>,
    predictions: &'a Predictions,
    idx: usize,
}

impl Serialize for Prediction<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Self { report, predictions, idx } = self;
        let label = |classes: &[usize]| report.label(classes.get(idx).copied().unwrap_or_default());
        match predictions {
            Predictions::Values(values) => {
                values.row(idx, 1).next().map(FloatValue::from).serialize(serializer)
            }
            Predictions::Rows { values, n_columns } => {
                serializer.collect_seq(values.row(idx, *n_columns).map(FloatValue::from))
            }
            Predictions::Classes(classes) => label(classes).serialize(serializer),
            Predictions::Probabilities { classes, values, n_columns } => {
                let model = report.asked.model();
                let by_class = values.row(idx, *n_columns).enumerate().map(|(column, value)| {
                    (name(report.known.label(model.class_of_column(column))), value.into())
                });
                let probabilities = Fields(by_class.collect());
                ClassFields { class: label(classes), probabilities }.serialize(serializer)
            }
            Predictions::Outliers(marks) => {
                serializer.serialize_i64(marks.get(idx).copied().unwrap_or_default().into())
            }
            Predictions::Terms(rows) => {
                let terms =
                    rows.row(idx).map(|(term, value)| (report.asked.term(term), FloatValue::from(value)));
                Fields(terms.collect()).serialize(serializer)
            }
            _ => serializer.serialize_unit(),
        }
    }
}

/// A float in as few digits as give it back, with an exponent where there would be many zeros.
struct Number(Float);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.to_f64().abs();
        let is_plain = size == 0.0 || (1e-5..1e16).contains(&size);
        match self.0 {
            Float::F32(value) if is_plain => write!(f, "{value}"),
            Float::F32(value) => write!(f, "{value:e}"),
            Float::F64(value) if is_plain => write!(f, "{value}"),
            Float::F64(value) => write!(f, "{value:e}"),
        }
    }
}

/// The text of a label.
pub(crate) fn name(label: Option<Label<'_>>) -> String {
    match label {
        Some(Label::Integer(value)) => value.to_string(),
        Some(Label::Text(text)) => text.to_owned(),
        Some(Label::Boolean(value)) => value.to_string(),
        Some(Label::Number(value)) => Number(Float::F64(value)).to_string(),
        _ => String::new(),
    }
}

/// Appends the parts with `between` between each two of them.
fn separated(between: char, parts: impl Iterator<Item = impl fmt::Display>, out: &mut String) -> fmt::Result {
    for (number, part) in parts.enumerate() {
        out.extend((number > 0).then_some(between));
        write!(out, "{part}")?;
    }
    Ok(())
}

/// Reports the path of the predictions.
pub(super) fn wrote(destination: &Destination, n_rows: u64, console: &Console) {
    let label = escape::path(destination.label());
    console.wrote(format_args!("{label}: {}", plural(n_rows, "prediction")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read_back() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (2.5, "2.5"),
            (0.1, "0.1"),
            (1e-10, "1e-10"),
            (3.4e38, "3.4e38"),
            (f32::NAN, "NaN"),
            (f32::INFINITY, "inf"),
        ] {
            assert_eq!(Number(Float::F32(value)).to_string(), text);
            assert!(value.is_nan() || text.parse::<f32>().unwrap().to_bits() == value.to_bits());
        }
    }
}
