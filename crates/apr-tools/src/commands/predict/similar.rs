//! Similar items for rows, texts or ids, by a recommender.

use core::fmt::Write as _;
use std::path::Path;

use apr_models::{Accepts, ContentRecommender, Model as _, Recommendation};
use clap::value_parser;
use serde::Serialize;

use super::output::Form;
use super::report::{Names, PREDICTIONS, PredictReport, wrote};
use super::{rows, texts};
use crate::error::{CODE_NO_PREDICTION, CODE_OUTPUT_FORMAT, Failure};
use crate::input::NamedModel;
use crate::output::{Destination, Overwrite};
use crate::report::{self, List, Narrow};
use crate::tables::{Dialect, Input, Table, Wanted};
use crate::terminal::Console;

/// Similar items, unless asked otherwise.
const TOP: u32 = 10;

/// Rows asked about at once.
const BATCH: usize = 256;

/// Bytes of lines that are written even if more rows have arrived.
const FLUSHED: usize = 1 << 16;

#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct SimilarArgs {
    /// For recommenders: similar items of each row, 10 unless given.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(super) top: Option<u32>,
    /// For recommenders: TABLE is ids of their items, one per line or in --column.
    #[arg(long)]
    pub(super) ids: bool,
}

/// What is asked.
pub(super) struct Question<'q> {
    pub(super) args: SimilarArgs,
    pub(super) input: Input,
    pub(super) dialect: &'q Dialect,
    pub(super) column: Option<&'q str>,
}

/// Where the answers go.
pub(super) struct Answers<'a> {
    /// The model and the rows.
    pub(super) files: [&'a Path; 2],
    pub(super) destination: &'a Destination,
    pub(super) overwrite: Overwrite,
    pub(super) form: Form,
}

type Take<'t, 'm> = &'t mut dyn FnMut(&[Recommendation<'m>], bool) -> Result<(), Failure>;

/// An item of a list.
#[derive(Serialize)]
struct Item<'m> {
    item: &'m str,
    similarity: Narrow,
}

impl<'m> Item<'m> {
    fn of(recommendation: &Recommendation<'m>) -> Self {
        Self { item: recommendation.id, similarity: Narrow(recommendation.score) }
    }
}

/// Prints, or writes, the similar items.
///
/// # Errors
///
/// If the input cannot be read or does not fit the items, the output is a table, and those of writing.
pub(super) fn run(
    known: &NamedModel,
    model: &ContentRecommender,
    question: Question<'_>,
    answers: &Answers<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    let Answers { files, destination, overwrite, form } = *answers;
    if !matches!(form, Form::Lines | Form::JsonLines) {
        let failure = Failure::new(CODE_OUTPUT_FORMAT, "lists of similar items are not columns of a table");
        return Err(failure.in_file(destination.label()).help("write a .jsonl file, or lines of text"));
    }
    if console.is_json() && form == Form::Lines {
        let mut list = List::default();
        ask(known, model, question, console, &mut |items, _| {
            list.push(&items.iter().map(Item::of).collect::<Vec<_>>(), true)
        })?;
        let (model, rows) = (model.name(), list.len());
        if *destination == Destination::Stdout {
            return console.report_with_list(&report(files, model, rows, None), PREDICTIONS, &list);
        }
        destination.fill(overwrite, |out| {
            report::write_with_list(out, &report(files, model, rows, None), PREDICTIONS, &list)
                .map_err(|error| destination.write_failure(&error))
        })?;
        return console.report(&report(files, model, rows, Some(destination.label())));
    }
    let mut n_rows = 0;
    let names = Names::of(destination, console);
    destination.fill(overwrite, |out| {
        let mut lines = String::new();
        let mut flush = |lines: &mut String| {
            let written = out.write_all(lines.as_bytes()).and_then(|()| out.flush());
            lines.clear();
            written.map_err(|error| destination.write_failure(&error))
        };
        let asked = ask(known, model, question, console, &mut |items, more_arrived| {
            n_rows += 1;
            match form {
                Form::JsonLines => push_json_line(items, &mut lines),
                _ => push_line(items, names, &mut lines),
            }
            if more_arrived && lines.len() < FLUSHED { Ok(()) } else { flush(&mut lines) }
        });
        // Also those before a row at fault.
        flush(&mut lines)?;
        asked
    })?;
    if console.is_json() {
        return console.report(&report(files, model.name(), n_rows, Some(destination.label())));
    }
    if *destination != Destination::Stdout {
        wrote(destination, n_rows, console);
    }
    Ok(())
}

/// The report with a place for the items, or with the file they are in.
fn report<'a>(
    [file, input]: [&'a Path; 2],
    model: &'a str,
    rows: u64,
    output: Option<&'a Path>,
) -> PredictReport<'a> {
    PredictReport {
        file: report::path(file),
        input: report::path(input),
        model,
        kind: Some("similar"),
        rows,
        predictions: output.is_none().then_some([]),
        output: output.map(report::path),
    }
}

/// A list of objects, as in the report.
fn push_json_line(items: &[Recommendation<'_>], line: &mut String) {
    let items: Vec<Item<'_>> = items.iter().map(Item::of).collect();
    // Strings and numbers have a form in JSON.
    line.push_str(&serde_json::to_string(&items).unwrap_or_default());
    line.push('\n');
}

/// `ID:SIMILARITY ID:SIMILARITY`; an id in quotes if it could be taken for more than one.
fn push_line(items: &[Recommendation<'_>], names: Names, line: &mut String) {
    for (place, item) in items.iter().enumerate() {
        line.extend((place > 0).then_some(' '));
        names.push(item.id, ' ', line);
        // Writing to a string cannot fail.
        let _ = write!(line, ":{}", item.score);
    }
    line.push('\n');
}

/// Passes the similar items of each row to `take`, with whether the next row has arrived already.
fn ask<'m>(
    known: &NamedModel,
    model: &'m ContentRecommender,
    question: Question<'_>,
    console: &Console,
    take: Take<'_, 'm>,
) -> Result<(), Failure> {
    let Question { args: SimilarArgs { top, ids }, input, dialect, column } = question;
    let count = top.unwrap_or(TOP) as usize;
    if ids {
        return texts::each(input, dialect, column, &mut |id, more| {
            take(&model.similar_to(id.trim(), count)?, more)
        });
    }
    if model.text().is_some() {
        return texts::each(input, dialect, column, &mut |text, more| {
            take(&model.recommend_text(&text, count)?, more)
        });
    }
    if column.is_some() {
        let what = "the items have vectors, not texts: --column is for their ids, with --ids";
        return Err(Failure::new(CODE_NO_PREDICTION, what));
    }
    let path = input.label().to_owned();
    let mut table = Table::open(input, dialect)?;
    if table.n_columns() == 0 {
        console.remark("the table has no rows");
        return Ok(());
    }
    let columns =
        rows::columns(known, &mut table, None, console).map_err(|failure| failure.in_file(&path))?;
    let wanted = Wanted { numbers: &columns, accepts: Accepts::Finite, text: None };
    loop {
        let taken = table.next_rows::<f32>(wanted, BATCH)?;
        if taken.n_rows == 0 {
            return Ok(());
        }
        for (number, row) in (1..).zip(taken.numbers.chunks_exact(columns.len().max(1))) {
            take(&model.recommend(row, count)?, number < taken.n_rows)?;
        }
    }
}
