//! `apr shard`: a model divided into files of limited size, with an index.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use durable_file::StagedDir;
use st_core::{ShardPlan, WriteOptions};

use crate::console::Console;
use crate::convert;
use crate::error::{CODE_OUTPUT_KIND, Exit, Failure};
use crate::input::{self, Model, Rules, Tensor};
use crate::output::{self, Destination, Overwrite, Run};
use crate::render::escape;
use crate::render::human::{self, plural};
use crate::render::table::{Align, Table};
use crate::rewrite::{self, Plan};

/// File name of the index, as all readers of sharded models know it.
const INDEX_NAME: &str = "model.safetensors.index.json";

pub(crate) fn command() -> Command {
    Command::new("shard")
        .about("Divide a model into several safetensors files with an index")
        .arg(input::input_arg().value_name("IN"))
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Folder for the shards and the index; it is made if it is missing"),
        )
        .arg(
            Arg::new("max-size")
                .long("max-size")
                .value_name("SIZE")
                .default_value("5GB")
                .help("Most bytes of tensors in one file: 5GB, 500MB, 2GiB or a number of bytes"),
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
             Examples:\n  apr shard model.safetensors -o shards --max-size 300 --dry-run\n  \
             apr shard model.safetensors -o shards --max-size 5GB\n\n\
             Exit codes: 0 written, 2 a file exists, 3 not a sound safetensors file, 5 I/O, 6 another format.",
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
    let rules = Rules::from_matches(matches);
    let folder = matches.get_one::<PathBuf>("output").expect("clap requires -o");
    let max_bytes = human::parse_size(matches.get_one::<String>("max-size").expect("it has a default"))?;
    let (overwrite, run) = (output::overwrite(matches), output::run_mode(matches));
    if folder.metadata().is_ok_and(|entry| !entry.is_dir()) {
        return Err(Failure::new(CODE_OUTPUT_KIND, "the output exists and is not a folder").in_file(folder));
    }

    let model = Model::open_safetensors(input::path(matches), &rules)?;
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
    report(&model, folder, &files, index.as_deref(), run, max_bytes, console)?;
    Ok(Exit::Success)
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

fn report(
    model: &Model,
    folder: &Path,
    files: &[PlannedFile<'_>],
    index: Option<&str>,
    run: Run,
    max_bytes: u64,
    console: &mut Console,
) -> Result<(), Failure> {
    if console.is_json() {
        let total = model.tensors()?.iter().map(Tensor::byte_len).sum();
        return console.json("apr.shard/1", |json| {
            json.field_str("input", &model.label().to_string_lossy())?;
            json.field_str("output", &folder.to_string_lossy())?;
            json.field_bool("written", run == Run::Write)?;
            json.field_uint("max_bytes", max_bytes)?;
            json.field_uint("total_size", total)?;
            json.key("shards")?;
            json.array()?;
            for file in files {
                json.object()?;
                json.field_str("file", &file.name)?;
                json.field_uint("tensors", file.plan.n_tensors())?;
                json.field_uint("bytes", file.plan.layout.file_len())?;
                json.end_object()?;
            }
            json.end_array()?;
            json.key("index")?;
            if index.is_some() { json.string(INDEX_NAME) } else { json.null() }
        });
    }
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
    for file in files {
        let bytes = human::bytes(file.plan.layout.file_len());
        table.row([format!("  {}", file.name), plural(file.plan.n_tensors(), "tensor"), bytes]);
    }
    if let Some(text) = index {
        table.row([format!("  {INDEX_NAME}"), String::new(), human::bytes(text.len() as u64)]);
    }
    let place = escape::path(folder);
    match run {
        Run::Dry => console.text(|out, _| {
            writeln!(out, "would write to {place}:")?;
            table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))
        })?,
        Run::Write => {
            console.note(format_args!("wrote to {place}:"));
            table.lines().iter().for_each(|line| console.note(line));
            if index.is_none() {
                console.remark("everything fits into one file, so there is no index");
            }
        }
    }
    Ok(())
}
