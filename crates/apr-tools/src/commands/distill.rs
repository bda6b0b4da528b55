//! `apr distill`: trains a small model on the predictions of a larger one.

mod report;
mod rows;
mod student;
mod teacher;

use std::path::PathBuf;

use apr_container::{
    DistillationInfo, DistillationMethod, DistillationParams, Map, Metadata, SaveOptions, Training, Value,
    to_vec,
};
use apr_models::{AnyModel, CLASSES_KEY, FEATURES_KEY, Model as _, TARGET_KEY, held_out};
use clap::ValueEnum;

use self::report::Report;
use self::student::{Student, StudentArgs};
use self::teacher::Teachers;
use crate::args::{CompressionArg, WriteArgs};
use crate::commands::predict::LoadArgs;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::file_digest;
use crate::input::Format;
use crate::output::ending::Ending;
use crate::output::{Output, Run};
use crate::tables::Dialect;
use crate::terminal::Console;
use crate::terminal::human::plural;

const AFTER_HELP: &str = "The student learns from a share of the rows: alpha of its loss is T^2 times the KL divergence from the \
    teacher's probabilities, both at temperature T; the rest is the cross entropy of the labels. Of numbers it learns the mean of \
    prediction and label, weighted by alpha. The other rows compare the teacher, the student, and the same student trained on \
    labels alone: agreement with the teacher, KL divergence, accuracy, log loss, calibration error; of numbers R2 and RMSE.\n\n\
    Several teachers are an ensemble: their weighted mean is what the student learns. The file records the digest of each teacher, the \
    settings, the final loss and the digest of the table; sign it to protect that too.\n\n\
    Examples:\n  apr train random-forest --data classes.csv --target kind -o forest.apr\n  \
    apr distill forest.apr --data classes.csv -o student.apr\n  \
    apr distill forest.apr --data classes.csv --student mlp -o network.apr\n\n\
    Exit codes: 0 success, 2 OUT exists or a setting is not valid, 3 invalid model or table, 4 corrupted, not verified or not \
    decrypted, 5 I/O, 6 another format.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Models that predict classes or a number.
    #[arg(value_name = "TEACHER", required = true)]
    teachers: Vec<PathBuf>,
    /// A table with the features and the labels.
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// The new .apr file, or `-` for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// The column with the labels, by name or by number from 1; otherwise the one that the teacher knows.
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// A table with the features alone, which the teacher labels.
    #[arg(long, value_name = "TABLE")]
    unlabeled: Option<PathBuf>,
    /// Standard: one teacher. Ensemble: several.
    #[arg(long, value_name = "NAME", value_enum)]
    method: Option<MethodArg>,
    /// Weights of the teachers of an ensemble, separated by commas.
    #[arg(long, value_name = "W,W")]
    weights: Option<String>,
    /// Divides the logits of teacher and student.
    #[arg(long, value_name = "T", default_value = "3", value_parser = crate::args::positive)]
    temperature: f64,
    /// Weight of the teacher's predictions; the rest is that of the labels.
    #[arg(long, value_name = "ALPHA", default_value = "0.7", value_parser = crate::args::fraction)]
    alpha: f64,
    /// Share of the rows that the student does not learn from, and is measured on.
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = crate::args::share)]
    test_share: f64,
    /// Seed of the random number generator.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Write the comparison to this file too, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    student: StudentArgs,
    #[command(flatten)]
    compression: CompressionArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    dialect: Dialect,
    #[command(flatten)]
    loading: LoadArgs,
}

/// A value of `--method`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    Standard,
    Ensemble,
}

/// Runs `apr distill`.
///
/// # Errors
///
/// If a teacher cannot be loaded or predicts nothing that can be learned, the table does not fit it, a setting is out of its range, or the
/// student cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let method = method(args)?;
    let weights = args.weights.as_deref().map(|text| weights(text, args.teachers.len())).transpose()?;
    let compression = args.compression.compression().unwrap_or_default();
    let Output { destination, overwrite, run } = args.write.output(&args.output, console)?;
    Ending::check_output(&destination, Format::AprV1)?;
    let report_to = args.report.as_deref().map(|path| args.write.output(path, console)).transpose()?;

    let teachers = Teachers::load(&args.teachers, weights, &args.data, &args.loading, console)?;
    let target = args.target.as_deref().or(teachers.first().target.as_deref());
    let Some(target) = target.map(str::to_owned) else {
        let failure = Failure::new(CODE_USAGE, "the teacher does not know the name of its target");
        return Err(failure.help("name the column with --target"));
    };
    let all = rows::labeled(&args.data, args.dialect, &teachers, &target, console)?;
    let out = held_out(all.n_rows(), all.class_ids().as_deref(), args.test_share, args.seed);
    let (mut learned, tested) = all.divide(&out);
    if tested.n_rows() == 0 || learned.n_rows() == 0 {
        let what = format!(
            "--test-share {} of {} leaves no row on one side",
            args.test_share,
            plural(all.n_rows() as u64, "row")
        );
        return Err(Failure::new(CODE_USAGE, what));
    }
    let n_labeled = learned.n_rows();
    if let Some(path) = &args.unlabeled {
        learned.append(rows::unlabeled(path, args.dialect, &teachers, console)?);
    }

    let busy = console.busy("distilling");
    let lessons = teachers.answer(&learned)?;
    let settings = student::Settings {
        temperature: args.temperature,
        alpha: args.alpha,
        seed: args.seed,
        args: &args.student,
        n_labeled,
    };
    let Student { model, baseline, final_loss, kind, hyperparameters } =
        student::train(&settings, &learned, &lessons)?;
    let report = report::compare(&teachers, &model, &baseline, &tested)?;
    drop(busy);

    let info = DistillationInfo {
        method,
        teacher: teachers.provenance()?,
        params: DistillationParams {
            temperature: args.temperature as f32,
            alpha: args.alpha as f32,
            epochs: hyperparameters
                .get("epochs")
                .and_then(Value::as_u64)
                .and_then(|n| u32::try_from(n).ok())
                .unwrap_or(0),
            final_loss: Some(final_loss as f32),
            ..DistillationParams::default()
        },
        ..DistillationInfo::default()
    };
    let mut metadata = metadata(args, &teachers, &target, learned.n_rows(), info)?;
    metadata.metrics = report.metrics();
    metadata.metrics.insert("final_loss".to_owned(), final_loss);
    metadata.hyperparameters = hyperparameters;
    let options = SaveOptions { compression, metadata, ..SaveOptions::default() };
    let bytes = to_vec(&model, model.model_type(), &options)?;
    if run == Run::Write {
        destination.fill(overwrite, |out| {
            std::io::Write::write_all(out, &bytes).map_err(|error| destination.write_failure(&error))
        })?;
    }
    let report = Report {
        args,
        teachers: &teachers,
        destination: &destination,
        run,
        student: kind,
        target: &target,
        rows: [learned.n_rows(), tested.n_rows()],
        final_loss,
        bytes: bytes.len() as u64,
        compared: &report,
    };
    report.print(report_to.as_ref(), console)?;
    Ok(Exit::Success)
}

fn method(args: &Args) -> Result<DistillationMethod, Failure> {
    let wrong = |what: &str, help: &str| Err(Failure::new(CODE_USAGE, what).help(help));
    match (args.method, args.teachers.len()) {
        (Some(MethodArg::Standard), 2..) => {
            wrong("one teacher is standard, several are an ensemble", "leave --method out")
        }
        (Some(MethodArg::Ensemble) | None, 2..) => Ok(DistillationMethod::Ensemble),
        _ if args.weights.is_some() => {
            wrong("--weights without several teachers", "name all teachers of the ensemble")
        }
        (Some(MethodArg::Ensemble), _) => {
            wrong("an ensemble has several teachers", "name them all before the options")
        }
        _ => Ok(DistillationMethod::Standard),
    }
}

/// Weights that sum to 1.
fn weights(text: &str, n_teachers: usize) -> Result<Vec<f64>, Failure> {
    let weights: Vec<f64> = text.split(',').map_while(|weight| weight.trim().parse().ok()).collect();
    let sum: f64 = weights.iter().sum();
    let is_whole = weights.len() == n_teachers && text.split(',').count() == n_teachers;
    let are_weights = weights.iter().all(|weight| *weight >= 0.0) && sum > 0.0 && sum.is_finite();
    if !(is_whole && are_weights) {
        let what = format!("`--weights {text}` is no list of {n_teachers} weights");
        return Err(Failure::new(CODE_USAGE, what)
            .help("give a number that is not negative for each teacher, such as 2,1"));
    }
    Ok(weights.into_iter().map(|weight| weight / sum).collect())
}

fn metadata(
    args: &Args,
    teachers: &Teachers,
    target: &str,
    n_learned: usize,
    info: DistillationInfo,
) -> Result<Metadata, Failure> {
    let source = args.data.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut metadata = Metadata {
        training: Some(Training { samples: Some(n_learned as u64), source, ..Training::default() }),
        distillation: Some(info.teacher.hash.clone()),
        distillation_info: Some(info),
        ..Metadata::default()
    };
    let names = |names: &[String]| Value::Array(names.iter().map(|name| name.as_str().into()).collect());
    let mut custom: Map<Value> = Map::default();
    if let Some(features) = &teachers.first().features {
        custom.insert(FEATURES_KEY.to_owned(), names(features));
    }
    custom.insert(TARGET_KEY.to_owned(), target);
    if let Some(classes) = teachers.class_names() {
        custom.insert(CLASSES_KEY.to_owned(), names(classes));
    }
    custom.insert("apr.data_sha256".to_owned(), hex(&args.data)?);
    metadata.custom = custom;
    Ok(metadata)
}

/// SHA-256 of a file in hexadecimal digits.
fn hex(path: &std::path::Path) -> Result<String, Failure> {
    let digest = file_digest::sha256(path, |_| ())?;
    Ok(base16ct::lower::encode_string(&digest))
}

/// The elements of all tensors of a model.
fn n_parameters(model: &AnyModel) -> u64 {
    let Ok(tensors) = model.to_tensors() else { return 0 };
    let shapes =
        tensors.names().filter_map(|name| Some(tensors.view(name).ok()?.shape().iter().product::<usize>()));
    shapes.map(|count| count as u64).sum()
}
