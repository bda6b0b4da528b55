//! Splits GGUF models as `llama-gguf-split` does.

use std::path::Path;

use durable_file::{Replacement, StagedDir};
use gguf_core::{FirstShard, Layout, ShardLimit, ShardName, SplitPlan};

use super::{Args, Shard, Written};
use crate::error::{CODE_INTERNAL, CODE_USAGE, Exit, Failure};
use crate::input::{Contents, Model, Source, Tensor};
use crate::output::gguf_stream;
use crate::output::{self, Destination, Overwrite, Run};
use crate::terminal::{Console, Progress};

/// Most files of a set that are kept open until all of them can take their places.
const MAX_OPEN: usize = 256;

/// A file of the set to be.
struct PlannedFile {
    name: String,
    /// The first of its tensors.
    first: usize,
    layout: Layout,
}

/// Runs `apr shard` on a GGUF model.
///
/// # Errors
///
/// If the input cannot be read or is a shard itself, or the set cannot be written.
pub(super) fn run(
    args: &Args,
    folder: &Path,
    max_bytes: u64,
    source: Source,
    console: &mut Console,
) -> Result<Exit, Failure> {
    refuse_options(&args.layout.given(), "GGUF files")?;
    let (overwrite, run) = (args.write.overwrite(), args.write.run());
    let prefix = prefix(args.prefix.as_deref(), source.label())?;
    let model = Model::from_source(source, &args.compat.rules())?;
    let in_model = |failure: Failure| failure.in_file(model.label());
    let Contents::Gguf(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a GGUF file that is none"));
    };
    let max_tensors = args.max_tensors;
    let limit = max_tensors.map_or(ShardLimit::Bytes(max_bytes), ShardLimit::Tensors);
    let first = match args.no_tensor_first_split {
        true => FirstShard::KeysOnly,
        false => FirstShard::Tensors,
    };
    let header = file.header()?;
    let plan = SplitPlan::new(&header, limit, first).map_err(Failure::from).map_err(in_model)?;
    let files = plan.shards().iter().enumerate().map(|(idx, range)| {
        let layout = plan.builder(&header, idx).and_then(|builder| builder.layout());
        let layout = layout.map_err(Failure::from).map_err(in_model)?;
        Ok(PlannedFile { name: plan.file_name(&prefix, idx), first: range.start, layout })
    });
    let files = files.collect::<Result<Vec<_>, Failure>>()?;
    // The set has the byte order of the model.
    let tensors: Vec<Tensor<'_>> = model.tensors()?.into_iter().map(Tensor::as_stored).collect();

    let names = files.iter().map(|file| folder.join(&file.name));
    names.into_iter().try_for_each(|path| output::check_file(&path, overwrite))?;
    let is_old = |name: &str| {
        ShardName::parse(name).is_some_and(|shard| shard.prefix == prefix)
            && files.iter().all(|file| file.name != name)
    };
    let old = output::old_files(folder, is_old)?;
    output::check_old(&old, overwrite)?;
    if run == Run::Write {
        write_set(folder, &files, &tensors, overwrite, console)?;
        output::remove_old(&old, console)?;
    }
    let shards = files.iter().map(|file| Shard {
        name: &file.name,
        tensors: file.layout.tensors().len() as u64,
        bytes: file.layout.file_len(),
    });
    let report = Written {
        model: &model,
        folder,
        shards: shards.collect(),
        index: None,
        run,
        max_bytes: max_tensors.is_none().then_some(max_bytes),
        max_tensors,
    };
    report.print(console)?;
    Ok(Exit::Success)
}

/// Refuses options that mean nothing for what is written: their names, and whether they were given.
///
/// # Errors
///
/// The first that was given.
pub(crate) fn refuse_options(options: &[(&str, bool)], what: &str) -> Result<(), Failure> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(Failure::new(CODE_USAGE, format!("--{name} is not for {what}"))),
        None => Ok(()),
    }
}

/// What the files are called before their numbers: the name of the model, unless something else is wanted.
fn prefix(given: Option<&str>, label: &Path) -> Result<String, Failure> {
    let prefix = match given {
        Some(prefix) => prefix,
        None if label == Path::new("-") => "model",
        None => {
            let name = label.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            match ShardName::parse(name) {
                Some(shard) => shard.prefix,
                None => name.strip_suffix(".gguf").unwrap_or(name),
            }
        }
    };
    let is_name = Path::new(prefix).file_name().is_some_and(|name| name == prefix);
    if !is_name || prefix.contains('\0') {
        return Err(Failure::new(CODE_USAGE, format!("`{prefix}` cannot begin the name of a file"))
            .help("give another with --prefix"));
    }
    Ok(prefix.to_owned())
}

fn write_set(
    folder: &Path,
    files: &[PlannedFile],
    tensors: &[Tensor<'_>],
    overwrite: Overwrite,
    console: &Console,
) -> Result<(), Failure> {
    let mut progress = console.progress("writing", files.iter().map(|file| file.layout.file_len()).sum());
    let write = |file: &PlannedFile, path: &Path, progress: &mut Progress| {
        console.detail(format_args!("writing {}", file.name));
        let mut new = output::create(path, overwrite)?;
        let tensor = |idx: usize| tensors.get(file.first + idx).copied();
        gguf_stream::write(&file.layout, tensor, &mut new, &Destination::File(path.to_owned()), progress)?;
        Ok::<Replacement, Failure>(new)
    };
    if !folder.exists() {
        let staged = StagedDir::create(folder)?;
        let filled = files.iter().try_for_each(|file| -> Result<(), Failure> {
            Ok(write(file, &staged.path().join(&file.name), &mut progress)?.commit()?)
        });
        filled.map_err(|failure| failure.moved(staged.path(), folder))?;
        return Ok(staged.commit()?);
    }
    if files.len() > MAX_OPEN {
        let what = format!("{} files appear together only in a new folder", files.len());
        return Err(Failure::new(CODE_USAGE, what)
            .in_file(folder)
            .help("name a folder that is not there yet"));
    }
    // No index ties the set together: nothing takes its place before everything is written.
    let new = files.iter().map(|file| write(file, &folder.join(&file.name), &mut progress));
    let new = new.collect::<Result<Vec<_>, Failure>>()?;
    new.into_iter().try_for_each(|new| Ok(new.commit()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_called_after_the_model() {
        let prefix_of = |given: Option<&str>, label: &str| prefix(given, Path::new(label)).ok();
        assert_eq!(prefix_of(None, "a/tiny.gguf").as_deref(), Some("tiny"));
        assert_eq!(prefix_of(None, "a/tiny-00001-of-00001.gguf").as_deref(), Some("tiny"));
        assert_eq!(prefix_of(None, "tiny.bin").as_deref(), Some("tiny.bin"));
        assert_eq!(prefix_of(None, "-").as_deref(), Some("model"));
        assert_eq!(prefix_of(None, ".gguf"), None);
        for (given, expected) in [("z", Some("z")), ("a/b", None), ("..", None), ("", None), ("a\0b", None)] {
            assert_eq!(prefix_of(Some(given), "tiny.gguf").as_deref(), expected, "{given:?}");
        }
    }
}
