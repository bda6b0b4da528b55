//! Joins shards of a GGUF model as `llama-gguf-split` does.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use gguf_core::{ErrorKind, Header, MergePlan, ShardName, SplitKeys};
use serde::Serialize;

use super::Args;
use crate::commands::shard::gguf::refuse_options;
use crate::error::{CODE_SHARDS, CODE_USAGE, Exit, Failure};
use crate::input::cut_file;
use crate::input::{Contents, Format, Model, Source, Tensor};
use crate::output::ending::Ending;
use crate::output::gguf_stream;
use crate::output::{Output, Run};
use crate::report::{Report, Written};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{exact_bytes, grouped, plural};

/// The shards of the set that a path leads to, if it is one of GGUF files: a shard, or a folder with the files of one set and no
/// index of safetensors files.
///
/// # Errors
///
/// If the folder cannot be read or has several sets; if the file is not called like a shard.
pub(super) fn shards_of(path: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    if path.is_dir() {
        return in_folder(path);
    }
    if Source::peek(path) != Format::Gguf {
        return Ok(None);
    }
    let name = path.file_name().and_then(|name| name.to_str()).and_then(ShardName::parse);
    let Some(name) = name else {
        let failure = Failure::new(CODE_SHARDS, "the file is not called like a shard").in_file(path).help(
            "shards are PREFIX-00001-of-00003.gguf and so on, in one folder: give them their names back",
        );
        return Err(cut_file::advised(failure, path));
    };
    Ok(Some(siblings(path.parent().unwrap_or(Path::new("")), name)))
}

fn in_folder(folder: &Path) -> Result<Option<Vec<PathBuf>>, Failure> {
    let failed = |error: io::Error| Failure::io("read the folder", folder, &error);
    let mut found: Option<Vec<PathBuf>> = None;
    let mut is_several = false;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.ends_with(".index.json") || name == "model.safetensors" {
            return Ok(None);
        }
        if let Some(shard) = ShardName::parse(name).filter(|shard| shard.idx == 0) {
            is_several = found.is_some();
            found = Some(siblings(folder, shard));
        }
        if is_several {
            let failure = Failure::new(CODE_USAGE, "the folder has shards of several models");
            return Err(failure.in_file(folder).help("name the first shard of the one you mean"));
        }
    }
    Ok(found)
}

fn siblings(folder: &Path, shard: ShardName<'_>) -> Vec<PathBuf> {
    (0..shard.count).map(|idx| folder.join(ShardName { idx, ..shard }.to_string())).collect()
}

/// Runs `apr unshard` on these shards.
///
/// # Errors
///
/// If a shard is missing or invalid, or they are not those of one model; if the output cannot be written.
pub(super) fn run(args: &Args, paths: &[PathBuf], console: &mut Console) -> Result<Exit, Failure> {
    refuse_options(&args.layout.given(), "GGUF files")?;
    let input = args.input.as_path();
    let output = args.write.output([&args.input], &args.output, console)?;
    Ending::check_output(&output.destination, Format::Gguf)?;
    // Checked before the first is read, so that one error names every missing file.
    let is_missing =
        |path: &&PathBuf| matches!(path.metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound);
    let missing: Vec<&PathBuf> = paths.iter().filter(is_missing).collect();
    if let Some(first) = missing.first() {
        let what = format!("{} of {} shards missing", missing.len(), paths.len());
        return Err(Failure::new(CODE_SHARDS, what).in_file(first).help("fetch the missing files"));
    }
    let rules = args.compat.rules();
    let open = |path: &PathBuf| match Source::peek(path) {
        Format::Gguf => Model::open(path, &rules),
        // Empty, cut to nothing or overwritten: whatever else it looks like, it is no shard.
        _ => Err(Failure::new(CODE_SHARDS, "a shard is not a GGUF file").in_file(path)),
    };
    let models = paths.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let headers = models.iter().map(header).collect::<Result<Vec<_>, _>>()?;
    let keys = match args.no_split_keys {
        true => SplitKeys::Removed,
        false => SplitKeys::AsReference,
    };
    let plan = MergePlan::new(&headers, keys).map_err(|error| {
        let place = match error.kind() {
            ErrorKind::ShardOrder { idx, .. } => usize::try_from(*idx).ok().and_then(|idx| paths.get(idx)),
            _ => paths.first(),
        };
        Failure::from(error).in_file(place.map_or(input, PathBuf::as_path))
    })?;
    let layout = plan.builder().layout().map_err(|error| Failure::from(error).in_file(input))?;
    let tensors = models.iter().map(Model::tensors).collect::<Result<Vec<_>, _>>()?;
    let tensor = |idx: usize| {
        let &(shard, place) = plan.sources().get(idx)?;
        // The new file has the byte order of the shards.
        tensors.get(shard)?.get(place).copied().map(Tensor::as_stored)
    };
    if output.run == Run::Write {
        let mut progress = console.progress("writing", layout.file_len());
        output.destination.fill(output.overwrite, |out| {
            gguf_stream::write(&layout, tensor, out, &output.destination, &mut progress)
        })?;
    }
    print(input, paths.len(), &layout, &output, console)?;
    Ok(Exit::Success)
}

fn header(model: &Model) -> Result<Header<'_>, Failure> {
    match model.contents() {
        Contents::Gguf(file) => Ok(file.header()?),
        _ => Err(Failure::new(CODE_SHARDS, "a shard is not a GGUF file").in_file(model.label())),
    }
}

/// The new file.
#[derive(Serialize)]
struct UnshardReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    data_start: u64,
    tensors: u64,
    format: &'a str,
    shards: usize,
}

impl Report for UnshardReport<'_> {
    const SCHEMA: &'static str = "apr.unshard/1";
}

fn print(
    input: &Path,
    n_shards: usize,
    layout: &gguf_core::Layout,
    output: &Output,
    console: &mut Console,
) -> Result<(), Failure> {
    let label = output.destination.label();
    let n_tensors = layout.tensors().len() as u64;
    if console.is_json() {
        return console.report(&UnshardReport {
            file: Written::new(input, label, output.run, layout.file_len()),
            data_start: layout.data_start(),
            tensors: n_tensors,
            format: Format::Gguf.name(),
            shards: n_shards,
        });
    }
    let text = format!(
        "{}: GGUF version 3, of {}, {}, {}, data from byte {}",
        escape::path(label),
        plural(n_shards as u64, "shard"),
        plural(n_tensors, "tensor"),
        exact_bytes(layout.file_len()),
        grouped(layout.data_start()),
    );
    output.run.tell(&text, console)
}
