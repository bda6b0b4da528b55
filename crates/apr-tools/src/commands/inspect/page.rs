//! The text of a report.

use std::io::{self, Write};
use std::path::Path;

use model_file::Warning;

use crate::error::Failure;
use crate::terminal::escape::{self, cut, escaped};
use crate::terminal::human::{self, grouped};
use crate::terminal::table::Table;
use crate::terminal::tree::{self, Extent, Item};
use crate::terminal::{Console, Style};

/// Longest metadata value on a terminal.
pub(super) const VALUE_CHARS: usize = 100;

/// Most entries of a list on a terminal.
const LISTED: usize = 40;

/// The text of a report while it is printed.
pub(super) struct Page<'o> {
    pub(super) out: &'o mut dyn Write,
    pub(super) style: Style,
    /// Whether long lists and values are cut.
    pub(super) shorten: bool,
}

impl Page<'_> {
    /// Prints a report: what the file is, its facts, and what `sections` prints.
    ///
    /// # Errors
    ///
    /// If standard output does not take it.
    pub(super) fn print(
        label: &Path,
        (what, bytes): (&str, u64),
        facts: &Table,
        console: &mut Console,
        sections: impl FnOnce(&mut Page<'_>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let shorten = console.out_is_terminal() && !console.is_verbose();
        console.text(|out, style| {
            let (title, bytes) = (style.bold(&escape::path(label)), human::exact_bytes(bytes));
            writeln!(out, "{title}: {what}, {bytes}\n")?;
            facts.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            sections(&mut Page { out, style, shorten })
        })
    }

    /// Prints a heading below an empty line.
    pub(super) fn heading(&mut self, heading: &str) -> io::Result<()> {
        writeln!(self.out, "\n{}", self.style.bold(heading))
    }

    /// Most entries of a list.
    pub(super) const fn shown(&self) -> usize {
        if self.shorten { LISTED } else { usize::MAX }
    }

    /// Prints how many entries of a list of `len` are left out.
    pub(super) fn more(&mut self, len: usize) -> io::Result<()> {
        match len.saturating_sub(self.shown()) {
            0 => Ok(()),
            hidden => writeln!(self.out, "  ... and {} more (-v shows all)", grouped(hidden as u64)),
        }
    }

    /// Prints a list below its heading.
    pub(super) fn list(
        &mut self,
        heading: &str,
        lines: impl ExactSizeIterator<Item = String>,
    ) -> io::Result<()> {
        self.heading(heading)?;
        let len = lines.len();
        lines.take(self.shown()).try_for_each(|line| writeln!(self.out, "  {line}"))?;
        self.more(len)
    }

    /// Prints entries below their heading: a key as it is in the file, and the text of its value.
    pub(super) fn entries<K: AsRef<str>>(
        &mut self,
        heading: &str,
        entries: impl ExactSizeIterator<Item = (K, String)>,
    ) -> io::Result<()> {
        let style = self.style;
        let line = |(key, value): (K, String)| format!("{}: {value}", style.cyan(&escaped(key.as_ref())));
        self.list(heading, entries.map(line))
    }

    /// Prints the tree of tensors below an empty line, if it is wanted and there are any.
    pub(super) fn tree(&mut self, items: &[Item<'_>], bytes: u64, extent: Option<Extent>) -> io::Result<()> {
        let Some(extent) = extent.filter(|_| !items.is_empty()) else { return Ok(()) };
        writeln!(self.out)?;
        let lines = tree::lines(&tree::build(items), bytes, extent, self.style);
        lines.iter().try_for_each(|line| writeln!(self.out, "{line}"))
    }

    /// Prints the warnings below their heading, if there are any.
    pub(super) fn warnings(&mut self, warnings: &[Warning]) -> io::Result<()> {
        if !warnings.is_empty() {
            self.heading("Warnings")?;
        }
        let mark = self.style.yellow("!");
        for warning in warnings {
            let mut lines = self.style.wrap(&escaped(&warning.message), 4).into_iter();
            writeln!(self.out, "  {mark} {}", lines.next().unwrap_or_default())?;
            lines.try_for_each(|line| writeln!(self.out, "    {line}"))?;
        }
        Ok(())
    }
}

/// A text from the file, cut if lists and values are.
pub(super) fn text_value(text: &str, shorten: bool) -> String {
    if shorten { cut(text, VALUE_CHARS) } else { escaped(text) }
}
