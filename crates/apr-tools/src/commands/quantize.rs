//! `apr quantize`: writes a model with fewer bits per value.

mod checkpoint;
mod file;
pub(crate) mod keys;
mod orientation;
mod report;
mod work;

use alloc::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use apr_convert::quantize::{
    ImportanceUse, Mixture, ModelFacts, Options, OutputTensor, Override, Plan, Reason, Requantize, Target,
    TensorSpec, writable_dtype,
};
use apr_convert::{Importance, TargetFormat};
use apr_models::Tensors;
use apr_quant::Dtype;
use clap::ValueEnum;
use model_file::entries::ARCHITECTURE;

use self::file::NewFile;
use self::keys::Record;
use self::report::Report;
pub(crate) use self::report::{DamagedTensor, warn_of_damage};
use self::work::Work;
use crate::architecture::{note_on_architecture, note_on_header, note_on_names};
use crate::args::glob::{Selection, leave_out};
use crate::args::{CompatArg, ForeignArgs, INPUT_HELP, Listed, PayloadArgs, WriteArgs};
use crate::commands::convert;
use crate::detached::{self, DetachedArgs};
use crate::error::{
    CODE_NOT_CARRIED, CODE_NOTHING_CONVERTED, CODE_NOTHING_SELECTED, CODE_OUTPUT_FORMAT, CODE_USAGE, Exit,
    Failure,
};
use crate::file_digest::Digests;
use crate::input::{self, Contents, Copies, Model, Source, Tensor};
use crate::output::ending::Ending;
use crate::output::{self, Destination, Run};
use crate::terminal::Console;
use crate::terminal::escape::escaped;
use crate::terminal::human::plural;
use crate::terminal::suggest;

const ENDINGS: &str =
    "give the output the ending .gguf, .apr or .safetensors, or say --format gguf, apr2 or safetensors";
/// Most bytes of a file of importance: those of the largest models take some hundred megabytes.
const MAX_IMPORTANCE: u64 = 4 << 30;

const AFTER_HELP: &str = "A GGUF model of a known architecture becomes, byte for byte, what llama-quantize makes of it (with \
    --no-provenance; without, four keys more). In every other model, each matrix becomes TYPE; vectors and \
    integers stay. Rows that are no whole number of blocks become the next larger type that fits, and the \
    report says so. An .apr file has blocks of its own: there q4_0 and q8_0 are AprQ4 and AprQ8. A model that \
    `apr predict` knows stays one: only its matrices of weights change.\n\n\
    The error in the report is the root of the mean squared error, per standard deviation of the tensor. A dry run \
    tells sizes, and the error from a sample. Memory does not grow with the model.\n\n\
    Examples:\n  apr quantize tiny_llama.gguf --type q4_k_m --output small.gguf\n  \
    apr quantize model.safetensors --type q8_0 --output half.gguf --exclude mask\n  \
    apr quantize tiny_llama.gguf --type q4_0 --output tiny-q4.apr --dry-run\n\n\
    Exit codes: 0 success, 2 OUT exists or has the extension of another format, no such type, nothing to quantize, or the format cannot hold it, 3 invalid file, or numbers that \
    no block can hold, 4 corrupted or signed, 5 I/O, 6 another format or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "MODEL", help = INPUT_HELP)]
    input: PathBuf,
    /// The new file, as --output names it.
    #[arg(id = "place", value_name = "OUT", required_unless_present = "output")]
    place: Option<PathBuf>,
    /// The new file, or `-` for standard output.
    #[arg(short, long, value_name = "OUT", conflicts_with = "place")]
    output: Option<PathBuf>,
    /// What the tensors become, by llama-quantize's names in any case.
    #[arg(short = 't', long = "type", value_name = "TYPE", value_parser = Listed(type_names))]
    type_name: String,
    /// Format of OUT, whatever its name.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatArg>,
    /// Another type for tensors whose name the expression finds (repeatable).
    #[arg(long, value_name = "REGEX=TYPE")]
    tensor_type: Vec<String>,
    /// Another type for `output.weight`.
    #[arg(long, value_name = "TYPE")]
    output_tensor_type: Option<String>,
    /// Another type for `token_embd.weight`.
    #[arg(long, value_name = "TYPE")]
    token_embedding_type: Option<String>,
    /// Leave `output.weight` as it is.
    #[arg(long, conflicts_with = "output_tensor_type")]
    leave_output_tensor: bool,
    /// The same type for all, without the mixture of TYPE.
    #[arg(long)]
    pure: bool,
    /// Quantize again what is quantized, although precision is lost twice.
    #[arg(long)]
    allow_requantize: bool,
    /// Which columns matter: a file of llama-imatrix, GGUF or .dat.
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
    /// Do not record source, options and version in the new file.
    #[arg(long)]
    no_provenance: bool,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    detached: DetachedArgs,
}

/// A value of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatArg {
    Gguf,
    Apr2,
    #[value(name = "safetensors")]
    SafeTensors,
}

/// The names of types, in the small letters in which they are typed.
static TYPES: LazyLock<Vec<String>> = LazyLock::new(|| Target::names().map(str::to_lowercase).collect());

fn type_names() -> Vec<&'static str> {
    TYPES.iter().map(String::as_str).collect()
}

/// The target of this name.
///
/// # Errors
///
/// If there is none, with the nearest one.
pub(crate) fn target(name: &str) -> Result<Target, Failure> {
    Target::from_name(name).map_err(|error| {
        let all = format!("the types are {}", TYPES.join(", "));
        let is_unknown = error.code() == "cv-target";
        let failure = Failure::from(error);
        let bare = |name: &str| name.to_lowercase().replace(['_', '-', ' '], "");
        let same = type_names().into_iter().find(|known| bare(known) == bare(name));
        match same.or_else(|| suggest::closest(&name.to_lowercase(), type_names())) {
            _ if !is_unknown => failure,
            Some(close) => failure.help(format!("did you mean `{close}`? {all}")),
            None => failure.help(all),
        }
    })
}

/// The parsed options.
struct Wanted {
    target: Target,
    format: Option<TargetFormat>,
    /// Of the output's name; not looked at if the format was given.
    ending: Option<Ending>,
    overrides: Vec<Override>,
    output_tensor: OutputTensor,
    token_embedding: Option<Dtype>,
}

impl Wanted {
    fn new(args: &Args, output: &Destination) -> Result<Self, Failure> {
        let format = |name: &Option<String>| name.as_deref().map(writable_dtype).transpose();
        let output_tensor = match format(&args.output_tensor_type)? {
            Some(format) => OutputTensor::Dtype(format),
            None if args.leave_output_tensor => OutputTensor::Keep,
            None => OutputTensor::Mixture,
        };
        Ok(Self {
            target: target(&args.type_name)?,
            ending: match args.format {
                None => Ending::of_output(output).map_err(|failure| failure.help(ENDINGS))?,
                Some(_) => None,
            },
            format: args.format.map(|format| match format {
                FormatArg::Gguf => TargetFormat::Gguf,
                FormatArg::Apr2 => TargetFormat::Apr,
                FormatArg::SafeTensors => TargetFormat::SafeTensors,
            }),
            overrides: args.tensor_type.iter().map(|rule| rule.parse()).collect::<Result<_, _>>()?,
            output_tensor,
            token_embedding: format(&args.token_embedding_type)?,
        })
    }

    /// Whether the output is a GGUF file regardless of the input.
    fn is_gguf(&self) -> bool {
        self.format == Some(TargetFormat::Gguf) || self.format.is_none() && self.ending == Some(Ending::Gguf)
    }

    /// The format of the output: the one asked for, the one its name says, or that of the input.
    fn format(&self, model: &Model) -> Result<TargetFormat, Failure> {
        let by_name = match self.ending {
            None => None,
            Some(Ending::Gguf) => Some(TargetFormat::Gguf),
            Some(Ending::Apr) => Some(TargetFormat::Apr),
            Some(Ending::SafeTensors) => Some(TargetFormat::SafeTensors),
            Some(Ending::Npz | Ending::Npy) => {
                return Err(Failure::new(CODE_OUTPUT_FORMAT, "files of NumPy hold no blocks").help(ENDINGS));
            }
        };
        let by_input = match model.contents() {
            Contents::Gguf(_) => Some(TargetFormat::Gguf),
            Contents::AprV1(_) | Contents::AprV2(_) => Some(TargetFormat::Apr),
            Contents::SafeTensors(_) | Contents::Foreign(_) | Contents::Sealed(_) => None,
        };
        self.format.or(by_name).or(by_input).ok_or_else(|| {
            Failure::new(CODE_USAGE, "the name of the output does not say in what format it is to be")
                .help(ENDINGS)
        })
    }
}

impl Args {
    /// The new file, by either of its names.
    fn out(&self) -> Result<&Path, Failure> {
        let out = self.output.as_deref().or(self.place.as_deref());
        out.ok_or_else(|| Failure::new(CODE_USAGE, "OUT is missing"))
    }
}

/// Runs `apr quantize`.
///
/// # Errors
///
/// If the input cannot be read or holds numbers that no block can, if the target is none or does not fit the format of the output,
/// if the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let out = args.out()?;
    let output = args.write.output([&args.input], out, console)?;
    let wanted = Wanted::new(args, &output.destination)?;
    let folder = if wanted.is_gguf() { checkpoint::LanguageModel::of(&args.input)? } else { None };
    if let Some(folder) = folder.as_ref().filter(|folder| folder.is_input) {
        return Err(folder.refused(out, &args.type_name));
    }
    let rules = args.payload.apply(args.compat.rules());
    let detached = args.detached.load()?;
    let source = Source::open_verified(&args.input, detached.as_ref(), console)
        .map_err(|failure| detached::without_signer(failure, &args.input))?;
    let source = source.with_foreign(args.foreign.options());
    let model = Model::from_source(source, &rules)?;
    model.tell_notes(console);
    let label = model.label().to_owned();
    let in_model = |failure: Failure| failure.in_file(&label);

    if let Some(disagreement) = Ending::disagreement(model.format(), model.label()) {
        console.remark(disagreement);
    }
    let all = model.tensors()?;
    let copies = Copies::of(&all, |name| args.selection.includes(name));
    let tensors = &copies.tensors;
    if tensors.is_empty() && !all.is_empty() {
        return Err(in_model(Failure::new(CODE_NOTHING_SELECTED, "no tensor is selected")));
    }
    tensors.iter().try_for_each(Tensor::check_order).map_err(in_model)?;
    checkpoint::refuse_codes(&model, tensors, &args.input, &args.type_name).map_err(in_model)?;
    let importance = args.imatrix.as_deref().map(importance).transpose()?;

    let facts = match model.contents() {
        Contents::Gguf(file) => {
            let header = file.header()?;
            keys::refuse_part(&header).map_err(in_model)?;
            ModelFacts::of_gguf(&header)
        }
        _ => ModelFacts::default(),
    };
    let format = wanted.format(&model)?;
    let turned = orientation::turned(&model, tensors, format, wanted.target.base())?;
    let mut shapes: Vec<Vec<u64>> =
        tensors.iter().map(|tensor| tensor.shape().iter().map(|&dim| dim as u64).collect()).collect();
    turned.iter().for_each(|idx| shapes[*idx].reverse());
    let specs: Vec<TensorSpec<'_>> =
        tensors.iter().zip(&shapes).map(|(tensor, shape)| spec(tensor, shape)).collect();
    let options = Options {
        format,
        mixture: if args.pure { Mixture::Pure } else { Mixture::Reference },
        requantize: if args.allow_requantize { Requantize::Allow } else { Requantize::Refuse },
        output_tensor: wanted.output_tensor,
        token_embedding: wanted.token_embedding,
        overrides: wanted.overrides,
        importance: importance.as_ref(),
        exact: exact(&model, tensors)?,
        ..Options::new(wanted.target)
    };
    let plan = Plan::new(&specs, &facts, &options).map_err(Failure::from).map_err(|failure| {
        // Tensors are the model's; the rest is what was asked for.
        if failure.tensor().is_some() { in_model(failure) } else { failure }
    })?;

    if plan.totals().converted == 0 {
        return Err(in_model(nothing_converted(&plan, wanted.target)));
    }

    let work = Work {
        model: &model,
        copies: &copies,
        specs: &specs,
        turned: &turned,
        options: &options,
        plan: &plan,
    };
    let imatrix = args.imatrix.as_deref().filter(|_| plan.importance().weighted > 0);
    let record =
        (!args.no_provenance).then(|| Record::new(&model, keys::options_text(args, imatrix), imatrix));
    let record = record.transpose()?;
    let provenance = record.as_ref().map(Record::planned).unwrap_or_default();
    let (file, mut lost) = NewFile::new(&work, imatrix, &provenance, &rules)?;
    lost.extend(
        convert::lost_parts(&model, file.format(), Some(&model.entries()?.entries)).map_err(in_model)?,
    );
    remarks(&work, folder.as_ref(), args, console)?;
    on_importance(&work, console);
    for (rule, text) in options.overrides.iter().zip(&args.tensor_type) {
        if !specs.iter().any(|spec| rule.applies_to(spec.name)) {
            console
                .remark(format_args!("no tensor has a name that --tensor-type {} applies to", escaped(text)));
        }
    }
    let errors = match output.run {
        Run::Write => match &record {
            Some(record) => {
                let digests = Digests::start(record.sources(), console)?;
                let recorded = || -> Result<NewFile, Failure> {
                    let provenance = record.keys(&digests.finish(console)?);
                    Ok(NewFile::new(&work, imatrix, &provenance, &rules)?.0)
                };
                // What cannot be changed later is hashed first.
                if file.head().is_none() || !output.destination.is_changeable() {
                    recorded()?.write(&work, &output, console, || Ok(None))
                } else {
                    file.write(&work, &output, console, || output::same_len(file.head(), recorded()?.head()))
                }
            }
            None => file.write(&work, &output, console, || Ok(None)),
        },
        Run::Dry => work.estimate(console),
    };
    let errors =
        errors.map_err(|failure| if failure.tensor().is_some() { in_model(failure) } else { failure })?;
    Report { work: &work, output: &output, file_len: file.len(), errors: &errors, lost: &lost }
        .print(console)?;
    Ok(Exit::Success)
}

/// Of a plan that changes no tensor.
fn nothing_converted(plan: &Plan, target: Target) -> Failure {
    let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
    for decision in plan.decisions() {
        let reason = match (decision.reason, decision.to) {
            (reason @ Reason::Kept(_), _) => reason.to_string(),
            (_, Some(format)) => format!("{format} already"),
            (reason, None) => reason.to_string(),
        };
        *reasons.entry(reason).or_default() += 1;
    }
    let reasons = reasons.into_iter().map(|(reason, count)| format!("{} {reason}", plural(count, "tensor")));
    Failure::new(CODE_NOTHING_CONVERTED, format!("no tensor of this model becomes {}", target.name()))
        .because(reasons.collect::<Vec<_>>().join("; "))
}

/// Notes about importance weights that are not used.
fn on_importance(work: &Work<'_>, console: &Console) {
    if work.options.importance.is_none() {
        return;
    }
    let found = work.plan.importance();
    if found.weighted == 0 {
        console.remark("--imatrix has no effect: the types of the new tensors use no importance");
    }
    if let Some(note) = importance_note(found, |idx| work.specs[idx].name) {
        console.remark(note);
    }
}

/// The tensors for which an importance matrix has no entry.
pub(crate) fn importance_note<'n>(found: &ImportanceUse, name: impl Fn(usize) -> &'n str) -> Option<String> {
    const NAMED: usize = 5;
    let names = found.missing.iter().take(NAMED).map(|idx| escaped(name(*idx)));
    let names = names.collect::<Vec<_>>().join(", ");
    let more = found.missing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let count = plural(found.missing.len() as u64, "tensor");
    let is_noted = found.weighted > 0 && !found.missing.is_empty();
    is_noted
        .then(|| format!("the importance matrix has no entry for {count}, quantized without: {names}{more}"))
}

/// Notes about the new file before it is written.
fn remarks(
    work: &Work<'_>,
    folder: Option<&checkpoint::LanguageModel>,
    args: &Args,
    console: &Console,
) -> Result<(), Failure> {
    match (work.model.contents(), work.options.format) {
        (Contents::AprV1(_), TargetFormat::Apr) => console.remark(
            "the new file is an .apr file of version 2: it has no signature, encryption or license inside; use `apr seal`, or \
             `apr sign` for a signature beside it",
        ),
        (Contents::Gguf(file), TargetFormat::Gguf) => {
            let header = file.header()?;
            let notes = [note_on_header(&header), note_on_names(&header)];
            notes.into_iter().flatten().for_each(|note| console.remark(note));
        }
        (_, TargetFormat::Gguf) => {
            let entries = work.model.entries()?.entries;
            let entry = |key: &str| entries.get(key).map(String::as_str);
            let note = note_on_architecture(entry(ARCHITECTURE), entry(apr_models::MODEL_KEY));
            match folder {
                Some(folder) if note.is_some() => console.remark(folder.note(args.out()?, &args.type_name)),
                _ => note.into_iter().for_each(|note| console.remark(note)),
            }
        }
        _ => {}
    }
    Ok(())
}

/// The tensors of a model that predicts without which it would be another one.
fn exact<'m>(model: &Model, tensors: &[Tensor<'m>]) -> Result<BTreeSet<&'m str>, Failure> {
    if !model.is_known() {
        return Ok(BTreeSet::new());
    }
    let is_weight = |tensor: &Tensor<'_>| {
        // Blocks decode to floats.
        let dtype = tensor.dtype().element().unwrap_or(Dtype::F32);
        Tensors::is_weight_matrix(dtype, tensor.shape())
    };
    Ok(tensors.iter().filter(|tensor| !is_weight(tensor)).map(|tensor| tensor.name()).collect())
}

/// Reads a file of importance.
///
/// # Errors
///
/// If it cannot be read or is none.
pub(crate) fn importance(path: &Path) -> Result<Importance, Failure> {
    let file = durable_file::read(path, MAX_IMPORTANCE)?;
    Importance::from_bytes(&file).map_err(|error| Failure::from(error).in_file(path))
}

/// A tensor for the plan. Blocks that are not laid out by rows are kept.
fn spec<'a>(tensor: &Tensor<'a>, shape: &'a [u64]) -> TensorSpec<'a> {
    let (&columns, rest) = shape.split_last().unwrap_or((&1, &[]));
    let rows = rest.iter().try_fold(1_u64, |count, dim| count.checked_mul(*dim));
    let is_regular = |format: &Dtype| {
        rows.and_then(|rows| format.byte_len_of_rows(columns, rows).ok()) == Some(tensor.byte_len())
    };
    TensorSpec { name: tensor.name(), shape, dtype: input::decodable(tensor.dtype()).filter(is_regular) }
}

/// Failure for a tensor whose type the new file does not have; the advice names `all` such tensors.
fn not_carried(tensor: &Tensor<'_>, all: &[&str], format: TargetFormat) -> Failure {
    let what = format!("{format} has no element type {}", tensor.dtype());
    let failure = Failure::new(CODE_NOT_CARRIED, what).of_tensor(Some(tensor.name()));
    failure.help(leave_out("apr quantize", all))
}
