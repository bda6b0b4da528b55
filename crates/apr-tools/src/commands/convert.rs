//! `apr convert`: a model rewritten in another format, or with other order, alignment, names, metadata or a part of its
//! tensors.

mod apr;
mod blocks;
mod gguf;
mod lost;
mod target;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use st_core::{Alignment, Dtype, Order, WriteOptions};

pub(crate) use self::blocks::Blocks;
pub(crate) use self::lost::parts as lost_parts;
use self::target::Target;
pub(crate) use self::target::{compression, compression_arg, remark_on_size};
use crate::args::glob::{Rename, Selection};
use crate::detached::Detached;
use crate::error::{CODE_NOT_CARRIED, CODE_NOTHING_SELECTED, CODE_USAGE, Exit, Failure};
use crate::input::{self, Format, Model, Rules, Source, Tensor};
use crate::metadata::{self, Entries};
use crate::output::ending::Ending;
use crate::output::rewrite::{self, Job, Plan};
use crate::output::{self, Destination, Overwrite, Run};
use crate::terminal::Console;
use crate::terminal::escape;

pub(crate) fn command() -> Command {
    let repeated = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).action(ArgAction::Append).help(help)
    };
    Command::new("convert")
        .about("Rewrite a model: format (safetensors, .apr, GGUF), order, alignment, names, metadata, a selection of tensors")
        .arg(input::input_arg().value_name("IN"))
        .arg(
            Arg::new("output")
                .value_name("OUT")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The new file, or `-` for standard output"),
        )
        .args(target::args())
        .arg(input::compat_arg())
        .args(layout_args())
        .args(Selection::args())
        .arg(dequantize_arg())
        .arg(repeated("rename", "FROM=TO", "Rename tensors; `*` in TO is what `*` in FROM stood for (repeatable)"))
        .arg(repeated("set", "KEY=VALUE", "Set an entry of the metadata (repeatable)"))
        .arg(repeated("unset", "KEY", "Remove an entry of the metadata (repeatable)"))
        .arg(
            Arg::new("metadata-from")
                .long("metadata-from")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Start from the metadata of this model instead of IN's"),
        )
        .arg(
            Arg::new("no-metadata")
                .long("no-metadata")
                .action(ArgAction::SetTrue)
                .conflicts_with("metadata-from")
                .help("Start without metadata"),
        )
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .args(Detached::args())
        .after_help(
            "Tensors are copied byte for byte, one chunk at a time, whatever their size. The output is complete or \
             not there. Patterns of --select and --exclude see the old names, and the first --rename that fits \
             applies. Without options, the output is what the official writer would make of the same tensors.\n\n\
             Without --format, the ending of OUT's name is the format: .safetensors, .gguf, or .apr of the version that IN has. \
             Other endings are refused. `-` and a name without an ending keep the format of IN. Tensors become an .apr model (version 1) if their metadata name one (`apr.model`), else an .apr \
             file of tensors (version 2). What the new format cannot hold is refused if it is a tensor, and listed if \
             it is anything else. Quantized tensors stay as they are, or become plain numbers with --dequantize; nothing \
             else changes a number.\n\n\
             Examples:\n  apr convert model.safetensors aligned.safetensors --align 64 --set licence=MIT\n  \
             apr convert model.safetensors part.safetensors --select 'encoder.*' --rename 'encoder.*=*'\n  \
             apr convert model.apr small.apr --compression zstd\n  \
             apr convert model.gguf plain.safetensors --dequantize f16\n  apr convert model.apr model2.safetensors\n  \
             apr convert published.safetensors checked.safetensors --key publisher.pub\n\n\
             Exit codes: 0 written, 2 OUT exists or has a foreign ending, nothing selected or the format cannot hold it, 3 not a sound model \
             file, 4 damaged or signed, 5 I/O, 6 another format or encrypted.",
        )
}

/// For commands that may write plain numbers in place of quantized ones.
pub(crate) fn dequantize_arg() -> Arg {
    Arg::new("dequantize")
        .long("dequantize")
        .value_name("TYPE")
        .value_parser(PossibleValuesParser::new(["f32", "f16"]))
        .help("Make plain numbers of quantized tensors")
}

/// Options that decide about the bytes around the tensors.
pub(crate) fn layout_args() -> [Arg; 3] {
    [
        Arg::new("order")
            .long("order")
            .value_name("ORDER")
            .value_parser(PossibleValuesParser::new(["official", "name", "given"]))
            .default_value("official")
            .help("Order of the tensors: widest type first as official writers do, by name, or as they are"),
        Arg::new("align")
            .long("align")
            .value_name("BYTES")
            .value_parser(PossibleValuesParser::new(["8", "64", "4096"]))
            .default_value("8")
            .help("Begin the data at a multiple of this"),
        Arg::new("header-room")
            .long("header-room")
            .value_name("BYTES")
            .value_parser(value_parser!(u32))
            .default_value("0")
            .help("Spare bytes in the header, so that metadata can grow later without rewriting the file"),
    ]
}

/// The [`WriteOptions`] of [`layout_args`], without metadata.
pub(crate) fn write_options(matches: &ArgMatches) -> WriteOptions {
    let text = |name| matches.get_one::<String>(name).map(String::as_str);
    WriteOptions {
        metadata: None,
        alignment: match text("align") {
            Some("64") => Alignment::B64,
            Some("4096") => Alignment::PAGE,
            _ => Alignment::B8,
        },
        order: match text("order") {
            Some("name") => Order::ByName,
            Some("given") => Order::AsGiven,
            _ => Order::Official,
        },
        header_room: matches.get_one::<u32>("header-room").map_or(0, |&room| room as usize),
    }
}

/// What the command line asks for.
struct Args {
    input: PathBuf,
    rules: Rules,
    target: Target,
    output: Destination,
    write: WriteOptions,
    selection: Selection,
    /// What quantized tensors become.
    dequantize: Option<Dtype>,
    renames: Vec<Rename>,
    metadata: MetadataEdit,
    overwrite: Overwrite,
    run: Run,
}

/// How the new metadata comes about, in this order.
struct MetadataEdit {
    base: Base,
    unset: Vec<String>,
    set: Vec<(String, String)>,
}

enum Base {
    Input,
    File(PathBuf),
    Nothing,
}

impl Args {
    fn from_matches(matches: &ArgMatches) -> Result<Self, Failure> {
        let strings = |name| matches.get_many::<String>(name).into_iter().flatten();
        let pair = |text: &String| match text.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(Failure::new(CODE_USAGE, format!("`--set {text}` has no `=`"))
                .help("write --set KEY=VALUE, for example --set licence=MIT")),
        };
        let base = match matches.get_one::<PathBuf>("metadata-from") {
            Some(path) => Base::File(path.clone()),
            None if matches.get_flag("no-metadata") => Base::Nothing,
            None => Base::Input,
        };
        let output = Destination::new(matches.get_one::<PathBuf>("output").expect("clap requires OUT"));
        Ok(Self {
            input: input::path(matches).to_owned(),
            rules: input::rules_of(matches),
            target: Target::from_matches(matches, &output)?,
            output,
            write: write_options(matches),
            selection: Selection::from_matches(matches),
            dequantize: matches.get_one::<String>("dequantize").map(|name| match name.as_str() {
                "f16" => Dtype::F16,
                _ => Dtype::F32,
            }),
            renames: strings("rename").map(|rule| Rename::parse(rule)).collect::<Result<_, _>>()?,
            metadata: MetadataEdit {
                base,
                unset: strings("unset").cloned().collect(),
                set: strings("set").map(pair).collect::<Result<_, _>>()?,
            },
            overwrite: output::overwrite(matches),
            run: output::run_mode(matches),
        })
    }
}

/// Runs `apr convert`.
///
/// # Errors
///
/// If the input cannot be read, nothing is selected, or the output cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    rewrite(matches, Blocks::Exact, console)
}

/// Runs `apr convert`, or what `apr export` makes of it.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn rewrite(matches: &ArgMatches, blocks: Blocks, console: &mut Console) -> Result<Exit, Failure> {
    let args = Args::from_matches(matches)?;
    args.output.check(args.overwrite, args.run, console)?;
    let detached = Detached::from_matches(matches)?;
    let source = Source::open_verified(&args.input, detached.as_ref(), console)?;
    let model = Model::from_source(source, &args.rules)?;
    if let Some(disagreement) = Ending::disagreement(model.format(), model.label()) {
        console.remark(disagreement);
    }
    let table = model.table().filter(|_| blocks == Blocks::Nearest || args.target.is_gguf());
    let all = match table {
        Some(table) => vec![table],
        None => model.tensors()?,
    };
    let mut selected: Vec<Tensor<'_>> =
        all.iter().filter(|tensor| args.selection.includes(tensor.name())).copied().collect();
    if selected.is_empty() && !all.is_empty() {
        return Err(Failure::new(CODE_NOTHING_SELECTED, "no tensor is selected").in_file(&args.input));
    }
    let names: Vec<String> = selected.iter().map(|tensor| renamed(tensor.name(), &args.renames)).collect();
    let n_renamed =
        all.iter().filter(|tensor| renamed(tensor.name(), &args.renames) != tensor.name()).count();
    if !args.renames.is_empty() && n_renamed == 0 {
        console.remark("no tensor has a name that --rename applies to");
    }
    let Edited { mut metadata, mut lost } = args.metadata.apply(&model, &args.rules, console)?;
    if let Some(entries) = metadata.as_mut().filter(|_| table.is_some()) {
        // One tensor of numbers is what the model was made of, and not that model.
        entries.remove(apr_models::MODEL_KEY);
    }
    if let Some(to) = args.dequantize {
        let mut count = 0;
        for tensor in &mut selected {
            count += u64::from(tensor.dtype().element().is_none());
            *tensor = tensor.dequantized(to).map_err(|failure| failure.in_file(&args.input))?;
        }
        match count {
            0 => console.remark("no tensor is quantized"),
            _ => metadata.iter_mut().for_each(|entries| metadata::gguf::dequantized(entries, to)),
        }
    }
    let format = args.target.format(&model, metadata.as_ref(), &selected)?;
    let changed =
        blocks::fit(&mut selected, format, blocks).map_err(|failure| failure.in_file(&args.input))?;
    if format == Format::SafeTensors && !changed.is_empty() {
        metadata.iter_mut().for_each(|entries| metadata::gguf::dequantized(entries, Dtype::F32));
    }
    lost.extend(changed);
    let is_whole = n_renamed == 0 && selected.len() == all.len();
    let lost_parts = lost::parts(&model, format).map_err(|failure| failure.in_file(&args.input))?;
    lost.extend(lost_parts);
    let mut job = Job {
        schema: "apr.convert/1",
        model: &model,
        destination: &args.output,
        overwrite: args.overwrite,
        run: args.run,
        lost,
    };
    let tensors = || names.iter().map(String::as_str).zip(selected.iter().copied());
    let entries = || metadata.clone().unwrap_or_default();
    let at_input = |failure: Failure| match failure.code() {
        CODE_NOT_CARRIED => failure.in_file(model.label()),
        _ => failure,
    };
    match format {
        // No model comes out of a sealed file here, and none is written as one.
        Format::SafeTensors | Format::Sealed => {
            let options = WriteOptions { metadata, ..args.write };
            let plan = Plan::new(tensors(), &options).map_err(of_names).map_err(at_input)?;
            rewrite::write_and_report(&plan, &job, &options, console)?;
        }
        Format::AprV2 => {
            let options = apr::tensor_options(&model, &entries(), &selected, args.write.order, &args.rules)?;
            apr::write_tensors(tensors(), options, &job, console).map_err(at_input)?;
        }
        Format::Gguf => {
            gguf::write_tensors(tensors(), &entries(), args.write.order, &job, console)
                .map_err(of_names)
                .map_err(at_input)?;
        }
        Format::AprV1 => {
            let (content, not_in_it) = apr::content(&model, tensors(), is_whole, &entries())?;
            job.lost.extend(not_in_it);
            apr::write_model(&content, &args.target, &entries(), job, console)?;
        }
    }
    Ok(Exit::Success)
}

/// The input has no name twice, so a name that is there twice was given by a rule.
fn of_names(failure: Failure) -> Failure {
    if !["st-duplicate-tensor", "ac-v2-duplicate-tensor", "gg-name-duplicate"].contains(&failure.code()) {
        return failure;
    }
    let tensor = failure.tensor().map(str::to_owned);
    Failure::new(CODE_USAGE, "two tensors would have the same name")
        .of_tensor(tensor.as_deref())
        .help("make the names that --rename gives distinct, or --exclude one of the tensors")
}

fn renamed(name: &str, rules: &[Rename]) -> String {
    rules.iter().find_map(|rule| rule.apply(name)).unwrap_or_else(|| name.to_owned())
}

/// The new metadata, and what of the old ones they do not hold.
struct Edited {
    metadata: Option<Entries>,
    lost: Vec<String>,
}

impl MetadataEdit {
    fn apply(&self, model: &Model, rules: &Rules, console: &Console) -> Result<Edited, Failure> {
        let of = |model: &Model| match model.format() {
            Format::SafeTensors => Ok((rewrite::metadata_of(model, console)?, Vec::new())),
            _ => metadata::entries(model).map(|(entries, lost)| (Some(entries), lost)),
        };
        let (mut metadata, lost) = match &self.base {
            Base::Input => of(model)?,
            Base::File(path) => of(&Model::open(path, rules)?)?,
            Base::Nothing => (None, Vec::new()),
        };
        for key in &self.unset {
            let was_there = metadata.as_mut().is_some_and(|metadata| {
                metadata::gguf::remove(metadata, key) | metadata.remove(key).is_some()
            });
            if !was_there {
                console.remark(format_args!("the metadata has no key `{}`", escape::cut(key, 60)));
            }
        }
        if !self.set.is_empty() {
            metadata.get_or_insert_default().extend(self.set.iter().cloned());
        }
        Ok(Edited { metadata, lost })
    }
}
