//! `apr train`: a model from a table or from texts, saved with what is known about its training.

mod algorithms;
mod data;
mod network;
mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use apr_container::{Map, Metadata, SaveOptions, Training, Value, to_vec};
use apr_models::{AnyModel, CLASSES_KEY, Model as _};
use clap::{Arg, ArgMatches, Command, value_parser};

use self::algorithms::{ALGORITHMS, Algorithm};
use self::data::{Data, Needs};
use crate::commands::convert::{compression, compression_arg, remark_on_size};
use crate::csv::{self, Dialect, Input};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Format;
use crate::known;
use crate::output::ending::Ending;
use crate::output::{self, Destination, Run};
use crate::terminal::Console;

pub(crate) fn command() -> Command {
    Command::new("train")
        .about("Train a small model on a table or on texts, and save it as an .apr file")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand_value_name("ALGORITHM")
        .subcommand_help_heading("Algorithms")
        .subcommands(ALGORITHMS.iter().map(describe))
        .after_help(
            "`apr train ALGORITHM --help` has the settings of each. Metadata of the file are the settings, the names of \
             features and classes, the number of samples, and how well the model does on them. The same data, \
             settings and seed give the same model on every machine; with SOURCE_DATE_EPOCH, the same file.\n\n\
             Examples:\n  apr train linear-regression --data table.csv --target price -o price.apr\n  \
             apr train kmeans --data rows.csv --clusters 2 --seed 7 -o groups.apr --compression zstd\n\n\
             Exit codes: 0 trained, 2 OUT exists or a setting cannot be, 3 the table is not sound, 5 I/O.",
        )
}

fn describe(algorithm: &Algorithm) -> Command {
    let command = Command::new(algorithm.name).about(algorithm.about).args(common_args());
    let command = match algorithm.needs {
        Needs::Texts => command.arg(column_arg()),
        Needs::Samples => command.args(table_args()),
        Needs::Numbers | Needs::Classes | Needs::Either => command.arg(target_arg()).args(table_args()),
    };
    command.args((algorithm.args)()).after_help(algorithm.notes)
}

fn common_args() -> Vec<Arg> {
    let path = |name: &'static str, value: &'static str, help: &'static str| {
        let arg = Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf));
        arg.required(true).help(help)
    };
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let mut args = vec![
        path(
            "data",
            "TABLE",
            "A file of comma-separated values, or of lines for texts; `-` for standard input",
        ),
        path("output", "OUT", "The new .apr file, or `-` for standard output").short('o'),
        text("name", "NAME", "Name of the model, for its metadata"),
        text("description", "TEXT", "What the model is for, for its metadata"),
        compression_arg(),
        output::force_arg(),
        output::dry_run_arg(),
    ];
    args.extend(csv::args());
    args
}

fn target_arg() -> Arg {
    Arg::new("target")
        .long("target")
        .value_name("COLUMN")
        .required(true)
        .help("The column to learn, by name or by number from 1")
}

fn column_arg() -> Arg {
    Arg::new("column")
        .long("column")
        .value_name("COLUMN")
        .help("TABLE is a table, and the texts stand in this column")
}

fn table_args() -> [Arg; 1] {
    [Arg::new("drop")
        .long("drop")
        .value_name("COLUMN")
        .action(clap::ArgAction::Append)
        .help("Leave a column out, such as a row number (repeatable)")]
}

/// What training gives.
pub(crate) struct Trained {
    model: AnyModel,
    hyperparameters: Map<Value>,
    metrics: Map<Value>,
}

/// Runs `apr train`.
///
/// # Errors
///
/// If the data cannot be read or learned from, or the model cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (name, matches) = matches.subcommand().expect("clap requires ALGORITHM");
    let algorithm = ALGORITHMS.iter().find(|algorithm| algorithm.name == name);
    let algorithm = algorithm.ok_or_else(|| Failure::new(CODE_USAGE, "no algorithm is given"))?;
    let path = |id| matches.get_one::<PathBuf>(id).expect("clap requires it");
    let (source, destination) = (path("data"), Destination::new(path("output")));
    let (overwrite, run) = (output::overwrite(matches), output::run_mode(matches));
    destination.check(overwrite, run, console)?;
    Ending::check_output(&destination, Format::AprV1)?;

    let busy = console.busy("training");
    let data = Data::read(Input::open(source)?, Dialect::from_matches(matches)?, algorithm.needs, matches)?;
    let begun = Instant::now();
    let trained = (algorithm.train)(matches, &data).map_err(|failure| match failure.code() {
        // Of a model in a file the parts are at fault, here it can only be the settings.
        "am-part" | "am-part-length" => Failure::new(CODE_USAGE, failure.what()),
        _ => failure.in_file(source),
    })?;
    let time = begun.elapsed();
    drop(busy);

    let mut metadata = metadata(&trained, &data, source);
    // A file that has to come out the same says nothing of how long it took.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none()
        && let Some(training) = &mut metadata.training
    {
        training.duration_ms = u64::try_from(time.as_millis()).ok();
    }
    let text = |name| matches.get_one::<String>(name).cloned();
    (metadata.model_name, metadata.description) = (text("name"), text("description"));
    let compression = compression(matches).unwrap_or_default();
    let options = SaveOptions { compression, metadata, ..SaveOptions::default() };
    let bytes = to_vec(&trained.model, trained.model.model_type(), &options)?;
    remark_on_size(&bytes, console);
    if run == Run::Write {
        destination.fill(overwrite, |out| {
            std::io::Write::write_all(out, &bytes).map_err(|error| destination.write_failure(&error))
        })?;
    }
    let report = report::Report {
        algorithm: algorithm.name,
        source,
        destination: &destination,
        run,
        data: &data,
        trained: &trained,
        time,
        bytes: bytes.len() as u64,
        compression,
    };
    report.print(console)?;
    Ok(Exit::Success)
}

fn metadata(trained: &Trained, data: &Data, source: &Path) -> Metadata {
    let name = source.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut metadata = Metadata {
        training: Some(Training {
            samples: Some(data.n_samples() as u64),
            source: name.filter(|name| name != "-"),
            ..Training::default()
        }),
        hyperparameters: trained.hyperparameters.clone(),
        metrics: trained.metrics.clone(),
        ..Metadata::default()
    };
    let mut custom = |key: &str, value: Option<Value>| {
        metadata.custom.extend(value.map(|value| (key.to_owned(), value)));
    };
    custom(known::FEATURES, data.features().map(known::names));
    custom(known::TARGET, data.target_name().map(Value::from));
    custom(CLASSES_KEY, data.class_names().map(known::names));
    metadata
}
