//! `apr explain`: the meaning of an error code and what to do about it.

use std::io::Write as _;

use serde::Serialize;

use crate::args::Listed;
use crate::codes::{Entry, entries, find};
use crate::error::{CODE_UNKNOWN_CODE, Exit, Failure};
use crate::report::Report;
use crate::terminal::Console;
use crate::terminal::suggest::closest;
use crate::terminal::table::{Align, Table};

const AFTER_HELP: &str = "Examples:\n  apr explain st-offsets\n  apr explain --json\n\n\
    Exit codes: 0 success, 2 unknown code.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Code of an error message; without it, all codes are listed.
    #[arg(value_name = "CODE", value_parser = Listed(codes), hide_possible_values = true)]
    code: Option<String>,
}

/// The entry of a code.
#[derive(Serialize)]
struct Explanation<'a> {
    code: &'a str,
    exit: u8,
    means: &'a str,
    help: &'a str,
}

impl Report for Explanation<'_> {
    const SCHEMA: &'static str = "apr.explain/1";
}

impl<'a> From<&'a Entry> for Explanation<'a> {
    fn from(entry: &'a Entry) -> Self {
        Self {
            code: entry.code,
            exit: Exit::from(entry.category) as u8,
            means: entry.meaning,
            help: entry.remedy,
        }
    }
}

/// All codes.
#[derive(Serialize)]
struct Codes<'a> {
    codes: Vec<Explanation<'a>>,
}

impl Report for Codes<'_> {
    const SCHEMA: &'static str = "apr.explain/1";
}

fn codes() -> Vec<&'static str> {
    entries().map(|entry| entry.code).collect()
}

/// Runs `apr explain`.
///
/// # Errors
///
/// If the code is unknown.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    match &args.code {
        Some(code) => {
            let code = code.trim().to_ascii_lowercase();
            explain(code.trim_start_matches("error").trim_matches(['[', ']']), console)
        }
        None => list(console),
    }
}

fn explain(code: &str, console: &mut Console) -> Result<Exit, Failure> {
    let entry = find(code).ok_or_else(|| unknown(code))?;
    if console.is_json() {
        console.report(&Explanation::from(entry))?;
    } else {
        console.text(|out, style| {
            writeln!(out, "{}  (exit code {})\n", style.bold(entry.code), Exit::from(entry.category) as u8)?;
            writeln!(out, "{}\n", wrapped(entry.meaning, 78))?;
            writeln!(out, "What to do: {}", wrapped(entry.remedy, 78))
        })?;
    }
    Ok(Exit::Success)
}

fn list(console: &mut Console) -> Result<Exit, Failure> {
    if console.is_json() {
        console.report(&Codes { codes: entries().map(Into::into).collect() })?;
    } else {
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Left]);
        table.row(["CODE", "EXIT", "MEANS"]);
        for entry in entries() {
            let exit = (Exit::from(entry.category) as u8).to_string();
            table.row([entry.code, &exit, first_sentence(entry.meaning)]);
        }
        console.text(|out, _| table.lines().iter().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    Ok(Exit::Success)
}

fn unknown(code: &str) -> Failure {
    let failure = Failure::new(CODE_UNKNOWN_CODE, format!("`{code}` is not an error code"));
    match closest(code, entries().map(|entry| entry.code)) {
        Some(close) => failure.help(format!("did you mean `{close}`?")),
        None => failure,
    }
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |end| &text[..=end])
}

/// The text in lines of at most `width` characters.
fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if used > 0 && used + 1 + len > width {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += len;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_are_suggested() {
        let failure = unknown("st-ofsets");
        assert_eq!(failure.advice().as_deref(), Some("did you mean `st-offsets`?"));
        assert_eq!(unknown("completely different").code(), CODE_UNKNOWN_CODE);
        assert!(!unknown("foo").advice().unwrap().contains("did you mean"));
    }

    #[test]
    fn lines_are_wrapped_at_words() {
        assert_eq!(wrapped("aa bb cc", 5), "aa bb\ncc");
        assert_eq!(wrapped("aaaaaaa b", 3), "aaaaaaa\nb");
    }
}
