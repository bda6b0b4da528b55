//! The predictions as lines of text and as JSON.

use core::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;

use apr_models::{Float, Label, Predictions};

use super::answer::Asked;
use crate::error::Failure;
use crate::known::Known;
use crate::output::{Destination, Overwrite};
use crate::report::json::JsonWriter;
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::plural;

/// How predictions are shown.
pub(super) struct Report<'k> {
    known: &'k Known,
    asked: &'k Asked<'k>,
    input: &'k Path,
    delimiter: char,
    /// Predictions so far, for JSON.
    kept: Vec<Predictions>,
}

impl<'k> Report<'k> {
    pub(super) fn new(known: &'k Known, asked: &'k Asked<'k>, input: &'k Path, delimiter: u8) -> Self {
        Self { known, asked, input, delimiter: delimiter.into(), kept: Vec::new() }
    }

    pub(super) fn keep(&mut self, predictions: Predictions) {
        self.kept.push(predictions);
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
        self.push_name(&name(self.known.label(class)), out);
    }

    /// A name, in quotes if it would be taken for more than one cell.
    fn push_name(&self, name: &str, out: &mut String) {
        let name = escaped(name);
        if name.contains([self.delimiter, '"']) {
            out.push('"');
            out.push_str(&name.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(&name);
        }
    }

    /// Prints, or writes, the predictions that were kept.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub(super) fn json(
        &self,
        destination: &Destination,
        overwrite: Overwrite,
        console: &mut Console,
    ) -> Result<(), Failure> {
        if let Destination::File(path) = destination {
            let mut bytes = Vec::new();
            let mut json = JsonWriter::new(&mut bytes);
            let write = || {
                json.object()?;
                json.field_str("schema", "apr.predict/1")?;
                self.fields(&mut json)?;
                json.end_object()?;
                json.finish()
            };
            write().map_err(|error| destination.write_failure(&error))?;
            crate::output::write_file(path, &bytes, overwrite)?;
            return console.json("apr.predict/1", |json| {
                self.head(json)?;
                json.field_str("output", &path.to_string_lossy())
            });
        }
        console.json("apr.predict/1", |json| self.fields(json))
    }

    fn head<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        use apr_models::Model as _;
        json.field_str("file", &self.known.path.to_string_lossy())?;
        json.field_str("input", &self.input.to_string_lossy())?;
        json.field_str("model", self.known.model.name())?;
        json.field_opt_str("kind", self.asked.kind())?;
        json.field_uint("rows", self.kept.iter().map(|predictions| predictions.len() as u64).sum())
    }

    fn fields<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        self.head(json)?;
        json.key("predictions")?;
        let is_nested = self.kept.iter().any(|predictions| {
            matches!(
                predictions,
                Predictions::Probabilities { .. } | Predictions::Rows { .. } | Predictions::Terms(_)
            )
        });
        if is_nested {
            json.array()?;
        } else {
            json.inline_array()?;
        }
        for predictions in &self.kept {
            (0..predictions.len()).try_for_each(|idx| self.value(predictions, idx, json))?;
        }
        json.end_array()
    }

    fn value<W: Write>(
        &self,
        predictions: &Predictions,
        idx: usize,
        json: &mut JsonWriter<W>,
    ) -> io::Result<()> {
        match predictions {
            Predictions::Values(values) => values.row(idx, 1).try_for_each(|value| float(value, json)),
            Predictions::Rows { values, n_columns } => {
                json.inline_array()?;
                values.row(idx, *n_columns).try_for_each(|value| float(value, json))?;
                json.end_array()
            }
            Predictions::Classes(classes) => self.label(classes.get(idx).copied().unwrap_or_default(), json),
            Predictions::Probabilities { classes, values, n_columns } => {
                json.object()?;
                json.key("class")?;
                self.label(classes.get(idx).copied().unwrap_or_default(), json)?;
                json.key("probabilities")?;
                json.object()?;
                for (column, value) in values.row(idx, *n_columns).enumerate() {
                    json.key(&name(self.known.label(self.asked.model().class_of_column(column))))?;
                    float(value, json)?;
                }
                json.end_object()?;
                json.end_object()
            }
            Predictions::Outliers(marks) => json.int(marks.get(idx).copied().unwrap_or_default().into()),
            Predictions::Terms(rows) => {
                json.object()?;
                for (term, value) in rows.row(idx) {
                    json.key(self.asked.term(term))?;
                    float(value, json)?;
                }
                json.end_object()
            }
            _ => json.null(),
        }
    }

    /// A class by its name, or its label in the type it has.
    fn label<W: Write>(&self, class: usize, json: &mut JsonWriter<W>) -> io::Result<()> {
        match self.known.label(class) {
            Some(Label::Integer(value)) => json.int(value),
            Some(Label::Text(text)) => json.string(text),
            Some(Label::Boolean(value)) => json.bool(value),
            Some(Label::Number(value)) => json.float(value),
            _ => json.null(),
        }
    }
}

fn float<W: Write>(value: Float, json: &mut JsonWriter<W>) -> io::Result<()> {
    match value {
        Float::F32(value) => json.narrow_float(value),
        Float::F64(value) => json.float(value),
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

/// What a label is called.
fn name(label: Option<Label<'_>>) -> String {
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

/// Says where the predictions are.
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
