//! `apr get`: copies remote files to this machine.

mod copy;
mod parts;
mod plan;
mod signed;

use alloc::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Serialize;

use self::copy::{Arrived, Copied, Folder, State};
pub(in crate::commands) use self::parts::PARTS;
use self::plan::Plan;
use self::signed::Signer;
use crate::args::WriteArgs;
use crate::args::glob::PathSelection;
use crate::error::{Exit, Failure};
use crate::output::Run;
use crate::report::{self, Report};
use crate::terminal::{Console, escape, human};

const AFTER_HELP: &str = "A repository is copied at one commit, whatever happens to its branch meanwhile. SHA-256 is compared with what the \
    hub declares for large files. What has arrived of a file is kept in DIR/.apr-get until all of it has: the same command goes on \
    there. A file of DIR is replaced with --force only, and never by a part of one. With --signer, a file gets its name only \
    when all are verified: by the signature of a folder (model.sig), by one beside each file (.sig, .minisig), or inside .apr and sealed \
    files. Names that version control systems take for their own folders (.git) are refused.\n\n\
    Examples:\n  apr get hf://org/name -o model --include '*.safetensors' --include '*.json'\n  \
    apr get hf://org/name@v1.0/model-q4_k_m.gguf -o models\n  \
    apr get https://host.example/model.safetensors.index.json -o model\n  \
    apr get https://host.example/published.safetensors -o models --signer publisher.pub\n\n\
    Exit codes: 0 success, 2 a file exists, 3 wrong answer or names, 4 another SHA-256 or signer, 5 I/O or network.";

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
    /// Keep only files that this key signed: an Ed25519 or P-256 key, or its file.
    #[arg(long, value_name = "KEY-OR-FILE")]
    signer: Option<PathBuf>,
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
    /// Fingerprint of the key that signed the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
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
    let signer = args.signer.as_deref().map(Signer::load).transpose()?;
    let plan = Plan::of(&args.url, &args.paths, signer.as_ref())?;
    let tools = plan.tools();
    if !tools.is_empty() {
        console.remark(format_args!("other programs read or run these files: {}", escape::some_of(&tools)));
    }
    let folder = Folder::new(&args.output, args.write.overwrite(), args.connections.into());
    let present = folder.check(&plan, console)?;
    let copied = match args.write.run() {
        Run::Dry => Vec::new(),
        Run::Write => copy_all(&plan, &folder, present, signer.as_ref(), console)?,
    };
    let signer = signer.filter(|_| args.write.run() == Run::Write);
    tell(&plan, &copied, signer.as_ref(), args, console)?;
    Ok(Exit::Success)
}

fn copy_all(
    plan: &Plan,
    folder: &Folder<'_>,
    mut present: Vec<Option<Copied>>,
    signer: Option<&Signer>,
    console: &Console,
) -> Result<Vec<Copied>, Failure> {
    let mut progress = console.progress("downloading", plan.len());
    let mut arrived = Vec::new();
    for (wanted, present) in plan.files.iter().zip(&mut present) {
        progress.item(&wanted.path);
        if let Some(copy) = present {
            progress.advance(copy.bytes as usize);
            arrived.push(None);
            continue;
        }
        let fetched = folder.fetch(wanted, &plan.client, &mut progress).and_then(|file| match signer {
            // All are verified before one gets its name.
            Some(_) => Ok(Some(file.closed())),
            None => {
                file.check_content(wanted)?;
                *present = Some(folder.place(file, wanted)?);
                Ok(None)
            }
        });
        match fetched {
            Ok(file) => arrived.push(file),
            Err(failure) => {
                drop(progress);
                if folder.has_parts(plan) {
                    console.note("what has arrived is kept: the same command goes on there");
                }
                return Err(failure);
            }
        }
    }
    drop(progress);
    if let Some(signer) = signer {
        if let Err(failure) = signer.verify(plan, &arrived, folder.path(), console) {
            arrived.iter().flatten().for_each(Arrived::remove);
            folder.finish(plan);
            return Err(failure);
        }
        for ((wanted, present), file) in plan.files.iter().zip(&mut present).zip(arrived) {
            if let Some(file) = file {
                *present = Some(folder.place(file, wanted)?);
            }
        }
    }
    folder.finish(plan);
    Ok(present.into_iter().flatten().collect())
}

fn tell(
    plan: &Plan,
    copied: &[Copied],
    signer: Option<&Signer>,
    args: &Args,
    console: &mut Console,
) -> Result<(), Failure> {
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
            written: copied.iter().any(|copy| copy.state != State::Present),
            commit: plan.commit.as_deref(),
            fingerprint: signer.map(Signer::fingerprint),
            bytes: files.iter().filter_map(|file| file.bytes).sum(),
            files,
        });
    }
    for file in &files {
        let path = escape::path(&args.output.join(Path::new(file.path)));
        let bytes = file.bytes.map_or_else(String::new, human::exact_bytes);
        let note = match (file.state, file.declared) {
            (Some(State::Present), _) => {
                console.note(format_args!("{path} ({bytes}) was there, with the same bytes: not written"));
                continue;
            }
            (Some(State::Cached), true) => ", from the hub's cache, SHA-256 as declared",
            (Some(State::Cached), false) => ", from the hub's cache",
            (_, true) => ", SHA-256 as declared",
            (Some(_), false) if signer.is_none() => ", not verified: the server declares no checksum",
            (_, false) => "",
        };
        run.tell(&format!("{path} ({bytes}{note})"), console)?;
    }
    if let Some(signer) = signer {
        console.note(format_args!("verified: all files are signed by the key {}", signer.fingerprint()));
    }
    Ok(())
}
