//! `apr size`: what a program of `apr embed` takes, and what each feature adds.

mod measured;

use alloc::rc::Rc;
use std::io::{self, Write};
use std::path::Path;

use apr_container::Compression;
use apr_models::Model as _;
use clap::{Arg, ArgMatches, Command, value_parser};

use self::measured::{Estimate, Measured, Program};
use crate::commands::embed::{self, Format, Signature};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Rules;
use crate::known::Known;
use crate::report::json::JsonWriter;
use crate::secrets::Keys;
use crate::terminal::escape;
use crate::terminal::human::{grouped, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::{Console, Out};

pub(crate) fn command() -> Command {
    Command::new("size")
        .about("Say what a program with a model inside takes, and what each feature adds")
        .arg(
            Arg::new("input")
                .value_name("MODEL")
                .value_parser(value_parser!(std::path::PathBuf))
                .help("A model as `apr embed` takes it: what its own program would take"),
        )
        .after_help(
            "The numbers are measured: bytes of programs of `apr embed`, stripped, with its release profile, by the compiler that is \
             named, without the file of the model. A program is that and the file. With MODEL they are added up, or those of \
             the program most like it: an estimate, which another compiler misses by more. `cargo xtask embed size` measures \
             again.\n\n\
             Examples:\n  apr size\n  apr size model.apr --json\n\n\
             Exit codes: 0 said, 2 it predicts nothing, 3 not sound, 4 damaged, 5 I/O, 6 another format, or encrypted.",
        )
}

/// Runs `apr size`.
///
/// # Errors
///
/// If there is a model and no program can be written around it.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let measured = Measured::new();
    match matches.get_one::<std::path::PathBuf>("input") {
        Some(path) => of_model(path, &measured, console)?,
        None => all(&measured, console)?,
    }
    Ok(Exit::Success)
}

/// What was measured.
fn all(measured: &Measured<'_>, console: &mut Console) -> Result<(), Failure> {
    let features = measured.features();
    if console.is_json() {
        return console.json("apr.size/1", |json| {
            head(measured, json)?;
            json.key("programs")?;
            json.array()?;
            for row in &measured.rows {
                json.object()?;
                write_program(row.program, json)?;
                write_bytes(measured, &row.bytes, json)?;
                json.end_object()?;
            }
            json.end_array()?;
            json.key("features")?;
            json.array()?;
            for feature in &features {
                json.object()?;
                json.field_str("feature", feature.name)?;
                json.key("bytes")?;
                json.object()?;
                for (target, &bytes) in measured.targets.iter().zip(&feature.bytes) {
                    json.key(target)?;
                    json.int(bytes)?;
                }
                json.end_object()?;
                json.end_object()?;
            }
            json.end_array()
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
    embed::refuse_sealed(path)?;
    let known = Known::load(path, &Rules::STRICT.with_unchecked_signatures(), &Rc::new(Keys::default()))
        .map_err(embed::not_encrypted)?;
    embed::check_predicts(&known)?;
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
        return console.json("apr.size/1", |json| {
            json.field_str("file", &path.to_string_lossy())?;
            json.field_str("model", model)?;
            json.field_uint("model_bytes", len)?;
            head(measured, json)?;
            json.key("estimates")?;
            json.array()?;
            for (program, estimate) in &estimates {
                json.object()?;
                write_program(*program, json)?;
                json.key("like")?;
                json.object()?;
                write_program(estimate.like, json)?;
                json.end_object()?;
                json.field_strings("with", estimate.with.iter().copied())?;
                write_bytes(measured, &estimate.bytes, json)?;
                json.end_object()?;
            }
            json.end_array()
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

/// The library that a target links: `gnu`, `musl`.
fn short(target: &str) -> &str {
    target.rsplit('-').next().unwrap_or(target)
}

fn print(measured: &Measured<'_>, what: &str, table: &Table, console: &mut Console) -> Result<(), Failure> {
    console.text(|out, style| {
        writeln!(out, "Programs of `apr embed`, {what}.")?;
        writeln!(
            out,
            "Bytes, stripped, by {}, for {}:\n",
            measured.compiler,
            measured.targets.join(" and ")
        )?;
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

type Json<'j> = JsonWriter<&'j mut io::BufWriter<Out>>;

fn head(measured: &Measured<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.field_str("compiler", measured.compiler)?;
    json.field_strings("targets", measured.targets.iter().copied())
}

fn write_program(program: Program<'_>, json: &mut Json<'_>) -> io::Result<()> {
    json.field_str("model", program.model)?;
    json.field_str("form", program.form)?;
    json.field_bool("verifies_signature", program.signature == "verified")?;
    json.field_bool("serves", program.kind == "service")?;
    json.field_str("optimized_for", program.optimized)
}

fn write_bytes(measured: &Measured<'_>, bytes: &[u64], json: &mut Json<'_>) -> io::Result<()> {
    json.key("bytes")?;
    json.object()?;
    for (target, &bytes) in measured.targets.iter().zip(bytes) {
        json.field_uint(target, bytes)?;
    }
    json.end_object()
}
