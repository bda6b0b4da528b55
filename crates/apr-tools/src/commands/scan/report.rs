//! Verdicts as text and as JSON.

use std::io::{self, Write};

use model_scan::{FileRow, Verdict};
use serde::Serialize;

use super::{Scan, Scanned};
use crate::error::Failure;
use crate::report::{self, Report};
use crate::scanning::Judged;
use crate::terminal::escape::{self, Visible};
use crate::terminal::human::plural;
use crate::terminal::{Console, Style};

/// Findings of a file that text shows without `--verbose`.
const SHOWN: usize = 10;

pub(super) fn text(scan: &Scan, console: &mut Console) -> Result<(), Failure> {
    let shown = if console.is_verbose() { usize::MAX } else { SHOWN };
    console.text(|out, style| scan.files.iter().try_for_each(|file| lines(file, shown, out, style)))?;
    scan.unread.iter().for_each(|failure| console.failure(failure));
    let count = |verdict| scan.files.iter().filter(|file| file.judged.verdict() == verdict).count();
    let worst = [Verdict::Dangerous, Verdict::Malformed, Verdict::Suspicious].into_iter();
    let worst = worst.map(|verdict| (count(verdict), verdict.name())).filter(|(count, _)| *count > 0);
    let worst: String = worst.map(|(count, word)| format!(", {count} {word}")).collect();
    let known = scan.files.iter().filter(|file| file.is_known).count();
    let known = if known > 0 { format!(", {known} in the baseline") } else { String::new() };
    let files = plural(scan.files.len() as u64, "file");
    let safe = if worst.is_empty() && scan.unread.is_empty() { ", all safe" } else { "" };
    let unread = scan.unread.len();
    let unread = if unread > 0 { format!(", {unread} not read") } else { String::new() };
    console.note(format_args!("{files} scanned{safe}{worst}{known}{unread}{}", console.took()));
    Ok(())
}

fn lines(file: &Scanned, shown: usize, out: &mut impl Write, style: Style) -> io::Result<()> {
    let verdict = file.judged.verdict();
    let word = coloured(verdict, style);
    let known = if file.is_known { ", in the baseline" } else { "" };
    writeln!(out, "{word} {}: {}{known}", escape::path(&file.path), file.judged.format)?;
    let n_findings = file.judged.report.findings().count();
    for found in file.judged.report.findings().take(shown) {
        let mark = match found.verdict {
            Verdict::Safe => style.dim("-"),
            Verdict::Suspicious => style.yellow("!"),
            _ => style.red("!"),
        };
        let opcode = found.opcode.map(|opcode| format!("{opcode} ")).unwrap_or_default();
        let member =
            if found.member.is_empty() { String::new() } else { format!("{}, ", Visible(found.member)) };
        let place = format!("{member}{opcode}at byte {}", found.offset);
        writeln!(out, "  {mark} {place}: {} [{}]", Visible(&found.message), found.code)?;
        if let Some(bypass) = found.bypass {
            writeln!(out, "      other scanners missed this: {bypass}")?;
        }
    }
    let more = n_findings.saturating_sub(shown) as u64 + file.judged.report.dropped();
    if more > 0 { writeln!(out, "  {} more", plural(more, "finding")) } else { Ok(()) }
}

fn coloured(verdict: Verdict, style: Style) -> String {
    match verdict {
        Verdict::Safe => style.green(verdict.name()),
        Verdict::Suspicious => style.yellow(verdict.name()),
        Verdict::Malformed | Verdict::Dangerous => style.red(verdict.name()),
    }
}

pub(super) fn json(scan: &Scan, console: &mut Console) -> Result<(), Failure> {
    console.report(&ScanReport {
        files: scan.files.iter().map(row).collect(),
        unread: &scan.unread,
        verdict: scan.verdict().name(),
    })
}

fn row(file: &Scanned) -> FileRow<'_> {
    let Judged { format, bytes, report, .. } = &file.judged;
    let row = FileRow::new(report::path(&file.path), format, *bytes, report);
    row.with_sha256(file.sha256.as_deref()).with_known(file.is_known)
}

/// The verdicts.
#[derive(Serialize)]
struct ScanReport<'a> {
    files: Vec<FileRow<'a>>,
    unread: &'a [Failure],
    verdict: &'static str,
}

impl Report for ScanReport<'_> {
    const SCHEMA: &'static str = model_scan::SCHEMA;
}
