//! The tables, as text and as JSON.

use alloc::borrow::Cow;
use core::time::Duration;
use std::io::Write as _;
use std::path::Path;

use serde::Serialize;

use super::arrays::{Arrays, Data};
use super::formats::Format;
use super::measure::Row;
use super::memory::Peaks;
use crate::error::Failure;
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape::Visible;
use crate::terminal::human::{self, grouped};
use crate::terminal::table::{Align, Table};

/// What was measured, and on what.
#[derive(Debug, Serialize)]
pub(super) struct BenchReport<'a> {
    pub(super) machine: Machine,
    model: Option<Cow<'a, str>>,
    data: Option<&'static str>,
    seconds: f64,
    pub(super) sets: Vec<Set>,
}

/// Where it was measured.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    version: &'static str,
    system: &'static str,
    architecture: &'static str,
    processor: Option<String>,
    cores: usize,
}

/// The formats over one set of arrays.
#[derive(Debug, Serialize)]
pub(super) struct Set {
    arrays: usize,
    values: usize,
    raw_bytes: u64,
    pub(super) formats: Vec<FormatRow>,
}

/// A format. Times are medians in seconds, memory is in bytes.
#[derive(Debug, Serialize)]
pub(super) struct FormatRow {
    pub(super) format: &'static str,
    pub(super) lost: &'static str,
    #[serde(flatten)]
    pub(super) measured: Option<Numbers>,
    /// Why there are no numbers.
    pub(super) failure: Option<String>,
}

/// What a format takes.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Numbers {
    pub(super) bytes: u64,
    rounds: usize,
    pub(super) write_seconds: f64,
    pub(super) read_seconds: f64,
    pub(super) read_one_seconds: f64,
    pub(super) write_memory: Option<u64>,
    pub(super) read_memory: Option<u64>,
}

impl Report for BenchReport<'_> {
    const SCHEMA: &'static str = "apr.bench-formats/1";
}

impl Machine {
    fn this() -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            version: env!("CARGO_PKG_VERSION"),
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
            processor: model.map(|(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, Into::into),
        }
    }

    /// In one line.
    pub(super) fn line(&self) -> String {
        let Self { version, system, architecture, processor, cores } = self;
        let processor = processor.as_deref().unwrap_or(architecture);
        format!("apr {version}, {system}, {processor}, {}", human::plural(*cores as u64, "core"))
    }
}

impl Set {
    pub(super) fn new(
        arrays: &Arrays,
        rows: Vec<(&Format, Row)>,
        memory: impl Fn(&Format) -> Option<Peaks>,
    ) -> Self {
        let row = |(format, row): (&Format, Row)| {
            let (measured, failure) = match row {
                Ok(measured) => {
                    let peaks = memory(format);
                    let numbers = Numbers {
                        bytes: measured.bytes,
                        rounds: measured.rounds,
                        write_seconds: measured.write,
                        read_seconds: measured.read,
                        read_one_seconds: measured.read_one,
                        write_memory: peaks.map(|peaks| peaks.write),
                        read_memory: peaks.map(|peaks| peaks.read),
                    };
                    (Some(numbers), None)
                }
                Err(why) => (None, Some(why)),
            };
            FormatRow { format: format.name, lost: format.lost, measured, failure }
        };
        Self {
            arrays: arrays.arrays.len(),
            values: arrays.n_values(),
            raw_bytes: arrays.raw_len(),
            formats: rows.into_iter().map(row).collect(),
        }
    }

    pub(super) fn title(&self) -> String {
        let Self { arrays, values, raw_bytes, .. } = self;
        let arrays = human::plural(*arrays as u64, "array");
        format!("{} values in {arrays}, {}", grouped(*values as u64), human::bytes(*raw_bytes))
    }

    /// The cells of a row, or why there are none.
    pub(super) fn cells(&self, row: &FormatRow) -> Result<[String; 7], String> {
        let Some(numbers) = &row.measured else { return Err(row.failure.clone().unwrap_or_default()) };
        let time = |seconds: f64| human::duration(Duration::from_secs_f64(seconds));
        let memory = |bytes: Option<u64>| bytes.map_or("-".to_owned(), human::bytes);
        Ok([
            grouped(numbers.bytes),
            format!("{:.2}", numbers.bytes as f64 / self.raw_bytes as f64),
            time(numbers.write_seconds),
            time(numbers.read_seconds),
            time(numbers.read_one_seconds),
            memory(numbers.write_memory),
            memory(numbers.read_memory),
        ])
    }
}

/// The columns, the name of the format first.
pub(super) const COLUMNS: [&str; 8] =
    ["format", "bytes", "of raw", "write", "read", "read one", "memory: write", "read"];

impl<'a> BenchReport<'a> {
    pub(super) fn new(model: Option<&'a Path>, data: Data, seconds: f64, sets: Vec<Set>) -> Self {
        let data = model.is_none().then(|| data.name());
        Self { machine: Machine::this(), model: model.map(report::path), data, seconds, sets }
    }

    /// What the arrays are.
    pub(super) fn subject(&self) -> String {
        match (&self.model, self.data) {
            (Some(path), _) => format!("tensors of {}", Visible(path)),
            (None, data) => format!("generated arrays ({})", data.unwrap_or_default()),
        }
    }

    pub(super) fn print(&self, console: &mut Console) -> Result<(), Failure> {
        if console.is_json() {
            return console.report(self);
        }
        console.text(|out, style| {
            writeln!(out, "{}; {}", self.subject(), self.machine.line())?;
            for set in &self.sets {
                writeln!(out, "\n{}", style.bold(&set.title()))?;
                let mut table = Table::new(&[[Align::Left].as_slice(), &[Align::Right; 7]].concat());
                table.row(COLUMNS);
                let mut without = Vec::new();
                for row in &set.formats {
                    match set.cells(row) {
                        Ok(cells) => table.row([row.format.to_owned()].into_iter().chain(cells)),
                        Err(why) => without.push(format!("{}: {}", row.format, Visible(&why))),
                    }
                }
                table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
                without.iter().try_for_each(|line| writeln!(out, "{line}"))?;
            }
            writeln!(out, "\nLost:")?;
            let rows = self.sets.first().map_or(&[][..], |set| &set.formats);
            let mut table = Table::new(&[Align::Left, Align::Left]);
            rows.iter().for_each(|row| table.indented_row("  ", [row.format, row.lost]));
            table.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))
        })
    }
}
