//! The summary of a model as text and as JSON.

use alloc::borrow::Cow;
use std::io::{self, Write};

use model_file::Warning;
use st_core::Metadata;

use super::{FileSummary, Summary, checkpoints};
use crate::error::Failure;
use crate::input::Totals;
use crate::report::{self, Report};
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, grouped, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::{self, Extent, Item, Node};
use crate::terminal::{Console, Style};
use serde::{Serialize, Serializer};
use tensor_dtype::TensorType;

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
    line("mode", summary.rules.name().to_owned());
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
    let files = summary.files.iter().map(|file| {
        let header = file.part.file.header();
        FileFields {
            shard: file.part.shard,
            bytes: file.part.file.file_len(),
            header_bytes: header.header_len(),
            spare_header_bytes: file.spare,
            data_start: header.data_start(),
            tensors: header.len(),
            official_order: file.is_official_order,
            metadata: header.metadata().map(MetadataFields),
        }
    });
    console.report(&InspectReport {
        file: report::path(summary.model.label()),
        format: summary.model.format().name(),
        mode: summary.rules.name(),
        sharded: summary.model.is_sharded(),
        file_bytes: summary.file_bytes(),
        tensors: summary.totals.tensors,
        parameters: summary.totals.elements,
        data_bytes: summary.totals.bytes,
        dtypes: dtype_rows(&summary.dtypes),
        alignment: Alignment {
            aligned_to_elements: summary.aligned_to_elements,
            aligned_to_64: summary.aligned_to_64,
        },
        files: files.collect(),
        tree: Nodes(&tree::build(&summary.items)),
        checkpoint: summary
            .checkpoint
            .as_ref()
            .map(|(about, checkpoint)| checkpoints::AboutFields::new(checkpoint, about)),
        warnings: &summary.warnings,
    })
}

/// A safetensors model.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    mode: &'a str,
    sharded: bool,
    file_bytes: u64,
    tensors: u64,
    parameters: u64,
    data_bytes: u64,
    dtypes: Vec<DtypeRow>,
    alignment: Alignment,
    files: Vec<FileFields<'a>>,
    tree: Nodes<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<checkpoints::AboutFields<'a>>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

/// How many tensors begin at such a multiple.
#[derive(Serialize)]
struct Alignment {
    aligned_to_elements: u64,
    aligned_to_64: u64,
}

#[derive(Serialize)]
struct FileFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<&'a str>,
    bytes: u64,
    header_bytes: u64,
    spare_header_bytes: u64,
    data_start: u64,
    tensors: usize,
    official_order: bool,
    metadata: Option<MetadataFields<'a>>,
}

struct MetadataFields<'a>(Metadata<'a>);

impl Serialize for MetadataFields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

/// Totals of a dtype.
#[derive(Serialize)]
pub(super) struct DtypeRow {
    dtype: &'static str,
    tensors: u64,
    parameters: u64,
    bytes: u64,
}

pub(super) fn dtype_rows(dtypes: &[(TensorType, Totals)]) -> Vec<DtypeRow> {
    let row = |(dtype, totals): &(TensorType, Totals)| DtypeRow {
        dtype: dtype.name(),
        tensors: totals.tensors,
        parameters: totals.elements,
        bytes: totals.bytes,
    };
    dtypes.iter().map(row).collect()
}

/// Nodes of the tree of tensors, each made when it is written.
pub(super) struct Nodes<'a>(pub(super) &'a [Node<'a>]);

impl Serialize for Nodes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(NodeFields::new))
    }
}

#[derive(Serialize)]
struct NodeFields<'a> {
    label: &'a str,
    copies: u64,
    tensors: u64,
    parameters: u64,
    bytes: u64,
    #[serde(flatten)]
    content: NodeContent<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NodeContent<'a> {
    Tensor { dtype: &'static str, shape: &'a [usize] },
    Group { children: Nodes<'a> },
}

impl<'a> NodeFields<'a> {
    fn new(node: &'a Node<'a>) -> Self {
        Self {
            label: &node.label,
            copies: node.copies,
            tensors: node.tensors,
            parameters: node.elements,
            bytes: node.bytes,
            content: match node.leaf {
                Some((dtype, shape)) => NodeContent::Tensor { dtype, shape },
                None => NodeContent::Group { children: Nodes(&node.children) },
            },
        }
    }
}
