//! What loading a file would run, as the object that `apr scan --json` prints.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use model_file::FileKind;
use model_scan::{FileReport, Found, Options};
use read_at::ReadAt as _;

use super::OpenFile;
use crate::json::Json;
use crate::wire::{Answer, Arguments, Outcome};

impl OpenFile {
    /// Scans the file: its name, then names that the caller trusts, as `package.module.name`.
    pub(crate) fn scan(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let path = args.text()?;
        let mut allow = Vec::new();
        while let Ok(name) = args.text() {
            allow.extend(name.rsplit_once('.'));
        }
        let mut options = Options::DEFAULT;
        options.allow = &allow;
        let pages = self.pages()?;
        let bytes = pages.total_len();
        let scanned = FileKind::identify(bytes, |offset, out| pages.read_exact_at(offset, out))
            .map_err(Outcome::from)
            .and_then(|kind| Ok((kind, model_scan::scan_named(&**pages, path, &options)?)));
        self.need_missing()?;
        let (kind, report) = scanned?;
        let (format, _) = report.format_of(bytes, kind.name().map(|name| (name, kind.title())));
        let mut json = Json::object();
        json.text("schema", "apr.scan/1");
        json.key("files");
        json.open("[");
        json.open("{");
        json.text("path", path);
        json.text("format", format);
        json.number("bytes", bytes);
        write_report(&report, &mut json);
        json.close("}");
        json.close("]");
        json.raw("unread", "[]");
        json.text("verdict", report.verdict().name());
        self.forget();
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }
}

fn write_report(report: &FileReport, json: &mut Json) {
    json.text("verdict", report.verdict().name());
    json.key("findings");
    json.open("[");
    report.findings().for_each(|found| write_finding(&found, json));
    json.close("]");
    if report.dropped() > 0 {
        json.number("dropped", report.dropped());
    }
    json.key("pickles");
    json.open("[");
    for part in &report.parts {
        json.open("{");
        write_some("member", Some(part.path.as_str()), json);
        json.text("verdict", part.report.verdict().name());
        json.number("opcodes", part.report.opcodes);
        let names = part.report.names.iter().map(|name| [&name.module, ".", &name.name].concat());
        let names: BTreeSet<String> = names.collect();
        json.texts("names", names.iter().map(String::as_str));
        json.close("}");
    }
    json.close("]");
}

fn write_finding(found: &Found<'_>, json: &mut Json) {
    json.open("{");
    write_some("member", Some(found.member), json);
    json.number("offset", found.offset);
    if found.depth > 0 {
        json.number("depth", found.depth.into());
    }
    write_some("opcode", found.opcode.map(|opcode| opcode.name()), json);
    write_some("name", found.name.as_deref(), json);
    json.text("verdict", found.verdict.name());
    json.text("code", found.code);
    json.text("message", &found.message);
    write_some("bypass", found.bypass, json);
    json.close("}");
}

/// A text, unless it is missing or empty.
fn write_some(key: &str, text: Option<&str>, json: &mut Json) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        json.text(key, text);
    }
}
