//! `apr shard`: a model divided into files of limited size, with an index.

pub(crate) mod gguf;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use durable_file::StagedDir;
use st_core::{ShardPlan, WriteOptions};

use crate::commands::convert;
use crate::error::{CODE_OUTPUT_KIND, Exit, Failure};
use crate::input::{self, Format, Model, Source, Tensor};
use crate::output::rewrite::{self, Plan};
use crate::output::{self, Destination, Overwrite, Run};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, plural};
use crate::terminal::table::{Align, Table};

/// File name of the index, as all readers of sharded models know it.
const INDEX_NAME: &str = "model.safetensors.index.json";

pub(crate) fn command() -> Command {
    Command::new("shard")
        .about("Divide a safetensors or GGUF model into several files")
        .arg(input::input_arg().value_name("IN"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder for the shards; it is made if it is missing"),
        )
        .arg(
            Arg::new("max-size")
                .long("max-size")
                .value_name("SIZE")
                .default_value("5GB")
                .help("Most bytes of tensors in one file: 5GB, 500MB, 2GiB or a number of bytes"),
        )
        .arg(
            Arg::new("max-tensors")
                .long("max-tensors")
                .value_name("N")
                .value_parser(value_parser!(u64).range(1..))
                .conflicts_with("max-size")
                .help("GGUF: this many tensors in a file, instead of a size"),
        )
        .arg(
            Arg::new("prefix")
                .long("prefix")
                .value_name("NAME")
                .help("GGUF: what the files are called before their numbers; without it, as IN is"),
        )
        .arg(
            Arg::new("no-tensor-first-split")
                .long("no-tensor-first-split")
                .action(ArgAction::SetTrue)
                .help("GGUF: the first file holds the keys alone"),
        )
        .arg(input::compat_arg())
        .args(convert::layout_args())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .after_help(
            "File names, index and the distribution of tensors are those of the usual hubs: \
             model-00001-of-00003.safetensors and model.safetensors.index.json; a tensor larger than SIZE gets a file \
             of its own. If everything fits into one file, it is called model.safetensors and there is no index. A \
             new folder appears as a whole; in an existing one the index is written last.\n\n\
             A GGUF model becomes the files of llama-gguf-split, NAME-00001-of-00003.gguf, even if there is but one. In an \
             existing folder all of them are written before the first takes its place.\n\n\
             Examples:\n  apr shard model.safetensors -o shards --max-size 300 --dry-run\n  \
             apr shard tiny_llama.gguf -o parts --max-tensors 8\n\n\
             Exit codes: 0 written, 2 a file exists, 3 not a sound file, 5 I/O, 6 another format.",
        )
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
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let rules = input::rules_of(matches);
    let folder = matches.get_one::<PathBuf>("output").expect("clap requires -o");
    let max_bytes = max_bytes(matches)?;
    let (overwrite, run) = (output::overwrite(matches), output::run_mode(matches));
    if folder.metadata().is_ok_and(|entry| !entry.is_dir()) {
        return Err(Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a folder").in_file(folder));
    }

    let source = Source::open(input::path(matches))?;
    if source.format() == Format::Gguf {
        return gguf::run(matches, folder, source, console);
    }
    let gguf_options = ["max-tensors", "prefix", "no-tensor-first-split"];
    gguf::refuse_options(matches, &gguf_options, "safetensors files")?;
    let model = Model::of_safetensors(source, &rules)?;
    let tensors = model.tensors()?;
    let options =
        WriteOptions { metadata: rewrite::metadata_of(&model, console)?, ..convert::write_options(matches) };
    let plan = ShardPlan::new(tensors.iter().map(|tensor| (tensor.name(), tensor.byte_len())), max_bytes)?;
    let mut files = Vec::new();
    for shard in plan.shards() {
        let mine = shard.tensors.iter().filter_map(|&idx| tensors.get(idx));
        let plan = Plan::new(mine.map(|tensor| (tensor.name(), *tensor)), &options)?;
        files.push(PlannedFile { name: shard.file_name.clone(), plan });
    }
    let index = plan.index().map(st_core::ShardIndex::to_json);
    check_targets(folder, &files, index.is_some(), overwrite)?;
    if run == Run::Write {
        write_set(folder, &files, index.as_deref(), overwrite, console)?;
    }
    let shards = files.iter().map(|file| Shard {
        name: &file.name,
        tensors: file.plan.n_tensors(),
        bytes: file.plan.layout.file_len(),
    });
    let report = Report {
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

fn max_bytes(matches: &ArgMatches) -> Result<u64, Failure> {
    human::parse_size(matches.get_one::<String>("max-size").expect("it has a default"))
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

/// One file of the set.
struct Shard<'a> {
    name: &'a str,
    tensors: u64,
    bytes: u64,
}

/// What was written, or would be.
struct Report<'a> {
    model: &'a Model,
    folder: &'a Path,
    shards: Vec<Shard<'a>>,
    /// The text of the index.
    index: Option<&'a str>,
    run: Run,
    max_bytes: Option<u64>,
    max_tensors: Option<u64>,
}

impl Report<'_> {
    fn print(&self, console: &mut Console) -> Result<(), Failure> {
        let is_gguf = self.model.format() == Format::Gguf;
        if console.is_json() {
            let total = self.model.tensors()?.iter().map(Tensor::byte_len).sum();
            return console.json("apr.shard/1", |json| {
                json.field_str("input", &self.model.label().to_string_lossy())?;
                json.field_str("output", &self.folder.to_string_lossy())?;
                json.field_bool("written", self.run == Run::Write)?;
                json.field_opt("max_bytes", self.max_bytes, |value, json| json.uint(value))?;
                json.field_uint("total_size", total)?;
                json.key("shards")?;
                json.array()?;
                for shard in &self.shards {
                    json.object()?;
                    json.field_str("file", shard.name)?;
                    json.field_uint("tensors", shard.tensors)?;
                    json.field_uint("bytes", shard.bytes)?;
                    json.end_object()?;
                }
                json.end_array()?;
                json.field_opt_str("index", self.index.map(|_| INDEX_NAME))?;
                if is_gguf {
                    json.field_str("format", Format::Gguf.name())?;
                    json.field_opt("max_tensors", self.max_tensors, |value, json| json.uint(value))?;
                }
                Ok(())
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
