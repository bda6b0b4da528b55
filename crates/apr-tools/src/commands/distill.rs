//! `apr distill`: trains a small model on the predictions of a larger one.

mod compare;
mod lessons;
mod method;
mod network;
mod report;
mod rows;
mod student;
mod teacher;

use std::path::PathBuf;

use apr_container::{
    DistillationInfo, DistillationParams, LayerMapping, Map, Metadata, SaveOptions, Training, Value, to_vec,
};
use apr_models::{
    AnyModel, CATEGORIES_KEY, CLASSES_KEY, FEATURES_KEY, Model as _, TARGET_KEY, UNKNOWN_CATEGORY_KEY,
    held_out, mixed_samples,
};
use model_file::UnknownCategory;

use self::compare::{Students, compare};
use self::method::{Method, MethodArgs};
use self::network::Hints;
use self::report::Report;
use self::rows::Rows;
use self::student::{Kind, Learner, StudentArgs, widths};
use self::teacher::Teachers;
use crate::args::{CompressionArg, WriteArgs};
use crate::commands::predict::LoadArgs;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::file_digest::hex_sha256;
use crate::input::Format;
use crate::output::ending::Ending;
use crate::output::{self, Output, Run};
use crate::tables::Dialect;
use crate::terminal::Console;
use crate::terminal::human::plural;

/// Share of the features of a synthetic row that come from another row.
const MIXED: f64 = 0.2;

const AFTER_HELP: &str = "The student learns from a share of the rows: alpha of its loss is T^2 times the KL divergence from the \
    teacher's probabilities, both at temperature T; the rest is the cross entropy of the labels. Of numbers it learns the mean of \
    prediction and label, weighted by alpha; a tree learns that mean of probabilities too. The other rows compare the teacher, the \
    student, and the same student trained on \
    labels alone: agreement with the teacher, KL divergence, accuracy, log loss, calibration error; of numbers R2 and RMSE.\n\n\
    Several teachers are an ensemble: their weighted mean is what the student learns. Progressive distillation goes through networks of \
    falling width, or first brings hidden layers near those of a teacher that is a network. The file records the digest of each teacher, \
    the settings, the final loss and the digest of the table; sign it to protect that too.\n\n\
    Examples:\n  apr train random-forest --data classes.csv --target kind -o forest.apr\n  \
    apr distill forest.apr --data classes.csv -o student.apr\n  \
    apr distill forest.apr --data classes.csv --student mlp -o network.apr\n  \
    apr distill forest.apr --data classes.csv --student tree --synthesize 5000 -o tree.apr\n\n\
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
    /// Number of synthetic rows, drawn between those of TABLE, which the teacher labels.
    #[arg(long, value_name = "N", default_value = "0", hide_default_value = true)]
    synthesize: usize,
    /// Divides the logits of teacher and student [default: 3, of trees 1].
    #[arg(long, value_name = "T", value_parser = crate::args::positive)]
    temperature: Option<f64>,
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
    method: MethodArgs,
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

impl Args {
    /// The temperature of that kind of student.
    fn temperature(&self, kind: Kind) -> Result<f64, Failure> {
        match (self.temperature, kind) {
            (Some(temperature), Kind::Tree) if temperature != 1.0 => {
                let what = "--temperature is for networks: a tree learns probabilities as they are";
                Err(Failure::new(CODE_USAGE, what).help("leave it out"))
            }
            (given, Kind::Tree) => Ok(given.unwrap_or(1.0)),
            (given, _) => Ok(given.unwrap_or(3.0)),
        }
    }
}

/// Runs `apr distill`.
///
/// # Errors
///
/// If a teacher cannot be loaded or predicts nothing that can be learned, the table does not fit it, a setting is out of its range, or the
/// student cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let method = args.method.method(args.teachers.len())?;
    let compression = args.compression.compression().unwrap_or_default();
    for output in [Some(&args.output), args.report.as_ref()].into_iter().flatten() {
        let inputs = args.teachers.iter().chain([&args.data]).chain(args.unlabeled.as_ref());
        output::keep_inputs(output, inputs)?;
    }
    let Output { destination, overwrite, run } =
        args.write.output(args.teachers.iter().chain([&args.data]), &args.output, console)?;
    Ending::check_output(&destination, Format::AprV1)?;
    let report_to = args.report.as_deref().map(|path| args.write.output([], path, console)).transpose()?;
    if report_to.as_ref().is_some_and(|report| report.destination == destination) {
        let failure = Failure::new(CODE_USAGE, "the model and its report go to the same place");
        return Err(failure.help("give --report and -o different names"));
    }
    if [Some(&args.data), args.unlabeled.as_ref()].into_iter().flatten().any(|path| path.as_os_str() == "-") {
        let failure = Failure::new(CODE_USAGE, "the table is read twice, for its rows and for its digest");
        return Err(failure.help("write it to a file first"));
    }

    let mut teachers = Teachers::load(&args.teachers, &method, &args.data, &args.loading, console)?;
    let plan = Plan::of(args, method, &teachers)?;
    let target = args.target.as_deref().or(teachers.first().target.as_deref());
    let Some(target) = target.map(str::to_owned) else {
        let failure = Failure::new(CODE_USAGE, "the teacher does not know the name of its target");
        return Err(failure.help("name the column with --target"));
    };
    let (learned, n_labeled, tested) = rows(args, &mut teachers, &target, console)?;
    let has_categories = teachers.first().categories.is_some();
    if has_categories && plan.kind != Kind::Tree {
        console.note(format_args!(
            "a {} takes categories as their numbers, an order that they do not have; --student tree splits them",
            plan.kind.name()
        ));
    }

    let busy = console.busy("distilling");
    let trained = plan.train(args, &teachers, &learned, n_labeled)?;
    let Trained { model, baseline, assistants, final_loss } = &trained;
    let students = Students { assistants, student: model, baseline };
    let mut compared = compare(&teachers, &students, &tested, args.seed)?;
    drop(busy);

    let mut metadata =
        metadata(args, &teachers, &target, learned.n_rows(), plan.info(args, &teachers, *final_loss))?;
    metadata.metrics = compared.metrics();
    metadata.metrics.insert("final_loss".to_owned(), *final_loss);
    metadata.hyperparameters = plan.hyperparameters(args);
    let options = SaveOptions { compression, metadata, ..SaveOptions::default() };
    let as_file = |model: &AnyModel| to_vec(model, model.model_type(), &options);
    let bytes = as_file(model)?;
    compared.student.bytes = bytes.len() as u64;
    compared.baseline.bytes = as_file(baseline)?.len() as u64;
    for (measured, assistant) in compared.assistants.iter_mut().zip(assistants) {
        measured.bytes = as_file(assistant)?.len() as u64;
    }
    if run == Run::Write {
        destination.fill(overwrite, |out| {
            std::io::Write::write_all(out, &bytes).map_err(|error| destination.write_failure(&error))
        })?;
    }
    let report = Report {
        args,
        plan: &plan,
        teachers: &teachers,
        destination: &destination,
        run,
        target: &target,
        rows: [learned.n_rows(), tested.n_rows()],
        final_loss: *final_loss,
        compared: &compared,
    };
    report.print(report_to.as_ref(), console)?;
    Ok(Exit::Success)
}

/// The rows to learn from, how many of them have labels, and the rows held out. Decisions of teachers become probabilities.
fn rows(
    args: &Args,
    teachers: &mut Teachers,
    target: &str,
    console: &Console,
) -> Result<(Rows, usize, Rows), Failure> {
    let all =
        rows::labeled(args.loading.table(&args.data, console)?, &args.dialect, teachers, target, console)?;
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
    teachers.scale_decisions(&learned)?;
    if let Some(path) = &args.unlabeled {
        learned.append(rows::unlabeled(
            args.loading.table(path, console)?,
            &args.dialect,
            teachers,
            console,
        )?);
    }
    if args.synthesize > 0 {
        let synthetic = mixed_samples(&learned.matrix()?, args.synthesize, MIXED, args.seed);
        let synthetic = synthetic.map_err(|error| Failure::new(CODE_USAGE, error.to_string()))?;
        learned.append(synthetic.as_slice().iter().map(|&value| value.into()).collect());
    }
    Ok((learned, n_labeled, tested))
}

/// What is trained, and how.
struct Plan {
    method: Method,
    kind: Kind,
    /// Outputs of the student's hidden layers.
    hidden: Vec<usize>,
    /// Those of the networks between teacher and student, from the widest on.
    assistants: Vec<Vec<usize>>,
    temperature: f64,
}

/// What training gives.
struct Trained {
    model: AnyModel,
    /// The same student of the labels alone.
    baseline: AnyModel,
    assistants: Vec<AnyModel>,
    final_loss: f64,
}

impl Plan {
    /// Checks that the settings fit the teachers and each other.
    ///
    /// # Errors
    ///
    /// If they do not.
    fn of(args: &Args, method: Method, teachers: &Teachers) -> Result<Self, Failure> {
        let kind = args.student.kind(teachers.classes().is_some())?;
        let (hidden, temperature) = (args.student.hidden()?, args.temperature(kind)?);
        let (teacher, network) = teachers.network();
        let n_teacher_hidden = network.map(|network| network.layers().len() - 1);
        method.check(kind, hidden.len(), (teacher, n_teacher_hidden))?;
        let assistants = method.assistants(kind, &hidden)?;
        Ok(Self { method, kind, hidden, assistants, temperature })
    }

    /// Trains the student, what comes before it, and what it is compared with.
    ///
    /// # Errors
    ///
    /// If a setting is out of its range, or a training diverges.
    fn train(
        &self,
        args: &Args,
        teachers: &Teachers,
        rows: &Rows,
        n_labeled: usize,
    ) -> Result<Trained, Failure> {
        let &Self { kind, ref hidden, temperature, .. } = self;
        let answers = teachers.members().iter().map(|member| teachers.answer(member, rows));
        let lessons = teachers.lessons(&answers.collect::<Result<Vec<_>, _>>()?, temperature)?;
        let learner = Learner::new(&args.student, (temperature, args.alpha, args.seed), rows, n_labeled)?;
        let mut assistants: Vec<AnyModel> = Vec::new();
        let mut last = None;
        for widths in &self.assistants {
            let lessons = last.as_ref().unwrap_or(&lessons);
            let assistant =
                learner.learn(Kind::Mlp, widths, lessons, &Hints::default()).map_err(of_settings)?;
            last = Some(lessons.next(&assistant, rows, temperature)?);
            assistants.push(assistant);
        }
        let pairs = self.method.layer_map();
        let hints = Hints { pairs, teacher: teachers.network().1.filter(|_| !pairs.is_empty()) };
        let learned = learner.learn(kind, hidden, last.as_ref().unwrap_or(&lessons), &hints);
        let model = learned.map_err(of_settings)?;
        let n_classes = teachers.class_names().map_or(0, <[String]>::len);
        let baseline = learner.learn_labels(kind, hidden, n_classes).map_err(of_settings)?;
        let final_loss = learner.loss(kind, &model, &lessons)?;
        Ok(Trained { model, baseline, assistants, final_loss })
    }

    /// The provenance that the file records.
    fn info(&self, args: &Args, teachers: &Teachers, final_loss: f64) -> DistillationInfo {
        let mapping = |&(student, teacher): &(usize, usize)| LayerMapping {
            student_layer: student as u64,
            teacher_layer: teacher as u64,
            weight: 1.0,
            ..LayerMapping::default()
        };
        DistillationInfo {
            method: self.method.recorded(),
            teacher: teachers.provenance(),
            params: DistillationParams {
                temperature: self.temperature as f32,
                alpha: args.alpha as f32,
                epochs: args.student.epochs(self.kind),
                final_loss: Some(final_loss as f32),
                ..DistillationParams::default()
            },
            layer_mapping: self.method.layer_map().iter().map(mapping).collect(),
            ..DistillationInfo::default()
        }
    }

    /// The settings of the training, for the metadata.
    fn hyperparameters(&self, args: &Args) -> Map<Value> {
        let mut settings = args.student.hyperparameters(self.kind, &self.hidden, args.seed);
        if !self.assistants.is_empty() {
            let layers: Vec<Value> = self.assistants.iter().map(|hidden| widths(hidden).into()).collect();
            settings.insert("assistants".to_owned(), layers);
        }
        if let Method::Ensemble { average, .. } = &self.method {
            settings.insert("average".to_owned(), average.name());
        }
        if args.synthesize > 0 {
            settings.insert("synthesized".to_owned(), args.synthesize);
        }
        settings
    }
}

/// Of a model in a file the parts are at fault, here it can only be the settings.
fn of_settings(failure: Failure) -> Failure {
    match failure.code() {
        "am-part" | "am-part-length" => Failure::new(CODE_USAGE, failure.what()),
        _ => failure,
    }
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
    // The student has learned their numbers.
    if let Some(known) = &teachers.first().categories {
        let of_features = known.of_features.iter().map(|of| names(of)).collect();
        custom.insert(CATEGORIES_KEY.to_owned(), Value::Array(of_features));
        if known.unknown == UnknownCategory::Ignore {
            custom.insert(UNKNOWN_CATEGORY_KEY.to_owned(), "ignore");
        }
    }
    custom.insert(TARGET_KEY.to_owned(), target);
    if let Some(classes) = teachers.class_names() {
        custom.insert(CLASSES_KEY.to_owned(), names(classes));
    }
    custom.insert("apr.data_sha256".to_owned(), hex_sha256(&args.data, |_| ())?);
    if let Some(path) = &args.unlabeled {
        custom.insert("apr.unlabeled_sha256".to_owned(), hex_sha256(path, |_| ())?);
    }
    metadata.custom = custom;
    Ok(metadata)
}

/// The elements of all tensors of a model.
fn n_parameters(model: &AnyModel) -> u64 {
    let Ok(tensors) = model.to_tensors() else { return 0 };
    let shapes =
        tensors.names().filter_map(|name| Some(tensors.view(name).ok()?.shape().iter().product::<usize>()));
    shapes.map(|count| count as u64).sum()
}
