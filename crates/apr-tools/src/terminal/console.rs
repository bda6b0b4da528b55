//! The output streams of a command: data on standard output, progress and notes on standard error.

use alloc::rc::Rc;
use core::cell::{Cell, RefCell};
use core::fmt;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::Instant;

use terminal_size::{Height, Width, terminal_size_of};

use super::{Busy, ColorChoice, Progress, Style, progress};
use crate::error::Failure;
use crate::report::{self, Report};

/// How much narration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

/// Whether data is for people or for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Text,
    Json,
}

/// Where data goes.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// To the standard output of the process.
    Stdout,
    /// Into memory, for a program that calls this one as a function.
    Memory(Rc<RefCell<Vec<u8>>>),
}

impl Data {
    fn is_terminal(&self) -> bool {
        matches!(self, Self::Stdout) && io::stdout().is_terminal()
    }
}

/// Takes data to their place.
pub(crate) enum Out {
    Stdout(StdoutLock<'static>),
    Memory(Rc<RefCell<Vec<u8>>>),
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Memory(out) => out.borrow_mut().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Memory(_) => Ok(()),
        }
    }
}

/// The two streams and how to write to them.
pub(crate) struct Console {
    pub(crate) out: BufWriter<Out>,
    /// For standard output.
    pub(crate) style: Style,
    /// For standard error.
    pub(crate) err_style: Style,
    pub(crate) format: OutputFormat,
    pub(crate) verbosity: Verbosity,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    /// When work with a progress line began.
    begun: Cell<Option<Instant>>,
}

/// Narration of threads that have no console: on a terminal alone.
#[cfg(feature = "remote")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Narration(Option<Style>);

#[cfg(feature = "remote")]
impl Narration {
    pub(crate) const fn is_shown(self) -> bool {
        self.0.is_some()
    }

    /// As [`Console::remark`].
    pub(crate) fn remark(self, text: impl fmt::Display) {
        if let Some(style) = self.0 {
            progress::erase();
            let _ = writeln!(io::stderr(), "{}: {text}", style.cyan("note"));
        }
    }
}

impl Console {
    pub(crate) fn new(data: &Data, format: OutputFormat, color: ColorChoice, verbosity: Verbosity) -> Self {
        let stdout_is_terminal = data.is_terminal();
        let stderr_is_terminal = io::stderr().is_terminal();
        Self {
            out: BufWriter::new(match data {
                Data::Stdout => Out::Stdout(io::stdout().lock()),
                Data::Memory(memory) => Out::Memory(Rc::clone(memory)),
            }),
            style: match format {
                OutputFormat::Text => {
                    let size = stdout_is_terminal.then(|| terminal_size_of(io::stdout())).flatten();
                    Style::choose(color, stdout_is_terminal, size.map(columns))
                }
                OutputFormat::Json => Style::PLAIN,
            },
            err_style: {
                let size = stderr_is_terminal.then(|| terminal_size_of(io::stderr())).flatten();
                Style::choose(color, stderr_is_terminal, size.map(columns))
            },
            format,
            verbosity,
            stdout_is_terminal,
            stderr_is_terminal,
            begun: Cell::new(None),
        }
    }

    /// For threads that have no console.
    #[cfg(feature = "remote")]
    pub(crate) fn narration(&self) -> Narration {
        let is_shown = self.stderr_is_terminal && self.verbosity > Verbosity::Quiet;
        Narration(is_shown.then_some(self.err_style))
    }

    pub(crate) fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    pub(crate) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Whether people look at standard output while it is written.
    pub(crate) fn out_is_terminal(&self) -> bool {
        self.stdout_is_terminal
    }

    /// Narration, unless `--quiet`. A standard error that is closed loses it: there is nowhere left to complain.
    pub(crate) fn note(&self, text: impl fmt::Display) {
        if self.verbosity > Verbosity::Quiet {
            progress::erase();
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Narration with the label `note`, unless `--quiet`.
    pub(crate) fn remark(&self, text: impl fmt::Display) {
        self.note(format_args!("{}: {text}", self.err_style.cyan("note")));
    }

    /// Narration with the label `warning`, unless `--quiet`.
    pub(crate) fn warn(&self, text: impl fmt::Display) {
        self.note(format_args!("{}: {text}", self.err_style.yellow("warning")));
    }

    /// Narration that only `--verbose` shows.
    pub(crate) fn detail(&self, text: impl fmt::Display) {
        if self.is_verbose() {
            self.note(text);
        }
    }

    /// Shows a failure on standard error, whatever the verbosity.
    pub(crate) fn failure(&self, failure: &Failure) {
        progress::erase();
        let _ = io::stderr().write_all(failure.block(self.err_style).as_bytes());
    }

    /// Prints a report as one JSON object.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn report<R: Report>(&mut self, report: &R) -> Result<(), Failure> {
        report::write(&mut self.out, report).map_err(Failure::stdout)
    }

    /// Prints a report with `list` as its field `name`.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn report_with_list<R: Report>(
        &mut self,
        report: &R,
        name: &str,
        list: &report::List,
    ) -> Result<(), Failure> {
        report::write_with_list(&mut self.out, report, name, list).map_err(Failure::stdout)
    }

    /// Prints text through `print` and flushes it.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn text(
        &mut self,
        print: impl FnOnce(&mut BufWriter<Out>, Style) -> io::Result<()>,
    ) -> Result<(), Failure> {
        print(&mut self.out, self.style).and_then(|()| self.out.flush()).map_err(Failure::stdout)
    }

    /// A progress line for work on `total` bytes, shown only on a terminal.
    pub(crate) fn progress(&self, label: &'static str, total: u64) -> Progress {
        Progress::new(label, total, self.begin(), self.err_style)
    }

    /// A line for work whose end is not known at its begin, shown only on a terminal.
    pub(crate) fn busy(&self, label: &'static str) -> Busy {
        Busy::new(label, self.begin(), self.err_style)
    }

    /// Now, if a progress line is wanted.
    fn begin(&self) -> Option<Instant> {
        let enabled = self.stderr_is_terminal && self.verbosity > Verbosity::Quiet && !self.is_json();
        let now = enabled.then(Instant::now);
        self.begun.set(self.begun.get().or(now));
        now
    }

    /// How long the work took since its first progress line: `, in 41 s`, or nothing if it was short or has no line.
    pub(crate) fn took(&self) -> String {
        self.begun.get().map_or_else(String::new, |begun| progress::took(begun.elapsed()))
    }

    /// Narrates that a file was written, and how long the work took.
    pub(crate) fn wrote(&self, text: impl fmt::Display) {
        self.note(format_args!("wrote {text}{}", self.took()));
    }

    /// Narrates how long work took that has no other narration: `compared, in 41 s`.
    pub(crate) fn finished(&self, what: &str) {
        let took = self.took();
        if !took.is_empty() {
            self.note(format_args!("{what}{took}"));
        }
    }
}

fn columns((width, _): (Width, Height)) -> usize {
    width.0.into()
}
