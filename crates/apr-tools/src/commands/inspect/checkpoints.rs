//! A folder of checkpoints: steps, metrics, sizes, and whether their files are as their manifests list them.

use std::io::{self, Write};
use std::path::Path;

use st_mmap::LoadOptions;

use crate::checkpoints::{About, Checkpoint, Layout};
use crate::code_files;
use crate::error::{Exit, Failure};
use crate::input::Rules;
use crate::report::json::JsonWriter;
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, float, plural};
use crate::terminal::table::{Align, Dispensable, Table};
use crate::terminal::{Console, Style};

/// Most metrics in a line.
const METRICS: usize = 4;

/// A checkpoint and what was found out about it.
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
    /// What is known of the digests of its files.
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

/// The part of a report about a model that says which checkpoint it is.
pub(super) fn section(
    checkpoint: &Checkpoint,
    about: &About,
    out: &mut impl Write,
    style: Style,
) -> io::Result<()> {
    writeln!(out, "\n{}", style.bold("Checkpoint"))?;
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
    table.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn json(folder: &Path, rows: &[Row], console: &mut Console) -> Result<(), Failure> {
    console.json("apr.checkpoints/1", |json| {
        json.field_str("file", &folder.to_string_lossy())?;
        json.key("checkpoints")?;
        json.array()?;
        for row in rows {
            json.object()?;
            json.field_str("file", &row.checkpoint.path.to_string_lossy())?;
            write_about(&row.checkpoint, &row.about, json)?;
            json.key("verified")?;
            match &row.verified {
                None => json.null()?,
                Some(verified) => json.bool(verified.is_ok())?,
            }
            json.key("problems")?;
            json.array()?;
            let problems = [row.about.problem.as_ref(), row.refusal()];
            problems.into_iter().flatten().try_for_each(|failure| failure.write_json(json))?;
            json.end_array()?;
            json.end_object()?;
        }
        json.end_array()
    })
}

/// The fields about a checkpoint.
pub(super) fn write_about<W: Write>(
    checkpoint: &Checkpoint,
    about: &About,
    json: &mut JsonWriter<W>,
) -> io::Result<()> {
    json.field_str("layout", checkpoint.layout.name())?;
    json.field_uint("step", checkpoint.step)?;
    json.key("metrics")?;
    json.object()?;
    about.metrics.iter().try_for_each(|(name, value)| json.field_float(name, *value))?;
    json.end_object()?;
    json.field_opt_str("model_class", about.model_class.as_deref())?;
    json.field_opt_str("optimizer_class", about.optimizer_class.as_deref())?;
    json.field_bool("manifest", about.has_manifest)?;
    json.field_uint("bytes", about.contents.bytes)?;
    json.field_uint("files", about.contents.files)?;
    code_files::write_json([&about.contents], json)
}
