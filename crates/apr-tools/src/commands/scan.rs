//! `apr scan`: what loading model files would run.

mod baseline;
mod report;
mod sarif;

use std::path::{Path, PathBuf};

use model_scan::{Options, Verdict};

use self::baseline::Baseline;
use crate::args::parse_size;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::scanning::{self, Judged};
use crate::terminal::Console;
use crate::{file_digest, input};

const AFTER_HELP: &str = "Nothing is loaded or run: pickles are read opcode by opcode, archives and compressed files are opened, and names are compared \
    with a list of those that files of tensors need. Configurations of Keras, graphs of TensorFlow, programs of TorchScript, remote \
    code and chat templates are named. Formats without code are safe. docs/scan.md has the threat model, the verdicts and what other scanners \
    were bypassed with.\n\n\
    Verdicts: safe; suspicious: something that files of tensors do not need, or that cannot be read; malformed: the data break off; \
    dangerous: code is run.\n\n\
    Examples:\n  apr scan model.safetensors sharded\n  apr scan sharded --json\n  apr scan model.safetensors --sarif\n\n\
    Exit codes: 0 all safe, 2 usage, 4 anything suspicious, malformed or dangerous, 5 not read.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Files of any format, folders, or `-` for standard input.
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,
    /// Print SARIF 2.1.0, for code scanning services.
    #[arg(long)]
    sarif: bool,
    /// An earlier report of `--json`: files with a path and SHA-256 of it count as reviewed.
    #[arg(long, value_name = "REPORT")]
    baseline: Option<PathBuf>,
    /// Trust this name, exactly: `package.module.name`. Its arguments are not judged.
    #[arg(long, value_name = "NAME", value_parser = trusted)]
    allow: Vec<(String, String)>,
    /// Opcodes of all pickles of a file [default: 1048576 and 16 for each byte, at most 67108864].
    #[arg(long, value_name = "N")]
    max_opcodes: Option<u64>,
    /// How deep archives, compressed files and pickles in one another are followed [default: 4].
    #[arg(long, value_name = "N")]
    max_depth: Option<u32>,
    /// Bytes that one file may have in all when decompressed [default: 1.5 MiB and 8 times the file].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_inflated: Option<u64>,
    /// Findings of each stream that are reported; the verdict considers all [default: 1000].
    #[arg(long, value_name = "N")]
    max_findings: Option<usize>,
}

fn trusted(text: &str) -> Result<(String, String), String> {
    let pair = text.rsplit_once('.').filter(|(module, name)| !module.is_empty() && !name.is_empty());
    let (module, name) =
        pair.ok_or("a module and a name are needed, for example sklearn.svm._classes.SVC")?;
    Ok((module.to_owned(), name.to_owned()))
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|failure| failure.what().to_owned())
}

/// A file and its verdict.
struct Scanned {
    path: PathBuf,
    judged: Judged,
    /// In hexadecimal, of a file that is not safe and if it is needed.
    sha256: Option<String>,
    /// Whether the baseline has it.
    is_known: bool,
}

/// The result of a run.
#[derive(Default)]
struct Scan {
    files: Vec<Scanned>,
    unread: Vec<Failure>,
    has_baseline: bool,
}

impl Scan {
    /// The worst verdict of files that are not known.
    fn verdict(&self) -> Verdict {
        let unknown = self.files.iter().filter(|file| !file.is_known);
        unknown.map(|file| file.judged.verdict()).max().unwrap_or(Verdict::Safe)
    }

    fn exit(&self) -> Exit {
        match self.verdict() {
            Verdict::Safe if self.unread.is_empty() => Exit::Success,
            Verdict::Safe => Exit::Io,
            _ => Exit::Refused,
        }
    }
}

/// Runs `apr scan`.
///
/// # Errors
///
/// If the baseline cannot be read, or standard output does not take the report; a file that cannot be read is an exit code.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if args.sarif && console.is_json() {
        return Err(Failure::new(CODE_USAGE, "--sarif and --json exclude each other")
            .help("choose one; --baseline takes a report of --json"));
    }
    let baseline = args.baseline.as_deref().map(Baseline::read).transpose()?;
    let allow: Vec<_> = args.allow.iter().map(|(module, name)| (module.as_str(), name.as_str())).collect();
    let mut options = Options::DEFAULT;
    options.allow = &allow;
    options.limits.opcodes = args.max_opcodes.unwrap_or(options.limits.opcodes);
    options.depth = args.max_depth.unwrap_or(options.depth);
    options.inflated = args.max_inflated;
    options.kept = args.max_findings.unwrap_or(options.kept);
    let mut run = Run {
        options,
        baseline: baseline.as_ref(),
        needs_digests: baseline.is_some() || console.is_json() || args.sarif,
        scan: Scan { has_baseline: baseline.is_some(), ..Scan::default() },
    };
    let busy = console.busy("scanning");
    for path in &args.inputs {
        run.add(path);
    }
    drop(busy);
    let scan = run.scan;
    let printed = if args.sarif {
        sarif::print(&scan, console)
    } else if console.is_json() {
        report::json(&scan, console)
    } else {
        report::text(&scan, console)
    };
    match printed {
        // The exit status does not depend on whether the report is read.
        Err(failure) if !failure.is_closed_pipe() => Err(failure),
        _ => Ok(scan.exit()),
    }
}

struct Run<'r> {
    options: Options<'r>,
    baseline: Option<&'r Baseline>,
    needs_digests: bool,
    scan: Scan,
}

impl Run<'_> {
    /// What FILE names: standard input, a folder or a file.
    fn add(&mut self, path: &Path) {
        if path.as_os_str() == "-" {
            match input::any_stdin() {
                Ok(copy) => self.file(copy.path(), path),
                Err(failure) => self.scan.unread.push(failure),
            }
        } else if path.is_dir() {
            let below = scanning::below(path);
            self.scan.unread.extend(below.unread);
            below.files.iter().for_each(|file| self.file(file, file));
        } else {
            self.file(path, path);
        }
    }

    fn file(&mut self, path: &Path, label: &Path) {
        match self.scanned(path, label) {
            Ok(file) => self.scan.files.push(file),
            Err(failure) => self.scan.unread.push(failure),
        }
    }

    fn scanned(&self, path: &Path, label: &Path) -> Result<Scanned, Failure> {
        let judged = if path.is_dir() {
            Judged::linked_folder()
        } else {
            scanning::judge(path, label, &self.options)?
        };
        let sha256 = if self.needs_digests && judged.verdict() != Verdict::Safe && !path.is_dir() {
            Some(file_digest::hex_sha256(path, |_| {}).map_err(|failure| failure.called(path, label))?)
        } else {
            None
        };
        let is_known = match (self.baseline, &sha256) {
            (Some(baseline), Some(sha256)) => baseline.has(label, sha256),
            _ => false,
        };
        Ok(Scanned { path: label.to_owned(), judged, sha256, is_known })
    }
}
