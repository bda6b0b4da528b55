//! Tasks: functions from a [`Session`] and arguments to an [`Outcome`].

use core::fmt;
use std::path::{Path, PathBuf};

/// How a task ended. A task that could do only a part of its work names the rest with [`Session::skip`] and succeeds; one that
/// could do nothing returns [`Failure::Skipped`].
pub(crate) type Outcome = Result<(), Failure>;

/// One row of the table in `main.rs`.
#[derive(Debug)]
pub(crate) struct Task {
    /// The word after `cargo xtask`.
    pub(crate) name: &'static str,
    /// Does the work.
    pub(crate) run: fn(&mut Session, &[String]) -> Outcome,
    /// One line: arguments, then what it does.
    pub(crate) help: &'static str,
}

/// Why a task did not succeed, as text for the person who started it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The task was called wrongly: exit code 2.
    Usage(String),
    /// The task ran and its check failed: exit code 1.
    Check(String),
    /// The task did nothing because something is missing: exit code 77, as in Automake's test protocol. `ci` lists it and goes on.
    Skipped(String),
}

impl Failure {
    /// The exit code of a run that ends so.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Check(_) => 1,
            Self::Usage(_) => 2,
            Self::Skipped(_) => 77,
        }
    }
}

/// A task that was skipped; `why` names what is missing.
pub(crate) fn skipped(why: impl Into<String>) -> Failure {
    Failure::Skipped(why.into())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) | Self::Check(text) => f.write_str(text),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Check(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::Check(text.to_owned())
    }
}

/// Refuses arguments, for the task `name` that takes none.
///
/// # Errors
///
/// A [`Failure::Usage`] that names the first argument.
pub(crate) fn without_arguments(name: &str, args: &[String]) -> Outcome {
    match args.first() {
        None => Ok(()),
        Some(arg) => Err(Failure::Usage(format!("`{name}` takes no arguments, not `{arg}`"))),
    }
}

/// State shared by the tasks of a run: the root of the project, and the skipped parts.
#[derive(Debug)]
pub(crate) struct Session {
    root: PathBuf,
    skips: Vec<Skip>,
    closing_lines: Vec<String>,
    has_built_tests: bool,
}

/// A check that did not take place.
#[derive(Debug)]
pub(crate) struct Skip {
    /// The check, by name.
    pub(crate) what: String,
    /// What was missing.
    pub(crate) why: String,
}

impl Session {
    /// A session on the workspace in `root`.
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, skips: Vec::new(), closing_lines: Vec::new(), has_built_tests: false }
    }

    /// The folder of the root `Cargo.toml`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// `target/<name>` of the project: downloaded and generated things that git does not see.
    ///
    /// This is not where cargo builds when `CARGO_TARGET_DIR` says otherwise.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.root.join("target").join(name)
    }

    /// Notes that the check `what` did not take place because `why`; the list is printed at the end.
    pub(crate) fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let skip = Skip { what: what.into(), why: why.into() };
        eprintln!("skipped: {} ({})", skip.what, skip.why);
        self.skips.push(skip);
    }

    /// The checks that did not take place, in the order in which they were noted.
    pub(crate) fn skips(&self) -> &[Skip] {
        &self.skips
    }

    /// Prints the skipped parts, if any.
    pub(crate) fn print_skips(&self) {
        if !self.skips.is_empty() {
            println!("not checked here:");
        }
        self.skips.iter().for_each(|skip| println!("  {}: {}", skip.what, skip.why));
    }

    /// Notes that all tests, and the programs that they run, are built.
    pub(crate) const fn note_built_tests(&mut self) {
        self.has_built_tests = true;
    }

    /// Whether they are.
    pub(crate) const fn has_built_tests(&self) -> bool {
        self.has_built_tests
    }

    /// Keeps a line of the test runner for the end of `ci`.
    pub(crate) fn close_with(&mut self, line: String) {
        self.closing_lines.push(line);
    }

    /// The lines kept by [`Session::close_with`].
    pub(crate) fn closing_lines(&self) -> &[String] {
        &self.closing_lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_did_nothing_does_not_succeed() {
        let codes =
            [Failure::from("differs"), Failure::Usage("no such word".to_owned()), skipped("needs node")];
        assert_eq!(codes.each_ref().map(Failure::exit_code), [1, 2, 77]);
        assert_eq!(codes[2].to_string(), "skipped: needs node");
    }
}
