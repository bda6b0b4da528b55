//! The description of an `.apr` file of version 2.

use alloc::borrow::Cow;
use std::io;

use apr_container::v2::{self, Footer};
use model_file::Warning;

use super::content::{Content, TotalsFields, Tree};
use super::page::{Page, VALUE_CHARS, text_value};
use super::warnings::{names, quirk, warning};
use crate::error::{CODE_INTERNAL, Failure};
use crate::input::{AprV2, Contents, MetadataValue, Model, Rules, Source, Tensor};
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape::escaped;
use crate::terminal::human::grouped;
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::Extent;
use crate::terminal::value;
use serde::Serialize;
use serde_json::value::RawValue;

/// Everything the reports show.
struct Summary<'m> {
    file: &'m AprV2,
    rules: Rules,
    content: Content<'m>,
    /// The footer; `None` if it was not read.
    footer: Option<Footer>,
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
    let warnings = warnings(&model, file, footer, rules, &tensors);
    let content = Content::new(&model, &tensors, warnings);
    let summary = Summary { file, rules: *rules, content, footer };
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
    warnings.extend(warning(("name", names(tensors))));
    warnings
}

fn text(summary: &Summary<'_>, tree: Option<Extent>, console: &mut Console) -> Result<(), Failure> {
    let what = (".apr version 2", summary.file.index().file_len());
    let content = &summary.content;
    content.print(what, &facts(summary), tree, console, |page| write_metadata(content.model, page))
}

fn facts(summary: &Summary<'_>) -> Table {
    let header = summary.file.index().header();
    let mut table = Table::new(&[Align::Left, Align::Left]);
    summary.content.totals(&mut table);
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

pub(super) fn write_metadata(model: &Model, page: &mut Page<'_>) -> io::Result<()> {
    let mut members = model.metadata();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    let shorten = page.shorten;
    let entries = members.iter().map(|(key, value)| {
        let value = match value {
            MetadataValue::Value(value) => value::line(value, shorten.then_some(VALUE_CHARS)),
            MetadataValue::Json(json) => text_value(json, shorten),
            _ => String::new(),
        };
        (key, value)
    });
    page.entries("Metadata", entries)
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let index = summary.file.index();
    let metadata = report::raw(&index.metadata().to_json());
    let metadata = metadata.map_err(|error| Failure::new(CODE_INTERNAL, error.to_string()))?;
    let header = index.header();
    let (major, minor) = header.version();
    console.report(&InspectReport {
        file: report::path(summary.content.model.label()),
        format: summary.content.model.format().name(),
        version: summary.content.model.format().version(),
        mode: summary.rules.name(),
        file_bytes: index.file_len(),
        totals: summary.content.totals_fields(),
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
        tree: summary.content.tree_fields(),
        warnings: summary.content.warnings(),
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
    #[serde(flatten)]
    totals: TotalsFields,
    header: HeaderFields,
    metadata: Box<RawValue>,
    checksum: &'a str,
    tree: Tree<'a>,
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
