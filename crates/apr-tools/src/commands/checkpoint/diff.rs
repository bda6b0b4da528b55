//! `apr checkpoint diff`: compares two steps.

use alloc::borrow::Cow;
use alloc::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::{FolderArg, all, one};
use crate::checkpoints::{About, Checkpoint, Layout};
use crate::commands::diff::Comparison;
use crate::commands::diff::report::{self as comparing, DiffReport, Shown};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{Model, Rules};
use crate::report::{self, Number, Report};
use crate::terminal::human::float;
use crate::terminal::table::{Align, Table};
use crate::terminal::{Console, escape};

/// The part that is compared unless others are named.
const MODEL: &str = "model";

const AFTER_HELP: &str = "Metrics come first, then the differences that `apr diff` lists, for each part. Parts are the tensor files of a checkpoint: \
    model, optimizer, ema, training.\n\n\
    Examples:\n  apr checkpoint diff run1 1000 2000\n  apr checkpoint diff run1 1000 2000 --part optimizer --all\n\n\
    Exit codes: 0 the parts are equal, 1 different, 2 usage, 3 invalid file or no such step, 5 I/O.";

/// Compare two steps: metrics, and tensors as `apr diff` does.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    at: FolderArg,
    /// The old step.
    #[arg(value_name = "A")]
    a: u64,
    /// The new step.
    #[arg(value_name = "B")]
    b: u64,
    /// Compare this part instead of the model; repeat it for several.
    #[arg(long, value_name = "NAME")]
    part: Vec<String>,
    /// List every tensor, equal ones too, each in a line of its own.
    #[arg(long)]
    all: bool,
}

/// A value of a metric at both steps.
#[derive(Serialize)]
struct MetricRow {
    name: String,
    a: Option<Number>,
    b: Option<Number>,
}

#[derive(Serialize)]
struct CheckpointDiffReport<'a, T: Serialize> {
    file: Cow<'a, str>,
    a: u64,
    b: u64,
    equal: bool,
    metrics: Vec<MetricRow>,
    parts: Vec<PartReport<'a, T>>,
}

impl<T: Serialize> Report for CheckpointDiffReport<'_, T> {
    const SCHEMA: &'static str = "apr.checkpoint-diff/1";
}

#[derive(Serialize)]
struct PartReport<'a, T: Serialize> {
    part: &'a str,
    comparison: DiffReport<'a, T>,
}

/// A part on both sides.
struct Pair {
    part: String,
    paths: [PathBuf; 2],
    models: [Model; 2],
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let checkpoints = all(&args.at.folder)?;
    let sides = [one(&checkpoints, &args.at.folder, args.a)?, one(&checkpoints, &args.at.folder, args.b)?];
    let names = if args.part.is_empty() { vec![MODEL.to_owned()] } else { args.part.clone() };
    let pairs = names.iter().map(|part| pair(part, sides)).collect::<Result<Vec<_>, _>>()?;
    let compared = pairs.iter().map(|pair| {
        let ([path_a, path_b], [a, b]) = (&pair.paths, &pair.models);
        Comparison::new((path_a, a), (path_b, b), console)
    });
    let compared = compared.collect::<Result<Vec<_>, _>>()?;
    console.finished("compared");
    let equal = compared.iter().all(Comparison::is_equal);
    let metrics = metrics(&sides.map(Checkpoint::about));
    if console.is_json() {
        let parts = pairs.iter().zip(&compared);
        let parts = parts
            .map(|(pair, compared)| PartReport { part: &pair.part, comparison: comparing::fields(compared) });
        let parts = parts.collect();
        let file = report::path(&args.at.folder);
        console.report(&CheckpointDiffReport { file, a: args.a, b: args.b, equal, metrics, parts })?;
    } else {
        table(args, &metrics, console)?;
        for (pair, compared) in pairs.iter().zip(&compared) {
            if pairs.len() > 1 {
                console.text(|out, style| writeln!(out, "{}", style.bold(&escape::cut(&pair.part, 64))))?;
            }
            comparing::text(compared, Shown::of(args.all), console)?;
        }
    }
    Ok(if equal { Exit::Success } else { Exit::Different })
}

fn pair(part: &str, sides: [&Checkpoint; 2]) -> Result<Pair, Failure> {
    let path = |checkpoint: &Checkpoint| {
        let file = checkpoint.path.join(format!("{part}.safetensors"));
        match checkpoint.layout {
            // A trainer's model may be in shards.
            Layout::Trainer if part == MODEL => Ok(checkpoint.path.clone()),
            // A name that leads elsewhere is none of the checkpoint.
            _ if !part.contains(['/', '\\']) && file.is_file() => Ok(file),
            _ => {
                let what = format!("{} has no part `{}`", checkpoint.name(), escape::cut(part, 64));
                let about = checkpoint.about();
                let has_optimizer = checkpoint.path.join("optimizer.safetensors").is_file();
                let known = [MODEL].into_iter().chain(has_optimizer.then_some("optimizer"));
                let known: Vec<&str> = known.chain(about.parts.iter().map(String::as_str)).collect();
                Err(Failure::new(CODE_USAGE, what).help(format!("parts are {}", known.join(", "))))
            }
        }
    };
    let paths = [path(sides[0])?, path(sides[1])?];
    let models = [Model::open(&paths[0], &Rules::STRICT)?, Model::open(&paths[1], &Rules::STRICT)?];
    Ok(Pair { part: part.to_owned(), paths, models })
}

fn metrics([a, b]: &[About; 2]) -> Vec<MetricRow> {
    let names: BTreeSet<&String> = a.metrics.keys().chain(b.metrics.keys()).collect();
    let value = |about: &About, name: &str| about.metrics.get(name).copied().map(Number);
    names
        .into_iter()
        .map(|name| MetricRow { a: value(a, name), b: value(b, name), name: name.clone() })
        .collect()
}

fn table(args: &Args, metrics: &[MetricRow], console: &mut Console) -> Result<(), Failure> {
    if metrics.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[Align::Left, Align::Right, Align::Right]);
    table.row(["METRIC".to_owned(), args.a.to_string(), args.b.to_string()]);
    let text = |value: &Option<Number>| value.map_or_else(|| "-".to_owned(), |Number(value)| float(value));
    for MetricRow { name, a, b } in metrics {
        table.row([escape::cut(name, 60), text(a), text(b)]);
    }
    console.text(|out, style| {
        let mut lines = table.lines().into_iter();
        writeln!(out, "{}", style.bold(&lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)
    })
}
