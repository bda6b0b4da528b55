//! Checkpoints of a folder: steps, metrics, sizes, ages, and whether their files are as their manifests list them.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use st_mmap::Verification;

use crate::checkpoints::{About, Checkpoint};
use crate::code_files;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Rules;
use crate::report::{self, Fields, Number, Report};
use crate::terminal::escape::{self, escaped};
use crate::terminal::human::{self, float, grouped, plural};
use crate::terminal::table::{Align, Dispensable, Table};
use crate::terminal::{Console, Style, chart, suggest};

/// Most metrics in a line.
const METRICS: usize = 4;

/// Most checkpoints in a table on a terminal.
const LISTED: usize = 40;

/// Most charts unless they are asked for.
const CHARTS: usize = 3;

/// The name of a metric, and its values by step.
type Curve<'r> = (&'r str, Vec<(u64, f64)>);

/// What is shown of each checkpoint beside size and metrics.
#[derive(Clone, Debug)]
pub(crate) enum View {
    /// Whether it was verified.
    State,
    /// Its age; below all, charts of these metrics, or of the first ones.
    Run { metrics: Vec<String> },
    /// Its age, without charts.
    Ages,
}

/// A checkpoint and its properties.
pub(crate) struct Row {
    checkpoint: Checkpoint,
    about: About,
    /// Whether all files are as listed; `None` if nothing was compared.
    verified: Option<Result<(), Failure>>,
}

impl Row {
    /// A checkpoint that is not verified.
    pub(crate) fn new(checkpoint: Checkpoint) -> Self {
        let about = checkpoint.about();
        Self { checkpoint, about, verified: None }
    }

    /// Compares each file with the manifest, and scans them as `apr check` does. Without a manifest, only `verification` that demands it
    /// refuses the checkpoint.
    pub(crate) fn verify(mut self, rules: &Rules, verification: Verification) -> Self {
        self.about.contents = code_files::scan(&self.checkpoint.path);
        if self.about.has_manifest || verification == Verification::Required {
            self.verified = Some(self.checkpoint.verify(rules, verification));
        } else if let Err(failure) = self.checkpoint.verify(rules, verification) {
            self.verified = Some(Err(failure));
        }
        self
    }

    pub(crate) fn has_manifest(&self) -> bool {
        self.about.has_manifest
    }

    /// The state of the digests of its files.
    fn state(&self) -> &'static str {
        match &self.verified {
            _ if self.about.contents.is_dangerous() => "dangerous",
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

/// Shows checkpoints of `folder`. The exit code is that of a dangerous file if there is one, else that of the first one that was refused.
///
/// # Errors
///
/// If standard output does not take it, or no checkpoint has a metric that was asked for.
pub(crate) fn show(folder: &Path, rows: &[Row], view: &View, console: &mut Console) -> Result<Exit, Failure> {
    let charted = charted(rows, view)?;
    if console.is_json() {
        json(folder, rows, view, console)?;
    } else {
        text(folder, rows, view, &charted, console)?;
    }
    let is_dangerous = rows.iter().any(|row| row.about.contents.is_dangerous());
    Ok(match rows.iter().find_map(Row::refusal) {
        _ if is_dangerous => Exit::Refused,
        Some(failure) => failure.exit(),
        None => Exit::Success,
    })
}

/// The metrics of which there are charts, each with its values by step.
fn charted<'r>(rows: &'r [Row], view: &View) -> Result<Vec<Curve<'r>>, Failure> {
    let View::Run { metrics: wanted } = view else { return Ok(Vec::new()) };
    let mut values: BTreeMap<&str, Vec<(u64, f64)>> = BTreeMap::new();
    for row in rows {
        for (name, value) in &row.about.metrics {
            values.entry(name).or_default().push((row.checkpoint.step, *value));
        }
    }
    // Of two layouts, the steps of both.
    values.values_mut().for_each(|points| points.sort_by_key(|(step, _)| *step));
    if wanted.is_empty() {
        return Ok(values.into_iter().filter(|(_, points)| points.len() > 1).take(CHARTS).collect());
    }
    let find = |name: &String| {
        values.get_key_value(name.as_str()).map(|(name, points)| (*name, points.clone())).ok_or_else(|| {
            let failure =
                Failure::new(CODE_USAGE, format!("no checkpoint has the metric `{}`", escape::cut(name, 60)));
            match suggest::closest(name, values.keys()) {
                Some(close) => failure.help(format!("did you mean `{}`?", escape::cut(close, 60))),
                None => failure.help("without --metric, the first metrics are shown"),
            }
        })
    };
    wanted.iter().map(find).collect()
}

fn text(
    folder: &Path,
    rows: &[Row],
    view: &View,
    charted: &[Curve<'_>],
    console: &mut Console,
) -> Result<(), Failure> {
    let shown = if console.out_is_terminal() && !console.is_verbose() { LISTED } else { usize::MAX };
    // The newest matter most.
    let hidden = rows.len().saturating_sub(shown);
    let (heading, align) = match view {
        View::State => ("VERIFIED", Align::Left),
        View::Run { .. } | View::Ages => ("AGE", Align::Right),
    };
    let now = SystemTime::now();
    let mut table = Table::new(&[Align::Left, Align::Right, align, Align::Left]);
    table.row(["CHECKPOINT", "SIZE", heading, "METRICS"]);
    for row in rows.iter().skip(hidden) {
        table.row([
            row.checkpoint.name(),
            human::bytes(row.about.contents.bytes),
            match view {
                View::State => row.state().to_owned(),
                View::Run { .. } | View::Ages => age(row.about.modified, now),
            },
            metrics(&row.about, METRICS),
        ]);
    }
    console.text(|out, style| {
        let bytes = rows.iter().map(|row| row.about.contents.bytes).sum();
        let count = plural(rows.len() as u64, "checkpoint");
        writeln!(out, "{}: {count}, {}\n", style.bold(&escape::path(folder)), human::bytes(bytes))?;
        let mut lines = table.fitted(style, Dispensable { first: &[1], last: &[3] }).into_iter();
        if let Some(head) = lines.next().filter(|_| !rows.is_empty()) {
            writeln!(out, "{}", style.bold(&head))?;
        }
        if hidden > 0 {
            writeln!(out, "... {} older (-v shows all)", grouped(hidden as u64))?;
        }
        lines.try_for_each(|line| writeln!(out, "{line}"))?;
        problems(rows, out, style)?;
        for (name, points) in charted {
            writeln!(out, "\n{}", style.bold(&escape::cut(name, 60)))?;
            chart::lines(points, style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
        Ok(())
    })?;
    if matches!(view, View::State) && rows.iter().any(|row| row.state() == "not compared") {
        console.remark(format_args!(
            "to compare all files with their manifests: apr check {}",
            escape::path_word(folder)
        ));
    }
    Ok(())
}

fn problems(rows: &[Row], out: &mut impl Write, style: Style) -> io::Result<()> {
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
}

/// How long ago, in the unit that suits it; of a time to come, nothing.
fn age(modified: Option<SystemTime>, now: SystemTime) -> String {
    let Some(seconds) = modified.and_then(|then| now.duration_since(then).ok()).map(|span| span.as_secs())
    else {
        return String::new();
    };
    match seconds {
        ..60 => "< 1 min".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", grouped(seconds / 86_400)),
    }
}

/// `loss 0.1, accuracy 0.9`: the first metrics by name.
pub(crate) fn metrics(about: &About, most: usize) -> String {
    let shown = about.metrics.iter().take(most);
    let mut shown: Vec<String> =
        shown.map(|(name, value)| format!("{} {}", escape::cut(name, 24), float(*value))).collect();
    let more = about.metrics.len().saturating_sub(most);
    shown.extend((more > 0).then(|| format!("{more} more")));
    shown.join(", ")
}

fn json(folder: &Path, rows: &[Row], view: &View, console: &mut Console) -> Result<(), Failure> {
    let rows = rows.iter().map(|row| RowReport {
        file: report::path(&row.checkpoint.path),
        about: AboutFields::new(&row.checkpoint, &row.about),
        modified: row.about.modified.filter(|_| !matches!(view, View::State)).and_then(seconds),
        verified: row.verified.as_ref().map(Result::is_ok),
        problems: [row.about.problem.as_ref(), row.refusal()].into_iter().flatten().collect(),
    });
    console.report(&CheckpointsReport { file: report::path(folder), checkpoints: rows.collect() })
}

fn seconds(time: SystemTime) -> Option<u64> {
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
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
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
    verified: Option<bool>,
    problems: Vec<&'a Failure>,
}

/// The fields about a checkpoint.
#[derive(Serialize)]
pub(crate) struct AboutFields<'a> {
    layout: &'static str,
    step: u64,
    metrics: Fields<&'a String, Number>,
    model_class: Option<&'a str>,
    optimizer_class: Option<&'a str>,
    framework: Option<&'a str>,
    parts: &'a [String],
    format_version: Option<String>,
    manifest: bool,
    bytes: u64,
    files: u64,
    runs_code: Vec<code_files::CodeRow<'a>>,
}

impl<'a> AboutFields<'a> {
    pub(crate) fn new(checkpoint: &Checkpoint, about: &'a About) -> Self {
        Self {
            layout: checkpoint.layout.name(),
            step: checkpoint.step,
            metrics: Fields(about.metrics.iter().map(|(name, &value)| (name, Number(value))).collect()),
            model_class: about.model_class.as_deref(),
            optimizer_class: about.optimizer_class.as_deref(),
            framework: about.framework.as_deref(),
            parts: &about.parts,
            format_version: about.format_version.map(|version| version.to_string()),
            manifest: about.has_manifest,
            bytes: about.contents.bytes,
            files: about.contents.files,
            runs_code: code_files::rows([&about.contents]),
        }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let now = UNIX_EPOCH + Duration::from_secs(10_000_000);
        let of = |seconds| age(Some(now - Duration::from_secs(seconds)), now);
        assert_eq!([0, 59, 60, 3599].map(of), ["< 1 min", "< 1 min", "1 min", "59 min"]);
        assert_eq!([3600, 172_799, 172_800, 9_000_000].map(of), ["1 h", "47 h", "2 d", "104 d"]);
        assert_eq!(
            (age(None, now), age(Some(now + Duration::from_secs(1)), now)),
            (String::new(), String::new())
        );
    }
}
