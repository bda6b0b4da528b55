//! The comparison as text and as JSON.

use std::io::{self, Write};

use super::{Change, Comparison, Entry, EntryKind};
use crate::console::{Console, Style};
use crate::error::Failure;
use crate::input::Tensor;
use crate::render::escape::{cut, escaped};
use crate::render::human::{float, grouped, percent, plural, shape};
use crate::render::json::JsonWriter;
use crate::render::table::{Align, Table};

/// Longest metadata value shown.
const VALUE_CHARS: usize = 60;

/// Which tensors are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    All,
    Changes,
}

#[derive(Default)]
struct Counts {
    equal: u64,
    changed: u64,
    added: u64,
    removed: u64,
}

impl Counts {
    fn new(entries: &[Entry<'_>]) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            match entry.kind {
                EntryKind::Equal(_) => counts.equal += 1,
                EntryKind::Changed { .. } => counts.changed += 1,
                EntryKind::Added(_) => counts.added += 1,
                EntryKind::Removed(_) => counts.removed += 1,
            }
        }
        counts
    }
}

pub(super) fn text(comparison: &Comparison<'_>, shown: Shown, console: &mut Console) -> Result<(), Failure> {
    let counts = Counts::new(&comparison.tensors);
    console.text(|out, style| {
        let is_shown = |entry: &&Entry<'_>| shown == Shown::All || !matches!(entry.kind, EntryKind::Equal(_));
        let mut table = Table::new(&[Align::Left, Align::Left]);
        let mut paints = Vec::new();
        for entry in comparison.tensors.iter().filter(is_shown) {
            let (label, paint, detail) = describe(entry);
            paints.push((label, paint));
            table.row([format!("{label:<8} {}", escaped(entry.name)), detail]);
        }
        for (line, (label, paint)) in table.lines().iter().zip(paints) {
            let rest = line.strip_prefix(label).unwrap_or(line);
            writeln!(out, "{}{rest}", paint(style, label))?;
        }
        metadata(comparison, out, style)?;
        let Counts { equal, changed, added, removed } = counts;
        let tensors = format!("{equal} equal, {changed} changed, {added} added, {removed} removed");
        let metadata = match &comparison.metadata {
            None => "metadata not compared".to_owned(),
            Some(changes) if changes.is_empty() => "metadata equal".to_owned(),
            Some(changes) => format!("{} of metadata different", plural(changes.len() as u64, "key")),
        };
        let verdict = if comparison.is_equal() { style.green("equal") } else { style.yellow("different") };
        writeln!(out, "{verdict}: {tensors}; {metadata}")
    })
}

/// Label, how to paint it, and what there is to say.
fn describe(entry: &Entry<'_>) -> (&'static str, fn(Style, &str) -> String, String) {
    match &entry.kind {
        EntryKind::Equal(_) => ("equal", Style::dim, String::new()),
        EntryKind::Added(tensor) => ("added", Style::green, kind(tensor)),
        EntryKind::Removed(tensor) => ("removed", Style::red, kind(tensor)),
        EntryKind::Changed { a, b, change } => ("changed", Style::yellow, changed(a, b, change)),
    }
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
    let counts = Counts::new(&comparison.tensors);
    console.json("apr.diff/1", |json| {
        json.field_str("a", &comparison.a.to_string_lossy())?;
        json.field_str("b", &comparison.b.to_string_lossy())?;
        json.field_bool("equal", comparison.is_equal())?;
        json.key("summary")?;
        json.object()?;
        json.field_uint("equal", counts.equal)?;
        json.field_uint("changed", counts.changed)?;
        json.field_uint("added", counts.added)?;
        json.field_uint("removed", counts.removed)?;
        json.end_object()?;
        json.key("tensors")?;
        json.array()?;
        comparison.tensors.iter().try_for_each(|entry| write_entry(entry, json))?;
        json.end_array()?;
        json.key("metadata")?;
        let Some(changes) = &comparison.metadata else { return json.null() };
        json.array()?;
        for change in changes {
            json.object()?;
            json.field_str("key", &change.key)?;
            json.field_opt_str("a", change.a.as_deref())?;
            json.field_opt_str("b", change.b.as_deref())?;
            json.end_object()?;
        }
        json.end_array()
    })
}

fn write_entry<W: Write>(entry: &Entry<'_>, json: &mut JsonWriter<W>) -> io::Result<()> {
    json.object()?;
    json.field_str("name", entry.name)?;
    json.field_str("status", status(entry))?;
    match &entry.kind {
        EntryKind::Equal(tensor) | EntryKind::Added(tensor) | EntryKind::Removed(tensor) => {
            json.field_str("dtype", tensor.dtype().name())?;
            json.field_shape("shape", tensor.shape().iter().map(|&dim| dim as u64))?;
        }
        EntryKind::Changed { a, b, change } => {
            json.field_bool("dtype_changed", a.dtype() != b.dtype())?;
            json.field_bool("shape_changed", a.shape() != b.shape())?;
            for (side, tensor) in [("a", a), ("b", b)] {
                json.key(side)?;
                json.object()?;
                json.field_str("dtype", tensor.dtype().name())?;
                json.field_shape("shape", tensor.shape().iter().map(|&dim| dim as u64))?;
                json.end_object()?;
            }
            if change.is_comparable {
                json.field_uint("elements", change.elements)?;
                json.field_uint("differing", change.differing)?;
                json.field_uint("nan_on_one_side", change.nan_on_one_side)?;
                json.field_float("max_abs", change.max_abs)?;
                json.field_opt_float("cosine", change.cosine)?;
            }
        }
    }
    json.end_object()
}

fn status(entry: &Entry<'_>) -> &'static str {
    describe(entry).0
}
