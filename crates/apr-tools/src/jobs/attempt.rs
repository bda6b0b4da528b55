//! Runs the command of a job for one input, and says what happened.

use std::ffi::OsString;
use std::panic;

use serde_json::Value;

use crate::error::{Exit, Failure};
use crate::{program, remote};

/// What a command says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) exit: u8,
    pub(super) report: Value,
}

/// Runs a command on a thread of its own.
///
/// # Errors
///
/// If there is no thread.
pub(super) fn answer(words: Vec<String>) -> Result<Answer, Failure> {
    let words = remote::words().into_iter().chain(words).map(OsString::from);
    let words: Vec<OsString> = words.collect();
    // A panic was told by the hook of the program.
    let run = || panic::catch_unwind(|| program::run_json(words));
    let (exit, text) = remote::apart(run)?.unwrap_or_else(|_| (Exit::Internal as u8, String::new()));
    Ok(Answer { exit, report: serde_json::from_str(&text).unwrap_or(Value::Null) })
}

impl Answer {
    /// Paths of the files that a conversion of a model folder would write.
    pub(super) fn files_of_conversion(&self) -> Vec<&str> {
        let files = self.report.get("files").and_then(Value::as_array).filter(|_| self.exit == 0);
        files.into_iter().flatten().filter_map(|file| file.get("path")?.as_str()).collect()
    }

    /// The first thing that is wrong: its code and what it is.
    pub(super) fn problem(&self) -> (Option<String>, Option<String>) {
        let problem = [
            &["error"][..],
            &["files", "0", "problems", "0"],
            &["unread", "0"],
            &["files", "0", "findings", "0"],
        ];
        let found = problem.iter().find_map(|path| at(&self.report, path));
        let text =
            |name| found.and_then(|problem| problem.get(name)).and_then(Value::as_str).map(str::to_owned);
        (text("code"), text("message"))
    }

    /// The verdict of a scan.
    pub(super) fn verdict(&self) -> Option<String> {
        self.report.get("verdict").and_then(Value::as_str).map(str::to_owned)
    }
}

fn at<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step.parse::<usize>() {
        Ok(idx) => value.get(idx),
        Err(_) => value.get(step),
    })
}
