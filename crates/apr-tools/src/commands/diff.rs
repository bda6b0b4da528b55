//! `apr diff`: compares two models, tensor by tensor, in bounded memory.

mod compare;
pub(crate) mod report;

use alloc::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use model_file::entries;

use self::compare::Change;
pub(crate) use self::compare::compare;
use self::report::Shown;
use crate::args::{CompatArg, SizeLimitArg};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Contents, Model, Tensor};
use crate::terminal::{Console, Progress};

const AFTER_HELP: &str = "Differences are listed as the tree of tensors has them, the same difference in several layers in one line, after the five \
    tensors with the largest relative errors. \
    Equal means the same type, shape and bytes. Where values differ, the number of differing elements, the \
    greatest absolute difference, the relative error and the cosine of the angle between the two tensors are shown. NaN differs \
    from every number, and from a NaN of other bits. The order of tensors and the way they are \
    spread over files are not compared. The formats of the two models may differ: an .apr model of version 1 is \
    compared by the tensors it becomes as safetensors. Quantized tensors are compared by the numbers in \
    their blocks where the bytes differ; keys of two GGUF files by type and value, else by their values as text.\n\n\
    Examples:\n  apr diff model.safetensors same.safetensors\n  \
    apr diff model.safetensors sharded --all\n  \
    apr diff model.safetensors sharded --ignore-metadata --json\n\n\
    Exit codes: 0 equal, 1 different, 3 invalid file, 4 corrupted, 5 I/O, 6 another format or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// The old model: a .safetensors, .apr or .gguf file, an index of shards, a folder with one, or `-`.
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The new model.
    #[arg(value_name = "B")]
    b: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    /// List every tensor, equal ones too, each in a line of its own.
    #[arg(long)]
    all: bool,
    /// Do not compare metadata.
    #[arg(long)]
    ignore_metadata: bool,
    #[command(flatten)]
    size_limit: SizeLimitArg,
}

/// What was found.
pub(crate) struct Comparison<'m> {
    a: &'m Path,
    b: &'m Path,
    tensors: Vec<Entry<'m>>,
    /// Empty if all keys and values are equal; `None` if they were not compared.
    metadata: Option<Vec<MetadataChange>>,
}

/// One tensor of either side.
struct Entry<'m> {
    name: &'m str,
    kind: EntryKind<'m>,
}

enum EntryKind<'m> {
    Equal(Tensor<'m>),
    Changed { a: Tensor<'m>, b: Tensor<'m>, change: Box<Change> },
    Added(Tensor<'m>),
    Removed(Tensor<'m>),
}

/// A key with its value on both sides.
struct MetadataChange {
    key: String,
    a: Option<String>,
    b: Option<String>,
}

/// Runs `apr diff`.
///
/// # Errors
///
/// If a model cannot be read.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let (path_a, path_b) = (&args.a, &args.b);
    if path_a.as_os_str() == "-" && path_b.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "standard input can be only one of the two models"));
    }
    let rules = args.size_limit.apply(args.compat.rules()).with_unchecked_signatures();
    let (a, b) = (Model::open(path_a, &rules)?, Model::open(path_b, &rules)?);
    let mut comparison = Comparison::new((path_a, &a), (path_b, &b), console)?;
    if args.ignore_metadata {
        comparison.metadata = None;
    }
    console.finished("compared");
    let exit = if comparison.is_equal() { Exit::Success } else { Exit::Different };
    let printed = if console.is_json() {
        report::json(&comparison, console)
    } else {
        report::text(&comparison, Shown::of(args.all), console)
    };
    match printed {
        // The exit status does not depend on whether the whole report is read.
        Err(failure) if failure.is_closed_pipe() => Ok(exit),
        Err(failure) => Err(failure),
        Ok(()) => Ok(exit),
    }
}

impl<'m> Comparison<'m> {
    /// Compares tensors and metadata of two models.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read.
    pub(crate) fn new(
        (path_a, a): (&'m Path, &'m Model),
        (path_b, b): (&'m Path, &'m Model),
        console: &Console,
    ) -> Result<Self, Failure> {
        let (tensors, metadata) = (compare_tensors(a, b, console)?, Some(compare_metadata(a, b)?));
        Ok(Self { a: path_a, b: path_b, tensors, metadata })
    }

    pub(crate) fn is_equal(&self) -> bool {
        self.metadata.as_ref().is_none_or(Vec::is_empty)
            && self.tensors.iter().all(|entry| matches!(entry.kind, EntryKind::Equal(_)))
    }
}

/// The tensors of `a` in its order, then those that only `b` has.
fn compare_tensors<'m>(a: &'m Model, b: &'m Model, console: &Console) -> Result<Vec<Entry<'m>>, Failure> {
    let (tensors_a, tensors_b) = (a.tensors()?, b.tensors()?);
    let mut only_b: BTreeMap<&str, Tensor<'_>> =
        tensors_b.iter().map(|tensor| (tensor.name(), *tensor)).collect();
    let on_both = tensors_a.iter().filter(|a| only_b.contains_key(a.name()));
    let mut progress = console.progress("comparing", on_both.map(|tensor| tensor.byte_len()).sum());
    let mut entries = Vec::with_capacity(tensors_a.len());
    for a in &tensors_a {
        progress.item(a.name());
        let kind = match only_b.remove(a.name()) {
            None => EntryKind::Removed(*a),
            Some(b) => match pair(a, &b, &mut progress)? {
                None => EntryKind::Equal(*a),
                Some(change) => EntryKind::Changed { a: *a, b, change: Box::new(change) },
            },
        };
        entries.push(Entry { name: a.name(), kind });
    }
    let added = tensors_b.iter().filter(|tensor| only_b.contains_key(tensor.name()));
    entries.extend(added.map(|tensor| Entry { name: tensor.name(), kind: EntryKind::Added(*tensor) }));
    Ok(entries)
}

fn pair(a: &Tensor<'_>, b: &Tensor<'_>, progress: &mut Progress) -> Result<Option<Change>, Failure> {
    let change = compare(a, b, |len| progress.advance(len))?;
    let is_same =
        a.dtype() == b.dtype() && a.shape() == b.shape() && change.is_none_or(|change| change.is_equal());
    Ok((!is_same).then(|| change.unwrap_or_default()))
}

/// Keys whose values differ. No metadata and empty metadata are the same here.
fn compare_metadata(a: &Model, b: &Model) -> Result<Vec<MetadataChange>, Failure> {
    let (mut of_a, mut of_b) = match (a.contents(), b.contents()) {
        // Their values have types, and need not be UTF-8.
        (Contents::Gguf(a), Contents::Gguf(b)) => {
            (entries::values(&a.header()?), entries::values(&b.header()?))
        }
        _ => (untyped(a)?, untyped(b)?),
    };
    let keys: BTreeSet<String> = of_a.keys().chain(of_b.keys()).cloned().collect();
    let change = |key: String| {
        let (a, b) = (of_a.remove(&key), of_b.remove(&key));
        if a == b {
            return None;
        }
        // Of values with the same text, the types differ.
        let is_typed = matches!((&a, &b), (Some((_, a)), Some((_, b))) if a == b);
        let shown = |(kind, value): (String, String)| match is_typed {
            true => format!("{value} ({kind})"),
            false => value,
        };
        Some(MetadataChange { a: a.map(shown), b: b.map(shown), key })
    };
    Ok(keys.into_iter().filter_map(change).collect())
}

/// Values by key, without types.
fn untyped(model: &Model) -> Result<BTreeMap<String, (String, String)>, Failure> {
    let mut entries = model.entries()?.entries;
    entries::expand(&mut entries);
    Ok(entries.into_iter().map(|(key, value)| (key, (String::new(), value))).collect())
}
