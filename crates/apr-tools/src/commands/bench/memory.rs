//! Memory of formats, each in a process of its own: what one has freed would hide what the next one needs.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::arrays::{Arrays, Data};
use super::formats::Format;
use crate::error::{CODE_IO, Failure};
use crate::terminal::Console;

/// Fewest values whose memory is told apart from that of the program itself.
pub(super) const FEWEST_VALUES: usize = 100_000;

/// The most bytes in use beyond those before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Peaks {
    pub(super) write: u64,
    /// With the arrays that are read.
    pub(super) read: u64,
}

/// Measures and prints it.
///
/// # Errors
///
/// If the format cannot be used, or the system does not say how much memory is used.
pub(super) fn print(
    format: &Format,
    arrays: Arrays,
    folder: &Path,
    console: &mut Console,
) -> Result<(), Failure> {
    let path = folder.join(format.name);
    // The program's own code is in memory from here on.
    let few = Arrays::generate(100, Data::Normal);
    (format.write)(&few, &path)?;
    (format.read)(&few, &path)?;
    let unknown = || Failure::new(CODE_IO, "the system does not say how much memory is used");
    let before = restart().ok_or_else(unknown)?;
    (format.write)(&arrays, &path)?;
    let write = peak().ok_or_else(unknown)?.saturating_sub(before);
    let before = restart().ok_or_else(unknown)?;
    let read = (format.read)(&arrays, &path)?;
    let peaks = Peaks { write, read: peak().ok_or_else(unknown)?.saturating_sub(before) };
    drop((read, arrays));
    let peaks = serde_json::to_string(&peaks).unwrap_or_default();
    console.text(|out, _| writeln!(out, "{peaks}"))
}

/// Forgets the peak so far: what is in use now, in bytes.
fn restart() -> Option<u64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}
