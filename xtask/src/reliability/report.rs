//! Results of each part: on the terminal, and in `docs/reliability.md`.

use core::fmt::Write as _;
use std::fs;

use crate::process::{command, stdout_of};
use crate::task::{Outcome, Session};

const PAGE: &str = "docs/reliability.md";
const BEGIN: &str = "<!-- figures: written by `cargo xtask reliability --write` -->";
const END: &str = "<!-- end of figures -->";

/// The rows of the table and everything that was not as promised.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
    broken: Vec<String>,
}

#[derive(Debug)]
struct Row {
    part: String,
    runs: usize,
    result: String,
    broken: usize,
}

impl Report {
    /// A row; `broken` has one line for each violated promise.
    pub(crate) fn add(
        &mut self,
        part: impl Into<String>,
        runs: usize,
        result: impl Into<String>,
        broken: Vec<String>,
    ) {
        let row = Row { part: part.into(), runs, result: result.into(), broken: broken.len() };
        eprintln!("{}: {} runs, {}, {} broken promises", row.part, row.runs, row.result, row.broken);
        for line in &broken {
            eprintln!("  {line}");
        }
        self.broken.extend(broken.iter().map(|line| format!("{}: {line}", row.part)));
        self.rows.push(row);
    }

    /// The table as Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from("| what | runs | result | broken promises |\n|---|---:|---|---:|\n");
        for Row { part, runs, result, broken } in &self.rows {
            // Writing to a string does not fail.
            _ = writeln!(text, "| {part} | {runs} | {result} | {broken} |");
        }
        let runs: usize = self.rows.iter().map(|row| row.runs).sum();
        _ = writeln!(text, "| all | {runs} | | {} |", self.broken.len());
        text
    }

    /// Puts the table between the marks of the page.
    pub(crate) fn write(&self, session: &mut Session) -> Outcome {
        let path = session.root().join(PAGE);
        let page = fs::read_to_string(&path).map_err(|error| format!("{PAGE}: {error}"))?;
        let system = stdout_of(&mut command(session, "uname", &["-s", "-r", "-m"]))?;
        let mut figures = format!("Measured on {}.\n\n{}", without_patch(&system), self.table());
        for skip in session.skips() {
            _ = write!(figures, "\nSkipped: {} ({}).\n", skip.what, skip.why);
        }
        let page = replaced(&page, &figures).ok_or_else(|| format!("{PAGE} has lost its marks"))?;
        fs::write(&path, page).map_err(|error| format!("{PAGE}: {error}").into())
    }

    /// Whether all promises held.
    pub(crate) fn verdict(&self) -> Outcome {
        if self.broken.is_empty() {
            Ok(())
        } else {
            Err(format!("{} broken promises:\n{}", self.broken.len(), self.broken.join("\n")).into())
        }
    }
}

/// `Linux 6.1 x86_64`: the rest of the version is left out.
fn without_patch(system: &str) -> String {
    let word = |word: &str| word.split('.').take(2).collect::<Vec<_>>().join(".");
    system.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The page with other text between its marks.
fn replaced(page: &str, figures: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{figures}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let page = format!("# Title\n{BEGIN}\nold\n{END}\ntail\n");
        let new = replaced(&page, "| new |\n").unwrap();
        assert_eq!(new, format!("# Title\n{BEGIN}\n| new |\n{END}\ntail\n"));
        assert_eq!(replaced("no marks", ""), None);
    }

    #[test]
    fn the_system_is_named_without_its_patch_level() {
        assert_eq!(without_patch("Linux 6.1.0-18-amd64 x86_64\n"), "Linux 6.1 x86_64");
    }

    #[test]
    fn a_broken_promise_fails_the_run_and_shows_in_the_table() {
        let mut report = Report::default();
        report.add("kill", 3, "fine", vec![]);
        assert!(report.verdict().is_ok());
        report.add("cut", 2, "not so fine", vec!["torn".to_owned()]);
        assert!(report.verdict().unwrap_err().to_string().contains("cut: torn"));
        assert!(report.table().contains("| cut | 2 | not so fine | 1 |\n| all | 5 | | 1 |"));
    }
}
