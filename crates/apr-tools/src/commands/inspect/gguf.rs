//! The description of a GGUF file.

use alloc::borrow::Cow;

use gguf_core::{Endian, Entry, Header, Value};
use model_file::Warning;

use super::content::{Content, TotalsFields, Tree};
use super::page::{VALUE_CHARS, text_value};
use super::warnings::{names, quirk, warning, zero_size};
use crate::architecture::{note_on_part, part};
use crate::error::{CODE_INTERNAL, Failure};
use crate::input::{Contents, Gguf, Model, Rules, Source, Tensor};
use crate::report::{self, Each, Narrow, Number, OneLine, Report};
use crate::terminal::Console;
use crate::terminal::escape::{self, is_hazard};
use crate::terminal::human::{self, grouped};
use crate::terminal::table::{Align, Table};
use crate::terminal::tree::Extent;
use serde::{Serialize, Serializer};

/// Most elements of an array that are shown, unless nothing is to be left out.
const ELEMENTS: usize = 8;

/// Everything the reports show.
struct Summary<'m> {
    file: &'m Gguf,
    header: Header<'m>,
    rules: Rules,
    content: Content<'m>,
}

/// Prints the report; the tree only to the extent given.
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub(super) fn run(
    source: Source,
    rules: &Rules,
    extent: Option<Extent>,
    console: &mut Console,
) -> Result<(), Failure> {
    let model = Model::from_source(source, rules)?;
    let Contents::Gguf(file) = model.contents() else {
        return Err(Failure::new(CODE_INTERNAL, "a GGUF file became something else"));
    };
    let header = file.header()?;
    let tensors = model.tensors()?;
    let warnings = warnings(&model, file, &header, rules, &tensors);
    let summary = Summary { file, rules: *rules, content: Content::new(&model, &tensors, warnings), header };
    if console.is_json() { json(&summary, console) } else { text(&summary, extent, console) }
}

fn warnings(
    model: &Model,
    file: &Gguf,
    header: &Header<'_>,
    rules: &Rules,
    tensors: &[Tensor<'_>],
) -> Vec<Warning> {
    let mut warnings = Vec::from_iter(quirk(model, rules));
    let mut warn = |kind, message: String| warnings.push(Warning { kind, message });
    if let Some(note) = note_on_part(header) {
        warn("part", note);
    }
    // Of several parts, the first has the keys.
    let has_keys = part(header).is_none_or(|(no, _)| no == 1);
    if has_keys && header.get("general.architecture").and_then(|value| value.as_text()).is_none() {
        warn("no-architecture", "no general.architecture: llama.cpp does not load such a file".to_owned());
    }
    let is_quantized = tensors.iter().any(|tensor| tensor.dtype().element().is_none());
    if has_keys && is_quantized && header.get("general.quantization_version").is_none() {
        warn(
            "no-quantization-version",
            "tensors are quantized and no general.quantization_version says how".to_owned(),
        );
    }
    let unordered = tensors.iter().find_map(|tensor| tensor.check_order().err());
    if let Some(failure) = unordered {
        warn("byte-order", format!("{failure}: what needs their numbers refuses them"));
    }
    let found = [("zero-size", zero_size(tensors)), ("name", names(tensors))];
    warnings.extend(found.into_iter().filter_map(warning));
    let odd = |text: gguf_core::Text<'_>| {
        let is_odd = |c| is_hazard(c) && !matches!(c, '\n' | '\r' | '\t');
        text.to_str().map_or(true, |text| text.contains(is_odd))
    };
    // What tokens look like is the tokenizer's business.
    let entries = header.entries().iter();
    let count = entries.filter(|entry| odd(entry.key()) || entry.value().as_text().is_some_and(odd)).count();
    if count > 0 {
        let keys = human::plural(count as u64, "key");
        let message = format!("{keys} with control or invisible characters, or not UTF-8");
        warnings.push(Warning { kind: "metadata-text", message });
    }
    let end = header.data_start() + header.data_len();
    if let Some(trailing @ 1..) = file.file_len().checked_sub(end) {
        let message = format!("{} behind the last tensor", human::plural(trailing, "byte"));
        warnings.push(Warning { kind: "trailing", message });
    }
    warnings
}

fn text(summary: &Summary<'_>, tree: Option<Extent>, console: &mut Console) -> Result<(), Failure> {
    let elements = if console.is_verbose() { usize::MAX } else { ELEMENTS };
    let what = format!("GGUF version {}", summary.header.version());
    let what = (&*what, summary.file.file_len());
    summary.content.print(what, &facts(summary), tree, console, |page| {
        let (style, shorten) = (page.style, page.shorten);
        let keys = summary.header.entries().iter().map(|entry| {
            let value = entry.value();
            let kind = match value {
                Value::Text(_) | Value::Array(_) => String::new(),
                _ => style.dim(&format!(" ({})", value.value_type())),
            };
            (entry.key().to_str_lossy(), text_value(&described(&value, elements), shorten) + &kind)
        });
        page.entries("Keys", keys)
    })
}

fn facts(summary: &Summary<'_>) -> Table {
    let header = &summary.header;
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let architecture = header.get("general.architecture").and_then(|value| value.as_text());
    if let Some(architecture) = architecture {
        table.row(["  architecture".to_owned(), escape::cut(&architecture.to_str_lossy(), VALUE_CHARS)]);
    }
    summary.content.totals(&mut table);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    line("keys", grouped(header.entries().len() as u64));
    line(
        "format",
        format!("{}, aligned to {}", endian(header), human::plural(header.alignment().into(), "byte")),
    );
    let (len, start) = (grouped(header.header_len()), grouped(header.data_start()));
    line("layout", format!("header ends at byte {len}, data starts at byte {start}"));
    if let Some((no, count)) = part(header) {
        line("part", format!("{no} of {count}"));
    }
    line("mode", summary.rules.name().to_owned());
    table
}

fn endian(header: &Header<'_>) -> &'static str {
    match header.endian() {
        Endian::Little => "little-endian",
        Endian::Big => "big-endian",
    }
}

/// A value as people read it: of an array its type, its length and the first elements.
fn described(value: &Value<'_>, elements: usize) -> String {
    match value {
        Value::Text(text) => text.to_str_lossy().into_owned(),
        Value::Bool(value) => value.to_string(),
        Value::F32(value) => value.to_string(),
        Value::F64(value) => value.to_string(),
        Value::Array(array) => {
            let shown: Vec<String> =
                array.iter().take(elements).map(|value| described(&value, elements)).collect();
            let more = if array.len() > elements { ", ..." } else { "" };
            format!("{}[{}] {}{more}", array.element_type(), array.len(), shown.join(", "))
                .trim_end()
                .to_owned()
        }
        _ => match (value.to_u64(), value.to_i64()) {
            (Some(number), _) => number.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => "?".to_owned(),
        },
    }
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let elements = if console.is_verbose() { usize::MAX } else { ELEMENTS };
    let header = &summary.header;
    let architecture = header.get("general.architecture").and_then(|value| value.as_text());
    console.report(&InspectReport {
        file: report::path(summary.content.model.label()),
        format: summary.content.model.format().name(),
        mode: summary.rules.name(),
        file_bytes: summary.file.file_len(),
        version: header.version(),
        byte_order: endian(header),
        alignment: header.alignment().into(),
        architecture: architecture.map(|text| text.to_str_lossy().into_owned()),
        header_bytes: header.header_len(),
        data_start: header.data_start(),
        part: part(header).map(|(number, of)| PartFields { number, of }),
        totals: summary.content.totals_fields(),
        keys: Each(|| header.entries().iter().map(|entry| KeyFields::new(entry, elements))),
        tree: summary.content.tree_fields(),
        warnings: summary.content.warnings(),
    })
}

/// A GGUF file.
#[derive(Serialize)]
struct InspectReport<'a, K> {
    file: Cow<'a, str>,
    format: &'a str,
    mode: &'a str,
    file_bytes: u64,
    version: u32,
    byte_order: &'a str,
    alignment: u64,
    architecture: Option<String>,
    header_bytes: u64,
    data_start: u64,
    part: Option<PartFields>,
    #[serde(flatten)]
    totals: TotalsFields,
    keys: K,
    tree: Tree<'a>,
    warnings: &'a [Warning],
}

impl<K: Serialize> Report for InspectReport<'_, K> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

#[derive(Serialize)]
struct PartFields {
    number: u64,
    of: u64,
}

#[derive(Serialize)]
struct KeyFields {
    key: String,
    #[serde(rename = "type")]
    value_type: &'static str,
    #[serde(flatten)]
    array: Option<ArrayFields>,
    value: ValueFields,
}

impl KeyFields {
    fn new(entry: &Entry<'_>, elements: usize) -> Self {
        let value = entry.value();
        let array = value.as_array().map(|array| ArrayFields {
            element_type: array.element_type().name(),
            elements: array.len() as u64,
        });
        Self {
            key: entry.key().to_str_lossy().into_owned(),
            value_type: value.value_type().name(),
            array,
            value: ValueFields::new(&value, elements),
        }
    }
}

#[derive(Serialize)]
struct ArrayFields {
    element_type: &'static str,
    elements: u64,
}

/// A value; of an array the first elements.
enum ValueFields {
    Text(String),
    Bool(bool),
    F32(f32),
    F64(f64),
    Unsigned(u64),
    Signed(i64),
    Array(Vec<Self>),
    None,
}

impl ValueFields {
    fn new(value: &Value<'_>, elements: usize) -> Self {
        match value {
            Value::Text(text) => Self::Text(text.to_str_lossy().into_owned()),
            Value::Bool(value) => Self::Bool(*value),
            Value::F32(value) => Self::F32(*value),
            Value::F64(value) => Self::F64(*value),
            Value::Array(array) => {
                Self::Array(array.iter().take(elements).map(|value| Self::new(&value, elements)).collect())
            }
            _ => match (value.to_u64(), value.to_i64()) {
                (Some(number), _) => Self::Unsigned(number),
                (None, Some(number)) => Self::Signed(number),
                (None, None) => Self::None,
            },
        }
    }
}

impl Serialize for ValueFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::F32(value) => Narrow(*value).serialize(serializer),
            Self::F64(value) => Number(*value).serialize(serializer),
            Self::Unsigned(value) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Array(values) => OneLine(values).serialize(serializer),
            Self::None => serializer.serialize_unit(),
        }
    }
}
