//! `apr convert`: writes a model in another format, or with other order, alignment, names, metadata or a part of its tensors.

mod apr;
mod blocks;
mod gguf;
mod language_model;
mod lost;
mod numpy;
mod target;

use alloc::collections::BTreeMap;
use std::path::{Path, PathBuf};

use apr_convert::quantize::FileType;
use clap::value_parser;
use foreign_format::Format as Foreign;
use model_file::entries::{self, Entries, TypedValue};
use st_core::{Dtype, WriteOptions};

pub(crate) use self::blocks::Blocks;
use self::language_model::LanguageArgs;
pub(crate) use self::lost::parts as lost_parts;
pub(crate) use self::target::{FormatArg, Target, TargetArgs, remark_on_size};
use crate::architecture::{note_on_names, note_on_part};
use crate::args::glob::{Rename, Selection};
use crate::args::{CompatArg, DequantizeArg, ForeignArgs, INPUT_HELP, LayoutArgs, PayloadArgs, WriteArgs};
use crate::detached::{self, Detached, DetachedArgs};
use crate::error::{
    CODE_INTERNAL, CODE_NO_TENSORS, CODE_NOT_CARRIED, CODE_NOTHING_SELECTED, CODE_USAGE, Exit, Failure,
};
use crate::foreign;
use crate::input::{Contents, Copies, Format, Model, Rules, Source, Tensor};
use crate::output::ending::Ending;
use crate::output::rewrite::{self, Job, Plan};
use crate::output::{Destination, Output};
use crate::terminal::Console;
use crate::terminal::escape;

/// Most bytes of a value that is read from a file.
const MAX_VALUE: u64 = 64 << 20;

const AFTER_HELP: &str = "Tensors are copied byte for byte, one chunk at a time, whatever their size. The output is complete or \
    not there. Patterns of --select and --exclude see the old names, and the first --rename that fits \
    applies. Without options, the output is what the official writer would make of the same tensors.\n\n\
    Without --format, the ending of OUT's name is the format: .safetensors, .gguf, .npz, .npy, or .apr of the version that IN has. \
    Other endings are refused. `-` and a name without an ending keep the format of IN, or mean safetensors if IN is of another program. \
    Nothing in a file of another program is run; of tensors with several names one copy is written, and the metadata name the others. \
    Of such a file, --object names the nested object to read. Tensors become an .apr model (version 1) if their metadata name one (`apr.model`), else an .apr \
    file of tensors (version 2). What the new format cannot hold is refused if it is a tensor, and listed if \
    it is anything else. Quantized tensors stay as they are, or become plain numbers with --dequantize; nothing \
    else changes a number.\n\n\
    A folder of the Hugging Face hub, with config.json, becomes a language model if OUT is GGUF: a file that llama.cpp runs, the one \
    that its converter writes (with --no-provenance; without, three keys more). If OUT is .apr, it has the same tensors, and the keys of that file as metadata. A folder with adapter_config.json and adapter_model.safetensors or \
    .bin becomes an adapter for it, with the names and shapes of the model that --base names.\n\n\
    Examples:\n  apr convert model.safetensors aligned.safetensors --align 64 --set licence=MIT\n  \
    apr convert model.safetensors part.safetensors --select 'encoder.*' --rename 'encoder.*=*'\n  \
    apr convert model.apr small.apr --compression zstd\n  \
    apr convert model.gguf plain.safetensors --dequantize f16\n  apr convert model.apr model2.safetensors\n  \
    apr convert published.safetensors checked.safetensors --key publisher.pub\n  \
    apr convert model.npy array.safetensors\n  apr convert model.safetensors arrays.npz\n  \
    apr convert llama llama.gguf --type q4_k_m --dry-run\n  \
    apr convert sharded converted --recursive --format safetensors\n  \
    apr convert adapter adapter.gguf --base qwen2\n\n\
    Exit codes: 0 success, 2 OUT exists or has the extension of another format, nothing selected or the format cannot hold it, 3 invalid file, 4 corrupted or signed, 5 I/O, 6 another format or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, override_usage = "apr convert [OPTIONS] <IN> <OUT>")]
pub(crate) struct Args {
    #[arg(value_name = "IN", help = INPUT_HELP)]
    input: PathBuf,
    /// The new file, or `-` for standard output.
    #[arg(value_name = "OUT", required_unless_present = "to")]
    output: Option<PathBuf>,
    /// OUT, as other commands take it.
    #[arg(id = "to", short = 'o', long = "output", value_name = "OUT", conflicts_with = "output")]
    to: Option<PathBuf>,
    /// Repair the header of a safetensors file: metadata that are not strings, padding, bytes after the data. Lists what is changed.
    #[arg(long, conflicts_with = "recursive")]
    repair: bool,
    /// IN is a folder: convert all files below it into the folder OUT, as `apr batch` does. Needs --format.
    #[arg(long, requires = "format", conflicts_with = "dry_run")]
    recursive: bool,
    /// With --recursive: files at once.
    #[arg(long, value_name = "N", requires = "recursive", value_parser = value_parser!(u16).range(1..=256))]
    jobs: Option<u16>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    dequantize: DequantizeArg,
    /// Rename tensors; `*` in TO is what `*` in FROM stood for (repeatable).
    #[arg(long, value_name = "FROM=TO")]
    rename: Vec<String>,
    /// Set an entry of the metadata (repeatable). `@FILE` is the text of a file; of GGUF, VALUE may be `TYPE:VALUE`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Remove an entry of the metadata (repeatable).
    #[arg(long, value_name = "KEY")]
    unset: Vec<String>,
    /// Start from the metadata of this model instead of IN's.
    #[arg(long, value_name = "FILE")]
    metadata_from: Option<PathBuf>,
    /// Start without metadata.
    #[arg(long, conflicts_with = "metadata_from")]
    no_metadata: bool,
    /// Write a file without tensors if IN has none.
    #[arg(long)]
    allow_empty: bool,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    detached: DetachedArgs,
    #[command(flatten)]
    language: LanguageArgs,
}

/// How the new metadata comes about, in this order.
#[derive(Default)]
pub(crate) struct MetadataEdit {
    base: Base,
    unset: Vec<String>,
    set: Vec<Setting>,
}

/// A value of `--set`.
struct Setting {
    key: String,
    text: String,
    /// Whether the text is that of a file, which is never taken for one with a type.
    is_file: bool,
}

#[derive(Default)]
enum Base {
    #[default]
    Input,
    File(PathBuf),
    Nothing,
}

impl Args {
    /// The new file.
    ///
    /// # Errors
    ///
    /// If neither argument names it, which the parser refuses before.
    fn output(&self) -> Result<&Path, Failure> {
        let output = self.output.as_deref().or(self.to.as_deref());
        output.ok_or_else(|| Failure::new(CODE_USAGE, "OUT is missing"))
    }

    /// Refuses options that are about a file, its tensors or text metadata, where a folder becomes a language model.
    ///
    /// # Errors
    ///
    /// If one was given.
    fn refuse_of_tensors(&self) -> Result<(), Failure> {
        // --signature needs --key.
        if self.detached.key.is_some() {
            let what = "--key verifies one file, and this model is several";
            return Err(Failure::new(CODE_USAGE, what)
                .in_file(&self.input)
                .help("`apr verify FOLDER --key KEY` checks the signature of a folder"));
        }
        let given = [
            ("select", self.selection.select().next().is_some()),
            ("exclude", self.selection.exclude().next().is_some()),
            ("rename", !self.rename.is_empty()),
            ("set", !self.set.is_empty()),
            ("unset", !self.unset.is_empty()),
            ("metadata-from", self.metadata_from.is_some()),
            ("no-metadata", self.no_metadata),
            ("allow-empty", self.allow_empty),
            ("dequantize", self.dequantize.dtype().is_some()),
            ("repair", self.repair),
        ];
        let of_foreign = self.foreign.given().map(|name| (name, true));
        match given.into_iter().chain(of_foreign).chain(self.layout.given()).find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                let what = format!("--{name} is not for folders that become language models");
                Err(Failure::new(CODE_USAGE, what)
                    .help("--tensors-only converts the tensors alone, and takes this option"))
            }
            None => Ok(()),
        }
    }
}

impl MetadataEdit {
    fn new(args: &Args) -> Result<Self, Failure> {
        let base = match &args.metadata_from {
            Some(path) => Base::File(path.clone()),
            None if args.no_metadata => Base::Nothing,
            None => Base::Input,
        };
        Ok(Self {
            base,
            unset: args.unset.clone(),
            set: args.set.iter().map(|text| Setting::parse(text)).collect::<Result<_, _>>()?,
        })
    }
}

impl Setting {
    /// Reads `KEY=VALUE`, `KEY=@FILE`, or `KEY=@@VALUE` for a value that begins with `@`.
    ///
    /// # Errors
    ///
    /// If there is no `=`, or the file cannot be read or is not a text.
    fn parse(text: &str) -> Result<Self, Failure> {
        let Some((key, value)) = text.split_once('=') else {
            return Err(Failure::new(CODE_USAGE, format!("`--set {text}` has no `=`"))
                .help("write --set KEY=VALUE, for example --set licence=MIT"));
        };
        let key = key.to_owned();
        match value.strip_prefix('@') {
            None => Ok(Self { key, text: value.to_owned(), is_file: false }),
            Some(rest) if rest.starts_with('@') => Ok(Self { key, text: rest.to_owned(), is_file: true }),
            Some(path) => {
                let path = Path::new(path);
                let read = durable_file::read(path, MAX_VALUE).map_err(Failure::from);
                let bytes = read.map_err(|failure| {
                    failure.help(
                        "`--set KEY=@FILE` reads a file; a value that begins with @ is written KEY=@@VALUE",
                    )
                })?;
                let text = String::from_utf8(bytes).map_err(|_| {
                    Failure::new(CODE_USAGE, "the value of --set is a text, and this file is not UTF-8")
                        .in_file(path)
                })?;
                Ok(Self { key, text, is_file: true })
            }
        }
    }
}

/// The output of `apr convert` and `apr export`.
pub(crate) struct Request<'a> {
    pub(crate) input: &'a Path,
    pub(crate) rules: Rules,
    pub(crate) target: Target,
    pub(crate) output: Output,
    pub(crate) layout: WriteOptions,
    pub(crate) selection: &'a Selection,
    /// What quantized tensors become.
    pub(crate) dequantize: Option<Dtype>,
    pub(crate) renames: Vec<Rename>,
    pub(crate) metadata: MetadataEdit,
    pub(crate) detached: Option<Detached>,
    pub(crate) foreign: foreign_tensors::Options,
    /// Whether the header of the input is repaired.
    pub(crate) repair: bool,
    /// What becomes of blocks that the format has no type for.
    pub(crate) blocks: Blocks,
    /// Whether a file without tensors may be written.
    pub(crate) allow_empty: bool,
}

/// Runs `apr convert`.
///
/// # Errors
///
/// If the input cannot be read, nothing is selected, or the output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if args.recursive {
        // The command line became one of `apr batch`.
        return Err(Failure::new(CODE_INTERNAL, "a folder is no single file"));
    }
    let out = args.output()?;
    let destination = Destination::new(out);
    let target = Target::new(args.target, args.layout, &destination)?;
    let place = if target.is_of_models() { args.language.place(&args.input)? } else { None };
    if let Some(place) = place {
        args.refuse_of_tensors()?;
        target.refuse_of_models()?;
        if !target.is_gguf() {
            args.language.refuse_of_gguf()?;
        }
        let rules = args.payload.apply(args.compat.rules());
        let output = args.write.output([&args.input], out, console)?;
        let format = if target.is_gguf() { Format::Gguf } else { Format::AprV2 };
        return language_model::run(&args.language, place, &args.input, &rules, (output, format), console);
    }
    args.language.refuse(&args.input)?;
    let request = Request {
        input: &args.input,
        rules: args.payload.apply(args.compat.rules()),
        target,
        layout: args.layout.options(),
        selection: &args.selection,
        dequantize: args.dequantize.dtype(),
        renames: args.rename.iter().map(|rule| Rename::parse(rule)).collect::<Result<_, _>>()?,
        metadata: MetadataEdit::new(args)?,
        output: args.write.output([&args.input], out, console)?,
        repair: args.repair,
        detached: args.detached.load()?,
        foreign: args.foreign.options(),
        blocks: Blocks::Exact,
        allow_empty: args.allow_empty,
    };
    rewrite(request, console)
}

/// Writes the GGUF file of a folder of a language model or an adapter, without options of its own; `None` if the input is none.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn model_folder(
    input: &Path,
    rules: &Rules,
    output: &Output,
    dequantize: Option<Dtype>,
    console: &mut Console,
) -> Result<Option<Exit>, Failure> {
    let args = LanguageArgs::default();
    let place = args.place(input)?;
    if place.is_some() && dequantize.is_some() {
        return Err(Failure::new(CODE_USAGE, "--dequantize is not for folders that become language models")
            .in_file(input)
            .help("`apr convert MODEL OUT.gguf --tensors-only` converts the tensors alone, and takes this option"));
    }
    let output = (output.clone(), Format::Gguf);
    let written = place.map(|place| language_model::run(&args, place, input, rules, output, console));
    written.transpose()
}

/// Writes the new file.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn rewrite(request: Request<'_>, console: &mut Console) -> Result<Exit, Failure> {
    let Request { input, rules, target, output, layout, dequantize, renames, blocks, .. } = request;
    let Output { destination, overwrite, run } = output;
    let mut source = Source::open_verified(input, request.detached.as_ref(), console)
        .map_err(|failure| detached::without_signer(failure, input))?
        .with_foreign(request.foreign);
    let repaired = if request.repair { source.repair(&rules)? } else { Vec::new() };
    if request.repair && repaired.is_empty() {
        console.remark("the header needs no repair");
    }
    let model = Model::from_source(source, &rules)?;
    model.tell_notes(console);
    if let Some(disagreement) = Ending::disagreement(model.format(), model.label()) {
        console.remark(disagreement);
    }
    if let Contents::Gguf(file) = model.contents() {
        let header = file.header()?;
        let notes = [note_on_part(&header), note_on_names(&header)];
        notes.into_iter().flatten().for_each(|note| console.remark(note));
    }
    let table = model.table().filter(|_| blocks == Blocks::Nearest || target.is_gguf());
    let all = match table {
        Some(table) => vec![table],
        None => model.tensors()?,
    };
    let mut copies = Copies::of(&all, |name| request.selection.includes(name));
    let is_all = copies.tensors.len() + copies.aliases.len() == all.len();
    let mut selected = core::mem::take(&mut copies.tensors);
    if target.is_gguf() && matches!(model.contents(), Contents::AprV2(_)) {
        // The index of an .apr file is sorted by name; its data keep the order of the GGUF file that it was made of.
        selected.sort_by_key(|tensor| tensor.file_offset());
    }
    if selected.is_empty() && !all.is_empty() {
        return Err(Failure::new(CODE_NOTHING_SELECTED, "no tensor is selected").in_file(input));
    }
    // A vocabulary is a GGUF file of keys alone.
    let is_of_keys = matches!(model.contents(), Contents::Gguf(_)) && target.is_gguf();
    if all.is_empty() && !request.allow_empty && !is_of_keys {
        return Err(no_tensors(&model).in_file(input));
    }
    if let Contents::Foreign(file) = model.contents()
        && let Some(class) = foreign::boosted_trees(file)
    {
        console.remark(format_args!(
            "the trees of {class} are not among the tensors: they are in a format of the library"
        ));
    }
    let names: Vec<String> = selected.iter().map(|tensor| renamed(tensor.name(), &renames)).collect();
    let n_renamed = all.iter().filter(|tensor| renamed(tensor.name(), &renames) != tensor.name()).count();
    if !renames.is_empty() && n_renamed == 0 {
        console.remark("no tensor has a name that --rename applies to");
    }
    let edit = &request.metadata;
    let Edited { mut metadata, mut lost, typed } =
        edit.apply(&model, &copies, &renames, &rules, target.writes_gguf(&model), console)?;
    if let Some(entries) = metadata.as_mut().filter(|_| table.is_some()) {
        // A single tensor of values is not the model that stores such a list.
        entries.remove(apr_models::MODEL_KEY);
    }
    if let Some(to) = dequantize {
        let mut count = 0;
        for tensor in &mut selected {
            count += u64::from(tensor.dtype().element().is_none());
            *tensor = tensor.dequantized(to).map_err(|failure| failure.in_file(input))?;
        }
        match count {
            0 => console.remark("no tensor is quantized"),
            _ => metadata.iter_mut().for_each(|entries| entries::set_dequantized(entries, to)),
        }
    }
    let format = target.format(&model, metadata.as_ref(), &selected)?;
    // Programs of Hugging Face refuse a file that does not say so.
    let is_torch = matches!(
        model.format(),
        Format::Foreign(Foreign::Torch | Foreign::TorchLegacy | Foreign::TorchIndex)
    );
    if is_torch && format == Format::SafeTensors && request.metadata.is_kept("format") {
        metadata.get_or_insert_default().entry("format".to_owned()).or_insert_with(|| "pt".to_owned());
    }
    let changed = blocks::fit(&mut selected, format, blocks).map_err(|failure| failure.in_file(input))?;
    if format == Format::SafeTensors && !changed.is_empty() {
        metadata.iter_mut().for_each(|entries| entries::set_dequantized(entries, Dtype::F32));
    }
    // A GGUF file knows its mixture, which the types of tensors do not show.
    if let Some(entries) = metadata.as_mut().filter(|_| model.format() != Format::Gguf) {
        correct_file_type(entries, &selected);
    }
    lost.extend(changed);
    let is_whole = n_renamed == 0 && is_all;
    let lost_parts =
        lost::parts(&model, format, metadata.as_ref()).map_err(|failure| failure.in_file(input))?;
    lost.extend(lost_parts);
    let mut job = Job {
        schema: "apr.convert/2",
        model: &model,
        destination: &destination,
        overwrite,
        run,
        lost,
        repaired,
    };
    let tensors = || names.iter().map(String::as_str).zip(selected.iter().copied());
    let entries = || metadata.clone().unwrap_or_default();
    let at_input = |failure: Failure| match failure.code() {
        CODE_NOT_CARRIED => failure.in_file(model.label()),
        _ => failure,
    };
    match format {
        Format::Foreign(written @ (Foreign::Npz | Foreign::Npy)) => {
            let names = copies.aliases.iter().map(|(alias, kept)| (renamed(alias, &renames), *kept));
            let names: BTreeMap<String, &str> = names.collect();
            job.lost.extend(entries().into_keys().map(|key| match names.get(&key) {
                Some(kept) => format!("the name `{key}` of the tensor `{kept}`"),
                None => format!("metadata `{key}`"),
            }));
            numpy::write_arrays(written, tensors(), &job, console).map_err(at_input)?;
        }
        // No model comes out of a sealed file here, and none is written as one, or in another foreign format.
        Format::SafeTensors | Format::Sealed | Format::Foreign(_) => {
            let options = WriteOptions { metadata, ..layout };
            let plan = Plan::new(tensors(), &options).map_err(of_names).map_err(at_input)?;
            rewrite::write_and_report(&plan, &job, &options, console)?;
        }
        Format::AprV2 => {
            let options = apr::tensor_options(&model, &entries(), &selected, layout.order, &rules)?;
            apr::write_tensors(tensors(), options, &job, console).map_err(at_input)?;
        }
        Format::Gguf => {
            gguf::write_tensors(tensors(), &entries(), &typed, layout.order, &job, console)
                .map_err(of_names)
                .map_err(at_input)?;
        }
        Format::AprV1 => {
            let (content, not_in_it) = apr::content(&model, tensors(), is_whole, &entries())?;
            job.lost.extend(not_in_it);
            apr::write_model(&content, &target, &entries(), job, console)?;
        }
    }
    Ok(Exit::Success)
}

/// A file of no tensors, with what was left out.
fn no_tensors(model: &Model) -> Failure {
    let title = model_file::FileKind::Model(model.format()).title();
    let failure = Failure::new(CODE_NO_TENSORS, format!("this is {title} without tensors"));
    let left_out = match model.contents() {
        Contents::Foreign(file) => file.model().notes(),
        _ => &[],
    };
    let left_out: Vec<String> =
        left_out.iter().take(3).map(|note| model_file::Warning::of_foreign(note).message).collect();
    let failure = if left_out.is_empty() { failure } else { failure.because(left_out.join("; ")) };
    match model.format() {
        Format::Foreign(Foreign::OnnxMl) => failure.help(Foreign::OnnxMl.help()),
        Format::Foreign(_) => failure,
        _ => failure.help("if an empty file is what you want, add --allow-empty to `apr convert`"),
    }
}

/// Changes `general.file_type` where the types of the tensors contradict it.
fn correct_file_type(entries: &mut Entries, tensors: &[Tensor<'_>]) {
    let dtypes = || tensors.iter().filter_map(|tensor| Some((tensor.dtype().known()?, tensor.elements())));
    let Some(declared) = entries::file_type(entries) else { return };
    if !FileType(declared).fits(dtypes().map(|(dtype, _)| dtype))
        && let Some(file_type) = FileType::of(dtypes())
    {
        entries::set_file_type(entries, file_type.0);
    }
}

/// The input has no name twice, so a name that is there twice was given by a rule.
fn of_names(failure: Failure) -> Failure {
    if !["st-duplicate-tensor", "ac-v2-duplicate-tensor", "gg-name-duplicate"].contains(&failure.code()) {
        return failure;
    }
    same_name(failure.tensor())
}

fn same_name(tensor: Option<&str>) -> Failure {
    Failure::new(CODE_USAGE, "two tensors would have the same name")
        .of_tensor(tensor)
        .help("make the names that --rename gives distinct, or --exclude one of the tensors")
}

fn renamed(name: &str, rules: &[Rename]) -> String {
    rules.iter().find_map(|rule| rule.apply(name)).unwrap_or_else(|| name.to_owned())
}

/// The new metadata, and what of the old ones they do not hold.
struct Edited {
    metadata: Option<Entries>,
    lost: Vec<String>,
    /// Keys of a GGUF file that were set with their type.
    typed: Vec<(String, TypedValue)>,
}

impl MetadataEdit {
    /// Whether metadata are wanted, and this key among them.
    fn is_kept(&self, key: &str) -> bool {
        !matches!(self.base, Base::Nothing) && !self.unset.iter().any(|unset| unset == key)
    }

    fn apply(
        &self,
        model: &Model,
        copies: &Copies<'_>,
        renames: &[Rename],
        rules: &Rules,
        is_gguf: bool,
        console: &Console,
    ) -> Result<Edited, Failure> {
        let of = |model: &Model| match model.format() {
            Format::SafeTensors => Ok((rewrite::metadata_of(model, console)?, Vec::new())),
            _ => model.entries().map(|exported| (Some(exported.entries), exported.lost)),
        };
        let (mut metadata, mut lost) = match &self.base {
            Base::Input => of(model)?,
            Base::File(path) => of(&Model::open(path, rules)?)?,
            Base::Nothing => (None, Vec::new()),
        };
        match &mut metadata {
            Some(entries) => copies.record(entries, |name| renamed(name, renames)),
            None => lost.extend(
                copies
                    .aliases
                    .iter()
                    .map(|(alias, kept)| format!("the name `{alias}` of the tensor `{kept}`")),
            ),
        }
        for key in &self.unset {
            let was_there = metadata
                .as_mut()
                .is_some_and(|metadata| entries::remove(metadata, key) | metadata.remove(key).is_some());
            if !was_there {
                console.remark(format_args!("the metadata has no key `{}`", escape::cut(key, 60)));
            }
        }
        let mut typed = Vec::new();
        for Setting { key, text, is_file } in &self.set {
            if is_gguf && !is_file {
                if let Some(value) = TypedValue::parse(key, text) {
                    typed.push((key.clone(), value));
                    continue;
                }
                entries::check_untyped(metadata.as_ref(), key, text).map_err(Failure::from)?;
            }
            metadata.get_or_insert_default().insert(key.clone(), text.clone());
        }
        Ok(Edited { metadata, lost, typed })
    }
}
