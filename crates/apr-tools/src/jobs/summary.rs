//! The report of a job.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use serde::Serialize;

use super::outcome::{Outcome, worst};
use super::record::Record;
use crate::error::{CODE_OUTPUT_EXISTS, CODE_USAGE, Exit, Failure};
use crate::output::{self, Overwrite};
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{bytes, plural};

const SCHEMA: &str = "apr.job/1";
/// First line of a report as CSV.
const HEADER: &str = "input,exit,code,message,verdict,output,bytes,sha256\n";

/// What happened to each input.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    job: &'a str,
    to: Cow<'a, str>,
    tasks: u64,
    inputs: u64,
    outputs: u64,
    bytes: u64,
    exit: u8,
    results: Vec<&'a Outcome>,
}

impl Report for Summary<'_> {
    const SCHEMA: &'static str = SCHEMA;
}

impl<'a> Summary<'a> {
    pub(crate) fn new(job: &'a str, to: &'a Path, records: &'a [Record]) -> Self {
        let results: Vec<&Outcome> = records.iter().flat_map(|record| &record.results).collect();
        let outputs = results.iter().flat_map(|result| &result.outputs);
        Self {
            job,
            to: report::path(to),
            tasks: records.len() as u64,
            inputs: results.len() as u64,
            outputs: outputs.clone().count() as u64,
            bytes: outputs.map(|output| output.bytes).fold(0, u64::saturating_add),
            exit: worst(results.iter().map(|result| result.exit)) as u8,
            results,
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        worst(self.results.iter().map(|result| result.exit))
    }

    /// Prints it: as text what was refused, and how many inputs ended how.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(self);
        }
        let refused = self.results.iter().filter(|result| result.exit != 0);
        console.text(|out, style| {
            refused.clone().try_for_each(|result| {
                let code = result.code.as_deref().or(result.verdict.as_deref()).unwrap_or("different");
                let message = result.message.as_deref().unwrap_or_default();
                let (input, code) = (escape::path(Path::new(&result.input)), escape::cut(code, 60));
                writeln!(out, "{input}: {} [{}]", escape::cut(message, 200), style.yellow(&code))
            })
        })?;
        let mut exits: BTreeMap<u8, u64> = BTreeMap::new();
        self.results.iter().for_each(|result| *exits.entry(result.exit).or_default() += 1);
        let ends = exits.iter().map(|(exit, count)| match exit {
            0 => format!("{count} done"),
            exit => format!("{count} with exit code {exit}"),
        });
        let ends: Vec<String> = ends.collect();
        let ends = if ends.is_empty() { "nothing to do".to_owned() } else { ends.join(", ") };
        let outputs = match self.outputs {
            0 => String::new(),
            count => format!(
                "; {} ({}) in {}",
                plural(count, "file"),
                bytes(self.bytes),
                escape::path(Path::new(&*self.to))
            ),
        };
        console.note(format_args!("{}: {}{outputs}{}", plural(self.inputs, "input"), ends, console.took()));
        Ok(())
    }

    /// Refuses a name without the ending of a format, and a file that is there and no report of a job.
    ///
    /// # Errors
    ///
    /// If it is one of these.
    pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
        if !path.extension().is_some_and(|ending| ending == "json" || ending == "csv") {
            return Err(Failure::new(CODE_USAGE, "the report is CSV or JSON")
                .in_file(path)
                .help("give it the ending .csv or .json"));
        }
        match output::check_file(path, Overwrite::Refuse) {
            Err(failure) if failure.code() == CODE_OUTPUT_EXISTS => {
                let mut start = Vec::new();
                let read = File::open(path).and_then(|file| file.take(256).read_to_end(&mut start));
                match read {
                    Ok(_) if is_report(&start) => Ok(()),
                    _ => Err(failure.help("name another file: only an earlier report of a job is replaced")),
                }
            }
            checked => checked,
        }
    }

    /// Writes it as JSON or CSV, by the ending of the name.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Failure> {
        let mut text = Vec::new();
        match path.extension().is_some_and(|ending| ending == "json") {
            true => {
                report::write(&mut text, self)
                    .map_err(|error| Failure::io("write the file", path, &error))?;
            }
            false => text.extend(self.csv().into_bytes()),
        }
        output::write_file(path, &text, Overwrite::Replace)
    }

    fn csv(&self) -> String {
        let mut text = HEADER.to_owned();
        for result in &self.results {
            let (exit, code) = (result.exit.to_string(), result.code.as_deref().unwrap_or_default());
            let message = result.message.as_deref().unwrap_or_default();
            let verdict = result.verdict.as_deref().unwrap_or_default();
            let mut row = |output: &str, bytes: &str, sha256: &str| {
                let cells = [&result.input, &*exit, code, message, verdict, output, bytes, sha256].map(cell);
                text.push_str(&cells.join(","));
                text.push('\n');
            };
            if result.outputs.is_empty() {
                row("", "", "");
            }
            for output in &result.outputs {
                row(&output.path, &output.bytes.to_string(), &output.sha256);
            }
        }
        text
    }
}

/// Whether a file that begins so is a report of a job.
fn is_report(start: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(start).split_whitespace().collect();
    start.starts_with(HEADER.as_bytes()) || text.starts_with(&format!("{{\"schema\":\"{SCHEMA}\""))
}

/// A cell of CSV, in quotes if need be. Programs for tables take what begins as a formula for one: such a cell begins with a quote mark.
fn cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted() {
        for (text, expected) in
            [("a", "a"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("=1+1", "'=1+1"), ("", "")]
        {
            assert_eq!(cell(text), expected);
        }
    }
}
