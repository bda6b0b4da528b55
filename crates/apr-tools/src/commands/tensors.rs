//! `apr tensors`: the tensors of a model in file order, with their digests if asked for.

use alloc::rc::Rc;
use std::io::{self, Write};

use clap::{Arg, ArgAction, ArgMatches, Command};
use sha2::{Digest, Sha256};

use crate::args::glob::Selection;
use crate::error::{Exit, Failure};
use crate::input::{self, Model, Tensor};
use crate::report::json::JsonWriter;
use crate::secrets::Keys;
use crate::terminal::escape::escaped;
use crate::terminal::human;
use crate::terminal::table::{Align, Dispensable, Table};
use crate::terminal::{Console, Style};

pub(crate) fn command() -> Command {
    Command::new("tensors")
        .about("List the tensors of a model in file order")
        .arg(input::input_arg())
        .arg(input::compat_arg())
        .arg(
            Arg::new("digest")
                .long("digest")
                .action(ArgAction::SetTrue)
                .help("Also show the SHA-256 of the bytes of each tensor"),
        )
        .args(Selection::args())
        .arg(input::trusted_arg())
        .args(Keys::args())
        .after_help(
            "The offset of a tensor is counted in bytes from the start of its file. An .apr file of version 1 holds a \
             model: its tensors are the ones the model becomes as safetensors, and have no offset.\n\n\
             Examples:\n  apr tensors model.safetensors --json --digest\n  \
             apr tensors model.safetensors --select '*.weight'\n\n\
             Exit codes: 0 listed, 3 not a sound model file, 4 damaged, not verified or not \
             decrypted, 5 I/O, 6 another format, or encrypted and no key given.",
        )
}

/// Runs `apr tensors`.
///
/// # Errors
///
/// If the model cannot be read.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let rules = input::rules_of(matches).with_unchecked_signatures();
    let selection = Selection::from_matches(matches);
    let path = input::path(matches);
    let model = Model::open_with(path, &rules, &Rc::new(Keys::from_matches(matches, [path])?))?;
    let mut tensors = model.tensors()?;
    tensors.retain(|tensor| selection.includes(tensor.name()));
    let digests = if matches.get_flag("digest") { Some(digests(&tensors, console)?) } else { None };
    if console.is_json() {
        console.json("apr.tensors/1", |json| {
            json.field_str("file", &model.label().to_string_lossy())?;
            json.key("tensors")?;
            json.array()?;
            for (idx, tensor) in tensors.iter().enumerate() {
                write_tensor(json, tensor, digests.as_ref().and_then(|digests| digests.get(idx)))?;
            }
            json.end_array()
        })?;
    } else {
        let table = table(&tensors, digests.as_deref(), &model);
        console.text(|out, style| {
            let mut lines = fitted(&table, digests.is_some(), style).into_iter();
            if let Some(head) = lines.next() {
                writeln!(out, "{}", style.bold(&head))?;
            }
            lines.try_for_each(|line| writeln!(out, "{line}"))
        })?;
        let bytes = tensors.iter().map(Tensor::byte_len).sum();
        console.note(format_args!(
            "{}, {}{}",
            human::plural(tensors.len() as u64, "tensor"),
            human::bytes(bytes),
            console.took()
        ));
    }
    Ok(Exit::Success)
}

fn write_tensor<W: Write>(
    json: &mut JsonWriter<W>,
    tensor: &Tensor<'_>,
    digest: Option<&String>,
) -> io::Result<()> {
    json.object()?;
    json.field_str("name", tensor.name())?;
    json.field_str("dtype", tensor.dtype().name())?;
    json.field_shape("shape", tensor.shape().iter().map(|&dim| dim as u64))?;
    if let Some(offset) = tensor.file_offset() {
        json.field_uint("offset", offset)?;
    }
    json.field_uint("bytes", tensor.byte_len())?;
    if let Some(digest) = digest {
        json.field_str("sha256", digest)?;
    }
    if let Some(shard) = tensor.shard() {
        json.field_str("shard", shard)?;
    }
    json.end_object()
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
    ]);
    let mut head = vec!["NAME", "DTYPE", "SHAPE", "OFFSET", "BYTES"];
    head.extend(digests.map(|_| "SHA-256"));
    head.extend(model.is_sharded().then_some("SHARD"));
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
    let mut progress = console.progress("hashing", tensors.iter().map(Tensor::byte_len).sum());
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
    Ok(hex(&hash.finalize()))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    bytes.iter().flat_map(|&b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]).collect()
}
