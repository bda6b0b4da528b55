//! The answers as lines of text and as JSON.

use core::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::Path;

use apr_models::{Answers, AnyModel, Label};

use super::answer::Asked;
use crate::error::Failure;
use crate::known::Known;
use crate::output::{Destination, Overwrite};
use crate::report::json::JsonWriter;
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::plural;

/// How answers are shown.
pub(super) struct Report<'k> {
    known: &'k Known,
    asked: &'k Asked<'k>,
    input: &'k Path,
    delimiter: char,
    /// Answers so far, for JSON.
    kept: Vec<Answers>,
}

impl<'k> Report<'k> {
    pub(super) fn new(known: &'k Known, asked: &'k Asked<'k>, input: &'k Path, delimiter: u8) -> Self {
        Self { known, asked, input, delimiter: delimiter.into(), kept: Vec::new() }
    }

    pub(super) fn keep(&mut self, answers: Answers) {
        self.kept.push(answers);
    }

    /// Writes a line for each answer that `ask` gives, and gives them on at once. Returns how many there were.
    ///
    /// # Errors
    ///
    /// Those of `ask` and of writing. A file appears only if there was none.
    pub(super) fn stream(
        &self,
        destination: &Destination,
        overwrite: Overwrite,
        ask: impl FnOnce(&mut dyn FnMut(Answers) -> Result<(), Failure>) -> Result<(), Failure>,
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

    /// One answer on one line, without its end.
    fn line(&self, answers: &Answers, idx: usize, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match answers {
            Answers::Numbers(values) => {
                write!(out, "{}", Number(values.get(idx).copied().unwrap_or_default()))
            }
            Answers::Outliers(marks) => write!(out, "{}", marks.get(idx).copied().unwrap_or_default()),
            Answers::Classes(classes) => {
                self.push_class(classes.get(idx).copied().unwrap_or_default(), out);
                Ok(())
            }
            Answers::Probabilities(classes, probabilities) => {
                self.push_class(classes.get(idx).copied().unwrap_or_default(), out);
                let row = probabilities.row(idx).unwrap_or_default();
                row.iter().try_for_each(|value| write!(out, "{}{}", self.delimiter, Number(*value)))
            }
            Answers::Rows(rows) => {
                let row = rows.row(idx).unwrap_or_default();
                separated(self.delimiter, row.iter().map(|&value| Number(value)), out)
            }
            Answers::Terms(rows) => {
                let row = rows.row(idx).into_iter().flat_map(|row| row.iter());
                separated(' ', row.map(|(term, value)| format!("{term}:{}", Number(value))), out)
            }
            Answers::Wide(values) => write!(out, "{}", Number(values.get(idx).copied().unwrap_or_default())),
            Answers::WideRows { values, width } => {
                separated(self.delimiter, row(values, *width, idx).iter().map(|&value| Number(value)), out)
            }
            Answers::WideTerms(rows) => {
                let (terms, values) = rows.row(idx).unwrap_or_default();
                let row = terms.iter().zip(values);
                separated(' ', row.map(|(term, &value)| format!("{term}:{}", Number(value))), out)
            }
            Answers::Places(places) => {
                self.push_label(places.get(idx).copied().unwrap_or_default(), out);
                Ok(())
            }
            Answers::Shares { places, shares, n_probabilities } => {
                self.push_label(places.get(idx).copied().unwrap_or_default(), out);
                let row = row(shares, *n_probabilities, idx);
                row.iter().try_for_each(|&value| write!(out, "{}{}", self.delimiter, Number(value)))
            }
        };
    }

    /// What a class, cluster or mark is called on a line.
    pub(super) fn name(&self, number: usize) -> String {
        let mut name = String::new();
        match &self.known.model {
            AnyModel::Pipeline(_) => self.push_label(number, &mut name),
            _ => self.push_class(number, &mut name),
        }
        name
    }

    fn push_class(&self, class: usize, out: &mut String) {
        self.push_name(&self.known.class(class), out);
    }

    fn push_label(&self, place: usize, out: &mut String) {
        self.push_name(&name(self.known.label(place)), out);
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

    /// Prints, or writes, the answers that were kept.
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
        json.field_opt_str("kind", self.asked.kind(self.kept.first()))?;
        json.field_uint("rows", self.kept.iter().map(|answers| answers.len() as u64).sum())
    }

    fn fields<W: Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        self.head(json)?;
        json.key("predictions")?;
        let is_nested = self.kept.iter().any(|answers| {
            matches!(
                answers,
                Answers::Probabilities(..)
                    | Answers::Rows(_)
                    | Answers::Terms(_)
                    | Answers::Shares { .. }
                    | Answers::WideRows { .. }
                    | Answers::WideTerms(_)
            )
        });
        if is_nested {
            json.array()?;
        } else {
            json.inline_array()?;
        }
        for answers in &self.kept {
            (0..answers.len()).try_for_each(|idx| self.value(answers, idx, json))?;
        }
        json.end_array()
    }

    fn value<W: Write>(&self, answers: &Answers, idx: usize, json: &mut JsonWriter<W>) -> io::Result<()> {
        match answers {
            Answers::Numbers(values) => json.narrow_float(values.get(idx).copied().unwrap_or_default()),
            Answers::Wide(values) => json.float(values.get(idx).copied().unwrap_or_default()),
            Answers::Places(places) => self.place(places.get(idx).copied().unwrap_or_default(), json),
            Answers::Shares { places, shares, n_probabilities } => {
                json.object()?;
                json.key("class")?;
                self.place(places.get(idx).copied().unwrap_or_default(), json)?;
                json.key("probabilities")?;
                json.object()?;
                for (place, &value) in row(shares, *n_probabilities, idx).iter().enumerate() {
                    json.key(&name(self.known.label(place)))?;
                    json.float(value)?;
                }
                json.end_object()?;
                json.end_object()
            }
            Answers::WideRows { values, width } => {
                json.inline_array()?;
                row(values, *width, idx).iter().try_for_each(|&value| json.float(value))?;
                json.end_array()
            }
            Answers::WideTerms(rows) => {
                json.object()?;
                let (terms, values) = rows.row(idx).unwrap_or_default();
                for (&term, &value) in terms.iter().zip(values) {
                    json.key(self.asked.term(term as usize))?;
                    json.float(value)?;
                }
                json.end_object()
            }
            Answers::Outliers(marks) => json.int(marks.get(idx).copied().unwrap_or_default().into()),
            Answers::Classes(classes) => self.class(classes.get(idx).copied().unwrap_or_default(), json),
            Answers::Probabilities(classes, probabilities) => {
                json.object()?;
                json.key("class")?;
                self.class(classes.get(idx).copied().unwrap_or_default(), json)?;
                json.key("probabilities")?;
                json.object()?;
                for (column, value) in probabilities.row(idx).unwrap_or_default().iter().enumerate() {
                    json.key(&self.known.class(self.asked.class_of_column(column)))?;
                    json.narrow_float(*value)?;
                }
                json.end_object()?;
                json.end_object()
            }
            Answers::Rows(rows) => {
                json.inline_array()?;
                let row = rows.row(idx).unwrap_or_default();
                row.iter().try_for_each(|value| json.narrow_float(*value))?;
                json.end_array()
            }
            Answers::Terms(rows) => {
                json.object()?;
                for (term, value) in rows.row(idx).into_iter().flat_map(|row| row.iter()) {
                    json.key(self.asked.term(term))?;
                    json.narrow_float(value)?;
                }
                json.end_object()
            }
        }
    }

    /// A class by its name, or its number if it has none.
    fn class<W: Write>(&self, class: usize, json: &mut JsonWriter<W>) -> io::Result<()> {
        match &self.known.classes {
            Some(_) => json.string(&self.known.class(class)),
            None => json.uint(class as u64),
        }
    }

    /// A label of a pipeline in the type it has.
    fn place<W: Write>(&self, place: usize, json: &mut JsonWriter<W>) -> io::Result<()> {
        match self.known.label(place) {
            Some(Label::Integer(value)) => json.int(value),
            Some(Label::Text(text)) => json.string(text),
            Some(Label::Boolean(value)) => json.bool(value),
            Some(Label::Number(value)) => json.float(value),
            _ => json.null(),
        }
    }
}

/// A number in as few digits as give it back, with an exponent where there would be many zeros.
struct Number<T>(T);

impl<T: fmt::Display + fmt::LowerExp + Copy + Into<f64>> fmt::Display for Number<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.into().abs();
        if size == 0.0 || (1e-5..1e16).contains(&size) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

/// The row at that place of rows of `width` numbers.
fn row(values: &[f64], width: usize, idx: usize) -> &[f64] {
    values.chunks_exact(width.max(1)).nth(idx).unwrap_or_default()
}

/// What a label is called.
fn name(label: Option<Label<'_>>) -> String {
    match label {
        Some(Label::Integer(value)) => value.to_string(),
        Some(Label::Text(text)) => text.to_owned(),
        Some(Label::Boolean(value)) => value.to_string(),
        Some(Label::Number(value)) => Number(value).to_string(),
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
            assert_eq!(Number(value).to_string(), text);
            assert!(value.is_nan() || text.parse::<f32>().unwrap().to_bits() == value.to_bits());
        }
    }
}
