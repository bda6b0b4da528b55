//! `apr train`: trains a model on a table or on texts, and saves it with metadata of its training.

mod algorithms;
mod clusters;
mod data;
mod linear;
pub(crate) mod network;
mod preparation;
mod recommender;
mod report;
mod scaling;
mod trees;
mod validation;
mod vectors;
mod weights;

use alloc::rc::Rc;
use std::path::{Path, PathBuf};

use apr_container::{Map, Metadata, SaveOptions, Training, Value, to_vec};
use apr_models::{
    AnyModel, CATEGORIES_KEY, CLASSES_KEY, FEATURES_KEY, Model as _, TARGET_KEY, UNKNOWN_CATEGORY_KEY,
    Workers,
};

pub(crate) use self::algorithms::decimal;
use self::algorithms::{Algorithm, Job};
use self::data::Data;
use crate::args::{CompressionArg, WriteArgs};
use crate::commands::convert::remark_on_size;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Format;
use crate::output::ending::Ending;
use crate::output::{self, Output, Run};
use crate::secrets::KeysArgs;
use crate::tables::{self, Dialect, Input};
use crate::terminal::{Console, escape};
use crate::threads::{Threads, ThreadsArg};

/// In the metadata: name and importance of each feature, the most important first.
const IMPORTANCES_KEY: &str = "feature_importances";

const AFTER_HELP: &str = "`apr train ALGORITHM --help` has the settings of each. Metadata of the file are the settings, the names of \
    features and classes, the number of samples, and how well the model does on them; with --test-share and --folds \
    also on rows that it did not learn from. The same data, \
    settings and seed give the same model on every machine; with SOURCE_DATE_EPOCH, the same file.\n\n\
    Examples:\n  apr train linear-regression --data table.csv --target price -o price.apr\n  \
    apr train kmeans --data rows.csv --clusters 2 --seed 7 -o groups.apr --compression zstd\n\n\
    Exit codes: 0 success, 2 OUT exists or a setting is not valid, 3 invalid table, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
#[command(subcommand_value_name = "ALGORITHM", subcommand_help_heading = "Algorithms")]
pub(crate) struct Args {
    #[command(subcommand)]
    algorithm: Algorithm,
}

/// Arguments of every algorithm.
#[derive(Debug, clap::Args)]
struct CommonArgs {
    #[arg(long, value_name = "TABLE", help = tables::TABLE_OR_LINES)]
    data: PathBuf,
    /// The new .apr file, or `-` for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Name of the model, for its metadata.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What the model is for, for its metadata.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    compression: CompressionArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    dialect: Dialect,
    #[command(flatten)]
    threads: ThreadsArg,
    #[command(flatten)]
    keys: KeysArgs,
}

/// What training gives.
pub(crate) struct Trained {
    model: AnyModel,
    hyperparameters: Map<Value>,
    /// Of the algorithm; those that every model of its kind has are added afterwards.
    metrics: Map<Value>,
    /// How much each feature matters, if the algorithm says so.
    importances: Option<Vec<f64>>,
    /// The features of the algorithm, if they are others than those of the table.
    feature_names: Option<Vec<String>>,
}

impl Trained {
    fn new(model: impl Into<AnyModel>, hyperparameters: Map<Value>) -> Self {
        Self {
            model: model.into(),
            hyperparameters,
            metrics: Map::new(),
            importances: None,
            feature_names: None,
        }
    }

    fn with_metrics(self, metrics: Map<Value>) -> Self {
        Self { metrics, ..self }
    }

    fn with_importances(self, importances: Vec<f64>) -> Self {
        Self { importances: Some(importances), ..self }
    }

    /// Name (or number from 0) and importance of each feature, the most important first.
    fn ranked_importances(&self, features: Option<&[String]>) -> Option<Vec<(Value, f64)>> {
        let features = self.feature_names.as_deref().or(features);
        let name = |idx: usize| features.and_then(|names| names.get(idx)).map(|name| name.as_str().into());
        let named = self.importances.as_ref()?.iter().enumerate();
        let mut ranked: Vec<(Value, f64)> =
            named.map(|(idx, &value)| (name(idx).unwrap_or_else(|| idx.into()), value)).collect();
        ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Some(ranked)
    }
}

/// Runs `apr train`.
///
/// # Errors
///
/// If the data cannot be read or learned from, or the model cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let Job { name, common, columns, preparation, validation, seed, train } = args.algorithm.job();
    let (source, compression) = (&common.data, common.compression.compression().unwrap_or_default());
    output::keep_inputs(&common.output, [&common.data])?;
    let Output { destination, overwrite, run } =
        common.write.output([&common.data], &common.output, console)?;
    Ending::check_output(&destination, Format::AprV1)?;

    let keys = Rc::new(common.keys.load([source.as_path()])?);
    let input = Input::open(source)?.with_keys(&keys)?;
    input.tell_notes(console);
    let busy = console.busy("training");
    let mut data = Data::read(input, &common.dialect, &columns, &preparation)?;
    for name in data.coarse_columns() {
        console.note(format_args!(
            "`{}` has large numbers that differ little, and models learn from 32-bit floats, which round them: subtract an offset first",
            escape::cut(&name, 60)
        ));
    }
    let ignores_unknown = preparation.ignores_unknown();
    let train: algorithms::Training<'_> = Box::new(move |data: &Data, workers: &dyn Workers| {
        preparation.train(data, &|data| train(data, workers))
    });
    let threads = Threads::new(common.threads, busy.parts());
    let (trained, time) =
        validation::train(validation, seed, &mut data, &train, threads).map_err(|failure| {
            match failure.code() {
                // Of a model in a file the parts are at fault, here it can only be the settings.
                "am-part" | "am-part-length" => Failure::new(CODE_USAGE, failure.what()),
                _ => failure.in_file(source),
            }
        })?;
    drop(busy);

    let mut metadata = metadata(&trained, &data, source, ignores_unknown);
    // A file that has to come out the same says nothing of how long it took.
    if std::env::var_os("SOURCE_DATE_EPOCH").is_none()
        && let Some(training) = &mut metadata.training
    {
        training.duration_ms = u64::try_from(time.as_millis()).ok();
    }
    (metadata.model_name, metadata.description) = (common.name.clone(), common.description.clone());
    let options = SaveOptions { compression, metadata, ..SaveOptions::default() };
    let bytes = to_vec(&trained.model, trained.model.model_type(), &options)?;
    remark_on_size(&bytes, console);
    if run == Run::Write {
        destination.fill(overwrite, |out| {
            std::io::Write::write_all(out, &bytes).map_err(|error| destination.write_failure(&error))
        })?;
    }
    let report = report::Report {
        algorithm: name,
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

fn metadata(trained: &Trained, data: &Data, source: &Path, ignores_unknown: bool) -> Metadata {
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
    let names = |names: &[String]| Value::Array(names.iter().map(|name| name.as_str().into()).collect());
    custom(FEATURES_KEY, data.features().map(names));
    custom(TARGET_KEY, data.target_name().map(Value::from));
    custom(CLASSES_KEY, data.class_names().map(names));
    let categories = data.categories().map(|categories| {
        let of_feature = |of: &Option<Vec<String>>| names(of.as_deref().unwrap_or_default());
        Value::Array(categories.iter().map(of_feature).collect())
    });
    let ignored = categories.as_ref().filter(|_| ignores_unknown).map(|_| Value::from("ignore"));
    custom(CATEGORIES_KEY, categories);
    custom(UNKNOWN_CATEGORY_KEY, ignored);
    let pair = |(name, value)| Value::Array(vec![name, decimal(value as f32)]);
    let ranked = trained.ranked_importances(data.features());
    custom(IMPORTANCES_KEY, ranked.map(|ranked| ranked.into_iter().map(pair).collect::<Vec<_>>().into()));
    metadata
}
