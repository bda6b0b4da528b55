//! SARIF 2.1.0, which code scanning services take.

use std::io::Write as _;
use std::path::Path;

use model_scan::{Found, Verdict};
use serde_json::{Value, json};

use super::{Scan, Scanned};
use crate::codes;
use crate::error::Failure;
use crate::terminal::Console;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) fn print(scan: &Scan, console: &mut Console) -> Result<(), Failure> {
    let results: Vec<Value> = scan
        .files
        .iter()
        .flat_map(|file| file.judged.report.findings().map(|found| result(file, &found, scan.has_baseline)))
        .collect();
    let mut used: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    used.sort_unstable();
    used.dedup();
    let rules: Vec<Value> = used.iter().filter_map(|code| codes::find(code)).map(rule).collect();
    let unread: Vec<Value> = scan.unread.iter().map(notification).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "apr", "version": env!("CARGO_PKG_VERSION"), "rules": rules}},
            "invocations": [{
                "executionSuccessful": scan.unread.is_empty(),
                "toolExecutionNotifications": unread,
            }],
            "results": results,
        }],
    });
    console.text(|out, _| {
        serde_json::to_writer_pretty(&mut *out, &log)?;
        writeln!(out)
    })
}

fn level(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "note",
        Verdict::Suspicious => "warning",
        Verdict::Malformed | Verdict::Dangerous => "error",
    }
}

fn result(file: &Scanned, found: &Found<'_>, has_baseline: bool) -> Value {
    let member = if found.member.is_empty() { String::new() } else { format!("{}: ", found.member) };
    let opcode = found.opcode.map(|opcode| format!(" ({opcode} at byte {})", found.offset));
    // Services show lines: of a file without them, the first.
    let mut region = json!({"startLine": 1});
    if found.member.is_empty() && found.depth == 0 {
        region["byteOffset"] = found.offset.into();
    }
    let mut location = json!({
        "physicalLocation": {"artifactLocation": {"uri": uri(&file.path)}, "region": region},
    });
    if !found.member.is_empty() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": found.member, "kind": "member"}]);
    }
    let mut result = json!({
        "ruleId": found.code,
        "level": level(found.verdict),
        "message": {"text": format!("{member}{}{}", found.message, opcode.unwrap_or_default())},
        "locations": [location],
    });
    if let Some(sha256) = &file.sha256 {
        result["partialFingerprints"] =
            json!({"sha256/v1": format!("{sha256}:{}:{}", found.member, found.offset)});
    }
    if has_baseline {
        result["baselineState"] = if file.is_known { "unchanged" } else { "new" }.into();
    }
    result
}

fn rule(entry: &codes::Entry) -> Value {
    json!({
        "id": entry.code,
        "shortDescription": {"text": entry.meaning},
        "help": {"text": entry.remedy},
    })
}

fn notification(failure: &Failure) -> Value {
    json!({"level": "error", "message": {"text": failure.to_string()}, "descriptor": {"id": failure.code()}})
}

/// A path as a reference: what is not allowed in one is percent-encoded.
fn uri(path: &Path) -> String {
    let text = path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/");
    let mut uri = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}
