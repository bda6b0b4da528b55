//! The comparison as text and as JSON.

use alloc::borrow::Cow;
use alloc::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;

use super::{Change, Comparison, Entry, EntryKind};
use crate::error::Failure;
use crate::input::Tensor;
use crate::report::{self, Each, Number};
use crate::terminal::escape::{cut, escaped};
use crate::terminal::human::{float, grouped, percent, plural, shape};
use crate::terminal::tree::{self, Group, Item};
use crate::terminal::width;
use crate::terminal::{Console, Style};

/// Longest metadata value shown.
const VALUE_CHARS: usize = 60;

/// Tensors with the largest errors that are shown.
const WORST: usize = 5;

/// Most rows of differences.
const LISTED: usize = 40;

/// Which tensors are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Every tensor.
    All,
    /// Those that differ, in groups.
    Differences,
}

impl Shown {
    /// What the option `--all` asks for.
    pub(crate) const fn of(all: bool) -> Self {
        if all { Self::All } else { Self::Differences }
    }
}

/// How a tensor fares, as text has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Equal,
    /// The same values in another type.
    Stored,
    Changed,
    Added,
    Removed,
}

impl Status {
    const ALL: [Self; 5] = [Self::Equal, Self::Stored, Self::Changed, Self::Added, Self::Removed];

    fn of(entry: &Entry<'_>) -> Self {
        match &entry.kind {
            EntryKind::Equal(_) => Self::Equal,
            EntryKind::Changed { a, b, change } if change.is_equal() && a.shape() == b.shape() => {
                Self::Stored
            }
            EntryKind::Changed { .. } => Self::Changed,
            EntryKind::Added(_) => Self::Added,
            EntryKind::Removed(_) => Self::Removed,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Stored => "stored",
            Self::Changed => "changed",
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }

    /// For counts: `3 changed`.
    const fn title(self) -> &'static str {
        match self {
            Self::Stored => "stored differently (same values)",
            other => other.label(),
        }
    }

    fn paint(self, style: Style) -> String {
        match self {
            Self::Equal => style.dim(self.label()),
            Self::Stored => style.cyan(self.label()),
            Self::Changed => style.yellow(self.label()),
            Self::Added => style.green(self.label()),
            Self::Removed => style.red(self.label()),
        }
    }
}

/// How many tensors have each status.
fn counts<'e>(entries: impl Iterator<Item = &'e Entry<'e>>) -> BTreeMap<Status, u64> {
    let mut counts = BTreeMap::new();
    for entry in entries {
        *counts.entry(Status::of(entry)).or_default() += 1;
    }
    counts
}

/// A line of the report.
struct Row {
    status: Status,
    name: String,
    detail: String,
}

impl Row {
    fn of(entry: &Entry<'_>) -> Self {
        let detail = match &entry.kind {
            EntryKind::Equal(_) => String::new(),
            EntryKind::Added(tensor) | EntryKind::Removed(tensor) => kind(tensor),
            EntryKind::Changed { a, b, change } => changed(a, b, change),
        };
        Self { status: Status::of(entry), name: escaped(entry.name), detail }
    }

    /// One for a group of tensors.
    fn of_group(group: &Group<'_>, entries: &[&Entry<'_>]) -> Self {
        if let [entry] = entries {
            return Self::of(entry);
        }
        let counts = counts(entries.iter().copied());
        let mut parts: Vec<String> =
            counts.iter().map(|(status, count)| format!("{} {}", grouped(*count), status.title())).collect();
        let types = entries.iter().filter_map(|entry| match &entry.kind {
            EntryKind::Changed { a, b, .. } if a.dtype() != b.dtype() => Some((a.dtype(), b.dtype())),
            _ => None,
        });
        let types: Vec<String> =
            types.collect::<BTreeSet<_>>().iter().map(|(a, b)| format!("{a} -> {b}")).collect();
        if !types.is_empty() {
            parts.push(format!("type {}", types.join(", ")));
        }
        let changes = || entries.iter().filter_map(|entry| change(entry)).filter(|change| !change.is_equal());
        if let Some(cosine) = changes().filter_map(|change| change.cosine).min_by(f64::total_cmp) {
            // Rounded down: it is a bound.
            parts.push(format!("cosine >= {:.6}", (cosine * 1e6).floor() / 1e6));
        }
        if let Some(error) = changes().filter_map(|change| change.relative_error).max_by(f64::total_cmp) {
            parts.push(format!("relative error <= {}", float(error)));
        }
        let status = if counts.len() == 1 { counts.keys().next().copied() } else { None };
        let name = format!("{} x{}", escaped(&group.label), group.copies);
        Self { status: status.unwrap_or(Status::Changed), name, detail: parts.join(", ") }
    }
}

pub(crate) fn text(comparison: &Comparison<'_>, shown: Shown, console: &mut Console) -> Result<(), Failure> {
    let listed = if console.is_verbose() { usize::MAX } else { LISTED };
    console.text(|out, style| {
        match shown {
            Shown::All => rows(&comparison.tensors.iter().map(Row::of).collect::<Vec<_>>(), out, style)?,
            Shown::Differences => differences(&comparison.tensors, listed, out, style)?,
        }
        metadata(comparison, out, style)?;
        let counts = counts(comparison.tensors.iter());
        let told = Status::ALL.into_iter().filter_map(|status| {
            let count = counts.get(&status).copied().unwrap_or(0);
            // Rare counts are shown only if they are not zero.
            (count > 0 || status != Status::Stored).then(|| format!("{count} {}", status.title()))
        });
        let tensors = told.collect::<Vec<_>>().join(", ");
        let metadata = match &comparison.metadata {
            None => "metadata not compared".to_owned(),
            Some(changes) if changes.is_empty() => "metadata equal".to_owned(),
            Some(changes) => format!("{} of metadata different", plural(changes.len() as u64, "key")),
        };
        let verdict = if comparison.is_equal() { style.green("equal") } else { style.yellow("different") };
        writeln!(out, "{verdict}: {tensors}; {metadata}")
    })
}

/// The tensors with the largest errors, then all that differ, in groups.
fn differences(entries: &[Entry<'_>], listed: usize, out: &mut impl Write, style: Style) -> io::Result<()> {
    let differing: Vec<&Entry<'_>> =
        entries.iter().filter(|entry| !matches!(entry.kind, EntryKind::Equal(_))).collect();
    let by_name: BTreeMap<&str, &Entry<'_>> = differing.iter().map(|entry| (entry.name, *entry)).collect();
    let items: Vec<Item<'_>> = differing
        .iter()
        .map(|entry| {
            // Layers fold where the same tensors fare alike, whatever their shapes.
            Item { name: entry.name, dtype: Status::of(entry).label(), shape: &[], elements: 0, bytes: 0 }
        })
        .collect();
    let groups = tree::groups(&items);
    let mut found: Vec<Row> = Vec::new();
    for group in groups.iter().take(listed) {
        let entries: Vec<&Entry<'_>> =
            group.names.iter().filter_map(|name| by_name.get(name).copied()).collect();
        found.push(Row::of_group(group, &entries));
    }
    if groups.len() < differing.len() || groups.len() > listed {
        let mut worst: Vec<(f64, &Entry<'_>)> =
            differing.iter().filter_map(|entry| Some((error(change(entry)?)?, *entry))).collect();
        worst.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        if !worst.is_empty() {
            writeln!(out, "{}", style.bold("Largest errors"))?;
            let worst: Vec<Row> = worst.iter().take(WORST).map(|(_, entry)| Row::of(entry)).collect();
            rows(&worst, out, style)?;
            writeln!(out, "\n{}", style.bold("Differences"))?;
        }
    }
    rows(&found, out, style)?;
    match groups.len().saturating_sub(listed) {
        0 => Ok(()),
        hidden => writeln!(out, "... and {} more (-v shows all)", grouped(hidden as u64)),
    }
}

fn change<'e>(entry: &'e Entry<'_>) -> Option<&'e Change> {
    match &entry.kind {
        EntryKind::Changed { change, .. } => Some(change),
        _ => None,
    }
}

/// What tensors are ranked by; infinite where a tensor was zero or NaN is on one side only, nothing where values are equal or
/// were not compared.
fn error(change: &Change) -> Option<f64> {
    let is_measured = change.is_comparable && !change.is_equal();
    let error = change.relative_error.filter(|_| change.nan_on_one_side == 0 && change.max_abs.is_finite());
    is_measured.then(|| error.unwrap_or(f64::INFINITY))
}

/// Label, name and detail in columns, or the detail below the name where a terminal is too narrow for that.
fn rows(rows: &[Row], out: &mut impl Write, style: Style) -> io::Result<()> {
    const LABEL: usize = 9;
    let widest = |of: fn(&Row) -> &String| rows.iter().map(|row| width::of(of(row))).max().unwrap_or(0);
    let name_width = widest(|row| &row.name);
    let columns =
        style.width().filter(|&columns| LABEL + name_width + 2 + widest(|row| &row.detail) > columns);
    for Row { status, name, detail } in rows {
        let label = status.paint(style) + &" ".repeat(LABEL - status.label().len());
        match columns {
            Some(columns) => {
                writeln!(out, "{label}{}", style.shorten(name, columns.saturating_sub(LABEL)))?;
                let mut lines = style.wrap(detail, LABEL).into_iter().filter(|line| !line.is_empty());
                lines.try_for_each(|line| writeln!(out, "{:LABEL$}{line}", ""))?;
            }
            None if detail.is_empty() => writeln!(out, "{label}{name}")?,
            None => {
                let pad = " ".repeat(name_width - width::of(name));
                writeln!(out, "{label}{name}{pad}  {detail}")?;
            }
        }
    }
    Ok(())
}

fn kind(tensor: &Tensor<'_>) -> String {
    format!("{} {}", tensor.dtype(), shape(tensor.shape()))
}

fn changed(a: &Tensor<'_>, b: &Tensor<'_>, change: &Change) -> String {
    let mut parts = Vec::new();
    if a.dtype() != b.dtype() {
        parts.push(format!("type {} -> {}", a.dtype(), b.dtype()));
    }
    if a.shape() != b.shape() {
        parts.push(format!("shape {} -> {}", shape(a.shape()), shape(b.shape())));
    }
    if change.is_equal() {
        parts.push("same values".to_owned());
    } else if change.is_comparable {
        let share = percent(change.differing, change.elements);
        parts.push(format!("{} of {} values ({share})", grouped(change.differing), grouped(change.elements)));
        parts.push(format!("max abs {}", float(change.max_abs)));
        if let Some(error) = change.relative_error {
            parts.push(format!("relative error {}", float(error)));
        }
        parts.push(
            change.cosine.map_or("cosine undefined".to_owned(), |cosine| format!("cosine {cosine:.9}")),
        );
        if change.nan_on_one_side > 0 {
            parts.push(format!("{} NaN on one side only", grouped(change.nan_on_one_side)));
        }
    }
    parts.join(", ")
}

fn metadata(comparison: &Comparison<'_>, out: &mut impl Write, style: Style) -> io::Result<()> {
    for change in comparison.metadata.iter().flatten() {
        let key = escaped(&change.key);
        let shown = |value: &String| cut(value, VALUE_CHARS);
        match (&change.a, &change.b) {
            (Some(a), Some(b)) => {
                writeln!(out, "{}  metadata {key}: {} -> {}", style.yellow("changed"), shown(a), shown(b))?;
            }
            (Some(a), None) => writeln!(out, "{}  metadata {key}: {}", style.red("removed"), shown(a))?,
            (None, Some(b)) => writeln!(out, "{}    metadata {key}: {}", style.green("added"), shown(b))?,
            (None, None) => {}
        }
    }
    Ok(())
}

pub(super) fn json(comparison: &Comparison<'_>, console: &mut Console) -> Result<(), Failure> {
    console.report(&fields(comparison))
}

/// The fields of the report.
pub(crate) fn fields<'c>(comparison: &'c Comparison<'_>) -> DiffReport<'c, impl Serialize> {
    let counts = counts(comparison.tensors.iter());
    let count = |status| counts.get(&status).copied().unwrap_or(0);
    let rows = || comparison.tensors.iter().map(EntryRow::new);
    let metadata = comparison.metadata.as_ref().map(|changes| {
        let row = |change: &super::MetadataChange| MetadataRow {
            key: change.key.clone(),
            a: change.a.clone(),
            b: change.b.clone(),
        };
        changes.iter().map(row).collect()
    });
    DiffReport {
        a: report::path(comparison.a),
        b: report::path(comparison.b),
        equal: comparison.is_equal(),
        summary: Summary {
            equal: count(Status::Equal),
            changed: count(Status::Changed) + count(Status::Stored),
            stored_differently: count(Status::Stored),
            added: count(Status::Added),
            removed: count(Status::Removed),
        },
        tensors: Each(rows),
        metadata,
    }
}

/// The comparison.
#[derive(Serialize)]
pub(crate) struct DiffReport<'a, T> {
    a: Cow<'a, str>,
    b: Cow<'a, str>,
    equal: bool,
    summary: Summary,
    tensors: T,
    metadata: Option<Vec<MetadataRow>>,
}

impl<T: Serialize> report::Report for DiffReport<'_, T> {
    const SCHEMA: &'static str = "apr.diff/1";
}

/// Numbers of tensors.
#[derive(Serialize)]
struct Summary {
    equal: u64,
    changed: u64,
    stored_differently: u64,
    added: u64,
    removed: u64,
}

#[derive(Serialize)]
struct MetadataRow {
    key: String,
    a: Option<String>,
    b: Option<String>,
}

/// One tensor of either side.
#[derive(Serialize)]
struct EntryRow<'a> {
    name: &'a str,
    status: &'static str,
    #[serde(flatten)]
    kind: KindFields<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum KindFields<'a> {
    One(Stored<'a>),
    Changed {
        dtype_changed: bool,
        shape_changed: bool,
        a: Stored<'a>,
        b: Stored<'a>,
        #[serde(flatten)]
        values: Option<ValueFields>,
    },
}

#[derive(Serialize)]
struct Stored<'a> {
    dtype: &'static str,
    shape: &'a [usize],
}

/// How the values differ.
#[derive(Serialize)]
struct ValueFields {
    elements: u64,
    differing: u64,
    nan_on_one_side: u64,
    max_abs: Number,
    relative_error: Option<Number>,
    cosine: Option<Number>,
}

impl<'a> EntryRow<'a> {
    fn new(entry: &'a Entry<'a>) -> Self {
        let status = match Status::of(entry) {
            Status::Stored => Status::Changed,
            status => status,
        };
        let kind = match &entry.kind {
            EntryKind::Equal(tensor) | EntryKind::Added(tensor) | EntryKind::Removed(tensor) => {
                KindFields::One(tensor.into())
            }
            EntryKind::Changed { a, b, change } => KindFields::Changed {
                dtype_changed: a.dtype() != b.dtype(),
                shape_changed: a.shape() != b.shape(),
                a: a.into(),
                b: b.into(),
                values: change.is_comparable.then(|| ValueFields {
                    elements: change.elements,
                    differing: change.differing,
                    nan_on_one_side: change.nan_on_one_side,
                    max_abs: Number(change.max_abs),
                    relative_error: change.relative_error.map(Number),
                    cosine: change.cosine.map(Number),
                }),
            },
        };
        Self { name: entry.name, status: status.label(), kind }
    }
}

impl<'a> From<&'a Tensor<'_>> for Stored<'a> {
    fn from(tensor: &'a Tensor<'_>) -> Self {
        Self { dtype: tensor.dtype().name(), shape: tensor.shape() }
    }
}
