//! Model folders of the Hugging Face hub as GGUF files.

mod folder;
mod new_model;
mod report;
mod split;

use std::path::{Path, PathBuf};

use apr_convert::Importance;
use clap::value_parser;
use hf_gguf::{Conversion, Options, OutputType, Target};

use self::folder::{Folder, Place};
use self::new_model::NewModel;
use self::split::{Limits, parse_limit};
use crate::commands::quantize;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Rules, Tensor};
use crate::output::{Output, Run};
use crate::terminal::Console;

/// Most bytes of the file of `--metadata`.
const MAX_METADATA: u64 = 1 << 20;

/// Options of the conversion of a language model.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Language models: a folder with config.json becomes GGUF")]
pub(super) struct LanguageArgs {
    /// What matrices become: auto, f32, f16, bf16, q8_0, tq1_0, tq2_0, or a type of `apr quantize`.
    #[arg(short = 't', long = "type", value_name = "TYPE")]
    type_name: Option<String>,
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
    /// The folder of a language model that IN is, if it is to be converted as one.
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
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("type", self.type_name.is_some()),
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
            Some((name, _)) => {
                let what = format!("--{name} is for folders with config.json that become GGUF");
                Err(Failure::new(CODE_USAGE, what)
                    .help("`apr quantize` changes the types of a model file; `apr shard` splits one"))
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

    /// The options that decide about the bytes, as they were given.
    fn options_text(&self) -> String {
        let mut words = vec![format!("--type {}", self.type_name.as_deref().unwrap_or("auto"))];
        for (option, path) in [("imatrix", &self.imatrix), ("metadata", &self.metadata)] {
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
    output: Output,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let wanted = args.wanted()?;
    let importance = args.imatrix.as_deref().map(quantize::importance).transpose()?;
    let in_folder = |failure: Failure| failure.in_file(input);
    let folder = Folder::open(place, rules).map_err(in_folder)?;
    let tensors = folder.tensors()?;
    let table = |tensors: &Vec<Tensor<'_>>| tensors.iter().map(Tensor::as_source).collect();
    let tables = tensors.iter().map(table).collect::<Result<Vec<Vec<_>>, Failure>>()?;
    let mut options = Options::default();
    options.target = match wanted {
        Wanted::Converted(target) => target,
        // Nothing is lost before the values are quantized.
        Wanted::Quantized(_) => Target::Type(OutputType::F32),
    };
    options.pre.clone_from(&args.pre);
    options.name.clone_from(&args.model_name);
    options.metadata =
        args.metadata.as_deref().map(|path| durable_file::read(path, MAX_METADATA)).transpose()?;
    let conversion = Conversion::new(&folder.texts, &folder.parts, &tables, &options);
    let conversion = conversion.map_err(Failure::from).map_err(in_folder)?;
    let importance = args.imatrix.as_deref().zip(importance.as_ref());
    let mut model = match &wanted {
        Wanted::Converted(_) => NewModel::converted(&conversion)?,
        Wanted::Quantized(target) => NewModel::quantized(&conversion, *target, importance)?,
    };
    let limits = Limits::new(args.split_max_tensors, args.split_max_size, args.no_tensor_first_split);
    if !args.no_provenance {
        model.record(&folder.provenance(args.options_text(), Run::Dry, console)?)?;
    }
    let files = |model: &NewModel<'_>| {
        let files = split::plan(model, limits, &output.destination)?;
        match args.split_only {
            Some(number) => files.only(number),
            None => Ok(files),
        }
    };
    let mut written = files(&model)?;
    let importance: Option<&Importance> = importance.map(|(_, importance)| importance);
    let flaws = match output.run {
        Run::Write => {
            written.check_space(&output)?;
            // The first file alone has it.
            if !args.no_provenance && args.split_only.is_none_or(|number| number == 1) {
                // Hashed only now: of the same length as the record planned before.
                model.record(&folder.provenance(args.options_text(), Run::Write, console)?)?;
                written = files(&model)?;
            }
            written
                .write(&model, &tensors, importance, &output, console)
                .map_err(|failure| if failure.tensor().is_some() { in_folder(failure) } else { failure })?
        }
        Run::Dry => hf_gguf::Flaws::default(),
    };
    report::print(&report::Made { input, model: &model, files: &written, output: &output, flaws }, console)?;
    Ok(Exit::Success)
}
