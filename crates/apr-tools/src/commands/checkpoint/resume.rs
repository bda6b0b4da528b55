//! `apr checkpoint resume`: the newest checkpoint that is sound.

use alloc::borrow::Cow;
use core::cmp::Reverse;
use std::io::Write as _;

use serde::Serialize;

use super::{VerifiedArgs, all};
use crate::checkpoints::Checkpoint;
use crate::error::{Exit, Failure};
use crate::input::Rules;
use crate::report::{self, Report};
use crate::terminal::{Console, escape};

const AFTER_HELP: &str = "Checkpoints are verified from the highest step down; the first that is sound is printed, and those that were skipped are named on \
    standard error.\n\n\
    Examples:\n  apr checkpoint resume run1\n  python train.py --resume \"$(apr checkpoint resume run1)\"\n\n\
    Exit codes: 0 success, 1 the folder has no checkpoints, 3 or 4 none is sound (the code of the newest), 5 I/O.";

/// Print the path of the newest checkpoint that is sound.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    verified: VerifiedArgs,
}

#[derive(Serialize)]
struct ResumeReport<'a> {
    file: Cow<'a, str>,
    checkpoint: Option<Cow<'a, str>>,
    step: Option<u64>,
    skipped: Vec<Skipped<'a>>,
}

impl Report for ResumeReport<'_> {
    const SCHEMA: &'static str = "apr.checkpoint-resume/1";
}

#[derive(Serialize)]
struct Skipped<'a> {
    file: Cow<'a, str>,
    step: u64,
    problem: &'a Failure,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let folder = args.verified.at.folder.as_path();
    let mut checkpoints = all(folder)?;
    checkpoints.sort_by_key(|checkpoint| (Reverse(checkpoint.step), checkpoint.layout));
    let verification = args.verified.verification();
    let mut skipped: Vec<(&Checkpoint, Failure)> = Vec::new();
    let mut sound = None;
    let busy = console.busy("verifying");
    for checkpoint in &checkpoints {
        match checkpoint.verify(&Rules::STRICT, verification) {
            Ok(()) => {
                sound = Some(checkpoint);
                break;
            }
            Err(failure) => skipped.push((checkpoint, failure)),
        }
    }
    drop(busy);
    for (checkpoint, failure) in &skipped {
        console.remark(format_args!("skipped {}: {failure}", checkpoint.name()));
    }
    if console.is_json() {
        let skipped = skipped.iter().map(|(checkpoint, problem)| Skipped {
            file: report::path(&checkpoint.path),
            step: checkpoint.step,
            problem,
        });
        console.report(&ResumeReport {
            file: report::path(folder),
            checkpoint: sound.map(|checkpoint| report::path(&checkpoint.path)),
            step: sound.map(|checkpoint| checkpoint.step),
            skipped: skipped.collect(),
        })?;
    } else if let Some(checkpoint) = sound {
        console.text(|out, _| writeln!(out, "{}", checkpoint.path.display()))?;
    } else {
        let what = if skipped.is_empty() { "has no checkpoints" } else { "has no checkpoint that is sound" };
        console.note(format_args!("{} {what}", escape::path(folder)));
    }
    Ok(match (sound, skipped.first()) {
        (Some(_), _) => Exit::Success,
        (None, Some((_, failure))) => failure.exit(),
        (None, None) => Exit::Different,
    })
}
