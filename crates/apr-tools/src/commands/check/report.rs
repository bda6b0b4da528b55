//! The results as text and as JSON.

use alloc::borrow::Cow;
use std::io::Write as _;

use serde::Serialize;
use st_core::ShardProblem;

use super::values::{Finding, Values};
use super::{Content, Payload, Refusal, Sound, Verdict};
use crate::code_files::{self, Contents};
use crate::codes;
use crate::error::{Exit, Failure};
use crate::input::{self, Format, Rules};
use crate::report;
use crate::secrets::SignedBy;
use crate::terminal::Console;
use crate::terminal::escape::{self, Visible};
use crate::terminal::human;

/// Code of a [`ShardProblem`], as `st-mmap` gives it.
const CODE_SHARD: &str = "sm-shard";

pub(super) fn text(
    verdicts: &[Verdict],
    scanned: &[Contents],
    rules: &Rules,
    console: &mut Console,
) -> Result<(), Failure> {
    for Verdict { path, outcome } in verdicts {
        let file = escape::path(path);
        console.text(|out, style| match outcome {
            Ok(sound) => {
                let are_finite = !sound.values.as_ref().is_some_and(Values::are_not_finite);
                writeln!(
                    out,
                    "{} {file}: {} ({})",
                    if are_finite { style.green("ok") } else { style.red("not finite") },
                    describe(&sound.content),
                    rules.name()
                )?;
                let mark = style.yellow("!");
                let lines = sound.values.iter().flat_map(Values::lines);
                let mut warnings = sound.warnings.iter().cloned().chain(lines);
                warnings.try_for_each(|warning| writeln!(out, "  {mark} {}", Visible(&warning)))
            }
            Err(Refusal::Unsound(failure)) => {
                writeln!(out, "{} {file}: {}", style.red("refused"), failure.code())
            }
            Err(Refusal::Shards(problems)) => {
                writeln!(
                    out,
                    "{} {file}: {}",
                    style.red("refused"),
                    human::plural(problems.len() as u64, "problem")
                )?;
                problems.iter().try_for_each(|problem| writeln!(out, "  {}", Visible(&problem.to_string())))
            }
        })?;
        match outcome {
            Ok(_) => {}
            Err(Refusal::Unsound(failure)) => console.failure(failure),
            Err(Refusal::Shards(problems)) => console.failure(&input::disagreement(path, problems)),
        }
    }
    console.text(|out, style| {
        let mark = style.yellow("!");
        let mut warnings = scanned.iter().flat_map(Contents::warnings);
        warnings.try_for_each(|warning| writeln!(out, "{mark} {}", Visible(&warning)))
    })
}

fn describe(content: &Content) -> String {
    match content {
        Content::Tensors { tensors, bytes, shards, verified, checksum } => {
            let shards = shards.map(|n| format!(" in {}", human::plural(n as u64, "shard")));
            let verified =
                verified.map(|n| format!(", {} as in the manifest", human::plural(n as u64, "file")));
            let checksum = checksum.map(|state| format!(", checksum {state}"));
            format!(
                "{}{}, {}{}{}",
                human::plural(*tensors, "tensor"),
                shards.unwrap_or_default(),
                human::bytes(*bytes),
                verified.unwrap_or_default(),
                checksum.unwrap_or_default(),
            )
        }
        Content::Gguf { tensors, bytes, version } => {
            let tensors = human::plural(*tensors, "tensor");
            format!("{tensors}, {}, GGUF version {version}", human::bytes(*bytes))
        }
        Content::Model { model_type, bytes, payload, is_decrypted, signer } => {
            let decrypted = if *is_decrypted { "decrypted " } else { "" };
            let signer = signer.as_ref().map(|signer| format!(", signed {}", signer.by()));
            let payload = match payload {
                Payload::Decoded { model, layout } => {
                    format!("checksum right, {decrypted}payload is a {model} (layout {layout})")
                }
                Payload::Foreign => {
                    format!("checksum right, {decrypted}payload of its maker's own type, not decoded")
                }
                Payload::Encrypted => "checksum right, payload encrypted, not checked".to_owned(),
            };
            format!(
                "{}, {}, {payload}{}",
                Visible(model_type),
                human::bytes(*bytes),
                signer.unwrap_or_default()
            )
        }
    }
}

pub(super) fn json(
    verdicts: &[Verdict],
    scanned: &[Contents],
    rules: &Rules,
    exit: Exit,
    console: &mut Console,
) -> Result<(), Failure> {
    let files = verdicts.iter().map(|verdict @ Verdict { path, outcome }| FileReport {
        file: report::path(path),
        ok: verdict.exit() == Exit::Success,
        sound: outcome.as_ref().ok().map(SoundFields::new),
        problems: match outcome {
            Ok(_) => Vec::new(),
            Err(Refusal::Unsound(failure)) => vec![Problem::Failure(failure)],
            Err(Refusal::Shards(problems)) => {
                let help = codes::find(CODE_SHARD).map(|entry| entry.remedy);
                let shard = |problem: &ShardProblem| Problem::Shard {
                    code: CODE_SHARD,
                    message: problem.to_string(),
                    help,
                };
                problems.iter().map(shard).collect()
            }
        },
    });
    console.report(&CheckReport {
        mode: rules.name(),
        ok: exit == Exit::Success,
        files: files.collect(),
        runs_code: code_files::rows(scanned),
    })
}

/// The verdicts.
#[derive(Serialize)]
struct CheckReport<'a> {
    mode: &'a str,
    ok: bool,
    files: Vec<FileReport<'a>>,
    runs_code: Vec<code_files::CodeRow<'a>>,
}

impl report::Report for CheckReport<'_> {
    const SCHEMA: &'static str = "apr.check/2";
}

#[derive(Serialize)]
struct FileReport<'a> {
    file: Cow<'a, str>,
    ok: bool,
    #[serde(flatten)]
    sound: Option<SoundFields<'a>>,
    problems: Vec<Problem<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Problem<'a> {
    Failure(&'a Failure),
    Shard {
        code: &'static str,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        help: Option<&'static str>,
    },
}

/// An accepted file.
#[derive(Serialize)]
struct SoundFields<'a> {
    #[serde(flatten)]
    content: ContentFields<'a>,
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<ValuesFields<'a>>,
}

/// What the values of a file are.
#[derive(Serialize)]
struct ValuesFields<'a> {
    tensors: u64,
    unread: u64,
    findings: Vec<FindingFields<'a>>,
}

#[derive(Serialize)]
struct FindingFields<'a> {
    tensor: &'a str,
    values: u64,
    nan: u64,
    infinite: u64,
    subnormal: u64,
    constant: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<report::Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<report::Number>,
}

impl<'a> From<&'a Finding> for FindingFields<'a> {
    fn from(finding: &'a Finding) -> Self {
        let found = &finding.statistics;
        Self {
            tensor: &finding.tensor,
            values: found.count,
            nan: found.nan,
            infinite: found.infinite,
            subnormal: found.subnormal,
            constant: found.is_constant,
            min: found.range.map(|(low, _)| report::Number(low)),
            max: found.range.map(|(_, high)| report::Number(high)),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentFields<'a> {
    Tensors {
        tensors: u64,
        bytes: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        shards: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        verified_files: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        format: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        checksum: Option<&'a str>,
    },
    Gguf {
        tensors: u64,
        bytes: u64,
        format: &'a str,
        version: u32,
    },
    Model {
        bytes: u64,
        format: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        version: Option<u32>,
        model_type: &'a str,
        checksum: &'a str,
        payload: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        model: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        layout: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        decrypted: Option<bool>,
        #[serde(skip_serializing_if = "Option::is_none")]
        signer: Option<&'a SignedBy>,
    },
}

impl<'a> SoundFields<'a> {
    fn new(sound: &'a Sound) -> Self {
        let content = match &sound.content {
            &Content::Tensors { tensors, bytes, shards, verified, checksum } => ContentFields::Tensors {
                tensors,
                bytes,
                shards,
                verified_files: verified,
                format: checksum.map(|_| Format::AprV2.name()),
                version: checksum.and(Format::AprV2.version()),
                checksum,
            },
            &Content::Gguf { tensors, bytes, version } => {
                ContentFields::Gguf { tensors, bytes, format: Format::Gguf.name(), version }
            }
            Content::Model { model_type, bytes, payload, is_decrypted, signer } => {
                let (payload, decoded) = match payload {
                    Payload::Decoded { model, layout } => ("decoded", Some((model, layout))),
                    Payload::Foreign => ("foreign", None),
                    Payload::Encrypted => ("encrypted", None),
                };
                ContentFields::Model {
                    bytes: *bytes,
                    format: Format::AprV1.name(),
                    version: Format::AprV1.version(),
                    model_type,
                    checksum: "right",
                    payload,
                    model: decoded.map(|(model, _)| model.as_ref()),
                    layout: decoded.map(|(_, layout)| layout.as_ref()),
                    decrypted: is_decrypted.then_some(true),
                    signer: signer.as_ref(),
                }
            }
        };
        let values = sound.values.as_ref().map(|values| ValuesFields {
            tensors: values.tensors,
            unread: values.unread,
            findings: values.findings.iter().map(FindingFields::from).collect(),
        });
        Self { content, warnings: &sound.warnings, values }
    }
}
