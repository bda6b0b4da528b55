//! Runs the command of a job for one input, and says what happened.

use std::ffi::OsString;
use std::thread;

use serde_json::Value;

use crate::error::{CODE_INTERNAL, Failure};
use crate::program;

/// Bytes of the stack of a command: those of the main thread.
const STACK: usize = 8 << 20;

/// What a command says.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) exit: u8,
    pub(super) report: Value,
}

/// Runs a command on a thread of its own, to which its remote files belong.
///
/// # Errors
///
/// If there is no thread.
pub(super) fn answer(words: Vec<String>) -> Result<Answer, Failure> {
    let run = move || program::run_json(words.into_iter().map(OsString::from));
    let thread = thread::Builder::new().stack_size(STACK).spawn(run);
    let thread = thread.map_err(|error| Failure::new(CODE_INTERNAL, format!("no thread: {error}")))?;
    // A panic was told by the hook of the program.
    let (exit, text) = thread.join().unwrap_or((crate::error::Exit::Internal as u8, String::new()));
    Ok(Answer { exit, report: serde_json::from_str(&text).unwrap_or(Value::Null) })
}

impl Answer {
    /// How many files a conversion of a model folder would write.
    pub(super) fn files_of_conversion(&self) -> Option<u32> {
        let files = self.report.get("files")?.as_array()?.len();
        u32::try_from(files).ok().filter(|_| self.exit == 0)
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

    /// The file that a failure is about.
    pub(super) fn failed_file(&self) -> Option<&str> {
        let paths =
            [&["error", "file"][..], &["files", "0", "problems", "0", "file"], &["unread", "0", "file"]];
        paths.iter().find_map(|path| at(&self.report, path)).and_then(Value::as_str)
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
