//! `apr size`: the size of a program of `apr embed`, and of each feature.

mod measured;

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use apr_container::Compression;
use apr_models::Model as _;
use serde::Serialize;

use self::measured::{Estimate, Measured, Program};
use crate::commands::embed::{self, Format, Signature};
use crate::error::{CODE_FOREIGN_FORMAT, CODE_USAGE, Exit, Failure};
use crate::input::{Model, Rules};
use crate::report::{self, Fields, Report};
use crate::sealed_file::is_sealed;
use crate::secrets::Keys;
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{grouped, plural};
use crate::terminal::table::{Align, Table};

const AFTER_HELP: &str = "The numbers are measured: bytes of programs of `apr embed`, stripped, with its release profile, by the compiler that is \
    named, without the file of the model. A program is that and the file. With MODEL they are added up, or those of \
    the program most like it: an estimate, which another compiler misses by more. `cargo xtask embed size` measures \
    again.\n\n\
    Examples:\n  apr size\n  apr size model.apr --json\n\n\
    Exit codes: 0 success, 2 it predicts nothing, 3 invalid file, 4 corrupted, 5 I/O, 6 another format, or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A model as `apr embed` takes it: what its own program would take.
    #[arg(value_name = "MODEL")]
    input: Option<PathBuf>,
}

/// Runs `apr size`.
///
/// # Errors
///
/// If there is a model and no program can be written around it.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let measured = Measured::new();
    match &args.input {
        Some(path) => of_model(path, &measured, console)?,
        None => all(&measured, console)?,
    }
    Ok(Exit::Success)
}

/// What was measured.
fn all(measured: &Measured<'_>, console: &mut Console) -> Result<(), Failure> {
    let features = measured.features();
    if console.is_json() {
        let programs = measured
            .rows
            .iter()
            .map(|row| ProgramSize { program: row.program.into(), bytes: by_target(measured, &row.bytes) });
        let features = features
            .iter()
            .map(|feature| FeatureSize { feature: feature.name, bytes: by_target(measured, &feature.bytes) });
        return console.report(&SizeReport {
            compiler: measured.compiler,
            targets: &measured.targets,
            programs: programs.collect(),
            features: features.collect(),
        });
    }
    let mut table = table(measured, "PROGRAM");
    let whole =
        |bytes: &[u64]| bytes.iter().flat_map(|&bytes| cells(bytes.cast_signed(), "")).collect::<Vec<_>>();
    let row = |name: String, cells: Vec<String>| [vec![name], cells].concat();
    if let Some(nothing) = measured.nothing() {
        table.row(row("that does nothing".to_owned(), whole(&nothing.bytes)));
    }
    for model in measured.models() {
        table.row(row(model.program.model.to_owned(), whole(&model.bytes)));
    }
    if let Some(service) = measured.service() {
        table.row(row("any model as a service (--serve)".to_owned(), whole(&service.bytes)));
    }
    table.row([""]);
    table.row(["FEATURE"]);
    for feature in &features {
        let adds = feature.bytes.iter().flat_map(|&bytes| cells(bytes, if bytes < 0 { "" } else { "+" }));
        table.row(row(title(feature.name).to_owned(), adds.collect()));
    }
    print(measured, "without the model's file", &table, console)
}

/// What a model's own program would take.
fn of_model(path: &Path, measured: &Measured<'_>, console: &mut Console) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "the model must be a file"));
    }
    if is_sealed(path) {
        return Err(Failure::new(
            CODE_FOREIGN_FORMAT,
            "the size of a program around a sealed file is not estimated",
        )
        .in_file(path)
        .help("`apr open` it, and name what was inside"));
    }
    let rules = Rules::STRICT.with_unchecked_signatures();
    let opened = Model::open_content(path, &rules, &Rc::new(Keys::default()));
    let known = opened.and_then(Model::named).map_err(embed::not_encrypted)?;
    embed::check_predicts(&known).map_err(|failure| failure.in_file(path))?;
    let file = embed::ModelFile::read(path, &known, None)?;
    let (form, is_signed) = match &file.format {
        Format::First { compression, signature } => {
            let form = match *compression {
                Compression::None => "stored",
                Compression::LZ4 => "lz4",
                _ => "zstd",
            };
            (form, !matches!(signature, Signature::None))
        }
        Format::Tensors { reader: "from_apr2" } => ("apr2", false),
        Format::Tensors { .. } => ("safetensors", false),
    };
    let (model, len) = (known.model.name(), file.bytes.len() as u64);
    let lines = Program { form, ..Program::plain(model) };
    let mut programs = vec![lines, Program { optimized: "speed", ..lines }];
    // Services are written around .apr files without a signature.
    if is_signed {
        programs.insert(1, Program { signature: "verified", ..lines });
    } else if form != "safetensors" {
        programs.push(Program { kind: "service", ..lines });
    }
    let estimates: Vec<_> = programs
        .into_iter()
        .filter_map(|program| {
            let mut estimate = measured.estimate(program)?;
            estimate.bytes.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(len));
            Some((program, estimate))
        })
        .collect();
    if console.is_json() {
        let estimates = estimates.iter().map(|(program, estimate)| EstimatedSize {
            program: (*program).into(),
            like: estimate.like.into(),
            with: &estimate.with,
            bytes: by_target(measured, &estimate.bytes),
        });
        return console.report(&EstimateReport {
            file: report::path(path),
            model,
            model_bytes: len,
            compiler: measured.compiler,
            targets: &measured.targets,
            estimates: estimates.collect(),
        });
    }
    let mut table = table(measured, "PROGRAM");
    for (program, estimate) in &estimates {
        let sizes = estimate.bytes.iter().flat_map(|&bytes| cells(bytes.cast_signed(), ""));
        let name = match program {
            Program { kind: "service", .. } => "service (--serve)",
            Program { signature: "verified", .. } => title("signer"),
            Program { optimized: "speed", .. } => title("speed"),
            _ => "lines of input and output",
        };
        let from = source(*program, estimate);
        table.row([vec![name.to_owned()], sizes.collect(), vec![from]].concat());
    }
    let what = format!(
        "estimated around {}, a {model} of {}, which is part of each",
        escape::path(path),
        plural(len, "byte")
    );
    print(measured, &what, &table, console)
}

/// How an estimate came about.
fn source(program: Program<'_>, estimate: &Estimate<'_>) -> String {
    let mut text = if program.kind != "service" && estimate.like.model != program.model {
        format!("like {}", estimate.like.model)
    } else {
        String::new()
    };
    for feature in &estimate.with {
        text.extend([if text.is_empty() { "with " } else { ", with " }, feature]);
    }
    text
}

/// What a feature is, with the option that brings it.
fn title(feature: &str) -> &str {
    match feature {
        "lz4" => "a payload in lz4",
        "zstd" => "a payload in zstd",
        "signer" => "verifies its signature (--signer)",
        "safetensors" => "tensors in a .safetensors file",
        "apr2" => "tensors in an .apr file",
        "speed" => "for speed (--opt speed)",
        other => other,
    }
}

/// Bytes, and KiB.
fn cells(bytes: i64, sign: &str) -> [String; 2] {
    let minus = if bytes < 0 { "-" } else { sign };
    let size = bytes.unsigned_abs();
    [format!("{minus}{}", grouped(size)), format!("{minus}{}", grouped(size.div_ceil(1024)))]
}

/// A table with two columns for each target.
fn table(measured: &Measured<'_>, first: &str) -> Table {
    let mut aligns = vec![Align::Left];
    aligns.extend(measured.targets.iter().flat_map(|_| [Align::Right, Align::Right]));
    aligns.push(Align::Left);
    let mut table = Table::new(&aligns);
    let targets = measured.targets.iter().flat_map(|target| [short(target).to_uppercase(), "KIB".to_owned()]);
    table.row([vec![first.to_owned()], targets.collect()].concat());
    table
}

/// The library that a target links, `gnu` or `musl`; of other processors than x86-64 their name.
fn short(target: &str) -> &str {
    match target.split_once('-') {
        Some(("x86_64", rest)) => rest.rsplit('-').next().unwrap_or(rest),
        Some((processor, _)) => processor,
        None => target,
    }
}

fn print(measured: &Measured<'_>, what: &str, table: &Table, console: &mut Console) -> Result<(), Failure> {
    console.text(|out, style| {
        writeln!(out, "Programs of `apr embed`, {what}.")?;
        writeln!(out, "Bytes, stripped, by {}, for {}:\n", measured.compiler, measured.targets.join(", "))?;
        for (number, line) in table.lines().iter().enumerate() {
            if number == 0 || line == "FEATURE" {
                writeln!(out, "{}", style.bold(line))?;
            } else {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    })
}

/// What was measured.
#[derive(Serialize)]
struct SizeReport<'a> {
    compiler: &'a str,
    targets: &'a [&'a str],
    programs: Vec<ProgramSize<'a>>,
    features: Vec<FeatureSize<'a>>,
}

impl Report for SizeReport<'_> {
    const SCHEMA: &'static str = "apr.size/1";
}

/// What a model's own program would take.
#[derive(Serialize)]
struct EstimateReport<'a> {
    file: Cow<'a, str>,
    model: &'a str,
    model_bytes: u64,
    compiler: &'a str,
    targets: &'a [&'a str],
    estimates: Vec<EstimatedSize<'a>>,
}

impl Report for EstimateReport<'_> {
    const SCHEMA: &'static str = "apr.size/1";
}

#[derive(Serialize)]
struct ProgramFields<'a> {
    model: &'a str,
    form: &'a str,
    verifies_signature: bool,
    serves: bool,
    optimized_for: &'a str,
}

impl<'a> From<Program<'a>> for ProgramFields<'a> {
    fn from(program: Program<'a>) -> Self {
        Self {
            model: program.model,
            form: program.form,
            verifies_signature: program.signature == "verified",
            serves: program.kind == "service",
            optimized_for: program.optimized,
        }
    }
}

/// Bytes for each target.
type ByTarget<'a, N> = Fields<&'a str, N>;

fn by_target<'a, N: Copy>(measured: &Measured<'a>, bytes: &[N]) -> ByTarget<'a, N> {
    Fields(measured.targets.iter().copied().zip(bytes.iter().copied()).collect())
}

#[derive(Serialize)]
struct ProgramSize<'a> {
    #[serde(flatten)]
    program: ProgramFields<'a>,
    bytes: ByTarget<'a, u64>,
}

#[derive(Serialize)]
struct FeatureSize<'a> {
    feature: &'a str,
    bytes: ByTarget<'a, i64>,
}

#[derive(Serialize)]
struct EstimatedSize<'a> {
    #[serde(flatten)]
    program: ProgramFields<'a>,
    like: ProgramFields<'a>,
    with: &'a [&'a str],
    bytes: ByTarget<'a, u64>,
}
