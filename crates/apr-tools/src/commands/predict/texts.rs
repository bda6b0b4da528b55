//! Lines, or cells of a column, as texts.

use std::io::{BufRead as _, Read as _};

use apr_models::{Predictions, Samples};

use super::answer::Asked;
use crate::error::{CODE_IO, CODE_TABLE_SYNTAX, Failure, Place};
use crate::tables::{Accepts, Dialect, Input, Table, Wanted};

/// Maximum texts per batch.
const BATCH: usize = 256;

/// Longest line in bytes.
const MAX_LINE: u64 = 16 << 20;

/// Reads the texts and passes predictions on, in batches of the lines that have arrived.
///
/// # Errors
///
/// If the texts cannot be read, and those of `take`.
pub(super) fn ask(
    asked: &Asked<'_>,
    input: Input,
    dialect: &Dialect,
    column: Option<&str>,
    take: &mut dyn FnMut(Predictions) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut texts = Vec::new();
    each(input, dialect, column, &mut |text, more_arrived| {
        texts.push(text);
        if more_arrived && texts.len() < BATCH {
            return Ok(());
        }
        take(answers(asked, &texts)?)?;
        texts.clear();
        Ok(())
    })?;
    if texts.is_empty() { Ok(()) } else { take(answers(asked, &texts)?) }
}

fn answers(asked: &Asked<'_>, texts: &[String]) -> Result<Predictions, Failure> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(asked.predict(Samples::Text(&texts), texts.len())?)
}

/// Passes each text to `take`, with whether the next one has arrived already.
///
/// # Errors
///
/// If the texts cannot be read, and those of `take`.
pub(crate) fn each(
    input: Input,
    dialect: &Dialect,
    column: Option<&str>,
    take: &mut dyn FnMut(String, bool) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(column) = column else { return lines(input, take) };
    let mut table = Table::open(input, dialect)?;
    let wanted = Wanted { numbers: &[], accepts: Accepts::Finite, text: Some(table.column(column)?) };
    loop {
        let taken = table.next_rows::<f32>(wanted, BATCH)?;
        if taken.n_rows == 0 {
            return Ok(());
        }
        for (number, (_, text)) in (1..).zip(taken.texts) {
            take(text, number < taken.n_rows)?;
        }
    }
}

fn lines(input: Input, take: &mut dyn FnMut(String, bool) -> Result<(), Failure>) -> Result<(), Failure> {
    let label = input.label().to_owned();
    let mut input = input.text()?;
    for number in 1.. {
        let mut line = Vec::new();
        let read = input.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line);
        read.map_err(|error| Failure::new(CODE_IO, format!("read the texts: {error}")).in_file(&label))?;
        if line.is_empty() {
            break;
        }
        let refused = |what: &str| {
            Err(Failure::new(CODE_TABLE_SYNTAX, what).in_file(&label).placed(Place::line(number)))
        };
        if line.len() as u64 > MAX_LINE {
            return refused("a line is longer than 16 MiB");
        }
        let mut text = line.strip_suffix(b"\n").unwrap_or(&line);
        text = text.strip_suffix(b"\r").unwrap_or(text);
        if number == 1 {
            text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        }
        let Ok(text) = core::str::from_utf8(text) else { return refused("the text is not UTF-8") };
        let more_arrived = input.buffer().contains(&b'\n');
        take(text.to_owned(), more_arrived)?;
    }
    Ok(())
}
