//! Parts of a measurement in processes of their own.
//!
//! How long a copy takes depends on the pages that a process gets: over ten processes medians differ by some 10 %, and the rounds of one
//! process do not show it.

use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

use super::FormatsArgs;
use super::arrays::Arrays;
use super::formats::Format;
use super::measure::{self, Row};
use super::memory::{self, Peaks};

/// Processes over which times are medians.
pub(super) const PROCESSES: usize = 9;

/// What a process of its own measures.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum Part {
    Memory,
    Times,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Times => "times",
        }
    }
}

/// The times of the formats. `None` where there are no such processes, or one of them fails.
pub(super) fn times(formats: &[&Format], arrays: &Arrays, args: &FormatsArgs) -> Option<Vec<Row>> {
    let seconds = args.seconds / PROCESSES as f64;
    let run = |_| run(Part::Times, formats, arrays, args, seconds);
    let processes: Option<Vec<Vec<Row>>> = (0..PROCESSES).map(run).collect();
    measure::join(&processes?, formats.len())
}

/// The memory of a format. `None` also for small sets, and where the system does not say.
pub(super) fn memory(format: &Format, arrays: &Arrays, args: &FormatsArgs) -> Option<Peaks> {
    let tells = cfg!(target_os = "linux") && arrays.n_values() >= memory::FEWEST_VALUES;
    tells.then(|| run(Part::Memory, &[format], arrays, args, 0.0))?
}

/// What a process prints. `None` inside another program, such as Python's, and for a model that is no file.
fn run<T: DeserializeOwned>(
    part: Part,
    formats: &[&Format],
    arrays: &Arrays,
    args: &FormatsArgs,
    seconds: f64,
) -> Option<T> {
    let program = std::env::current_exe().ok()?;
    let is_apr = program.file_stem().is_some_and(|stem| stem == "apr");
    // A file can be opened once more.
    let is_file = args.model.as_ref().is_none_or(|path| path.is_file());
    if !is_apr || !is_file {
        return None;
    }
    let only: Vec<&str> = formats.iter().map(|format| format.name).collect();
    let mut command = Command::new(program);
    command.args(["bench", "formats", "--part", part.name(), "--only", &only.join(",")]);
    command.args(["--seconds", &seconds.to_string()]);
    command.args(args.compat.is_given().then_some("--compat"));
    match &args.model {
        Some(path) => command.arg("--").arg(path),
        None => command.args(["--data", args.data.name(), "--values", &arrays.n_values().to_string()]),
    };
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    serde_json::from_slice(&output.stdout).ok()
}
