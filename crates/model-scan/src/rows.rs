//! Reports of files as the JSON of `apr scan` has them, for everything that prints it.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::Serialize;

use crate::file::{FileReport, Part};
use crate::findings::Found;

/// Name and version of the report that these rows are in.
pub const SCHEMA: &str = "apr.scan/1";

/// The report of one file that was read.
#[derive(Clone, Debug, Serialize)]
pub struct ScanRow<'a> {
    schema: &'static str,
    files: [FileRow<'a>; 1],
    unread: [(); 0],
    verdict: &'static str,
}

impl<'a> From<FileRow<'a>> for ScanRow<'a> {
    fn from(file: FileRow<'a>) -> Self {
        Self { schema: SCHEMA, verdict: file.verdict, files: [file], unread: [] }
    }
}

/// A file of the report.
#[derive(Clone, Debug, Serialize)]
pub struct FileRow<'a> {
    path: Cow<'a, str>,
    format: &'static str,
    bytes: u64,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<bool>,
    findings: Vec<FindingRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
    pickles: Vec<PickleRow<'a>>,
}

impl<'a> FileRow<'a> {
    /// A file of `bytes` bytes, which the user calls `path`, in a format of this [name](FileReport::format_of).
    #[must_use]
    pub fn new(path: Cow<'a, str>, format: &'static str, bytes: u64, report: &'a FileReport) -> Self {
        Self {
            path,
            format,
            bytes,
            verdict: report.verdict().name(),
            sha256: None,
            known: None,
            findings: report.findings().map(FindingRow::new).collect(),
            dropped: Some(report.dropped()).filter(|dropped| *dropped > 0),
            pickles: report.parts.iter().map(PickleRow::new).collect(),
        }
    }

    /// With its SHA-256 in hexadecimal.
    #[must_use]
    pub fn with_sha256(mut self, sha256: Option<&'a str>) -> Self {
        self.sha256 = sha256;
        self
    }

    /// With whether a baseline has it.
    #[must_use]
    pub fn with_known(mut self, is_known: bool) -> Self {
        self.known = is_known.then_some(true);
        self
    }
}

#[derive(Clone, Debug, Serialize)]
struct FindingRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    member: &'a str,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    opcode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    verdict: &'static str,
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    bypass: Option<&'static str>,
}

impl<'a> FindingRow<'a> {
    fn new(found: Found<'a>) -> Self {
        Self {
            member: found.member,
            offset: found.offset,
            depth: Some(found.depth).filter(|depth| *depth > 0),
            opcode: found.opcode.map(|opcode| opcode.to_string()),
            name: found.name,
            verdict: found.verdict.name(),
            code: found.code,
            message: found.message,
            bypass: found.bypass,
        }
    }
}

/// A stream of pickles and the names that a loader resolves.
#[derive(Clone, Debug, Serialize)]
struct PickleRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    member: &'a str,
    verdict: &'static str,
    opcodes: u64,
    names: BTreeSet<String>,
}

impl<'a> PickleRow<'a> {
    fn new(part: &'a Part) -> Self {
        let names = part.report.names.iter().map(|name| format!("{}.{}", name.module, name.name));
        Self {
            member: &part.path,
            verdict: part.report.verdict().name(),
            opcodes: part.report.opcodes,
            names: names.collect(),
        }
    }
}
