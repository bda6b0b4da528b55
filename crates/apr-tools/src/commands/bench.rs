//! `apr bench`: what formats cost, measured on this machine.

mod arrays;
mod formats;
mod measure;
mod memory;
mod page;
mod process;
mod report;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use durable_file::StagedDir;

use self::arrays::{Arrays, Data};
use self::formats::{FORMATS, Format};
use self::measure::Rounds;
use self::process::Part;
use self::report::{BenchReport, Set};
use crate::args::CompatArg;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::output::{Destination, Overwrite, Run};
use crate::terminal::Console;

const AFTER_HELP: &str = "Examples:\n  apr bench formats --values 1e3,1e4 --seconds 0.02\n  \
    apr bench formats model.safetensors --seconds 0.1\n\n\
    Exit codes: 0 success, 2 usage, 3 invalid file, 5 I/O.";

const FORMATS_HELP: &str = "Each format writes the same arrays to a file and reads them back, all in turn, round by round; what is read is \
    compared bit for bit. Times are medians over nine processes of the medians over their rounds; in Python, and of a model that is no file, over the rounds of one process. Nothing is flushed to the disk: files are read from the page cache, so that \
    formats are compared and not disks. Memory is that of a process of its own, beyond the arrays.\n\n\
    Examples:\n  apr bench formats --values 1e3,1e4 --seconds 0.02\n  apr bench formats model.safetensors --seconds 0.1 --html formats.html\n\n\
    Exit codes: 0 success, 2 usage, 3 invalid file, 5 I/O.";

/// Most values of a set: its arrays, and what a format makes of them, are in memory.
const MAX_VALUES: f64 = 1e9;

/// Rounds where no other process can be run, and of one of several processes.
const ALONE: Rounds = Rounds { fewest: 3, most: 1001 };
const ONE_OF_SEVERAL: Rounds = Rounds { fewest: 1, most: 201 };

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, clap::Subcommand)]
enum BenchCommand {
    Formats(FormatsArgs),
}

/// Compare file formats: size, time to write, to read and to read one of many arrays, memory, and what is lost.
#[derive(Debug, clap::Args)]
#[command(after_help = FORMATS_HELP)]
struct FormatsArgs {
    /// A model whose tensors of floats are the arrays, as 32-bit floats; without it, generated arrays.
    #[arg(value_name = "MODEL")]
    model: Option<PathBuf>,
    /// Values of each generated set, in 10 arrays.
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', value_parser = n_values, conflicts_with = "model",
        default_values = ["1e3", "1e4", "1e5", "1e6"])]
    values: Vec<usize>,
    /// What generated arrays hold.
    #[arg(long, value_enum, default_value_t = Data::Normal, conflicts_with = "model")]
    data: Data,
    /// Only these formats, by the names in the table.
    #[arg(long, value_name = "NAME,NAME,...", value_delimiter = ',', value_parser = known_format)]
    only: Vec<&'static Format>,
    /// Time for each format and set. Each process runs a round in any case.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    seconds: f64,
    /// Write the tables as a page, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    compat: CompatArg,
    /// Measure and print only this, as a process of its own.
    #[arg(long, value_enum, hide = true)]
    part: Option<Part>,
}

fn n_values(text: &str) -> Result<usize, String> {
    match text.parse::<f64>() {
        Ok(number) if (10.0..=MAX_VALUES).contains(&number) && number.fract() == 0.0 => Ok(number as usize),
        _ => Err("a whole number from 10 to 1e9, such as 1e5".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|seconds| (0.0..=3600.0).contains(seconds))
        .ok_or_else(|| "from 0 to 3600".to_owned())
}

fn known_format(name: &str) -> Result<&'static Format, String> {
    FORMATS.iter().find(|format| format.name == name).ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Runs `apr bench`.
///
/// # Errors
///
/// If the model cannot be read, or files for the measurement cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let BenchCommand::Formats(args) = &args.command;
    let all: Vec<&Format> = FORMATS.iter().collect();
    let formats = if args.only.is_empty() { &all } else { &args.only };
    let page = args.html.as_deref().map(Destination::new);
    if let Some(page) = &page {
        page.check(Overwrite::Refuse, Run::Write, console)?;
    }
    let name = format!("apr-bench-{}", std::process::id());
    let folder = StagedDir::create(&std::env::temp_dir().join(name))?;
    if let Some(part) = args.part {
        for arrays in args.arrays() {
            args.print(part, formats, arrays?, folder.path(), console)?;
        }
        return Ok(Exit::Success);
    }
    let mut sets = Vec::new();
    for arrays in args.arrays() {
        let arrays = arrays?;
        if arrays.is_empty() {
            let failure = Failure::new(CODE_USAGE, "the model has no tensors of floats");
            return Err(failure.in_file(args.model.as_deref().unwrap_or(folder.path())));
        }
        let busy = console.busy("measuring");
        let rows = match process::times(formats, &arrays, args) {
            Some(rows) => rows,
            None => measure::measure(formats, &arrays, folder.path(), args.seconds, ALONE)?,
        };
        let rows = formats.iter().copied().zip(rows).collect();
        sets.push(Set::new(&arrays, rows, |format| process::memory(format, &arrays, args)));
        drop(busy);
    }
    let report = BenchReport::new(args.model.as_deref(), args.data, args.seconds, sets);
    report.print(console)?;
    if let Some(page) = &page {
        page::write(&report, page, console)?;
    }
    Ok(Exit::Success)
}

impl FormatsArgs {
    /// The sets of arrays, made one after the other.
    fn arrays(&self) -> impl Iterator<Item = Result<Arrays, Failure>> {
        let of_model = self.model.iter().map(|path| Arrays::of_model(path, &self.compat.rules()));
        let values = if self.model.is_some() { &[] } else { self.values.as_slice() };
        of_model.chain(values.iter().map(|&n_values| Ok(Arrays::generate(n_values, self.data))))
    }

    /// Measures a part and prints it for the process that asked.
    fn print(
        &self,
        part: Part,
        formats: &[&'static Format],
        arrays: Arrays,
        folder: &Path,
        console: &mut Console,
    ) -> Result<(), Failure> {
        match (part, formats) {
            (Part::Memory, [format, ..]) => memory::print(format, arrays, folder, console),
            (Part::Memory, []) => Ok(()),
            (Part::Times, _) => {
                let rows = measure::measure(formats, &arrays, folder, self.seconds, ONE_OF_SEVERAL)?;
                let rows = serde_json::to_string(&rows).unwrap_or_default();
                console.text(|out, _| writeln!(out, "{rows}"))
            }
        }
    }
}
