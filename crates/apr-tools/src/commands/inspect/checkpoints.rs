//! A folder of checkpoints: steps, metrics, sizes, and whether their files are as their manifests list them.

use alloc::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use st_mmap::LoadOptions;

use super::page::Page;
use crate::checkpoints::{About, Checkpoint, Layout};
use crate::code_files;
use crate::error::{Exit, Failure};
use crate::input::Rules;
use crate::report::{self, Fields, Number, Report};
use crate::terminal::Console;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, float, plural};
use crate::terminal::table::{Align, Dispensable, Table};
use serde::Serialize;

/// Most metrics in a line.
const METRICS: usize = 4;

/// A checkpoint and its properties.
struct Row {
    checkpoint: Checkpoint,
    about: About,
    /// Whether all files are as listed; `None` if nothing was compared.
    verified: Option<Result<(), Failure>>,
}

/// Shows the checkpoints below `folder`; with `verify` compares each file with its manifest.
///
/// # Errors
///
/// If standard output does not take it.
pub(super) fn run(
    folder: &Path,
    checkpoints: Vec<Checkpoint>,
    verify: bool,
    rules: &Rules,
    console: &mut Console,
) -> Result<Exit, Failure> {
    let busy = verify.then(|| console.busy("verifying"));
    let rows: Vec<Row> = checkpoints
        .into_iter()
        .map(|checkpoint| {
            let about = checkpoint.about();
            let verified = (verify && about.has_manifest).then(|| compare(&checkpoint, rules));
            Row { checkpoint, about, verified }
        })
        .collect();
    drop(busy);
    if console.is_json() {
        json(folder, &rows, console)?;
    } else {
        text(folder, &rows, console)?;
    }
    let refused = rows.iter().find_map(Row::refusal);
    Ok(refused.map_or(Exit::Success, Failure::exit))
}

fn compare(checkpoint: &Checkpoint, rules: &Rules) -> Result<(), Failure> {
    let options = LoadOptions { read: rules.safetensors, ..LoadOptions::default() };
    checkpoint.folder().load_with(checkpoint.step, &options)?;
    Ok(())
}

impl Row {
    /// The state of the digests of its files.
    fn state(&self) -> &'static str {
        match &self.verified {
            Some(Ok(())) => "verified",
            Some(Err(_)) => "refused",
            None if self.about.has_manifest => "not compared",
            None => "no manifest",
        }
    }

    fn refusal(&self) -> Option<&Failure> {
        self.verified.as_ref()?.as_ref().err()
    }
}

fn text(folder: &Path, rows: &[Row], console: &mut Console) -> Result<(), Failure> {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Left, Align::Left]);
    table.row(["CHECKPOINT", "SIZE", "VERIFIED", "METRICS"]);
    for row in rows {
        table.row([
            row.checkpoint.name(),
            human::bytes(row.about.contents.bytes),
            row.state().to_owned(),
            metrics(&row.about, METRICS),
        ]);
    }
    console.text(|out, style| {
        let bytes = rows.iter().map(|row| row.about.contents.bytes).sum();
        let count = plural(rows.len() as u64, "checkpoint");
        writeln!(out, "{}: {count}, {}\n", style.bold(&escape::path(folder)), human::bytes(bytes))?;
        let mut lines = table.fitted(style, Dispensable { first: &[1], last: &[3] }).into_iter();
        if let Some(head) = lines.next() {
            writeln!(out, "{}", style.bold(&head))?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))?;
        let mark = style.yellow("!");
        for row in rows {
            let name = row.checkpoint.name();
            if let Some(failure) = row.refusal().or(row.about.problem.as_ref()) {
                writeln!(out, "  {mark} {name}: {failure}")?;
            }
            let warnings = row.about.contents.warnings();
            warnings.iter().try_for_each(|warning| writeln!(out, "  {mark} {}", escaped(warning)))?;
        }
        Ok(())
    })?;
    if rows.iter().any(|row| row.state() == "not compared") {
        console.remark(format_args!(
            "to compare all files with their manifests: apr check {}",
            escape::path(folder)
        ));
    }
    Ok(())
}

/// `loss 0.1, accuracy 0.9`: the first metrics by name.
fn metrics(about: &About, most: usize) -> String {
    let shown = about.metrics.iter().take(most);
    let mut shown: Vec<String> =
        shown.map(|(name, value)| format!("{} {}", escape::cut(name, 24), float(*value))).collect();
    let more = about.metrics.len().saturating_sub(most);
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.join(", ")
}

/// The part of a model's report about its checkpoint.
pub(super) fn section(checkpoint: &Checkpoint, about: &About, page: &mut Page<'_>) -> io::Result<()> {
    page.heading("Checkpoint")?;
    let mut table = Table::new(&[Align::Left, Align::Left]);
    let mut line = |label: &str, text: String| table.row([format!("  {label}"), text]);
    line("step", human::grouped(checkpoint.step));
    if !about.metrics.is_empty() {
        line("metrics", metrics(about, usize::MAX));
    }
    for (label, class) in [("model", &about.model_class), ("optimizer", &about.optimizer_class)] {
        if let Some(class) = class {
            line(label, escape::cut(class, 80));
        }
    }
    line(
        "manifest",
        match (about.has_manifest, checkpoint.layout) {
            (true, _) => "yes; its digests are compared by apr check".to_owned(),
            (false, Layout::Steps) => "none: nothing can be verified".to_owned(),
            (false, Layout::Trainer) => "none: this kind of checkpoint has no digests".to_owned(),
        },
    );
    line(
        "files",
        format!("{}, {}", human::grouped(about.contents.files), human::bytes(about.contents.bytes)),
    );
    table.wrapped(page.style).iter().try_for_each(|line| writeln!(page.out, "{line}"))
}

fn json(folder: &Path, rows: &[Row], console: &mut Console) -> Result<(), Failure> {
    let rows = rows.iter().map(|row| RowReport {
        file: report::path(&row.checkpoint.path),
        about: AboutFields::new(&row.checkpoint, &row.about),
        verified: row.verified.as_ref().map(Result::is_ok),
        problems: [row.about.problem.as_ref(), row.refusal()].into_iter().flatten().collect(),
    });
    console.report(&CheckpointsReport { file: report::path(folder), checkpoints: rows.collect() })
}

/// The checkpoints of a folder.
#[derive(Serialize)]
struct CheckpointsReport<'a> {
    file: Cow<'a, str>,
    checkpoints: Vec<RowReport<'a>>,
}

impl Report for CheckpointsReport<'_> {
    const SCHEMA: &'static str = "apr.checkpoints/1";
}

#[derive(Serialize)]
struct RowReport<'a> {
    file: Cow<'a, str>,
    #[serde(flatten)]
    about: AboutFields<'a>,
    verified: Option<bool>,
    problems: Vec<&'a Failure>,
}

/// The fields about a checkpoint.
#[derive(Serialize)]
pub(super) struct AboutFields<'a> {
    layout: &'static str,
    step: u64,
    metrics: Fields<&'a String, Number>,
    model_class: Option<&'a str>,
    optimizer_class: Option<&'a str>,
    manifest: bool,
    bytes: u64,
    files: u64,
    runs_code: Vec<code_files::CodeRow<'a>>,
}

impl<'a> AboutFields<'a> {
    pub(super) fn new(checkpoint: &Checkpoint, about: &'a About) -> Self {
        Self {
            layout: checkpoint.layout.name(),
            step: checkpoint.step,
            metrics: Fields(about.metrics.iter().map(|(name, &value)| (name, Number(value))).collect()),
            model_class: about.model_class.as_deref(),
            optimizer_class: about.optimizer_class.as_deref(),
            manifest: about.has_manifest,
            bytes: about.contents.bytes,
            files: about.contents.files,
            runs_code: code_files::rows([&about.contents]),
        }
    }
}
