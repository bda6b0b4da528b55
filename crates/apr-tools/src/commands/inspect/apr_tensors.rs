//! The description of an `.apr` file of version 2.

use alloc::borrow::Cow;
use std::io::{self, Write};

use apr_container::v2::{self, Footer};
use model_file::Warning;

use super::report::{
    DtypeRow, LISTED, Nodes, VALUE_CHARS, dtype_rows, heading_of_warnings, more, write_tree,
};
use super::warnings::{misnamed, quirk};
use super::{by_dtype, item};
use crate::error::{CODE_INTERNAL, Failure};
use tensor_dtype::TensorType;

use crate::input::{AprV2, Contents, MetadataValue, Model, Rules, Source, Tensor, Totals};
use crate::report::{self, Report};
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, grouped};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::{self, Extent, Item};
use crate::terminal::value;
use crate::terminal::{Console, Style};
use serde::Serialize;
use serde_json::value::RawValue;

/// Everything the reports show.
struct Summary<'m> {
    model: &'m Model,
    file: &'m AprV2,
    rules: Rules,
    items: Vec<Item<'m>>,
    dtypes: Vec<(TensorType, Totals)>,
    totals: Totals,
    /// The footer; `None` if it was not read.
    footer: Option<Footer>,
    warnings: Vec<Warning>,
}

/// Prints the report; the tree only to the extent given.
///
/// # Errors
///
/// If the file cannot be read or is invalid; when verifying, also if it is damaged.
pub(super) fn run(
    source: Source,
    rules: &Rules,
    verify: bool,
    extent: Option<Extent>,
    console: &mut Console,
) -> Result<(), Failure> {
    let model = Model::from_source(source, &rules.with_unchecked_signatures())?;
    let Contents::AprV2(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a file of tensors became something else"));
    };
    let busy = verify.then(|| console.busy("verifying"));
    let footer = if verify { Some(model.checksum()?) } else { None };
    drop(busy);
    let tensors = model.tensors()?;
    let (dtypes, totals) = by_dtype(&tensors);
    let mut warnings = warnings(&model, file, footer, rules, &tensors);
    warnings.extend(misnamed(model.format(), model.label()));
    let summary = Summary {
        model: &model,
        file,
        rules: *rules,
        items: tensors.iter().map(item).collect(),
        dtypes,
        totals,
        footer,
        warnings,
    };
    if console.is_json() { json(&summary, console) } else { text(&summary, extent, console) }
}

fn warnings(
    model: &Model,
    file: &AprV2,
    footer: Option<Footer>,
    rules: &Rules,
    tensors: &[Tensor<'_>],
) -> Vec<Warning> {
    let mut warnings = Vec::from_iter(quirk(model, rules));
    warnings.extend(file.warnings(footer).iter().map(Warning::of_v2));
    if let Some(message) = super::warnings::names(tensors) {
        warnings.push(Warning { kind: "name", message });
    }
    warnings
}

fn text(summary: &Summary<'_>, tree: Option<Extent>, console: &mut Console) -> Result<(), Failure> {
    let shorten = console.out_is_terminal() && !console.is_verbose();
    console.text(|out, style| {
        let title = style.bold(&escape::path(summary.model.label()));
        let bytes = human::exact_bytes(summary.file.index().file_len());
        writeln!(out, "{title}: .apr version 2, {bytes}\n")?;
        facts(summary).wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        write_metadata(summary.model, shorten, out, style)?;
        write_tree(&summary.items, summary.totals.bytes, tree, out, style)?;
        heading_of_warnings(&summary.warnings, out, style)
    })
}

fn facts(summary: &Summary<'_>) -> Table {
    let header = summary.file.index().header();
    let mut table = Table::new(&[Align::Left, Align::Left]);
    super::report::totals(&mut table, summary.totals, &summary.dtypes);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    let (major, minor) = header.version();
    line("format", format!("{major}.{minor}, magic {}", escaped(&magic(header))));
    let flags: Vec<&str> = header.flags().names().collect();
    line("flags", if flags.is_empty() { "none".to_owned() } else { flags.join(", ") });
    let (metadata, index) = (header.metadata_offset_declared(), header.index_offset_declared());
    line(
        "layout",
        format!(
            "metadata from byte {}, index from byte {}, data from byte {}",
            grouped(metadata),
            grouped(index),
            grouped(header.data_offset_declared())
        ),
    );
    line("mode", summary.rules.name().to_owned());
    line("checksum", checksum(summary.footer));
    table
}

fn magic(header: &v2::Header) -> String {
    String::from_utf8_lossy(&header.magic().bytes()).replace('\0', "\\0")
}

fn checksum(footer: Option<Footer>) -> String {
    match footer {
        None | Some(Footer::Unchecked) => "not compared (--verify)".to_owned(),
        Some(Footer::Present(sum)) => format!("{sum:08X}, right"),
        Some(Footer::Absent) => "the file has none".to_owned(),
        Some(Footer::Wrong { expected, actual }) => {
            format!("wrong: {expected:08X}, the bytes have {actual:08X}")
        }
        Some(_) => "of an unknown kind".to_owned(),
    }
}

pub(super) fn write_metadata(
    model: &Model,
    shorten: bool,
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    let mut members = model.metadata();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    writeln!(out, "\n{}", style.bold("Metadata"))?;
    let shown = if shorten { LISTED } else { usize::MAX };
    for (key, value) in members.iter().take(shown) {
        let value = match value {
            MetadataValue::Value(value) => value::line(value, shorten.then_some(VALUE_CHARS)),
            MetadataValue::Json(json) if shorten => escape::cut(json, VALUE_CHARS),
            MetadataValue::Json(json) => escaped(json),
            _ => String::new(),
        };
        writeln!(out, "  {}: {value}", style.cyan(&escaped(key)))?;
    }
    more(members.len().saturating_sub(shown), out)
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let index = summary.file.index();
    let metadata = report::raw(&index.metadata().to_json());
    let metadata = metadata.map_err(|error| Failure::new(CODE_INTERNAL, error.to_string()))?;
    let header = index.header();
    let (major, minor) = header.version();
    console.report(&InspectReport {
        file: report::path(summary.model.label()),
        format: summary.model.format().name(),
        version: summary.model.format().version(),
        mode: summary.rules.name(),
        file_bytes: index.file_len(),
        tensors: summary.totals.tensors,
        parameters: summary.totals.elements,
        data_bytes: summary.totals.bytes,
        dtypes: dtype_rows(&summary.dtypes),
        header: HeaderFields {
            magic: String::from_utf8_lossy(&header.magic().bytes()).into_owned(),
            version: format!("{major}.{minor}"),
            flag_bits: header.flags().0,
            flags: header.flags().names().collect(),
            metadata_offset: header.metadata_offset_declared(),
            metadata_bytes: header.metadata_len_declared(),
            index_offset: header.index_offset_declared(),
            data_offset: header.data_offset_declared(),
            header_checksum: header.checksum(),
            reserved_in_use: header.has_reserved(),
        },
        metadata,
        checksum: footer_state(summary.footer),
        tree: Nodes(&tree::build(&summary.items)),
        warnings: &summary.warnings,
    })
}

/// An `.apr` file of version 2.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    mode: &'a str,
    file_bytes: u64,
    tensors: u64,
    parameters: u64,
    data_bytes: u64,
    dtypes: Vec<DtypeRow>,
    header: HeaderFields,
    metadata: Box<RawValue>,
    checksum: &'a str,
    tree: Nodes<'a>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

#[derive(Serialize)]
struct HeaderFields {
    magic: String,
    version: String,
    flag_bits: u16,
    flags: Vec<&'static str>,
    metadata_offset: u64,
    metadata_bytes: u32,
    index_offset: u64,
    data_offset: u64,
    header_checksum: u32,
    reserved_in_use: bool,
}

/// The state of the checksum at the end, as in JSON.
pub(crate) fn footer_state(footer: Option<Footer>) -> &'static str {
    match footer {
        None | Some(Footer::Unchecked) => "not-compared",
        Some(Footer::Present(_)) => "right",
        Some(Footer::Absent) => "absent",
        Some(Footer::Wrong { .. }) => "wrong",
        Some(_) => "other",
    }
}
