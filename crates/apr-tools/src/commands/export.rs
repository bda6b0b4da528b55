//! `apr export`: a model for other programs. The work is that of `apr convert`, but for model folders.

mod folder;

use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use st_core::WriteOptions;

use self::folder::FolderType;
use crate::args::glob::Selection;
use crate::args::{CompatArg, DequantizeArg, INPUT_HELP, LayoutArgs, PayloadArgs, WriteArgs};
use crate::commands::convert::{self, Blocks, FormatArg, MetadataEdit, Request, Target, TargetArgs};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::output::Run;
use crate::remote::is_url;
use crate::terminal::Console;

const AFTER_HELP: &str = "The same as `apr convert MODEL OUT --format FORMAT`, which has more options, but for quantized tensors that \
    FORMAT has no type for: they become the nearest type it has, and each is named. In a GGUF file q4_0 of .apr \
    files stays q4_0, losslessly, where rows are whole blocks; q8_0 has its one scale rounded to 16 bits; all others \
    become F32. In a safetensors file all become F32, or F16 with --dequantize f16.\n\n\
    With --format hf a GGUF file of a language model becomes a folder that transformers loads and `apr convert` turns back into \
    the same file: config.json, tokenizer, model.safetensors. Numbers keep their type, blocks become F16, unless --dtype says \
    otherwise. What another conversion would have otherwise is told.\n\n\
    Examples:\n  apr export model.apr --format safetensors --output exported/\n  \
    apr export model.apr --format gguf --output exported.gguf\n  \
    apr convert llama llama.gguf --type f16\n  \
    apr export llama.gguf --format hf --output folder\n\n\
    Exit codes: those of `apr convert`.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "MODEL", help = INPUT_HELP)]
    input: PathBuf,
    /// What to write.
    #[arg(long, value_name = "FORMAT")]
    format: ExportFormat,
    /// The new file; of a folder (it exists, or the name ends in a slash) `model` with the format's ending in it. With --format hf the new folder.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    dequantize: DequantizeArg,
    /// With --format hf: the type of all tensors.
    #[arg(long, value_name = "TYPE")]
    dtype: Option<FolderType>,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
}

/// A value of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExportFormat {
    Gguf,
    #[value(name = "safetensors")]
    SafeTensors,
    // A folder of the Hugging Face hub, of a GGUF file.
    Hf,
}

/// Runs `apr export`.
///
/// # Errors
///
/// Those of `apr convert`; if a folder cannot be made.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let (format, ending) = match args.format {
        ExportFormat::Gguf => (FormatArg::Gguf, "gguf"),
        ExportFormat::SafeTensors => (FormatArg::SafeTensors, "safetensors"),
        ExportFormat::Hf => return run_folder(args, console),
    };
    if args.dtype.is_some() {
        return Err(Failure::new(CODE_USAGE, "--dtype is for --format hf")
            .help("--dequantize makes numbers of quantized tensors"));
    }
    let (path, folder) = file(&args.output, ending, args.write.run())?;
    let output = args.write.output([&args.input], &path, console)?;
    let rules = args.payload.apply(args.compat.rules());
    let dequantize = args.dequantize.dtype();
    if ending == "gguf"
        && let Some(exit) = convert::model_folder(&args.input, &rules, &output, dequantize, console)?
    {
        folder.keep();
        return Ok(exit);
    }
    let target = TargetArgs { format: Some(format), ..TargetArgs::default() };
    let request = Request {
        input: &args.input,
        rules,
        target: Target::new(target, LayoutArgs::default(), &output.destination)?,
        output,
        layout: WriteOptions::default(),
        selection: &Selection::default(),
        dequantize,
        renames: Vec::new(),
        metadata: MetadataEdit::default(),
        detached: None,
        foreign: foreign_tensors::Options::default(),
        repair: false,
        blocks: Blocks::Nearest,
        allow_empty: false,
    };
    let exit = convert::rewrite(request, console)?;
    folder.keep();
    Ok(exit)
}

/// Writes a model folder.
fn run_folder(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if args.dequantize.dtype().is_some() {
        return Err(Failure::new(CODE_USAGE, "--dequantize is for files")
            .help("--dtype says what the tensors of a folder become"));
    }
    let request = folder::Request {
        input: &args.input,
        output: &args.output,
        rules: args.payload.apply(args.compat.rules()),
        dtype: args.dtype,
        overwrite: args.write.overwrite(),
        run: args.write.run(),
    };
    folder::run(&request, console)
}

/// The file to write: in a folder, it has a name of its own.
fn file(output: &Path, format: &str, run: Run) -> Result<(PathBuf, NewFolders), Failure> {
    let names_folder = output
        .as_os_str()
        .as_encoded_bytes()
        .last()
        .is_some_and(|&last| std::path::is_separator(last.into()));
    if !names_folder && !output.is_dir() {
        return Ok((output.to_owned(), NewFolders::default()));
    }
    let folders = match run {
        Run::Write if !is_url(output) => NewFolders::create(output)?,
        _ => NewFolders::default(),
    };
    Ok((output.join("model").with_extension(format), folders))
}

/// Folders that were made for the output. Without [`keep`](Self::keep) those that are still empty are removed again.
#[derive(Debug, Default)]
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    fn create(path: &Path) -> Result<Self, Failure> {
        let missing = path.ancestors().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let folders = Self(missing.map(Path::to_owned).collect());
        fs::create_dir_all(path).map_err(|error| Failure::io("make the folder", path, &error))?;
        Ok(folders)
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        // The innermost first; what holds something by now stays.
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}
