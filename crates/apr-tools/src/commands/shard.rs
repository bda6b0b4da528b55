//! `apr shard`: splits a model into files of limited size, with an index.

pub(crate) mod gguf;
mod index;

use alloc::borrow::Cow;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::value_parser;
use durable_file::StagedDir;
use serde::Serialize;
use st_core::{ShardPlan, WriteOptions};

use crate::args::{CompatArg, INPUT_HELP, LayoutArgs, WriteArgs, parse_size};
use crate::error::{CODE_OUTPUT_KIND, Exit, Failure};
use crate::input::{Format, Model, Source};
use crate::output::rewrite::{self, Plan};
use crate::output::{self, Destination, Overwrite, Run};
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, plural};
use crate::terminal::table::{Align, Table};

/// File name of the index, as all readers of sharded models know it.
const INDEX_NAME: &str = "model.safetensors.index.json";

const AFTER_HELP: &str = "File names, index and the distribution of tensors are those of the usual hubs: \
    model-00001-of-00003.safetensors and model.safetensors.index.json; a tensor larger than SIZE gets a file \
    of its own. If everything fits into one file, it is called model.safetensors and there is no index. A \
    new folder appears as a whole; in an existing one the index is written last.\n\n\
    With --index, nothing is split: the index of the folder IN is made from the headers of its shards, where it is missing or wrong \
    (--force replaces it).\n\n\
    A GGUF model becomes the files of llama-gguf-split, NAME-00001-of-00003.gguf, even if there is but one. In an \
    existing folder all of them are written before the first takes its place.\n\n\
    Examples:\n  apr shard model.safetensors -o shards --max-size 300 --dry-run\n  \
    apr shard tiny_llama.gguf -o parts --max-tensors 8\n  apr shard --index sharded --force\n\n\
    Exit codes: 0 success, 2 a file exists, 3 invalid file, 5 I/O, 6 another format.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "IN", help = INPUT_HELP)]
    input: PathBuf,
    /// Folder for the shards; created if missing.
    #[arg(short, long, value_name = "DIR", required_unless_present = "index")]
    output: Option<PathBuf>,
    /// IN is a folder of safetensors shards: write its index from them, and nothing else.
    #[arg(long, conflicts_with_all = ["output", "max_size", "max_tensors", "prefix", "no_tensor_first_split"])]
    index: bool,
    /// Maximum size of the tensors in one file: 5GB, 500MB, 2GiB or a number of bytes.
    #[arg(long, value_name = "SIZE", default_value = "5GB")]
    max_size: String,
    /// GGUF: this many tensors in a file, instead of a size.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), conflicts_with = "max_size")]
    max_tensors: Option<u64>,
    /// GGUF: what the files are called before their numbers; without it, as IN is.
    #[arg(long, value_name = "NAME")]
    prefix: Option<String>,
    /// GGUF: the first file holds the keys alone.
    #[arg(long)]
    no_tensor_first_split: bool,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    write: WriteArgs,
}

/// A file of the set to be.
struct PlannedFile<'m> {
    name: String,
    plan: Plan<'m>,
}

/// Runs `apr shard`.
///
/// # Errors
///
/// If the input cannot be read, or the set cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let Some(folder) = args.output.as_deref() else { return index::run(args, console) };
    let max_bytes = parse_size(&args.max_size)?;
    let (overwrite, run) = (args.write.overwrite(), args.write.run());
    output::check_inputs([&args.input])?;
    if folder.metadata().is_ok_and(|entry| !entry.is_dir()) {
        return Err(Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a folder").in_file(folder));
    }

    let source = Source::open(&args.input)?;
    if source.format() == Format::Gguf {
        return gguf::run(args, folder, max_bytes, source, console);
    }
    let gguf_options = [
        ("max-tensors", args.max_tensors.is_some()),
        ("prefix", args.prefix.is_some()),
        ("no-tensor-first-split", args.no_tensor_first_split),
    ];
    gguf::refuse_options(&gguf_options, "safetensors files")?;
    let model = Model::of_safetensors(source, &args.compat.rules())?;
    model.tell_notes(console);
    let tensors = model.tensors()?;
    let options = WriteOptions { metadata: rewrite::metadata_of(&model, console)?, ..args.layout.options() };
    let plan = ShardPlan::new(tensors.iter().map(|tensor| (tensor.name(), tensor.byte_len())), max_bytes)?;
    let mut files = Vec::new();
    for shard in plan.shards() {
        let mine = shard.tensors.iter().filter_map(|&idx| tensors.get(idx));
        let plan = Plan::new(mine.map(|tensor| (tensor.name(), *tensor)), &options)?;
        files.push(PlannedFile { name: shard.file_name.clone(), plan });
    }
    let index = plan.index().map(st_core::ShardIndex::to_json);
    check_targets(folder, &files, index.is_some(), overwrite)?;
    let old =
        output::old_files(folder, |name| is_of_model(name) && files.iter().all(|file| file.name != name))?;
    output::check_old(&old, overwrite)?;
    if run == Run::Write {
        write_set(folder, &files, index.as_deref(), overwrite, console)?;
        output::remove_old(&old, console)?;
    }
    let shards = files.iter().map(|file| Shard {
        name: &file.name,
        tensors: file.plan.n_tensors(),
        bytes: file.plan.layout.file_len(),
    });
    let report = Written {
        model: &model,
        folder,
        shards: shards.collect(),
        index: index.as_deref(),
        run,
        max_bytes: Some(max_bytes),
        max_tensors: None,
    };
    report.print(console)?;
    Ok(Exit::Success)
}

/// Whether a file of this name is read as the model of its folder, or as a shard of it.
fn is_of_model(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".safetensors") else { return false };
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit());
    let shard = stem.strip_prefix("model-").and_then(|numbers| numbers.split_once("-of-"));
    stem == "model" || shard.is_some_and(|(number, of)| is_number(number) && is_number(of))
}

/// Refuses before any work is done. A stale index beside a single new file would outlive its shards, so it is in the
/// way even if nothing will be written to its name.
fn check_targets(
    folder: &Path,
    files: &[PlannedFile<'_>],
    has_index: bool,
    overwrite: Overwrite,
) -> Result<(), Failure> {
    let names = files.iter().map(|file| file.name.as_str());
    names.chain([INDEX_NAME]).try_for_each(|name| {
        let path = folder.join(name);
        output::check_file(&path, overwrite).map_err(|failure| match name == INDEX_NAME && !has_index {
            true => failure
                .help("this index belongs to another set: choose another folder, or --force to remove it"),
            false => failure,
        })
    })
}

fn write_set(
    folder: &Path,
    files: &[PlannedFile<'_>],
    index: Option<&str>,
    overwrite: Overwrite,
    console: &Console,
) -> Result<(), Failure> {
    let mut progress =
        console.progress("writing", files.iter().map(|file| file.plan.layout.file_len()).sum());
    let mut fill = |folder: &Path| -> Result<(), Failure> {
        for file in files {
            console.detail(format_args!("writing {}", file.name));
            file.plan.write(&Destination::File(folder.join(&file.name)), overwrite, &mut progress)?;
        }
        match index {
            Some(text) => output::write_file(&folder.join(INDEX_NAME), text.as_bytes(), overwrite),
            None => Ok(()),
        }
    };
    if !folder.exists() {
        let staged = StagedDir::create(folder)?;
        fill(staged.path()).map_err(|failure| failure.moved(staged.path(), folder))?;
        return Ok(staged.commit()?);
    }
    fill(folder)?;
    let stale = folder.join(INDEX_NAME);
    if index.is_none() && stale.exists() {
        fs::remove_file(&stale).map_err(|error| Failure::io("remove the old index", &stale, &error))?;
        console.remark(format_args!("removed the index of the old set: {}", escape::path(&stale)));
    }
    Ok(())
}

/// The set.
#[derive(Serialize)]
struct ShardReport<'a> {
    input: Cow<'a, str>,
    output: Cow<'a, str>,
    written: bool,
    max_bytes: Option<u64>,
    total_size: u64,
    shards: &'a [Shard<'a>],
    index: Option<&'a str>,
    #[serde(flatten)]
    gguf: Option<GgufFields<'a>>,
}

/// Of a GGUF model only.
#[derive(Serialize)]
struct GgufFields<'a> {
    format: &'a str,
    max_tensors: Option<u64>,
}

impl Report for ShardReport<'_> {
    const SCHEMA: &'static str = "apr.shard/1";
}

/// One file of the set.
#[derive(Serialize)]
struct Shard<'a> {
    #[serde(rename = "file")]
    name: &'a str,
    tensors: u64,
    bytes: u64,
}

/// What was written, or would be.
struct Written<'a> {
    model: &'a Model,
    folder: &'a Path,
    shards: Vec<Shard<'a>>,
    /// The text of the index.
    index: Option<&'a str>,
    run: Run,
    max_bytes: Option<u64>,
    max_tensors: Option<u64>,
}

impl Written<'_> {
    fn print(&self, console: &mut Console) -> Result<(), Failure> {
        let is_gguf = self.model.format() == Format::Gguf;
        if console.is_json() {
            let total = self.model.tensors()?.iter().map(|tensor| tensor.byte_len()).sum();
            return console.report(&ShardReport {
                input: report::path(self.model.label()),
                output: report::path(self.folder),
                written: self.run == Run::Write,
                max_bytes: self.max_bytes,
                total_size: total,
                shards: &self.shards,
                index: self.index.map(|_| INDEX_NAME),
                gguf: is_gguf
                    .then_some(GgufFields { format: Format::Gguf.name(), max_tensors: self.max_tensors }),
            });
        }
        let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
        for shard in &self.shards {
            let name = escape::escaped(shard.name);
            table.row([format!("  {name}"), plural(shard.tensors, "tensor"), human::bytes(shard.bytes)]);
        }
        if let Some(text) = self.index {
            table.row([format!("  {INDEX_NAME}"), String::new(), human::bytes(text.len() as u64)]);
        }
        let place = escape::path(self.folder);
        match self.run {
            Run::Dry => console.text(|out, _| {
                writeln!(out, "would write to {place}:")?;
                table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))
            })?,
            Run::Write => {
                console.note(format_args!("wrote to {place}{}:", console.took()));
                table.lines().iter().for_each(|line| console.note(line));
                if self.index.is_none() && !is_gguf {
                    console.remark("everything fits into one file, so there is no index");
                }
            }
        }
        Ok(())
    }
}
