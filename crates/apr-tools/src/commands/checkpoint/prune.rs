//! `apr checkpoint prune`: removes the checkpoints that no rule keeps.

use alloc::borrow::Cow;
use core::num::{NonZeroU64, NonZeroUsize};
use std::io::Write as _;

use serde::Serialize;
use st_mmap::{Best, Checkpoints, KeptBy, LoadOptions, Plan, Retention};

use super::{FolderArg, all};
use crate::args::DryRunArg;
use crate::checkpoints::{Checkpoint, Layout};
use crate::code_files;
use crate::error::{Exit, Failure};
use crate::output::Run;
use crate::report::{self, Report};
use crate::terminal::human::{self, plural};
use crate::terminal::table::{Align, Table};
use crate::terminal::{Console, escape, suggest};

const AFTER_HELP: &str = "A checkpoint is kept if any rule asks for it; the newest always is. What is kept is decided before the first one is removed, and each is renamed \
    before its files are deleted: a run that is killed leaves all that are kept. Checkpoints whose meta.json cannot be read count for no rule and stay. \
    Nothing is removed if no checkpoint has the metric of a rule. Only folders step_N are removed.\n\n\
    Examples:\n  apr checkpoint prune run1 --keep-last 5 --keep-best 3:val_loss --dry-run\n  \
    apr checkpoint prune run1 --keep-last 2 --keep-best 1:top1:max --keep-every 10000\n\n\
    Exit codes: 0 success, 2 usage or no such metric, 5 I/O.";

/// Remove the checkpoints that no rule keeps.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
#[command(group = clap::ArgGroup::new("rules").required(true).multiple(true).args(["keep_last", "keep_best", "keep_every"]))]
pub(super) struct Args {
    #[command(flatten)]
    at: FolderArg,
    /// Keep the N highest steps.
    #[arg(long, value_name = "N")]
    keep_last: Option<NonZeroUsize>,
    /// Keep the N with the best values of a metric, :min or :max; neither is needed where the name says it (loss, accuracy).
    #[arg(long, value_name = "N:METRIC[:min|max]", value_parser = best)]
    keep_best: Vec<Best>,
    /// Keep the steps that are multiples of N.
    #[arg(long, value_name = "N")]
    keep_every: Option<NonZeroU64>,
    /// Verify the files of those that --keep-last and --keep-best count; damaged ones do not count, and stay.
    #[arg(long)]
    verify: bool,
    #[command(flatten)]
    dry_run: DryRunArg,
}

fn best(text: &str) -> Result<Best, String> {
    text.parse().map_err(|error: st_mmap::Error| error.to_string())
}

#[derive(Serialize)]
struct PruneReport<'a> {
    file: Cow<'a, str>,
    removed: Vec<u64>,
    written: bool,
    bytes: u64,
    kept: Vec<KeptRow>,
    unusable: Vec<Unusable>,
}

impl Report for PruneReport<'_> {
    const SCHEMA: &'static str = "apr.checkpoint-prune/1";
}

#[derive(Serialize)]
struct KeptRow {
    step: u64,
    by: Vec<String>,
}

#[derive(Serialize)]
struct Unusable {
    step: u64,
    problem: Failure,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let found = all(&args.at.folder)?;
    let (steps, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|checkpoint| checkpoint.layout == Layout::Steps);
    let checkpoints = Checkpoints::new(&args.at.folder);
    let retention = Retention { last: args.keep_last, best: args.keep_best.clone(), every: args.keep_every };
    let options = LoadOptions::default();
    let busy = console.busy("reading");
    let plan = checkpoints
        .plan(&retention, args.verify.then_some(&options))
        .map_err(|error| no_metric(error, &steps))?;
    drop(busy);
    let run = args.dry_run.run();
    let removed = steps.iter().filter(|checkpoint| plan.removed.binary_search(&checkpoint.step).is_ok());
    let bytes = removed.map(|checkpoint| code_files::formats(&checkpoint.path).bytes).sum();
    if run == Run::Write {
        let busy = console.busy("removing");
        checkpoints.prune(&plan)?;
        drop(busy);
    }
    if !others.is_empty() {
        let count = plural(others.len() as u64, "checkpoint");
        console.remark(format_args!("{count} of another trainer left as they are (checkpoint-N)"));
    }
    tell(args, plan, run, bytes, console)?;
    Ok(Exit::Success)
}

fn tell(args: &Args, plan: Plan, run: Run, bytes: u64, console: &mut Console) -> Result<(), Failure> {
    let Plan { kept, removed, unusable } = plan;
    let kept: Vec<KeptRow> = kept
        .into_iter()
        .map(|kept| KeptRow { step: kept.step, by: kept.reasons.iter().map(reason).collect() })
        .collect();
    let unusable = unusable.into_iter().map(|(step, error)| Unusable { step, problem: error.into() });
    let report = PruneReport {
        file: report::path(&args.at.folder),
        removed,
        written: run == Run::Write,
        bytes,
        kept,
        unusable: unusable.collect(),
    };
    if console.is_json() {
        return console.report(&report);
    }
    console.text(|out, style| {
        let (verb, freed) = match run {
            Run::Write => ("removed", "freed"),
            Run::Dry => ("would be removed", "would be freed"),
        };
        let (count, kept) = (report.removed.len() as u64, report.kept.len() + report.unusable.len());
        let title = style.bold(&escape::path(&args.at.folder));
        let (count, bytes) = (plural(count, "checkpoint"), human::bytes(bytes));
        writeln!(out, "{title}: {count} {verb}, {bytes} {freed}; {kept} kept\n")?;
        let mut table = Table::new(&[Align::Left, Align::Left]);
        for KeptRow { step, by } in &report.kept {
            table.row([
                format!("step_{step}"),
                by.iter().map(|by| escape::cut(by, 60)).collect::<Vec<_>>().join(", "),
            ]);
        }
        table.wrapped(style).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        let mark = style.yellow("!");
        for Unusable { step, problem } in &report.unusable {
            writeln!(out, "  {mark} step_{step} counts for no rule and stays: {problem}")?;
        }
        Ok(())
    })
}

fn reason(reason: &KeptBy) -> String {
    match reason {
        KeptBy::Newest => "newest".to_owned(),
        KeptBy::Last => "last".to_owned(),
        KeptBy::Best(metric) => format!("best {metric}"),
        KeptBy::Every => "every".to_owned(),
        _ => "rule".to_owned(),
    }
}

/// A metric that no checkpoint has, with the name that may be meant.
fn no_metric(error: st_mmap::Error, steps: &[Checkpoint]) -> Failure {
    use st_mmap::ErrorKind::NoMetric;
    let NoMetric { metric, .. } = error.kind() else { return error.into() };
    let abouts: Vec<_> = steps.iter().map(Checkpoint::about).collect();
    let names = abouts.iter().flat_map(|about| about.metrics.keys());
    match suggest::closest(metric, names).map(|close| escape::cut(close, 60)) {
        Some(close) => Failure::from(error).help(format!("did you mean `{close}`? nothing was removed")),
        None => error.into(),
    }
}
