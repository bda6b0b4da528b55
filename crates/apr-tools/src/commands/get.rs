//! `apr get`: copies remote files to this machine.

mod copy;
mod parts;
mod plan;

use alloc::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::copy::{Copied, Folder, State};
pub(in crate::commands) use self::parts::PARTS;
use self::plan::Plan;
use crate::args::WriteArgs;
use crate::args::glob::PathSelection;
use crate::error::{Exit, Failure};
use crate::output::Run;
use crate::report::{self, Report};
use crate::terminal::{Console, escape, human};

const AFTER_HELP: &str = "A repository is copied at one commit, whatever happens to its branch meanwhile. SHA-256 is compared with what the \
    hub declares for large files. What has arrived of a file is kept in DIR/.apr-get until all of it has: the same command goes on \
    there. A file of DIR is replaced with --force only, and never by a part of one.\n\n\
    Examples:\n  apr get hf://org/name -o model --include '*.safetensors' --include '*.json'\n  \
    apr get hf://org/name@v1.0/model-q4_k_m.gguf -o models\n  \
    apr get https://host.example/model.safetensors.index.json -o model\n\n\
    Exit codes: 0 success, 2 a file exists, 3 wrong answer, 4 another SHA-256, 5 I/O or network.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A repository of the hub, hf://ORG/NAME, hf://ORG/NAME@REVISION, or a file or folder in it, hf://ORG/NAME/PATH; the URL of a file, or of
    /// an index with its shards; an object or a prefix, s3://BUCKET/PREFIX, with the feature `cloud`.
    #[arg(value_name = "URL")]
    url: PathBuf,
    /// The folder that gets the files, by their paths; it is created if need be.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    #[command(flatten)]
    paths: PathSelection,
    /// Requests at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=32))]
    connections: u8,
    #[command(flatten)]
    write: WriteArgs,
}

/// What was copied, or would be.
#[derive(Debug, Serialize)]
struct GetReport<'a> {
    input: &'a str,
    output: Cow<'a, str>,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    bytes: u64,
    files: Vec<FileReport<'a>>,
}

impl Report for GetReport<'_> {
    const SCHEMA: &'static str = "apr.get/1";
}

#[derive(Debug, Serialize)]
struct FileReport<'a> {
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    /// Whether `sha256` was compared with what the server declares.
    declared: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
}

/// Runs `apr get`.
///
/// # Errors
///
/// If a file cannot be read, is another one than the server declares, or cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let plan = Plan::of(&args.url, &args.paths)?;
    let folder = Folder::new(&args.output, args.write.overwrite(), args.connections.into());
    let present = folder.check(&plan, console)?;
    let copied = match args.write.run() {
        Run::Dry => Vec::new(),
        Run::Write => copy_all(&plan, &folder, present, console)?,
    };
    tell(&plan, &copied, args, console)?;
    Ok(Exit::Success)
}

fn copy_all(
    plan: &Plan,
    folder: &Folder<'_>,
    present: Vec<Option<Copied>>,
    console: &Console,
) -> Result<Vec<Copied>, Failure> {
    let mut progress = console.progress("downloading", plan.len());
    let mut copied = Vec::new();
    for (wanted, is_present) in plan.files.iter().zip(present) {
        progress.item(&wanted.path);
        match is_present {
            Some(copy) => {
                progress.advance(copy.bytes as usize);
                copied.push(copy);
            }
            None => match folder.copy(wanted, &plan.client, &mut progress) {
                Ok(copy) => copied.push(copy),
                Err(failure) => {
                    drop(progress);
                    if folder.has_parts(plan) {
                        console.note("what has arrived is kept: the same command goes on there");
                    }
                    return Err(failure);
                }
            },
        }
    }
    folder.finish(plan);
    Ok(copied)
}

fn tell(plan: &Plan, copied: &[Copied], args: &Args, console: &mut Console) -> Result<(), Failure> {
    let copies = copied.iter().map(Some).chain(core::iter::repeat(None));
    let files = plan.files.iter().zip(copies).map(|(wanted, copy)| FileReport {
        path: &wanted.path,
        bytes: copy.map(|copy| copy.bytes).or(wanted.len),
        sha256: copy.map(|copy| copy.sha256.as_str()).or(wanted.sha256.as_deref()),
        declared: copy.map_or(wanted.sha256.is_some(), |copy| copy.is_declared),
        state: copy.map(|copy| copy.state),
    });
    let files: Vec<FileReport<'_>> = files.collect();
    let run = args.write.run();
    if console.is_json() {
        return console.report(&GetReport {
            input: &plan.shown,
            output: report::path(&args.output),
            written: run == Run::Write,
            commit: plan.commit.as_deref(),
            bytes: files.iter().filter_map(|file| file.bytes).sum(),
            files,
        });
    }
    for file in &files {
        let path = escape::path(&args.output.join(Path::new(file.path)));
        let bytes = file.bytes.map_or_else(String::new, human::exact_bytes);
        let note = match (file.state, file.declared) {
            (Some(State::Present), _) => ", was there",
            (Some(State::Cached), true) => ", from the hub's cache, SHA-256 as declared",
            (Some(State::Cached), false) => ", from the hub's cache",
            (_, true) => ", SHA-256 as declared",
            (_, false) => "",
        };
        run.tell(&format!("{path} ({bytes}{note})"), console)?;
    }
    Ok(())
}
