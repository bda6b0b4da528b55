//! The report of the demonstration as text and as JSON.

use alloc::borrow::Cow;
use std::env;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use super::apr::{self, COPIES};
use super::{CHECKPOINTS, DAMAGED_DATA, DAMAGED_HEADER, MODEL, Story, data};
use crate::error::Failure;
use crate::report::{self, Fields, Number};
use crate::terminal::escape::{self, Visible, escaped};
use crate::terminal::human;
use crate::terminal::table::{Align, Table};
use crate::terminal::{Console, Style};

/// Where the commands at the end look for files that were not kept.
const SUGGESTED: &str = "demo-files";

/// Characters of a digest that are enough to tell two apart.
const DIGEST_CHARS: usize = 16;

pub(super) fn text(story: &Story, console: &mut Console) -> Result<(), Failure> {
    console.text(|out, style| {
        train(story, out, style)?;
        save(story, out, style)?;
        damage(story, out, style)?;
        container(story, out, style)?;
        times(story, out, style)?;
        writeln!(out, "\n{}", style.bold("Next, type"))?;
        next(story).iter().try_for_each(|command| writeln!(out, "  {}", style.cyan(command)))
    })
}

fn train(story: &Story, out: &mut impl Write, style: Style) -> io::Result<()> {
    let (rows, _) = story.table.x.shape();
    writeln!(out, "{}", style.bold("1. Train a linear regression"))?;
    writeln!(
        out,
        "   {}: {rows} years of the economy of the United States; {} from {} features\n",
        data::NAME,
        story.table.target,
        story.table.features.len()
    )?;
    let mut table = Table::new(&[Align::Left, Align::Right]);
    for (name, value) in story.table.features.iter().zip(story.model.coefficients().iter()) {
        table.row([format!("   {name}"), format!("{value:.6}")]);
    }
    table.row(["   intercept".to_owned(), format!("{:.6}", story.model.intercept())]);
    table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out, "\n   R^2 = {:.6}\n", story.r2)
}

fn save(story: &Story, out: &mut impl Write, style: Style) -> io::Result<()> {
    let bytes = story.steps.iter().find_map(|step| step.bytes).unwrap_or(0);
    writeln!(out, "{}", style.bold("2. Save, reload, predict, verify"))?;
    writeln!(out, "   {MODEL}: {}, {} tensors", human::bytes(bytes), story.digests.len())?;
    writeln!(out, "   reloaded: all {} predictions are equal, bit for bit", story.table.y.len())?;
    for (name, digest) in &story.digests {
        writeln!(out, "   SHA-256 of {}: {}...", escaped(name), short(digest))?;
    }
    writeln!(out)
}

fn short(digest: &str) -> &str {
    digest.get(..DIGEST_CHARS).unwrap_or(digest)
}

fn damage(story: &Story, out: &mut impl Write, style: Style) -> io::Result<()> {
    let refused = style.red("refused");
    writeln!(out, "{}", style.bold("3. Flip one bit"))?;
    writeln!(out, "   in the header    {refused} by the format")?;
    writeln!(out, "                    {}", refusal(&story.header_refusal))?;
    writeln!(out, "   in a coefficient {} by the format, which has no checksum", style.yellow("accepted"))?;
    writeln!(
        out,
        "                    prediction for the last year: {} instead of {}",
        story.last.1, story.last.0
    )?;
    writeln!(out, "                    apr diff finds it: max abs {}", human::float(story.data_change))?;
    writeln!(out, "                    so do the digests: {}... now", short(&story.data_digest))?;
    writeln!(out, "   in a checkpoint  {refused} by its manifest",)?;
    writeln!(out, "                    {}", refusal(&story.checkpoint_refusal))?;
    writeln!(out, "                    training resumes from step {}\n", story.resumed_step)
}

fn refusal(failure: &Failure) -> String {
    let place = failure.offset().map(|offset| format!(", at byte {offset}")).unwrap_or_default();
    format!("error[{}]: {}{place}", failure.code(), Visible(failure.what()))
}

fn container(story: &Story, out: &mut impl Write, style: Style) -> io::Result<()> {
    let chapter = &story.apr;
    writeln!(out, "{}", style.bold("4. The same model as .apr"))?;
    let mut table = Table::new(&[Align::Left, Align::Left, Align::Right]);
    for (copy, bytes) in COPIES.iter().zip(&chapter.bytes) {
        table.row([format!("   {}", copy.file), copy.compression.to_string(), human::bytes(*bytes)]);
    }
    table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
    let name = chapter.info.metadata.model_name.as_deref().unwrap_or_default();
    writeln!(
        out,
        "   inspected: {} \"{}\", without reading the payload",
        chapter.info.model_type,
        escaped(name)
    )?;
    writeln!(
        out,
        "   loaded: all {} predictions are equal, bit for bit, from each file",
        story.table.y.len()
    )?;
    writeln!(out, "   one bit flipped: {} by the checksum", style.red("refused"))?;
    writeln!(out, "                    {}\n", refusal(&chapter.refusal))
}

fn times(story: &Story, out: &mut impl Write, style: Style) -> io::Result<()> {
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
    table.row(["   STEP", "SIZE", "TIME"]);
    for step in &story.steps {
        let size = step.bytes.map(human::bytes).unwrap_or_default();
        table.row([format!("   {}", step.name), size, human::duration(step.time)]);
    }
    writeln!(out, "{}", style.bold("5. Sizes and times"))?;
    table.lines().iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The next three commands, which work as they stand: in the order given if the files were not kept.
fn next(story: &Story) -> [String; 3] {
    let apr = program();
    match &story.kept {
        Some(folder) => {
            let folder = escape::path(folder);
            [
                format!("{apr} {folder}/{MODEL}"),
                format!("{apr} check {folder}/{CHECKPOINTS}/step_2"),
                format!("{apr} diff {folder}/{MODEL} {folder}/{DAMAGED_DATA}"),
            ]
        }
        None => [
            format!("{apr} demo --keep {SUGGESTED}"),
            format!("{apr} {SUGGESTED}/{MODEL}"),
            format!("{apr} diff {SUGGESTED}/{MODEL} {SUGGESTED}/{DAMAGED_DATA}"),
        ],
    }
}

/// The program as it was called, if that was by a path; it may not be on the search path then.
fn program() -> String {
    let called = env::args_os().next().map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
    if called.contains(['/', '\\']) && !called.contains(char::is_whitespace) {
        escaped(&called)
    } else {
        "apr".to_owned()
    }
}

/// What would be written, without doing it.
pub(super) fn plan(keep: Option<&Path>, console: &mut Console) -> Result<(), Failure> {
    let files = [
        MODEL.to_owned(),
        DAMAGED_HEADER.to_owned(),
        DAMAGED_DATA.to_owned(),
        format!("{CHECKPOINTS}/step_1"),
        format!("{CHECKPOINTS}/step_2"),
    ];
    let copies = COPIES.iter().map(|copy| copy.file).chain([apr::DAMAGED]);
    let files: Vec<String> = files.into_iter().chain(copies.map(str::to_owned)).collect();
    if console.is_json() {
        return console.report(&PlanReport { written: false, kept: keep.map(report::path), files: &files });
    }
    let place = keep.map_or("a temporary folder, removed at the end".to_owned(), escape::path);
    console.text(|out, _| {
        writeln!(out, "would write less than 6 kB to {place}:")?;
        files.iter().try_for_each(|file| writeln!(out, "  {file}"))
    })
}

pub(super) fn json(story: &Story, console: &mut Console) -> Result<(), Failure> {
    let flip = |flipped, error: Option<_>| Flip { flipped, refused: error.is_some(), error };
    let coefficients = story.table.features.iter().zip(story.model.coefficients().iter());
    let copies = COPIES.iter().zip(&story.apr.bytes);
    let steps = story.steps.iter().map(|step| StepReport {
        step: step.name,
        bytes: step.bytes,
        seconds: step.time.as_secs_f64(),
    });
    console.report(&DemoReport {
        written: true,
        kept: story.kept.as_deref().map(report::path),
        fit: Fit {
            data: data::NAME,
            rows: story.table.y.len(),
            target: story.table.target,
            r2: Number(story.r2.into()),
            coefficients: Fields(coefficients.map(|(name, value)| (*name, Number(value.into()))).collect()),
            intercept: Number(story.model.intercept().into()),
        },
        predictions_equal: true,
        sha256: Fields(story.digests.iter().map(|(name, digest)| (name, digest)).collect()),
        damage: [
            flip("header", Some(&story.header_refusal)),
            flip("data", None),
            flip("checkpoint", Some(&story.checkpoint_refusal)),
            flip("apr", Some(&story.apr.refusal)),
        ],
        data_max_abs: Number(story.data_change),
        resumed_step: story.resumed_step,
        apr: copies
            .map(|(copy, &bytes)| CopyReport { file: copy.file, compression: copy.compression.name(), bytes })
            .collect(),
        steps: steps.collect(),
        next: next(story),
    })
}

/// What would be written.
#[derive(Serialize)]
struct PlanReport<'a> {
    written: bool,
    kept: Option<Cow<'a, str>>,
    files: &'a [String],
}

impl report::Report for PlanReport<'_> {
    const SCHEMA: &'static str = "apr.demo/1";
}

/// What happened.
#[derive(Serialize)]
struct DemoReport<'a> {
    written: bool,
    kept: Option<Cow<'a, str>>,
    fit: Fit<'a>,
    predictions_equal: bool,
    sha256: Fields<&'a String, &'a String>,
    damage: [Flip<'a>; 4],
    data_max_abs: Number,
    resumed_step: u64,
    apr: Vec<CopyReport<'a>>,
    steps: Vec<StepReport<'a>>,
    next: [String; 3],
}

impl report::Report for DemoReport<'_> {
    const SCHEMA: &'static str = "apr.demo/1";
}

#[derive(Serialize)]
struct Fit<'a> {
    data: &'a str,
    rows: usize,
    target: &'a str,
    r2: Number,
    coefficients: Fields<&'a str, Number>,
    intercept: Number,
}

#[derive(Serialize)]
struct Flip<'a> {
    flipped: &'a str,
    refused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

#[derive(Serialize)]
struct CopyReport<'a> {
    file: &'a str,
    compression: Option<&'a str>,
    bytes: u64,
}

#[derive(Serialize)]
struct StepReport<'a> {
    step: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    seconds: f64,
}
