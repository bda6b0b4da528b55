//! `apr checkpoint`: the checkpoints of a training.

mod diff;
pub(crate) mod list;
mod prune;
mod resume;

use std::path::{Path, PathBuf};

use st_mmap::Verification;

use self::list::{Row, View};
use crate::checkpoints::Checkpoint;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Rules;
use crate::terminal::Console;

const AFTER_HELP: &str = "Examples:\n  apr checkpoint list run1\n  apr checkpoint resume run1\n\n\
    Exit codes: 0 success, 1 different or none, 2 usage, 4 refused, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: CheckpointCommand,
}

#[derive(Debug, clap::Subcommand)]
enum CheckpointCommand {
    List(ListArgs),
    Verify(VerifyArgs),
    Resume(resume::Args),
    Prune(prune::Args),
    Diff(diff::Args),
}

/// Where checkpoints are.
#[derive(Clone, Debug, clap::Args)]
struct FolderArg {
    /// The folder that holds the checkpoints.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Which checkpoints are verified, and whether they need a manifest.
#[derive(Clone, Debug, clap::Args)]
struct VerifiedArgs {
    #[command(flatten)]
    at: FolderArg,
    /// Accept checkpoints without manifest.json; only their headers are checked.
    #[arg(long)]
    allow_missing_manifest: bool,
}

impl VerifiedArgs {
    const fn verification(&self) -> Verification {
        if self.allow_missing_manifest { Verification::ManifestOptional } else { Verification::Required }
    }
}

const LIST_AFTER_HELP: &str = "Tensors are not read, and nothing is verified. The table has step, size, age and the first four metrics; below it, the first three \
    metrics by name are drawn over the steps.\n\n\
    Examples:\n  apr checkpoint list run1\n  apr checkpoint list run1 --metric val_loss --metric accuracy\n  apr checkpoint list run1 --json\n\n\
    Exit codes: 0 success, 2 usage, 5 I/O.";

/// List checkpoints: steps, sizes, ages, metrics, and charts of the metrics.
#[derive(Debug, clap::Args)]
#[command(after_help = LIST_AFTER_HELP)]
struct ListArgs {
    #[command(flatten)]
    at: FolderArg,
    /// Draw this metric; repeat it for several.
    #[arg(long, value_name = "NAME", conflicts_with = "no_chart")]
    metric: Vec<String>,
    /// Draw nothing.
    #[arg(long)]
    no_chart: bool,
}

const VERIFY_AFTER_HELP: &str = "Every file is compared with the digest in the manifest, and the headers of tensor files are checked. The manifest finds damage; it is no \
    signature. Every file is scanned as `apr scan` does: one that would run code when it is loaded is exit code 4.\n\n\
    Examples:\n  apr checkpoint verify run1\n  apr checkpoint verify run1 --step 1000 --step 2000\n\n\
    Exit codes: 0 all are sound, 2 usage, 3 invalid, 4 refused, 5 I/O.";

/// Verify all checkpoints of a folder, or some.
#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY_AFTER_HELP)]
struct VerifyArgs {
    #[command(flatten)]
    verified: VerifiedArgs,
    /// Verify only this step; repeat it for several.
    #[arg(long, value_name = "STEP")]
    step: Vec<u64>,
}

/// Runs `apr checkpoint`.
///
/// # Errors
///
/// If the folder cannot be read, or lacks what is asked for.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    match &args.command {
        CheckpointCommand::List(args) => {
            let rows: Vec<Row> = all(&args.at.folder)?.into_iter().map(Row::new).collect();
            if rows.is_empty() {
                console
                    .remark("there is no folder step_N or checkpoint-N here: name the folder that has them");
            }
            let view = if args.no_chart { View::Ages } else { View::Run { metrics: args.metric.clone() } };
            list::show(&args.at.folder, &rows, &view, console)
        }
        CheckpointCommand::Verify(args) => verify(args, console),
        CheckpointCommand::Resume(args) => resume::run(args, console),
        CheckpointCommand::Prune(args) => prune::run(args, console),
        CheckpointCommand::Diff(args) => diff::run(args, console),
    }
}

fn verify(args: &VerifyArgs, console: &mut Console) -> Result<Exit, Failure> {
    let folder = args.verified.at.folder.as_path();
    let mut checkpoints = all(folder)?;
    if !args.step.is_empty() {
        for step in &args.step {
            one(&checkpoints, folder, *step)?;
        }
        checkpoints.retain(|checkpoint| args.step.contains(&checkpoint.step));
    }
    let verification = args.verified.verification();
    let busy = console.busy("verifying");
    let rows =
        checkpoints.into_iter().map(|checkpoint| Row::new(checkpoint).verify(&Rules::STRICT, verification));
    let rows: Vec<Row> = rows.collect();
    drop(busy);
    list::show(folder, &rows, &View::State, console)
}

/// The checkpoints of a folder.
fn all(folder: &Path) -> Result<Vec<Checkpoint>, Failure> {
    if Checkpoint::at(folder).is_some() {
        let what = "this is a checkpoint, not the folder that holds them";
        return Err(Failure::new(CODE_USAGE, what).in_file(folder).help("name the folder above it"));
    }
    Checkpoint::all_in(folder)
}

/// The checkpoint of a step.
fn one<'c>(checkpoints: &'c [Checkpoint], folder: &Path, step: u64) -> Result<&'c Checkpoint, Failure> {
    checkpoints.iter().find(|checkpoint| checkpoint.step == step).ok_or_else(|| {
        let error = st_mmap::Error::from(st_mmap::ErrorKind::StepNotFound { step });
        let near = checkpoints.iter().min_by_key(|checkpoint| checkpoint.step.abs_diff(step));
        let failure = Failure::from(error).in_file(folder);
        match near {
            Some(near) => failure.help(format!("the nearest step is {}", near.step)),
            None => failure.help("the folder has no checkpoints"),
        }
    })
}
