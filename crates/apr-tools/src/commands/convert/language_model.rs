//! Folders of models and of adapters of the Hugging Face hub as GGUF files, or as `.apr` files with the same keys.

mod adapter;
mod apr_file;
mod folder;
mod new_model;
mod report;
mod split;

use std::path::{Path, PathBuf};

use apr_convert::Importance;
use clap::value_parser;
use hf_gguf::{Conversion, Options, OutputType, SourceTensor, Target};

use self::apr_file::AprFile;
use self::folder::{CONFIG, Folder, Place};
use self::new_model::NewModel;
use self::split::{Limits, Work, parse_limit};
use crate::architecture::model_folder;
use crate::commands::quantize;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::file_digest::{Digests, placeholders};
use crate::input::{Format, Rules, Tensor};
use crate::output::{self, Output, Run};
use crate::terminal::{Console, escape};

/// Most bytes of the file of `--metadata`.
const MAX_METADATA: u64 = 1 << 20;

/// Options of the conversion of a language model.
#[derive(Debug, Default, clap::Args)]
#[command(
    next_help_heading = "Language models and adapters: a folder with config.json or adapter_config.json becomes GGUF"
)]
pub(super) struct LanguageArgs {
    /// What matrices become: auto, f32, f16, bf16, q8_0, tq1_0, tq2_0, or a type of `apr quantize`.
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    type_name: Option<String>,
    /// Folder or repository of the model that an adapter was trained on, of which config.json is read.
    #[arg(long, value_name = "MODEL")]
    base: Option<PathBuf>,
    /// Columns that matter, for types of `apr quantize`: a file of llama-imatrix, GGUF or .dat.
    #[arg(long, value_name = "FILE", requires = "type_name")]
    imatrix: Option<PathBuf>,
    /// Name of the pre-tokenizer, where the tokenizer's own is unknown: llama-bpe, qwen2, gpt-2, ...
    #[arg(long, value_name = "NAME")]
    pre: Option<String>,
    /// Name of the model, in place of the folder's.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// JSON object of keys of authorship and sampling, which count before those of the folder.
    #[arg(long, value_name = "FILE")]
    metadata: Option<PathBuf>,
    /// Start another file after N tensors.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    split_max_tensors: Option<u64>,
    /// Start another file after tensors of SIZE: bytes, or with K, M or G, which are decimal.
    #[arg(long, value_name = "SIZE", value_parser = parse_limit, conflicts_with = "split_max_tensors")]
    split_max_size: Option<u64>,
    /// The first file holds the keys alone.
    #[arg(long)]
    no_tensor_first_split: bool,
    /// Write the N-th of the files alone.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    split_only: Option<u32>,
    /// Do not record source, options and version in the new file.
    #[arg(long)]
    no_provenance: bool,
    /// Write the tensors under the names they have, without the keys of a language model.
    #[arg(long)]
    tensors_only: bool,
}

/// What the tensors become.
enum Wanted {
    /// As the reference implementation converts.
    Converted(Target),
    /// As `apr quantize` makes it of the conversion to F32.
    Quantized(apr_convert::quantize::Target),
}

impl LanguageArgs {
    /// The folder of a language model or an adapter that IN is, if it is to be converted as one.
    ///
    /// # Errors
    ///
    /// If the hub does not say what a repository has.
    pub(super) fn place(&self, input: &Path) -> Result<Option<Place>, Failure> {
        if self.tensors_only { Ok(None) } else { Place::of(input) }
    }

    /// Refuses options of language models where none is converted.
    ///
    /// # Errors
    ///
    /// If one was given.
    pub(super) fn refuse(&self, input: &Path) -> Result<(), Failure> {
        let given = [
            ("type", self.type_name.is_some()),
            ("base", self.base.is_some()),
            ("imatrix", self.imatrix.is_some()),
            ("pre", self.pre.is_some()),
            ("model-name", self.model_name.is_some()),
            ("metadata", self.metadata.is_some()),
            ("split-max-tensors", self.split_max_tensors.is_some()),
            ("split-max-size", self.split_max_size.is_some()),
            ("no-tensor-first-split", self.no_tensor_first_split),
            ("split-only", self.split_only.is_some()),
            ("no-provenance", self.no_provenance),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) if self.tensors_only => {
                let what = format!("--{name} and --tensors-only contradict each other");
                Err(Failure::new(CODE_USAGE, what).help(format!(
                    "--{name} is for the conversion of a language model: leave one of them out"
                )))
            }
            Some((name, _)) => {
                let what = format!(
                    "--{name} is for folders with config.json or adapter_config.json that become GGUF"
                );
                let failure = Failure::new(CODE_USAGE, what);
                Err(match model_folder(input).filter(|_| !input.is_dir()) {
                    Some(folder) => failure.help(format!(
                        "name the folder instead of the file: `apr convert {} OUT.gguf --{name} ...`",
                        escape::path(&folder)
                    )),
                    None => failure
                        .help("`apr quantize` changes the types of a model file; `apr shard` splits one"),
                })
            }
            None => Ok(()),
        }
    }

    /// Refuses options that are for GGUF files alone.
    ///
    /// # Errors
    ///
    /// If one was given.
    pub(super) fn refuse_of_gguf(&self) -> Result<(), Failure> {
        let given = [
            ("split-max-tensors", self.split_max_tensors.is_some()),
            ("split-max-size", self.split_max_size.is_some()),
            ("no-tensor-first-split", self.no_tensor_first_split),
            ("split-only", self.split_only.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((name, _)) => {
                Err(Failure::new(CODE_USAGE, format!("--{name} is for GGUF files, and an .apr file is one"))
                    .help("leave the option out, or write GGUF"))
            }
            None => Ok(()),
        }
    }

    fn wanted(&self) -> Result<Wanted, Failure> {
        let name = self.type_name.as_deref().unwrap_or("auto");
        if name.eq_ignore_ascii_case("auto") {
            return Ok(Wanted::Converted(Target::Auto));
        }
        match OutputType::from_name(name) {
            Some(output_type) => Ok(Wanted::Converted(Target::Type(output_type))),
            None => Ok(Wanted::Quantized(quantize::target(name)?)),
        }
    }

    /// What the caller says about name and authors.
    fn set_authorship(&self, options: &mut Options) -> Result<(), Failure> {
        options.name.clone_from(&self.model_name);
        options.metadata =
            self.metadata.as_deref().map(|path| durable_file::read(path, MAX_METADATA)).transpose()?;
        Ok(())
    }

    /// The failure of a conversion, in the file of `--metadata` if it is at fault.
    fn in_metadata(&self, failure: Failure) -> Failure {
        match &self.metadata {
            Some(path) if failure.code() == "hg-metadata" => failure.in_file(path),
            _ => failure,
        }
    }

    /// The options that decide about the bytes, as they were given.
    fn options_text(&self, default_type: &str) -> String {
        let type_name = self.type_name.as_deref().unwrap_or(default_type);
        let mut words = vec![format!("--type {type_name}")];
        for (option, path) in [("base", &self.base), ("imatrix", &self.imatrix), ("metadata", &self.metadata)]
        {
            if let Some(name) = path.as_deref().and_then(Path::file_name) {
                words.push(format!("--{option} {}", name.to_string_lossy()));
            }
        }
        for (option, name) in [("pre", &self.pre), ("model-name", &self.model_name)] {
            words.extend(name.as_deref().map(|name| format!("--{option} {name}")));
        }
        words.join(" ")
    }
}

/// Converts a folder.
///
/// # Errors
///
/// If the folder is not that of a model that is converted, a file of it cannot be read, or the output cannot be written.
pub(super) fn run(
    args: &LanguageArgs,
    place: Place,
    input: &Path,
    rules: &Rules,
    (output, format): (Output, Format),
    console: &mut Console,
) -> Result<Exit, Failure> {
    if place.is_adapter(args.base.is_some())? {
        return adapter::run(args, place, input, rules, (output, format), console);
    }
    if args.base.is_some() {
        let what = "--base is for adapters, and the folder has no adapter_config.json";
        return Err(Failure::new(CODE_USAGE, what).in_file(input));
    }
    let wanted = args.wanted()?;
    let importance = args.imatrix.as_deref().map(quantize::importance).transpose()?;
    let in_folder = |failure: Failure| failure.in_file(input);
    let folder = Folder::open(place, CONFIG, rules).map_err(in_folder)?;
    let tensors = folder.tensors()?;
    let mut options = Options::default();
    options.target = match wanted {
        Wanted::Converted(target) => target,
        // Nothing is lost before the values are quantized.
        Wanted::Quantized(_) => Target::Type(OutputType::F32),
    };
    options.pre.clone_from(&args.pre);
    args.set_authorship(&mut options)?;
    let conversion = Conversion::new(&folder.texts, &folder.parts, &tables(&tensors)?, &options);
    let conversion =
        conversion.map_err(Failure::from).map_err(|failure| args.in_metadata(failure)).map_err(in_folder)?;
    let importance = args.imatrix.as_deref().zip(importance.as_ref());
    let model = match &wanted {
        Wanted::Converted(_) => NewModel::converted(&conversion)?,
        Wanted::Quantized(target) => NewModel::quantized(&conversion, *target, importance)?,
    };
    let job = Job {
        input,
        folder: &folder,
        tensors: &tensors,
        limits: Limits::new(args.split_max_tensors, args.split_max_size, args.no_tensor_first_split)
            .only(args.split_only),
        recorded: (!args.no_provenance).then(|| args.options_text("auto")),
        importance: importance.map(|(_, importance)| importance),
        output,
    };
    job.write_as(format, model, rules, console)
}

/// The tables of the files.
fn tables(tensors: &[Vec<Tensor<'_>>]) -> Result<Vec<Vec<SourceTensor>>, Failure> {
    let table = |tensors: &Vec<Tensor<'_>>| tensors.iter().map(Tensor::as_source).collect();
    tensors.iter().map(table).collect()
}

/// What is written of a folder.
struct Job<'j> {
    input: &'j Path,
    folder: &'j Folder,
    tensors: &'j [Vec<Tensor<'j>>],
    limits: Limits,
    /// The options that are recorded in the file, if source and options are.
    recorded: Option<String>,
    importance: Option<&'j Importance>,
    output: Output,
}

impl Job<'_> {
    /// Writes the model in this format, or says what would be written.
    fn write_as(
        self,
        format: Format,
        model: NewModel<'_>,
        rules: &Rules,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        match format {
            Format::AprV2 => self.write_apr(model, rules, console),
            _ => self.write(model, console),
        }
    }

    /// Writes an `.apr` file, or says what it would be.
    fn write_apr(
        self,
        mut model: NewModel<'_>,
        rules: &Rules,
        console: &mut Console,
    ) -> Result<Exit, Failure> {
        let Self { input, folder, tensors, recorded, importance, output, .. } = self;
        let in_folder =
            |failure: Failure| if failure.tensor().is_some() { failure.in_file(input) } else { failure };
        if let Some(options) = recorded {
            let digests = match output.run {
                Run::Write => Digests::start(folder.sources(), console)?.finish(console)?,
                Run::Dry => placeholders(folder.sources().len()),
            };
            model.record(&folder.provenance(options, &digests))?;
        }
        let file = AprFile::new(&model, rules).map_err(in_folder)?;
        let flaws = match output.run {
            Run::Write => {
                split::check_space(file.len(), &output)?;
                file.write(&Work { model: &model, sources: tensors, importance, output: &output }, console)
                    .map_err(in_folder)?
            }
            Run::Dry => hf_gguf::Flaws::default(),
        };
        let files = [report::NewFile {
            path: output.destination.label(),
            tensors: model.tensors.len() as u64,
            bytes: file.len(),
        }];
        let made = report::Made {
            input,
            model: &model,
            format: Format::AprV2,
            files: &files,
            output: &output,
            flaws,
        };
        report::print(&made, console)?;
        Ok(Exit::Success)
    }

    /// Writes the files, or says what they would be.
    fn write(self, mut model: NewModel<'_>, console: &mut Console) -> Result<Exit, Failure> {
        let Self { input, folder, tensors, limits, recorded, importance, output } = self;
        let in_folder = |failure: Failure| failure.in_file(input);
        if let Some(options) = &recorded {
            model.record(&folder.provenance(options.clone(), &placeholders(folder.sources().len())))?;
        }
        let files = split::plan(&model, limits, &output.destination)?;
        let flaws = match output.run {
            Run::Write => {
                split::check_space(files.len(), &output)?;
                let work = Work { model: &model, sources: tensors, importance, output: &output };
                let written = match recorded.filter(|_| limits.has_first()) {
                    Some(options) => {
                        let digests = Digests::start(folder.sources(), console)?;
                        // Planned with a record of the same length.
                        let recorded = || {
                            let mut model = model.clone();
                            model.record(&folder.provenance(options, &digests.finish(console)?))?;
                            split::plan(&model, limits, &output.destination)
                        };
                        // What cannot be changed later is hashed first.
                        if output.destination.is_changeable() {
                            files.write(&work, console, || output::same_len(files.head(), recorded()?.head()))
                        } else {
                            recorded()?.write(&work, console, || Ok(None))
                        }
                    }
                    None => files.write(&work, console, || Ok(None)),
                };
                written.map_err(
                    |failure| if failure.tensor().is_some() { in_folder(failure) } else { failure },
                )?
            }
            Run::Dry => hf_gguf::Flaws::default(),
        };
        let files: Vec<report::NewFile<'_>> = files.0.iter().map(report::NewFile::of).collect();
        let made = report::Made {
            input,
            model: &model,
            format: Format::Gguf,
            files: &files,
            output: &output,
            flaws,
        };
        report::print(&made, console)?;
        Ok(Exit::Success)
    }
}
