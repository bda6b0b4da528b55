//! `apr demo`: trains, saves, reloads and verifies a model, and shows that damaged files are refused.

mod apr;
mod data;
mod report;
mod workspace;

use alloc::collections::BTreeMap;
use core::time::Duration;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use apr_models::LinearRegression;
use st_core::{SafeTensors, TensorView};
use st_mmap::{CheckpointData, Checkpoints};

use self::data::Table;
use self::workspace::Workspace;
use crate::args::DryRunArg;
use crate::commands::diff;
use crate::commands::tensors;
use crate::error::{CODE_DEMO, Exit, Failure};
use crate::input::{Model, Rules};
use crate::output::Run;
use crate::terminal::Console;

/// The model as it was saved.
const MODEL: &str = "model.safetensors";
/// A copy with one bit of the header flipped.
const DAMAGED_HEADER: &str = "damaged-header.safetensors";
/// A copy with one bit of a coefficient flipped.
const DAMAGED_DATA: &str = "damaged-data.safetensors";
/// Folder of two checkpoints, of which the second is damaged.
const CHECKPOINTS: &str = "checkpoints";

const AFTER_HELP: &str = "The data is built in; nothing is downloaded. Files go to the folder for temporary files and are removed \
    at the end.\n\n\
    Examples:\n  apr demo\n  apr demo --keep demo-files\n\n\
    Exit codes: 0 success, 2 DIR exists, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Leave the files in this new folder instead of removing them.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    dry_run: DryRunArg,
}

/// What happened, for the reports.
struct Story {
    table: Table,
    model: LinearRegression,
    r2: f32,
    steps: Vec<Step>,
    /// Name and SHA-256 of each tensor.
    digests: Vec<(String, String)>,
    /// Prediction for the last row by the model and by its copy with damaged data.
    last: (f32, f32),
    header_refusal: Failure,
    data_change: f64,
    /// Digest of the damaged tensor in the copy.
    data_digest: String,
    checkpoint_refusal: Failure,
    /// The step that resuming falls back to.
    resumed_step: u64,
    apr: apr::Chapter,
    kept: Option<PathBuf>,
}

/// One line of the table of sizes and times.
struct Step {
    name: &'static str,
    bytes: Option<u64>,
    time: Duration,
}

/// Runs `apr demo`.
///
/// # Errors
///
/// If files cannot be written, or a step goes differently than it always does.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let keep = args.keep.as_deref();
    if args.dry_run.run() == Run::Dry {
        report::plan(keep, console)?;
        return Ok(Exit::Success);
    }
    let workspace = Workspace::create(keep)?;
    console.detail(format_args!("working in {}", workspace.path().display()));
    let mut story = tell(workspace.path())?;
    workspace.finish()?;
    story.kept = args.keep.clone();
    if console.is_json() {
        report::json(&story, console)?;
    } else {
        report::text(&story, console)?;
    }
    Ok(Exit::Success)
}

fn tell(folder: &Path) -> Result<Story, Failure> {
    let mut steps = Vec::new();
    let table = data::table()?;

    let mut model = LinearRegression::new();
    timed(&mut steps, "train", || model.fit(&table.x, &table.y))?;
    let r2 = model.try_score(&table.x, &table.y)?;

    let path = folder.join(MODEL);
    timed(&mut steps, "save", || model.save_safetensors(&path))?;
    let reloaded = timed(&mut steps, "reload", || LinearRegression::load_safetensors(&path))?;
    let predictions = timed(&mut steps, "predict 16 rows", || reloaded.try_predict(&table.x))?;
    expect(reloaded == model && predictions == model.try_predict(&table.x)?, "the reloaded model differs")?;

    let bytes = fs::read(&path).map_err(|error| Failure::io("read the file", &path, &error))?;
    for step in steps.iter_mut().filter(|step| matches!(step.name, "save" | "reload")) {
        step.bytes = Some(bytes.len() as u64);
    }
    let digests = timed(&mut steps, "verify (SHA-256)", || digests(&path))?;

    // The first byte of the header is the opening brace: any other is no safetensors file.
    let header_refusal = damaged_header(&folder.join(DAMAGED_HEADER), &bytes)?;
    let damage = damaged_data(&path, &folder.join(DAMAGED_DATA), &bytes)?;
    let last_row = |values: &apr_models::Vector| values.iter().last().unwrap_or_default();
    let last = (last_row(&predictions), last_row(&damage.model.try_predict(&table.x)?));

    let checkpoints = Checkpoints::new(folder.join(CHECKPOINTS));
    let (checkpoint_refusal, resumed_step) = damaged_checkpoint(&checkpoints, &bytes, r2, &mut steps)?;
    let apr = apr::tell(folder, &table, &model, &predictions, r2, &mut steps)?;
    Ok(Story {
        table,
        model,
        r2,
        steps,
        digests,
        last,
        header_refusal,
        data_change: damage.max_abs,
        data_digest: damage.digest,
        checkpoint_refusal,
        resumed_step,
        apr,
        kept: None,
    })
}

fn timed<T, E: Into<Failure>>(
    steps: &mut Vec<Step>,
    name: &'static str,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, Failure> {
    let begun = Instant::now();
    let done = work().map_err(Into::into)?;
    steps.push(Step { name, bytes: None, time: begun.elapsed() });
    Ok(done)
}

fn expect(held: bool, otherwise: &str) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure::new(CODE_DEMO, otherwise)) }
}

fn digests(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let model = Model::open(path, &Rules::STRICT)?;
    let tensors = model.tensors()?;
    let mut buf = Vec::new();
    let digest = |tensor: &crate::input::Tensor<'_>| {
        Ok((tensor.name().to_owned(), tensors::digest(tensor, &mut buf, |_| ())?))
    };
    tensors.iter().map(digest).collect()
}

fn flipped(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut copy = bytes.to_vec();
    if let Some(byte) = copy.get_mut(at) {
        *byte ^= 1;
    }
    copy
}

fn damaged_header(path: &Path, bytes: &[u8]) -> Result<Failure, Failure> {
    write(path, &flipped(bytes, 8))?;
    match Model::open(path, &Rules::STRICT) {
        Err(refusal) => Ok(refusal.in_place_of_file(Path::new(DAMAGED_HEADER))),
        Ok(_) => Err(Failure::new(CODE_DEMO, "a damaged header was accepted")),
    }
}

struct DataDamage {
    model: LinearRegression,
    max_abs: f64,
    digest: String,
}

/// The lowest bit of the first coefficient's highest byte: an exponent bit, so that the value changes by a factor of 4.
fn damaged_data(good: &Path, path: &Path, bytes: &[u8]) -> Result<DataDamage, Failure> {
    let open = |path: &Path| Model::open(path, &Rules::STRICT);
    let good = open(good)?;
    let good_tensors = good.tensors()?;
    let first = good_tensors.first().ok_or_else(|| Failure::new(CODE_DEMO, "the model has no tensor"))?;
    let offset = first.file_offset().unwrap_or_default() + 3;
    write(path, &flipped(bytes, offset as usize))?;

    let bad = open(path)?;
    let bad_tensors = bad.tensors()?;
    let bad_first = bad_tensors.first().ok_or_else(|| Failure::new(CODE_DEMO, "the copy has no tensor"))?;
    let change = diff::compare(first, bad_first, |_| ())?;
    let change = change.ok_or_else(|| Failure::new(CODE_DEMO, "the damaged copy compares equal"))?;
    let digest = tensors::digest(bad_first, &mut Vec::new(), |_| ())?;
    Ok(DataDamage { model: LinearRegression::load_safetensors(path)?, max_abs: change.max_abs, digest })
}

/// Saves two checkpoints, damages the second as before, and tries to load it; also the step that is left.
fn damaged_checkpoint(
    checkpoints: &Checkpoints,
    bytes: &[u8],
    r2: f32,
    steps: &mut Vec<Step>,
) -> Result<(Failure, u64), Failure> {
    let tensors = SafeTensors::from_bytes(bytes)?;
    let views: Vec<(&str, TensorView<'_>)> = tensors.iter().collect();
    let metrics = BTreeMap::from([("r2".to_owned(), f64::from(r2))]);
    let checkpoint = |step| CheckpointData {
        step,
        model: &views,
        metrics: metrics.clone(),
        model_class: "LinearRegression",
        ..CheckpointData::default()
    };
    timed(steps, "save a checkpoint", || checkpoints.save(&checkpoint(1)))?;
    timed(steps, "load and verify it", || checkpoints.load(1))?;
    let damaged = checkpoints.save(&checkpoint(2))?.join(MODEL);
    let stored = fs::read(&damaged).map_err(|error| Failure::io("read the file", &damaged, &error))?;
    write(&damaged, &flipped(&stored, stored.len() - 1))?;

    let Err(refusal) = checkpoints.load(2) else {
        return Err(Failure::new(CODE_DEMO, "a damaged checkpoint was accepted"));
    };
    let resumed = checkpoints.resume()?.checkpoint.map(|checkpoint| checkpoint.step());
    let resumed = resumed.ok_or_else(|| Failure::new(CODE_DEMO, "no checkpoint is left"))?;
    let refusal = Failure::from(refusal).in_place_of_file(&Path::new(CHECKPOINTS).join("step_2"));
    Ok((refusal, resumed))
}

/// Damage is done without ceremony: by a plain write.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(|error| Failure::io("write the file", path, &error))
}
