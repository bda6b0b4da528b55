//! `apr tensors`: the tensors of a model in file order, with their digests if asked for.

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::io::Write as _;
use std::path::PathBuf;

use model_file::TensorDescription;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::args::glob::Selection;
use crate::args::{CompatArg, ForeignArgs, INPUT_HELP, SizeLimitArg};
use crate::error::{Exit, Failure};
use crate::input::{Model, Source, Tensor};
use crate::report::{self, Each, Report};
use crate::secrets::KeysArgs;
use crate::terminal::escape::escaped;
use crate::terminal::human;
use crate::terminal::table::{Align, Dispensable, Table};
use crate::terminal::{Console, Style};
use crate::threads::on_all_cores;

/// Bytes of a tensor that a thread reads at once.
const CHUNK: u64 = 1 << 20;

const AFTER_HELP: &str = "The offset of a tensor is counted in bytes from the start of its file. An .apr file of version 1 holds a \
    model: its tensors are the ones the model becomes as safetensors, and have no offset.\n\n\
    Examples:\n  apr tensors model.safetensors --json --digest\n  \
    apr tensors model.safetensors --select '*.weight'\n\n\
    Exit codes: 0 success, 3 invalid file, 4 corrupted, not verified or not \
    decrypted, 5 I/O, 6 another format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    #[arg(value_name = "FILE", help = INPUT_HELP)]
    input: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    /// Also show the SHA-256 of the bytes of each tensor.
    #[arg(long)]
    digest: bool,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    size_limit: SizeLimitArg,
    #[command(flatten)]
    foreign: ForeignArgs,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs `apr tensors`.
///
/// # Errors
///
/// If the model cannot be read.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let rules = args.size_limit.apply(args.compat.rules()).with_unchecked_signatures();
    let path = args.input.as_path();
    let source = Source::open(path)?.with_keys(&Rc::new(args.keys.load([path])?));
    let model = Model::from_source(source.with_foreign(args.foreign.options()), &rules)?;
    model.tell_notes(console);
    let mut tensors = model.tensors()?;
    tensors.retain(|tensor| args.selection.includes(tensor.name()));
    let digests = if args.digest { Some(digests(&tensors, console)?) } else { None };
    if console.is_json() {
        let digest = |idx| digests.as_ref().and_then(|digests: &Vec<String>| digests.get(idx).cloned());
        let row = |(idx, tensor): (usize, &Tensor<'_>)| TensorDescription {
            sha256: digest(idx),
            ..TensorDescription::new(tensor)
        };
        let rows = || tensors.iter().enumerate().map(&row);
        console.report(&TensorsReport { file: report::path(model.label()), tensors: Each(rows) })?;
    } else {
        let table = table(&tensors, digests.as_deref(), &model);
        console.text(|out, style| {
            let mut lines = fitted(&table, digests.is_some(), style).into_iter();
            if let Some(head) = lines.next() {
                writeln!(out, "{}", style.bold(&head))?;
            }
            lines.try_for_each(|line| writeln!(out, "{line}"))
        })?;
        let first = || tensors.iter().filter(|tensor| tensor.alias_of().is_none());
        let (count, bytes) = (first().count(), first().map(|tensor| tensor.byte_len()).sum());
        let others = (tensors.len() - count) as u64;
        console.note(format_args!(
            "{}{}, {}{}",
            human::plural(count as u64, "tensor"),
            if others > 0 { format!(" and {}", human::plural(others, "other name")) } else { String::new() },
            human::bytes(bytes),
            console.took()
        ));
    }
    Ok(Exit::Success)
}

/// The tensors of a model.
#[derive(Serialize)]
struct TensorsReport<'a, T> {
    file: Cow<'a, str>,
    tensors: T,
}

impl<T: Serialize> Report for TensorsReport<'_, T> {
    const SCHEMA: &'static str = "apr.tensors/1";
}

fn table(tensors: &[Tensor<'_>], digests: Option<&[String]>, model: &Model) -> Table {
    let mut table = Table::new(&[
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Left,
        Align::Left,
    ]);
    let has_aliases = tensors.iter().any(|tensor| tensor.alias_of().is_some());
    let mut head = vec!["NAME", "DTYPE", "SHAPE", "OFFSET", "BYTES"];
    head.extend(digests.map(|_| "SHA-256"));
    head.extend(model.is_sharded().then_some("SHARD"));
    head.extend(has_aliases.then_some("ALIAS OF"));
    table.row(head);
    for (idx, tensor) in tensors.iter().enumerate() {
        let mut row = vec![
            escaped(tensor.name()),
            tensor.dtype().to_string(),
            human::shape(tensor.shape()),
            tensor.file_offset().map_or_else(|| "-".to_owned(), |offset| offset.to_string()),
            tensor.byte_len().to_string(),
        ];
        row.extend(digests.and_then(|digests| digests.get(idx)).cloned());
        row.extend(tensor.shard().map(escaped));
        row.extend(has_aliases.then(|| tensor.alias_of().map_or_else(|| "-".to_owned(), escaped)));
        table.row(row);
    }
    table
}

/// Without what is too much for a narrow terminal. A digest is as wide as most terminals and shown whole.
fn fitted(table: &Table, has_digests: bool, style: Style) -> Vec<String> {
    if has_digests {
        table.lines()
    } else {
        table.fitted(style, Dispensable { first: &[3, 5], last: &[2, 4] })
    }
}

fn digests(tensors: &[Tensor<'_>], console: &Console) -> Result<Vec<String>, Failure> {
    let readers: Option<Vec<_>> =
        tensors.iter().map(|tensor| Some((tensor.shared()?, tensor.byte_len()))).collect();
    if let Some(readers) = readers {
        return on_all_cores("hashing", console, readers.len(), |idx| {
            let (read, len) = &readers[idx];
            let (mut hash, mut buf, mut begin) = (Sha256::new(), Vec::new(), 0);
            while begin < *len {
                buf.resize(CHUNK.min(len - begin) as usize, 0);
                read(begin, &mut buf)?;
                hash.update(&buf);
                begin += buf.len() as u64;
            }
            Ok(base16ct::lower::encode_string(&hash.finalize()))
        });
    }
    let mut progress = console.progress("hashing", tensors.iter().map(|tensor| tensor.byte_len()).sum());
    let mut buf = Vec::new();
    let digests = tensors.iter().map(|tensor| {
        progress.item(tensor.name());
        digest(tensor, &mut buf, |len| progress.advance(len))
    });
    digests.collect()
}

/// SHA-256 of the bytes of a tensor, read a chunk at a time.
///
/// # Errors
///
/// If the tensor cannot be read.
pub(crate) fn digest(
    tensor: &Tensor<'_>,
    buf: &mut Vec<u8>,
    mut advance: impl FnMut(usize),
) -> Result<String, Failure> {
    let mut hash = Sha256::new();
    tensor.stream(buf, |chunk| {
        hash.update(chunk);
        advance(chunk.len());
        Ok::<(), Failure>(())
    })?;
    Ok(base16ct::lower::encode_string(&hash.finalize()))
}
