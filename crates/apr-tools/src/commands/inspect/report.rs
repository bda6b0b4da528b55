//! The summary of a model as text and as JSON.

use std::io::{self, Write};

use st_core::Metadata;

use super::warnings::Warning;
use super::{FileSummary, Summary, checkpoints};
use crate::error::Failure;
use tensor_dtype::TensorType;

use crate::input::Totals;
use crate::report::json::JsonWriter;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, grouped, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::{self, Extent, Item, Node};
use crate::terminal::{Console, Style};

/// Longest metadata value on a terminal.
pub(super) const VALUE_CHARS: usize = 100;

/// Most entries of metadata and most shards on a terminal.
pub(super) const LISTED: usize = 40;

/// Prints the report; the tree only to the extent given.
pub(super) fn text(
    summary: &Summary<'_>,
    tree: Option<Extent>,
    console: &mut Console,
) -> Result<(), Failure> {
    let shorten = console.out_is_terminal() && !console.is_verbose();
    console.text(|out, style| {
        head(summary, out, style)?;
        if summary.model.is_sharded() {
            shards(summary, shorten, out, style)?;
        }
        if let Some((about, checkpoint)) = &summary.checkpoint {
            checkpoints::section(checkpoint, about, out, style)?;
        }
        metadata(summary, shorten, out, style)?;
        write_tree(&summary.items, summary.totals.bytes, tree, out, style)?;
        heading_of_warnings(&summary.warnings, out, style)
    })
}

/// The tensors below an empty line, if they are wanted and there are any.
pub(super) fn write_tree(
    items: &[Item<'_>],
    bytes: u64,
    tree: Option<Extent>,
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    let Some(extent) = tree.filter(|_| !items.is_empty()) else { return Ok(()) };
    writeln!(out)?;
    tree::lines(&tree::build(items), bytes, extent, style).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The warnings below their heading, if there are any.
pub(super) fn heading_of_warnings(
    warnings: &[Warning],
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    if !warnings.is_empty() {
        writeln!(out, "\n{}", style.bold("Warnings"))?;
    }
    let mark = style.yellow("!");
    for warning in warnings {
        let mut lines = style.wrap(&escaped(&warning.message), 4).into_iter();
        writeln!(out, "  {mark} {}", lines.next().unwrap_or_default())?;
        lines.try_for_each(|line| writeln!(out, "    {line}"))?;
    }
    Ok(())
}

fn head(summary: &Summary<'_>, out: &mut impl Write, style: Style) -> io::Result<()> {
    let shards = if summary.model.is_sharded() {
        format!(" in {}", plural(summary.files.len() as u64, "shard"))
    } else {
        String::new()
    };
    let title = style.bold(&escape::path(summary.model.label()));
    writeln!(out, "{title}: safetensors{shards}, {}\n", human::exact_bytes(summary.file_bytes()))?;

    let mut table = Table::new(&[Align::Left, Align::Left]);
    totals(&mut table, summary.totals, &summary.dtypes);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    if let [file] = summary.files.as_slice() {
        line("header", header(file));
    }
    line("alignment", alignment(summary));
    line("read as", summary.rules.name().to_owned());
    table.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// Lines about all tensors together.
pub(super) fn totals(table: &mut Table, totals: Totals, dtypes: &[(TensorType, Totals)]) {
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    line("tensors", grouped(totals.tensors));
    line("parameters", with_exact(human::count(totals.elements), totals.elements));
    line("data", human::exact_bytes(totals.bytes));
    for (idx, (dtype, part)) in dtypes.iter().enumerate() {
        let label = if idx == 0 { "types" } else { "" };
        let share = human::percent(part.bytes, totals.bytes);
        let (tensors, elements) = (plural(part.tensors, "tensor"), human::count(part.elements));
        let share = format!("{dtype}: {share} of the bytes, {tensors}, {elements} parameters");
        line(label, share);
    }
}

/// `22.7 M (22,713,728)`, or just the number where the two would be the same.
fn with_exact(short: String, exact: u64) -> String {
    let exact = grouped(exact);
    if short == exact { short } else { format!("{short} ({exact})") }
}

fn header(file: &FileSummary<'_>) -> String {
    let header = file.part.file.header();
    let spare =
        if file.spare > 0 { format!(", {} of them spare", grouped(file.spare)) } else { String::new() };
    format!(
        "{} bytes{spare}; data begins at byte {}",
        grouped(header.header_len()),
        grouped(header.data_start())
    )
}

fn alignment(summary: &Summary<'_>) -> String {
    let all = summary.totals.tensors;
    let elements = match summary.aligned_to_elements {
        n if n == all => "every tensor to its elements".to_owned(),
        n => format!("{} of {} tensors to their elements", grouped(n), grouped(all)),
    };
    let lines = match summary.aligned_to_64 {
        n if n == all => "all".to_owned(),
        n => format!("{} of {}", grouped(n), grouped(all)),
    };
    format!("{elements}; {lines} to 64 bytes")
}

fn shards(summary: &Summary<'_>, shorten: bool, out: &mut impl Write, style: Style) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold("Shards"))?;
    let shown = if shorten { LISTED } else { usize::MAX };
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
    for file in summary.files.iter().take(shown) {
        let tensors = plural(file.part.file.header().len() as u64, "tensor");
        let name = escaped(file.part.shard.unwrap_or_default());
        table.row([format!("  {name}"), tensors, human::bytes(file.part.file.file_len())]);
    }
    table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    more(summary.files.len().saturating_sub(shown), out)
}

/// The metadata; of shards, that of the first, because they normally all carry the same.
fn metadata(summary: &Summary<'_>, shorten: bool, out: &mut impl Write, style: Style) -> io::Result<()> {
    let Some(metadata) = summary.files.first().and_then(of) else { return Ok(()) };
    let entries = |metadata: Metadata<'_>| -> Vec<(String, String)> {
        metadata.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    let all_alike = summary.files.iter().skip(1).all(|file| of(file).map(entries) == Some(entries(metadata)));
    let whose = match (all_alike, summary.files.len()) {
        (_, 1) => "",
        (true, _) => " (the same in every shard)",
        (false, _) => " of the first shard (others differ; --json shows all)",
    };
    writeln!(out, "\n{}{whose}", style.bold("Metadata"))?;
    if metadata.is_empty() {
        return writeln!(out, "  (an empty map)");
    }
    let shown = if shorten { LISTED } else { usize::MAX };
    for (key, value) in metadata.iter().take(shown) {
        let value = if shorten { escape::cut(value, VALUE_CHARS) } else { escaped(value) };
        writeln!(out, "  {}: {value}", style.cyan(&escaped(key)))?;
    }
    more(metadata.len().saturating_sub(shown), out)
}

fn of<'m>(file: &FileSummary<'m>) -> Option<Metadata<'m>> {
    file.part.file.header().metadata()
}

pub(super) fn more(hidden: usize, out: &mut impl Write) -> io::Result<()> {
    if hidden == 0 {
        Ok(())
    } else {
        writeln!(out, "  ... and {} more (-v shows all)", grouped(hidden as u64))
    }
}

pub(super) fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    console.json("apr.inspect/1", |json| {
        json.field_str("file", &summary.model.label().to_string_lossy())?;
        json.field_str("format", "safetensors")?;
        json.field_str("mode", summary.rules.name())?;
        json.field_bool("sharded", summary.model.is_sharded())?;
        json.field_uint("file_bytes", summary.file_bytes())?;
        json.field_uint("tensors", summary.totals.tensors)?;
        json.field_uint("parameters", summary.totals.elements)?;
        json.field_uint("data_bytes", summary.totals.bytes)?;
        write_dtypes(&summary.dtypes, json)?;
        json.key("alignment")?;
        json.object()?;
        json.field_uint("aligned_to_elements", summary.aligned_to_elements)?;
        json.field_uint("aligned_to_64", summary.aligned_to_64)?;
        json.end_object()?;
        json.key("files")?;
        json.array()?;
        summary.files.iter().try_for_each(|file| write_file(file, json))?;
        json.end_array()?;
        json.key("tree")?;
        write_nodes(&tree::build(&summary.items), json)?;
        if let Some((about, checkpoint)) = &summary.checkpoint {
            json.key("checkpoint")?;
            json.object()?;
            checkpoints::write_about(checkpoint, about, json)?;
            json.end_object()?;
        }
        write_warnings(&summary.warnings, json)
    })
}

pub(super) fn write_dtypes<W: Write>(
    dtypes: &[(TensorType, Totals)],
    json: &mut JsonWriter<W>,
) -> io::Result<()> {
    json.key("dtypes")?;
    json.array()?;
    for (dtype, totals) in dtypes {
        json.object()?;
        json.field_str("dtype", dtype.name())?;
        json.field_uint("tensors", totals.tensors)?;
        json.field_uint("parameters", totals.elements)?;
        json.field_uint("bytes", totals.bytes)?;
        json.end_object()?;
    }
    json.end_array()
}

pub(super) fn write_warnings<W: Write>(warnings: &[Warning], json: &mut JsonWriter<W>) -> io::Result<()> {
    json.key("warnings")?;
    json.array()?;
    for warning in warnings {
        json.object()?;
        json.field_str("kind", warning.kind)?;
        json.field_str("message", &warning.message)?;
        json.end_object()?;
    }
    json.end_array()
}

fn write_file<W: Write>(file: &FileSummary<'_>, json: &mut JsonWriter<W>) -> io::Result<()> {
    let header = file.part.file.header();
    json.object()?;
    if let Some(shard) = file.part.shard {
        json.field_str("shard", shard)?;
    }
    json.field_uint("bytes", file.part.file.file_len())?;
    json.field_uint("header_bytes", header.header_len())?;
    json.field_uint("spare_header_bytes", file.spare)?;
    json.field_uint("data_start", header.data_start())?;
    json.field_uint("tensors", header.len() as u64)?;
    json.field_bool("official_order", file.is_official_order)?;
    json.key("metadata")?;
    match header.metadata() {
        None => json.null()?,
        Some(metadata) => {
            json.object()?;
            for (key, value) in metadata.iter() {
                json.field_str(key, value)?;
            }
            json.end_object()?;
        }
    }
    json.end_object()
}

pub(super) fn write_nodes<W: Write>(nodes: &[Node<'_>], json: &mut JsonWriter<W>) -> io::Result<()> {
    json.array()?;
    for node in nodes {
        json.object()?;
        json.field_str("label", &node.label)?;
        json.field_uint("copies", node.copies)?;
        json.field_uint("tensors", node.tensors)?;
        json.field_uint("parameters", node.elements)?;
        json.field_uint("bytes", node.bytes)?;
        if let Some((dtype, shape)) = node.leaf {
            json.field_str("dtype", dtype)?;
            json.field_shape("shape", shape.iter().map(|&dim| dim as u64))?;
        } else {
            json.key("children")?;
            write_nodes(&node.children, json)?;
        }
        json.end_object()?;
    }
    json.end_array()
}
