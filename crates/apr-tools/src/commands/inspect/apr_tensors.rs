//! What an `.apr` file of version 2 says about itself.

use std::io::{self, Write};

use apr_container::v2::{self, Footer};

use super::report::{
    LISTED, VALUE_CHARS, heading_of_warnings, more, write_nodes, write_tree, write_warnings,
};
use super::warnings::Warning;
use super::{by_dtype, item};
use crate::error::{CODE_INTERNAL, Failure};
use tensor_dtype::TensorType;

use crate::input::{AprV2, Contents, Model, Rules, Source, Tensor, Totals};
use crate::metadata::{self, Entries};
use crate::report::json::JsonWriter;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, grouped};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::{self, Extent, Item};
use crate::terminal::{Console, Style};

/// Everything the reports show.
struct Summary<'m> {
    model: &'m Model,
    file: &'m AprV2,
    rules: Rules,
    items: Vec<Item<'m>>,
    dtypes: Vec<(TensorType, Totals)>,
    totals: Totals,
    /// What stands at the end; `None` if nobody looked.
    footer: Option<Footer>,
    warnings: Vec<Warning>,
}

/// Prints the report; the tree only to the extent given.
///
/// # Errors
///
/// If the file cannot be read or is not sound; when verifying, also if it is damaged.
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
    warnings.extend(Warning::misnamed(model.format(), model.label()));
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
    let mut warnings = Vec::new();
    let mut warn = |kind, message: String| warnings.push(Warning { kind, message });
    if !rules.is_strict()
        && let Some(failure) = model.strict_refusal()
    {
        warn("quirk", format!("strict reading refuses this file: {failure}"));
    }
    for warning in file.warnings(footer) {
        warn(kind(&warning), warning.to_string());
    }
    if let Some(message) = super::warnings::names(tensors) {
        warn("name", message);
    }
    warnings
}

/// Stable identifier of a warning.
fn kind(warning: &v2::Warning) -> &'static str {
    use v2::Warning;
    match warning {
        Warning::OtherVersion(_) => "newer-version",
        Warning::ReservedInUse => "reserved",
        Warning::NotCompressed { .. } => "not-compressed",
        Warning::Inflated { .. } => "compressed",
        Warning::Encrypted => "encrypted",
        Warning::SignatureUnchecked => "signature-unchecked",
        Warning::UnknownDtypes => "unknown-dtype",
        Warning::OverlappingTensors => "overlap",
        Warning::NoFooter => "no-checksum",
        Warning::WrongFooter { .. } => "wrong-checksum",
        Warning::TrailingBytes { .. } => "trailing",
        _ => "other",
    }
}

fn text(summary: &Summary<'_>, tree: Option<Extent>, console: &mut Console) -> Result<(), Failure> {
    let shorten = console.out_is_terminal() && !console.is_verbose();
    console.text(|out, style| {
        let title = style.bold(&escape::path(summary.model.label()));
        let bytes = human::exact_bytes(summary.file.index().file_len());
        writeln!(out, "{title}: .apr version 2, {bytes}\n")?;
        facts(summary).wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        write_metadata(&metadata::members(summary.file.index().metadata()), shorten, out, style)?;
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
        "places",
        format!(
            "metadata from byte {}, index from byte {}, data from byte {}",
            grouped(metadata),
            grouped(index),
            grouped(header.data_offset_declared())
        ),
    );
    line("read as", summary.rules.name().to_owned());
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

fn write_metadata(members: &Entries, shorten: bool, out: &mut impl Write, style: Style) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold("Metadata"))?;
    let shown = if shorten { LISTED } else { usize::MAX };
    for (key, value) in members.iter().take(shown) {
        let value = if shorten { escape::cut(value, VALUE_CHARS) } else { escaped(value) };
        writeln!(out, "  {}: {value}", style.cyan(&escaped(key)))?;
    }
    more(members.len().saturating_sub(shown), out)
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let index = summary.file.index();
    console.json("apr.inspect/1", |json| {
        json.field_str("file", &summary.model.label().to_string_lossy())?;
        json.field_str("format", summary.model.format().id())?;
        json.field_str("mode", summary.rules.name())?;
        json.field_uint("file_bytes", index.file_len())?;
        json.field_uint("tensors", summary.totals.tensors)?;
        json.field_uint("parameters", summary.totals.elements)?;
        json.field_uint("data_bytes", summary.totals.bytes)?;
        super::report::write_dtypes(&summary.dtypes, json)?;
        json.key("header")?;
        header(index.header(), json)?;
        json.key("metadata")?;
        json.raw(&index.metadata().to_json())?;
        json.field_str("checksum", footer_state(summary.footer))?;
        json.key("tree")?;
        write_nodes(&tree::build(&summary.items), json)?;
        write_warnings(&summary.warnings, json)
    })
}

fn header<W: Write>(header: &v2::Header, json: &mut JsonWriter<W>) -> io::Result<()> {
    json.object()?;
    json.field_str("magic", &String::from_utf8_lossy(&header.magic().bytes()))?;
    let (major, minor) = header.version();
    json.field_str("version", &format!("{major}.{minor}"))?;
    json.field_uint("flag_bits", header.flags().0.into())?;
    json.field_strings("flags", header.flags().names())?;
    json.field_uint("metadata_offset", header.metadata_offset_declared())?;
    json.field_uint("metadata_bytes", header.metadata_len_declared().into())?;
    json.field_uint("index_offset", header.index_offset_declared())?;
    json.field_uint("data_offset", header.data_offset_declared())?;
    json.field_uint("header_checksum", header.checksum().into())?;
    json.field_bool("reserved_in_use", header.has_reserved())?;
    json.end_object()
}

/// What is known of the checksum at the end, as JSON calls it.
pub(crate) fn footer_state(footer: Option<Footer>) -> &'static str {
    match footer {
        None | Some(Footer::Unchecked) => "not-compared",
        Some(Footer::Present(_)) => "right",
        Some(Footer::Absent) => "absent",
        Some(Footer::Wrong { .. }) => "wrong",
        Some(_) => "other",
    }
}
