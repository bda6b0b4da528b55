//! `apr shard --index`: the index of a folder, made from its shards.

use std::path::Path;

use st_core::ShardIndex;
use st_mmap::FolderIndex;

use super::{Args, Shard, ShardReport};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::output::{self, Run};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{bytes, plural};
use crate::{remote, report};

/// Longest index that is read for a comparison.
const MAX_INDEX: u64 = st_core::MAX_HEADER_LEN;

/// Writes the index of the folder IN.
///
/// # Errors
///
/// If IN is not a folder with a complete set of shards, or has another index and may not replace it.
pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let folder = args.input.as_path();
    if remote::is_url(folder) {
        return Err(Failure::not_remote(folder));
    }
    output::check_inputs([&args.input])?;
    if !folder.is_dir() {
        return Err(Failure::new(CODE_USAGE, "--index works on a folder, and this is a file")
            .in_file(folder)
            .help("name the folder with the shards"));
    }
    if let Some((name, _)) = args.layout.given().into_iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::new(CODE_USAGE, format!("--{name} has no effect with --index"))
            .help("leave the option out"));
    }
    let made = FolderIndex::of(folder, &args.compat.rules().safetensors)?;
    let path = folder.join(made.name());
    let run = args.write.run();
    let is_right = read(&path).is_some_and(|old| is_equal(&old, made.index()));
    if !is_right {
        output::check_file(&path, args.write.overwrite())?;
        if run == Run::Write {
            output::write_file(&path, made.index().to_json().as_bytes(), args.write.overwrite())?;
        }
    }
    for other in made.others() {
        console
            .remark(format_args!("not a file of the set, and not in the index: {}", escape::cut(other, 100)));
    }
    let total_size = made.index().total_size().unwrap_or_default();
    if console.is_json() {
        let shards: Vec<Shard<'_>> = made
            .shards()
            .iter()
            .map(|shard| Shard { name: &shard.file_name, tensors: shard.tensors, bytes: shard.bytes })
            .collect();
        console.report(&ShardReport {
            input: report::path(folder),
            output: report::path(folder),
            written: run == Run::Write && !is_right,
            max_bytes: None,
            total_size,
            shards: &shards,
            index: Some(made.name()),
            gguf: None,
        })?;
        return Ok(Exit::Success);
    }
    if is_right {
        console.note(format_args!("{} is right: nothing was written", escape::path(&path)));
        return Ok(Exit::Success);
    }
    let tensors = made.shards().iter().map(|shard| shard.tensors).sum();
    let shards = plural(made.shards().len() as u64, "shard");
    let text =
        format!("{}: {} in {shards}, {}", escape::path(&path), plural(tensors, "tensor"), bytes(total_size));
    run.tell(&text, console)?;
    Ok(Exit::Success)
}

/// The index that is there, if it can be read as one.
fn read(path: &Path) -> Option<ShardIndex> {
    ShardIndex::from_json(&durable_file::read(path, MAX_INDEX).ok()?).ok()
}

/// Whether two indexes give the same file for each tensor, and the same size.
fn is_equal(old: &ShardIndex, new: &ShardIndex) -> bool {
    let mut tensors = new.weight_map();
    old.total_size() == new.total_size()
        && old.weight_map().len() == new.weight_map().len()
        && tensors.all(|(tensor, shard)| old.shard_of(tensor) == Some(shard))
}
