//! The description of an `.apr` file of version 1, with `--verify` including its payload.

use alloc::borrow::Cow;
use std::io;

use apr_container::{ModelInfo, PayloadLayout, Value};
use apr_models::{AnyModel, Model as _, Step};
use model_file::Warning;
use model_file::entries::flatten;

use super::page::{Page, VALUE_CHARS};
use super::protection::{AuthenticationFields, Protection};
use super::warnings::{misnamed, quirk};
use crate::error::Failure;
use crate::input::{Model, Rules, Source};
use crate::report::{self, Report};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::value::{self, line};
use serde::Serialize;

/// Everything the reports show.
struct Summary<'s> {
    source: &'s Source,
    rules: Rules,
    info: &'s ModelInfo,
    metadata: Value,
    /// `None` if the payload was not read.
    payload: Option<Payload>,
    protection: Protection,
    warnings: Vec<Warning>,
}

/// The content of the payload.
enum Payload {
    /// Encrypted: it cannot be read without the key.
    Encrypted,
    /// A type of its maker's own.
    Foreign {
        layout: &'static str,
    },
    Model {
        layout: &'static str,
        facts: Facts,
    },
}

/// Warnings about a decoded model.
struct Facts {
    name: &'static str,
    n_features: Option<usize>,
    /// Rows of training data inside.
    stored_samples: Option<usize>,
    /// Number of tensors it becomes and of their elements; `None` for a model without any.
    tensors: Option<(u64, u64)>,
    /// The steps of a pipeline.
    steps: Option<Vec<&'static str>>,
}

/// Prints the report.
///
/// # Errors
///
/// If the file cannot be read or is not sound; when verifying, also if it is damaged or its payload is not sound.
pub(super) fn run(source: Source, rules: &Rules, verify: bool, console: &mut Console) -> Result<(), Failure> {
    // With keys everything is read: what they protect is the whole file.
    let has_keys = source.keys().is_given();
    // Next to a prompt for a password there is no progress line.
    let busy = (verify && !has_keys).then(|| console.busy("verifying"));
    let verify = verify || has_keys;
    let permissive = rules.with_unchecked_signatures();
    let model = Model::undecoded(source, &permissive)?;
    if verify && !has_keys {
        model.verify_apr_v1(&permissive)?;
    }
    let (source, file, signer) = (model.source(), model.apr_v1()?, model.signed_by());
    let info = file.info();
    let payload = verify.then(|| file.payload().map_or(Payload::Encrypted, Payload::of));
    let mut warnings = warnings(&model, info, payload.as_ref(), rules);
    warnings.extend(misnamed(source.format(), source.label()));
    // What the keys have settled.
    warnings.retain(|warning| match warning.kind {
        "signature-unchecked" => signer.is_none(),
        "metadata-not-encrypted" => !file.is_decrypted(),
        _ => true,
    });
    if signer.as_ref().is_some_and(|signer| signer.name.is_none()) {
        warnings.push(Warning { kind: "any-signer", message: ANYONE.to_owned() });
    }
    let protection = Protection::new(&model, file, verify, signer, rules);
    drop(busy);
    let metadata = info.metadata.to_value().map_err(|error| source.relabel(error.into()))?;
    let summary = Summary { source, rules: *rules, info, metadata, payload, protection, warnings };
    if console.is_json() { json(&summary, console) } else { text(&summary, console) }
}

impl Payload {
    fn of(payload: &model_file::Payload) -> Self {
        let layout = payload.layout.version();
        match &payload.model {
            None => Self::Foreign { layout },
            Some(model) => Self::Model { layout, facts: Facts::new(model) },
        }
    }
}

impl Facts {
    fn new(model: &AnyModel) -> Self {
        // A model that has not been trained has no tensors, and that is no fault of its file.
        let tensors = model.to_tensors().ok().map(|tensors| {
            let elements = tensors.names().filter_map(|name| tensors.view(name).ok());
            (tensors.len() as u64, elements.map(|view| view.element_count()).sum())
        });
        Self {
            name: model.name(),
            n_features: model.n_features(),
            stored_samples: model.stored_samples(),
            tensors,
            steps: match model {
                AnyModel::Pipeline(pipeline) => Some(pipeline.steps().iter().map(Step::name).collect()),
                _ => None,
            },
        }
    }
}

fn warnings(model: &Model, info: &ModelInfo, payload: Option<&Payload>, rules: &Rules) -> Vec<Warning> {
    let mut warnings = Vec::from_iter(quirk(model, rules));
    warnings.extend(model.file().warnings());
    let mut warn = |kind, message: String| warnings.push(Warning { kind, message });
    if let Some(score) = info.quality {
        warn("quality", format!("quality {score} is what the writer says of its own file"));
    }
    if info.metadata.license.is_some() {
        warn("license", "the license in the metadata is a label: nothing enforces or protects it".to_owned());
    }
    if let Some(Payload::Model { facts: Facts { stored_samples: Some(rows), .. }, .. }) = payload {
        warn("training-data", stored(*rows));
    }
    warnings
}

/// The note for a signature by any key.
pub(crate) const ANYONE: &str = "the signature is by the key in the file, which is not trusted: it shows that the file was not modified, not who signed it";

/// The note for training data in the file.
pub(crate) fn stored(rows: usize) -> String {
    format!(
        "{} of training data are stored in the file: anyone who has the model has them",
        plural(rows as u64, "row")
    )
}

fn text(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let what = (".apr version 1", summary.info.file_size);
    Page::print(summary.source.label(), what, &facts(summary), console, |page| {
        metadata(&summary.metadata, page)?;
        page.warnings(&summary.warnings)
    })
}

fn facts(summary: &Summary<'_>) -> Table {
    let info = summary.info;
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    let name = info.model_name().filter(|&name| info.model_type.name() != Some(name));
    let name = name.map(|name| format!(", {}", escape::cut(name, 60))).unwrap_or_default();
    line("model", format!("{} (0x{:04X}){name}", info.model_type, info.model_type.0));
    let (major, minor) = info.format_version;
    line("format", format!("{major}.{minor}"));
    let compression = match info.compression {
        apr_container::Compression::None => "not compressed".to_owned(),
        other => format!("{other}, {} before compression", human::bytes(info.uncompressed_size)),
    };
    line("payload", format!("{}, {compression}", human::exact_bytes(info.payload_size)));
    let layout = info.layout().map_or("the metadata do not tell", |layout| layout.version());
    line("layout", layout.to_owned());
    line("metadata", human::exact_bytes(info.metadata_size));
    let flags: Vec<&str> = info.flags.names().collect();
    line("flags", if flags.is_empty() { "none".to_owned() } else { flags.join(", ") });
    if let Some(score) = info.quality {
        line("quality", format!("{score} of 100"));
    }
    line("mode", summary.rules.name().to_owned());
    match &summary.payload {
        None => line("verified", "no: neither checksum nor payload were read (--verify)".to_owned()),
        Some(Payload::Encrypted) => line("verified", "checksum; the payload is encrypted".to_owned()),
        Some(Payload::Foreign { layout }) => {
            line("verified", format!("checksum; the payload is of its maker's own type, layout {layout}"));
        }
        Some(Payload::Model { layout, facts }) => {
            line("verified", format!("checksum and payload: {}, layout {layout}", facts.name));
            line("", shape(facts));
        }
    }
    for (label, text) in summary.protection.lines() {
        line(label, text);
    }
    table
}

/// `4 features, 2 tensors, 5 parameters`, or of a pipeline `4 features, 2 steps: linear, activation`
fn shape(facts: &Facts) -> String {
    let mut parts = Vec::new();
    parts.extend(facts.n_features.map(|n| plural(n as u64, "feature")));
    match (&facts.steps, facts.tensors) {
        (Some(steps), _) if steps.is_empty() => parts.push("no steps".to_owned()),
        (Some(steps), _) => {
            parts.push(format!("{}: {}", plural(steps.len() as u64, "step"), steps.join(", ")));
        }
        (None, Some((tensors, elements))) => {
            parts.push(plural(tensors, "tensor"));
            parts.push(plural(elements, "parameter"));
        }
        (None, None) => parts.push("not trained".to_owned()),
    }
    parts.join(", ")
}

fn metadata(metadata: &Value, page: &mut Page<'_>) -> io::Result<()> {
    let mut entries = Vec::new();
    flatten("", metadata, &mut |path, value| {
        let mut text = line(value, page.shorten.then_some(VALUE_CHARS));
        if path == "created_at"
            && let Some(seconds) = value.as_str().and_then(|text| text.parse().ok())
        {
            text = format!("{text} ({})", human::unix_time(seconds));
        }
        entries.push((path.to_owned(), text));
    });
    page.entries("Metadata", entries.into_iter())
}

fn json(summary: &Summary<'_>, console: &mut Console) -> Result<(), Failure> {
    let info = summary.info;
    let (major, minor) = info.format_version;
    console.report(&InspectReport {
        file: report::path(summary.source.label()),
        format: summary.source.format().name(),
        version: summary.source.format().version(),
        mode: summary.rules.name(),
        file_bytes: info.file_size,
        header: HeaderFields {
            version: format!("{major}.{minor}"),
            model_type: info.model_type.name(),
            model_type_id: info.model_type.0,
            metadata_bytes: info.metadata_size,
            payload_bytes: info.payload_size,
            uncompressed_bytes: info.uncompressed_size,
            compression: info.compression.name(),
            compression_id: info.compression.0,
            flag_bits: info.flags.0,
            flags: info.flags.names().collect(),
            encrypted: info.encrypted,
            signed: info.signed,
            quality: info.quality.map(Into::into),
        },
        model: info.model_name(),
        layout: info.layout().map(PayloadLayout::version),
        metadata: value::Json(&summary.metadata),
        verified: summary.payload.as_ref().map(VerifiedFields::new),
        authentication: summary.protection.report(),
        warnings: &summary.warnings,
    })
}

/// An `.apr` model of version 1.
#[derive(Serialize)]
struct InspectReport<'a> {
    file: Cow<'a, str>,
    format: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    mode: &'a str,
    file_bytes: u64,
    header: HeaderFields<'a>,
    model: Option<&'a str>,
    layout: Option<&'a str>,
    metadata: value::Json<'a>,
    verified: Option<VerifiedFields<'a>>,
    authentication: AuthenticationFields<'a>,
    warnings: &'a [Warning],
}

impl Report for InspectReport<'_> {
    const SCHEMA: &'static str = "apr.inspect/2";
}

#[derive(Serialize)]
struct HeaderFields<'a> {
    version: String,
    model_type: Option<&'a str>,
    model_type_id: u16,
    metadata_bytes: u64,
    payload_bytes: u64,
    uncompressed_bytes: u64,
    compression: Option<&'a str>,
    compression_id: u8,
    flag_bits: u8,
    flags: Vec<&'a str>,
    encrypted: bool,
    signed: bool,
    quality: Option<u64>,
}

/// What reading the payload showed.
#[derive(Serialize)]
struct VerifiedFields<'a> {
    checksum: &'static str,
    payload: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    layout: Option<&'a str>,
    #[serde(flatten)]
    facts: Option<FactFields<'a>>,
}

#[derive(Serialize)]
struct FactFields<'a> {
    model: &'a str,
    features: Option<usize>,
    tensors: Option<u64>,
    parameters: Option<u64>,
    stored_samples: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<&'a [&'static str]>,
}

impl<'a> VerifiedFields<'a> {
    fn new(payload: &'a Payload) -> Self {
        let (payload, layout, facts) = match payload {
            Payload::Encrypted => ("encrypted", None, None),
            Payload::Foreign { layout } => ("foreign", Some(layout), None),
            Payload::Model { layout, facts } => ("model", Some(layout), Some(facts)),
        };
        let facts = facts.map(|facts| FactFields {
            model: facts.name,
            features: facts.n_features,
            tensors: facts.tensors.map(|(tensors, _)| tensors),
            parameters: facts.tensors.map(|(_, elements)| elements),
            stored_samples: facts.stored_samples,
            steps: facts.steps.as_deref(),
        });
        Self { checksum: "right", payload, layout: layout.map(AsRef::as_ref), facts }
    }
}
