//! Where a command may speak: data on standard output, narration on standard error.

use alloc::rc::Rc;
use core::cell::RefCell;
use core::fmt;
use std::env;
use std::ffi::OsStr;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::Instant;

use crate::error::Failure;
use crate::render::human;
use crate::render::json::JsonWriter;

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// Colours text, or leaves it as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    enabled: bool,
}

impl Style {
    pub(crate) const PLAIN: Self = Self { enabled: false };

    /// Colour for a stream, given whether it is a terminal. `NO_COLOR`, if set and not empty, and a dumb
    /// terminal turn `auto` off; an explicit choice wins over both.
    fn choose(choice: ColorChoice, is_terminal: bool) -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").as_deref() == Some(OsStr::new("dumb"));
        let enabled = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !set("NO_COLOR") && !dumb,
        };
        Self { enabled }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.enabled { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

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
                OutputFormat::Text => Style::choose(color, stdout_is_terminal),
                OutputFormat::Json => Style::PLAIN,
            },
            err_style: Style::choose(color, stderr_is_terminal),
            format,
            verbosity,
            stdout_is_terminal,
            stderr_is_terminal,
        }
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
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Narration with the label `note`, unless `--quiet`.
    pub(crate) fn remark(&self, text: impl fmt::Display) {
        self.note(format_args!("{}: {text}", self.err_style.cyan("note")));
    }

    /// Narration that only `--verbose` shows.
    pub(crate) fn detail(&self, text: impl fmt::Display) {
        if self.is_verbose() {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Shows a failure on standard error, whatever the verbosity.
    pub(crate) fn failure(&self, failure: &Failure) {
        let _ = io::stderr().write_all(failure.block(self.err_style).as_bytes());
    }

    /// Prints one JSON object of the schema, whose other fields `fill` writes.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(crate) fn json(
        &mut self,
        schema: &str,
        fill: impl FnOnce(&mut JsonWriter<&mut BufWriter<Out>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let mut json = JsonWriter::new(&mut self.out);
        let write = || {
            json.object()?;
            json.field_str("schema", schema)?;
            fill(&mut json)?;
            json.end_object()?;
            json.finish()
        };
        write().map_err(Failure::stdout)
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
        let enabled = self.stderr_is_terminal && self.verbosity > Verbosity::Quiet;
        Progress { label, total, done: 0, begun: Instant::now(), shown: enabled.then(Instant::now) }
    }
}

/// A line on standard error that shows how far the work is; it removes itself when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    label: &'static str,
    total: u64,
    done: u64,
    begun: Instant,
    /// When the line was last drawn; `None` when it is not wanted.
    shown: Option<Instant>,
}

impl Progress {
    /// Sets how many bytes there will be.
    pub(crate) fn expect(&mut self, total: u64) {
        self.total = total;
    }

    /// Counts `len` more bytes as done and redraws at most five times a second.
    pub(crate) fn advance(&mut self, len: usize) {
        self.done = self.done.saturating_add(len as u64);
        let Some(shown) = &mut self.shown else { return };
        if shown.elapsed().as_millis() < 200 {
            return;
        }
        *shown = Instant::now();
        let rate = self.done as f64 / self.begun.elapsed().as_secs_f64().max(1e-6);
        let _ = write!(
            io::stderr(),
            "\r\u{1b}[2K{} {} of {} ({}), {}/s",
            self.label,
            human::bytes(self.done),
            human::bytes(self.total),
            human::percent(self.done, self.total),
            human::bytes(rate as u64)
        );
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\u{1b}[2K");
        }
    }
}
