//! `apr check`: accepts or refuses.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use st_core::{ReadOptions, ShardProblem};
use st_mmap::{Checkpoints, LoadOptions};

use crate::console::Console;
use crate::error::{Exit, Failure};
use crate::explain;
use crate::input::{self, Model, Tensor};
use crate::render::escape::{self, Escaped};
use crate::render::human;

/// What was found about one FILE.
struct Verdict {
    path: PathBuf,
    outcome: Result<Sound, Refusal>,
}

struct Sound {
    tensors: u64,
    bytes: u64,
    shards: Option<usize>,
    /// Of a checkpoint: how many files have the digest its manifest lists.
    verified: Option<usize>,
}

enum Refusal {
    /// It cannot be read, or a header is not sound.
    Unsound(Failure),
    /// All headers are sound, but index and shards do not fit together.
    Shards(Vec<ShardProblem>),
}

/// Code of a [`ShardProblem`], as `st-mmap` gives it.
const CODE_SHARD: &str = "sm-shard";

pub(crate) fn command() -> Command {
    Command::new("check")
        .about("Accept or refuse safetensors files, sharded models and checkpoints")
        .arg(
            Arg::new("input")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("Files, indexes of shards, folders with one, checkpoints, or `-` for standard input"),
        )
        .arg(input::compat_arg())
        .after_help(
            "The header and the length of each file are checked. The values of the tensors are not: the format has \
             no checksum for them. Compare digests (`apr tensors --digest`) or files (`apr diff`) for that. The \
             folder step_N of a checkpoint is verified in full, by its manifest.\n\n\
             Examples:\n  apr check model.safetensors\n  apr check sharded --json\n\n\
             Exit codes: 0 accepted, 3 refused, 4 not as in the manifest, 5 I/O. With several files, that of the first one not accepted.",
        )
}

/// Runs `apr check`. A file of another format is refused like any that is not sound.
///
/// # Errors
///
/// If standard output does not take the report; a refusal is an exit code.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let options = input::read_options(matches);
    let paths = matches.get_many::<PathBuf>("input").into_iter().flatten();
    let verdicts: Vec<Verdict> = paths.map(|path| judge(path, &options)).collect();
    let exit =
        verdicts.iter().map(Verdict::exit).find(|&exit| exit != Exit::Success).unwrap_or(Exit::Success);
    let printed = if console.is_json() {
        print_json(&verdicts, &options, console)
    } else {
        print_text(&verdicts, &options, console)
    };
    match printed {
        // The verdict stands even if nobody reads it.
        Err(failure) if failure.is_closed_pipe() => Ok(exit),
        Err(failure) => Err(failure),
        Ok(()) => Ok(exit),
    }
}

fn judge(path: &Path, options: &ReadOptions) -> Verdict {
    if let Some((folder, step)) = checkpoint(path) {
        let outcome = verify(&folder, step, options).map_err(Refusal::Unsound);
        return Verdict { path: path.to_owned(), outcome };
    }
    let outcome = match Model::open_with_problems(path, options) {
        Err(failure) => Err(Refusal::Unsound(failure)),
        Ok((_, problems)) if !problems.is_empty() => Err(Refusal::Shards(problems)),
        Ok((model, _)) => count(&model).map_err(Refusal::Unsound),
    };
    Verdict { path: path.to_owned(), outcome }
}

/// The parent and the step of a checkpoint: a folder `step_N` with what only checkpoints have.
fn checkpoint(path: &Path) -> Option<(PathBuf, u64)> {
    if !["manifest.json", "meta.json"].iter().any(|name| path.join(name).is_file()) {
        return None;
    }
    // `.` and links have other names than the folder they lead to.
    let folder = path.canonicalize().ok()?;
    let name = folder.file_name()?.to_str()?;
    let step: u64 = name.strip_prefix("step_")?.parse().ok()?;
    // Checkpoints are found by their step, which `step_07` would not be.
    (name == format!("step_{step}")).then(|| Some((folder.parent()?.to_owned(), step)))?
}

fn verify(folder: &Path, step: u64, options: &ReadOptions) -> Result<Sound, Failure> {
    let options = LoadOptions { read: *options, ..LoadOptions::default() };
    let checkpoint = Checkpoints::new(folder).load_with(step, &options)?;
    let header = checkpoint.model().header();
    Ok(Sound {
        tensors: header.len() as u64,
        bytes: header.data_len(),
        shards: None,
        verified: Some(checkpoint.files().len()),
    })
}

fn count(model: &Model) -> Result<Sound, Failure> {
    let tensors = model.tensors()?;
    Ok(Sound {
        tensors: tensors.len() as u64,
        bytes: tensors.iter().map(Tensor::byte_len).sum(),
        shards: if model.is_sharded() { Some(model.parts()?.len()) } else { None },
        verified: None,
    })
}

impl Verdict {
    fn exit(&self) -> Exit {
        match &self.outcome {
            Ok(_) => Exit::Success,
            Err(Refusal::Shards(_)) => Exit::Invalid,
            // The question is whether this is a sound safetensors file, and to that another format is a plain no.
            Err(Refusal::Unsound(failure)) => match failure.exit() {
                Exit::Unsupported => Exit::Invalid,
                exit => exit,
            },
        }
    }
}

fn print_text(verdicts: &[Verdict], options: &ReadOptions, console: &mut Console) -> Result<(), Failure> {
    for Verdict { path, outcome } in verdicts {
        let file = escape::path(path);
        console.text(|out, style| match outcome {
            Ok(sound) => {
                let shards = sound.shards.map(|n| format!(" in {}", human::plural(n as u64, "shard")));
                let verified = sound
                    .verified
                    .map(|n| format!(", {} as in the manifest", human::plural(n as u64, "file")));
                let rules = input::strictness_name(options);
                writeln!(
                    out,
                    "{} {file}: {}{}, {}{} ({rules})",
                    style.green("ok"),
                    human::plural(sound.tensors, "tensor"),
                    shards.unwrap_or_default(),
                    human::bytes(sound.bytes),
                    verified.unwrap_or_default(),
                )
            }
            Err(Refusal::Unsound(failure)) => {
                writeln!(out, "{} {file}: {failure}", style.red("refused"))
            }
            Err(Refusal::Shards(problems)) => {
                writeln!(
                    out,
                    "{} {file}: {}",
                    style.red("refused"),
                    human::plural(problems.len() as u64, "problem")
                )?;
                problems.iter().try_for_each(|problem| writeln!(out, "  {}", Escaped(&problem.to_string())))
            }
        })?;
        match outcome {
            Ok(_) => {}
            Err(Refusal::Unsound(failure)) => console.failure(failure),
            Err(Refusal::Shards(problems)) => console.failure(&input::disagreement(path, problems)),
        }
    }
    Ok(())
}

fn print_json(verdicts: &[Verdict], options: &ReadOptions, console: &mut Console) -> Result<(), Failure> {
    console.json("apr.check/1", |json| {
        json.field_str("mode", input::strictness_name(options))?;
        json.field_bool("ok", verdicts.iter().all(|verdict| verdict.outcome.is_ok()))?;
        json.key("files")?;
        json.array()?;
        for Verdict { path, outcome } in verdicts {
            json.object()?;
            json.field_str("file", &path.to_string_lossy())?;
            json.field_bool("ok", outcome.is_ok())?;
            if let Ok(sound) = outcome {
                json.field_uint("tensors", sound.tensors)?;
                json.field_uint("bytes", sound.bytes)?;
                if let Some(shards) = sound.shards {
                    json.field_uint("shards", shards as u64)?;
                }
                if let Some(files) = sound.verified {
                    json.field_uint("verified_files", files as u64)?;
                }
            }
            json.key("problems")?;
            json.array()?;
            match outcome {
                Ok(_) => {}
                Err(Refusal::Unsound(failure)) => failure.write_json(json)?,
                Err(Refusal::Shards(problems)) => {
                    for problem in problems {
                        json.object()?;
                        json.field_str("code", CODE_SHARD)?;
                        json.field_str("message", &problem.to_string())?;
                        if let Some(entry) = explain::find(CODE_SHARD) {
                            json.field_str("help", entry.help)?;
                        }
                        json.end_object()?;
                    }
                }
            }
            json.end_array()?;
            json.end_object()?;
        }
        json.end_array()
    })
}
