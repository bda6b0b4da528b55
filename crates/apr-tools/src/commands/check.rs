//! `apr check`: validates files.

mod apr;
mod gguf;
mod report;
mod values;

use alloc::borrow::Cow;
use alloc::rc::Rc;
use std::path::{Path, PathBuf};

use st_core::ShardProblem;
use st_mmap::Verification;

use crate::args::{CompatArg, SizeLimitArg};
use crate::checkpoints::{Checkpoint, Layout};
use crate::code_files;
use crate::commands::convert::FormatArg;
use crate::commands::verify::signature_beside;
use crate::error::{CODE_FOREIGN_FORMAT, CODE_USAGE, Exit, Failure};
use crate::input::{self, Format, Model, Rules, Source};
use crate::output::ending::Ending;
use crate::secrets::{Keys, KeysArgs, SignedBy};
use crate::terminal::{Console, escape};

use self::values::Values;

/// The result for one FILE.
struct Verdict {
    path: PathBuf,
    outcome: Result<Sound, Refusal>,
}

/// The properties of a valid file.
struct Sound {
    content: Content,
    /// Warnings.
    warnings: Vec<String>,
    /// What the values are, if that was asked for.
    values: Option<Values>,
}

enum Content {
    Tensors {
        tensors: u64,
        bytes: u64,
        shards: Option<usize>,
        /// Of a checkpoint: how many files have the digest its manifest lists.
        verified: Option<usize>,
        /// Of an `.apr` file: `right`, `absent`, or in compat mode `wrong`.
        checksum: Option<&'static str>,
    },
    /// A GGUF file.
    Gguf { tensors: u64, bytes: u64, version: u32 },
    /// An `.apr` file of version 1.
    Model {
        model_type: String,
        bytes: u64,
        payload: Payload,
        /// Whether the payload had to be decrypted.
        is_decrypted: bool,
        /// The signer, if a signature was required.
        signer: Option<SignedBy>,
    },
}

/// What became of a payload.
enum Payload {
    /// It is this model, in this layout.
    Decoded { model: &'static str, layout: &'static str },
    /// A user-defined type: decompressed, but not decoded.
    Foreign,
    /// Encrypted: it cannot be read without the key.
    Encrypted,
}

enum Refusal {
    /// It cannot be read, or a header is invalid.
    Unsound(Failure),
    /// All headers are valid, but index and shards do not fit together.
    Shards(Vec<ShardProblem>),
}

const AFTER_HELP: &str = "Of a safetensors file the header and the length are checked. The values of the tensors are not: the format \
    has no checksum for them. Compare digests (`apr tensors --digest`) or files (`apr diff`) for that. The \
    folder step_N of a checkpoint is verified in full, by its manifest; of a folder of checkpoints, each is checked. \
    Files of other programs and all files in a folder are scanned as `apr scan` does: those that can run code when they \
    are loaded are named, and the exit code is 4 if one is dangerous. With --values, all values are read. An .apr file is read to its end: \
    checksum, metadata, and the payload, which has to become its model. A GGUF file is read to its end too: every key and \
    tensor lies inside it, and scales and numbers that are not finite are reported. With --signer, --trusted-keys or \
    --any-signer every file has to be signed, and the signature is verified first; with --identity or a \
    password every file has to be encrypted, and is decrypted. Without them, of a signed file the signature \
    is not checked, of an encrypted one not the payload; the report says so.\n\n\
    Examples:\n  apr check model.safetensors model.apr\n  apr check sharded --json\n  apr check --values model.safetensors\n  \
    apr check sold.apr --signer maker.key.pub --identity buyer.key\n\n\
    Exit codes: 0 success, 1 values that are not finite (--values), 3 invalid file, 4 a checksum or signature does not match, not decrypted, or a dangerous file, 5 I/O. With several files, that of the \
    first one not accepted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Files, indexes of shards, folders with one, checkpoints, or `-` for standard input.
    #[arg(value_name = "FILE", required = true)]
    inputs: Vec<PathBuf>,
    /// Refuse files of any other format, whatever their names.
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatArg>,
    /// Look at all values too: NaN, infinite and subnormal ones, and tensors whose values are all the same. The exit code is 1 if a
    /// value is NaN or infinite.
    #[arg(long)]
    values: bool,
    /// Accept a checkpoint without manifest.json; only its headers are checked.
    #[arg(long)]
    allow_missing_manifest: bool,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    size_limit: SizeLimitArg,
    #[command(flatten)]
    keys: KeysArgs,
}

/// Runs `apr check`. A file of another format is refused like an invalid file.
///
/// # Errors
///
/// If standard output does not take the report; a refusal is an exit code.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if args.values && args.inputs.iter().any(|path| path.as_os_str() == "-") {
        let what = "--values reads a file twice, and standard input can be read once";
        return Err(Failure::new(CODE_USAGE, what).help("name a file"));
    }
    let rules = args.size_limit.apply(args.compat.rules());
    let keys = Rc::new(args.keys.load(args.inputs.iter().map(PathBuf::as_path))?);
    let judge = Judge {
        expected: args.format.map(Into::into),
        rules: &rules,
        keys: &keys,
        verification: match args.allow_missing_manifest {
            true => Verification::ManifestOptional,
            false => Verification::Required,
        },
        values: args.values,
        console,
    };
    let (mut verdicts, mut scanned) = (Vec::new(), Vec::new());
    for path in &args.inputs {
        let below = Checkpoint::all_below(path);
        if below.is_empty() {
            verdicts.push(judge.verdict(path));
        }
        verdicts.extend(below.iter().map(|checkpoint| judge.verdict(&checkpoint.path)));
        if path.is_dir() {
            scanned.push(code_files::scan(path));
        } else if path.as_os_str() != "-" && matches!(Source::peek(path), Format::Foreign(_)) {
            scanned.push(code_files::scan_file(path));
        }
    }
    let dangerous = scanned.iter().any(code_files::Contents::is_dangerous).then_some(Exit::Refused);
    let exit = verdicts.iter().map(Verdict::exit).find(|&exit| exit != Exit::Success);
    let exit = dangerous.or(exit).unwrap_or(Exit::Success);
    let printed = if console.is_json() {
        report::json(&verdicts, &scanned, &rules, exit, console)
    } else {
        report::text(&verdicts, &scanned, &rules, console)
    };
    console.finished("checked");
    match printed {
        // The exit status does not depend on whether the report is read.
        Err(failure) if failure.is_closed_pipe() => Ok(exit),
        Err(failure) => Err(failure),
        Ok(()) => Ok(exit),
    }
}

/// The requirements for a valid file.
struct Judge<'a> {
    /// The format that it must have.
    expected: Option<Format>,
    rules: &'a Rules,
    keys: &'a Rc<Keys>,
    verification: Verification,
    /// Whether values are looked at.
    values: bool,
    console: &'a Console,
}

impl Judge<'_> {
    fn verdict(&self, path: &Path) -> Verdict {
        // Libraries read these files to their end; only a GGUF file is read here, where pieces can be counted. Beside a
        // question for a password no line is drawn.
        let is_read_elsewhere = Source::peek(path) != Format::Gguf && !self.keys.is_given();
        let _busy = is_read_elsewhere.then(|| self.console.busy("checking"));
        let mut outcome = match Checkpoint::at(path) {
            Some(checkpoint) if checkpoint.layout == Layout::Steps => self
                .keys
                .refuse_for("a checkpoint", path)
                .and_then(|()| verify(&checkpoint, self.rules, self.verification))
                .map_err(Refusal::Unsound),
            Some(_) => self.examine(path).map(|mut sound| {
                let warning = "a trainer's checkpoint has no manifest: only the headers were checked";
                sound.warnings.push(warning.to_owned());
                sound
            }),
            None => self.examine(path),
        };
        if self.values
            && let Ok(sound) = &mut outcome
        {
            match Values::of(&self.weights(path), self.rules, self.keys, self.console) {
                Ok(values) => sound.values = Some(values),
                Err(failure) => outcome = Err(Refusal::Unsound(failure)),
            }
        }
        if let Ok(sound) = &mut outcome
            && let Some(signature) = signature_beside(path)
        {
            let (signature, path) = (signature.display(), escape::word(&path.to_string_lossy()));
            sound.warnings.push(format!(
                "the signature {signature} was not checked: apr verify {path} --key KEY-OR-FILE"
            ));
        }
        Verdict { path: path.to_owned(), outcome }
    }

    /// The file with the tensors: of a checkpoint, its model.
    fn weights<'p>(&self, path: &'p Path) -> Cow<'p, Path> {
        match Checkpoint::at(path) {
            Some(checkpoint) if checkpoint.layout == Layout::Steps => path.join("model.safetensors").into(),
            _ => path.into(),
        }
    }

    fn examine(&self, path: &Path) -> Result<Sound, Refusal> {
        let source = Source::open(path).map_err(Refusal::Unsound)?.with_keys(self.keys);
        source.check_name().map_err(Refusal::Unsound)?;
        let format = source.format();
        let remote = source.remote().cloned();
        let mut sound = sound(source, self.rules, self.console)?;
        if let Some(expected) = self.expected.filter(|&expected| expected != format) {
            let (found, expected) = (format.title(), expected.id());
            let what = format!("this is {found}, and `--format {expected}` was asked for");
            return Err(Refusal::Unsound(Failure::new(CODE_FOREIGN_FORMAT, what).in_file(path).help(
                "the content decides about the format, not the name: give the file the right ending, or convert it with `apr convert`",
            )));
        }
        sound.warnings.extend(Ending::disagreement(format, path));
        if let Some(remote) = remote {
            remote.check_digests(self.console).map_err(Refusal::Unsound)?;
        }
        Ok(sound)
    }
}

fn sound(source: Source, rules: &Rules, console: &Console) -> Result<Sound, Refusal> {
    match source.format() {
        Format::AprV1 => apr::model(source, rules).map_err(Refusal::Unsound),
        Format::AprV2 => apr::tensors(source, rules).map_err(Refusal::Unsound),
        Format::Gguf => gguf::tensors(source, rules, console).map_err(Refusal::Unsound),
        Format::Foreign(_) => foreign(source, rules).map_err(Refusal::Unsound),
        Format::SafeTensors | Format::Sealed => match Model::with_problems(source, rules) {
            Err(failure) => Err(Refusal::Unsound(failure)),
            Ok((_, problems)) if !problems.iter().all(ShardProblem::is_harmless) => {
                Err(Refusal::Shards(problems))
            }
            Ok((model, problems)) => {
                let mut sound = count(&model).map_err(Refusal::Unsound)?;
                let note = |problem| input::note_on_index(problem, model.label());
                sound.warnings.extend(problems.iter().map(note));
                Ok(sound)
            }
        },
    }
}

fn verify(checkpoint: &Checkpoint, rules: &Rules, verification: Verification) -> Result<Sound, Failure> {
    let loaded = checkpoint.load(rules, verification)?;
    let header = loaded.model().header();
    let (tensors, bytes) = (header.len() as u64, header.data_len());
    let verified = loaded.is_verified().then(|| loaded.files().len());
    let mut sound = Sound::new(Content::Tensors { tensors, bytes, shards: None, verified, checksum: None });
    if verified.is_none() {
        sound.warnings.push("no manifest: nothing was verified but the headers".to_owned());
    }
    Ok(sound)
}

/// A file of another program, with warnings about what was left out of it: refused if that is every tensor.
fn foreign(source: Source, rules: &Rules) -> Result<Sound, Failure> {
    let model = Model::from_source(source, rules)?;
    let mut sound = count(&model)?;
    sound.warnings.extend(model.file().warnings().into_iter().map(|warning| warning.message));
    let tensors = model.tensors()?;
    let mut failures: Vec<_> = tensors.iter().filter_map(|tensor| tensor.check_type().err()).collect();
    if !failures.is_empty() && failures.len() == tensors.len() {
        return Err(failures.swap_remove(0));
    }
    sound.warnings.extend(failures.iter().map(ToString::to_string));
    Ok(sound)
}

fn count(model: &Model) -> Result<Sound, Failure> {
    let tensors = model.tensors()?;
    let bytes = tensors.iter().map(|tensor| tensor.byte_len()).sum();
    let shards = if model.is_sharded() { Some(model.parts()?.len()) } else { None };
    let tensors = tensors.len() as u64;
    Ok(Sound::new(Content::Tensors { tensors, bytes, shards, verified: None, checksum: None }))
}

impl Sound {
    fn new(content: Content) -> Self {
        Self { content, warnings: Vec::new(), values: None }
    }
}

impl Verdict {
    fn exit(&self) -> Exit {
        match &self.outcome {
            Ok(Sound { values: Some(values), .. }) if values.are_not_finite() => Exit::Different,
            Ok(_) => Exit::Success,
            Err(Refusal::Shards(_)) => Exit::Invalid,
            // For `check`, a file of another format is an invalid model file.
            Err(Refusal::Unsound(failure)) => match failure.exit() {
                Exit::Unsupported => Exit::Invalid,
                exit => exit,
            },
        }
    }
}
