//! `apr sign`: signs a file, a folder or a model, in a separate file or inside the model.

mod inside;

use core::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use apr_manifest::{Bundle, Manifest, Method, SignOptions, minisign_path, sign_file};
use clap::ValueEnum;
use serde::Serialize;

use crate::args::{CompatArg, ForceArg, PayloadArgs, parse_size};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::output::{self, Overwrite};
use crate::report::{self, Report};
use crate::secrets::{KeyPasswordArgs, Signer, load_signer};
use crate::terminal::escape;
use crate::terminal::human;
use crate::terminal::{Console, Progress};

/// What a minisign signature says about itself, for everybody to change.
const UNTRUSTED: &str = "signature by apr";

/// What a signature is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Minisign,
    ModelSigning,
}

impl Format {
    /// As `--format` and JSON call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Minisign => "minisign",
            Self::ModelSigning => "model-signing",
        }
    }

    const fn of(key: &Signer) -> Self {
        match key {
            Signer::Ed25519(_) => Self::Minisign,
            Signer::P256(_) => Self::ModelSigning,
        }
    }
}

const AFTER_HELP: &str = "A minisign signature is of one file. A model signature (OpenSSF Model Signing 1.0) lists every file of a folder; \
    `.git*` at its top and the signature itself are left out. Both can be checked with other programs: \
    minisign 0.11, model-signing 1.1.1.\n\n\
    With --inside the signature is a part of the model, where `apr verify`, `apr predict --signer` and `apr embed --signer` \
    look for it. It covers header, metadata and payload.\n\n\
    Examples:\n  apr sign model.safetensors --key publisher.key --comment 'version 1.2'\n  \
    apr sign checkpoint --key publisher.pem\n  \
    apr sign model.apr --inside -o signed.apr --key publisher.key\n  \
    apr sign owner.key.pub --key publisher.key --comment 'apr inference key'\n\n\
    Exit codes: 0 success, 2 SIG exists or does not fit the key, 3 no key or nothing to sign, 4 a symbolic link in the \
    folder, or signed already, 5 I/O, 6 no place for a signature inside, or encrypted.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// Files of any format; with a P-256 key also folders.
    #[arg(value_name = "PATH", required = true)]
    inputs: Vec<PathBuf>,
    /// The signing key: Ed25519 for minisign signatures, P-256 (PEM) for model signatures.
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
    /// The signature, if there is one PATH [default: PATH.minisig; PATH.sig, of a folder PATH/model.sig]; with --inside the
    /// signed model.
    #[arg(short, long, value_name = "SIG")]
    output: Option<PathBuf>,
    /// Write the .apr model of version 1 with the signature in it, to the file of -o; the key is Ed25519.
    #[arg(long, conflicts_with_all = ["format", "comment", "ignore", "shard_size"])]
    inside: bool,
    /// With --inside: bind the model to this public key for encrypted requests (`apr keygen inference`); the key itself, or its file.
    #[arg(long, value_name = "KEY-OR-FILE", requires = "inside")]
    inference_key: Option<PathBuf>,
    /// What the signature has to be; a key of the other kind is refused.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// minisign: a line that is signed as well [default: file:NAME].
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Model signing: leave this file or folder out; its name below PATH.
    #[arg(long, value_name = "NAME")]
    ignore: Vec<String>,
    /// Model signing: list every SIZE bytes of a file (1GB) instead of whole files.
    #[arg(long, value_name = "SIZE")]
    shard_size: Option<String>,
    #[command(flatten)]
    key_password: KeyPasswordArgs,
    #[command(flatten)]
    force: ForceArg,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    payload: PayloadArgs,
}

/// The signatures that were made.
#[derive(Serialize)]
struct SignReport<'a> {
    format: &'a str,
    fingerprint: String,
    signatures: &'a [Made],
}

impl Report for SignReport<'_> {
    const SCHEMA: &'static str = "apr.sign/1";
}

/// A signature that was made.
#[derive(Serialize)]
struct Made {
    input: String,
    output: String,
    files: u64,
    bytes: u64,
}

/// Runs `apr sign`.
///
/// # Errors
///
/// If the key, a file or the folder cannot be read, or a signature cannot be written. Those written before stay.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    if args.inside {
        return inside::run(args, console);
    }
    if let Some(option) = args.compat.given().or(args.payload.given()) {
        let what = format!("--{option} is for --inside alone");
        return Err(Failure::new(CODE_USAGE, what).help("add --inside, or leave the option out"));
    }
    let Args { inputs, output, .. } = args;
    if output.is_some() && inputs.len() > 1 {
        return Err(Failure::new(CODE_USAGE, "-o names one signature, and there are several files"));
    }
    let key = load_signer(&args.key, &args.key_password)?;
    let format = Format::of(&key);
    refuse_misfits(args, format)?;
    let method = match &args.shard_size {
        Some(size) => Method::Shards(shard_size(size)?),
        None => Method::Files,
    };
    let options = SignOptions { method, ignore: args.ignore.clone(), ..SignOptions::default() };
    let overwrite = args.force.overwrite();

    let target = |input: &PathBuf| output.clone().unwrap_or_else(|| default_place(input, format));
    // Refused before anything is read or written.
    output::check_inputs(inputs)?;
    if format == Format::Minisign
        && let Some(folder) = inputs.iter().find(|input| input.is_dir())
    {
        return Err(refused_folder(folder));
    }
    inputs.iter().try_for_each(|input| {
        let output = target(input);
        output::keep_inputs(&output, inputs.iter().chain([&args.key]))?;
        output::check_file(&output, overwrite)
    })?;
    let mut made = Vec::new();
    for input in inputs {
        let output = target(input);
        let (n_files, n_bytes) = match &key {
            Signer::Ed25519(key) => minisign(input, &output, key, args.comment.as_ref(), overwrite, console)?,
            Signer::P256(key) => {
                let seen = Mutex::new(0);
                let manifest = watched(console, "hashing", &seen, |watch| {
                    Manifest::of(input, Some(&output), &options, watch)
                })
                .map_err(of_arguments)?;
                output::write_file(&output, Bundle::sign(&manifest, key).to_json().as_bytes(), overwrite)?;
                (manifest.files().len() as u64, seen.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
        };
        if !console.is_json() {
            let files = human::plural(n_files, "file");
            console.wrote(format_args!(
                "{}: {} signature of {files}, {}",
                escape::path(&output),
                format.name(),
                human::bytes(n_bytes)
            ));
        }
        made.push(Made {
            input: report::path(input).into_owned(),
            output: report::path(&output).into_owned(),
            files: n_files,
            bytes: n_bytes,
        });
    }
    if console.is_json() {
        let fingerprint = key.fingerprint().to_string();
        console.report(&SignReport { format: format.name(), fingerprint, signatures: &made })?;
    }
    Ok(Exit::Success)
}

/// A name that no list can hold can only come from `--ignore`: what the folder holds is named here.
fn of_arguments(failure: Failure) -> Failure {
    match failure.code() {
        "mf-name" => {
            Failure::new(CODE_USAGE, "--ignore takes names below the folder, with `/` between folders")
        }
        _ => failure,
    }
}

/// Refuses options that the kind of signature has no place for.
fn refuse_misfits(args: &Args, format: Format) -> Result<(), Failure> {
    let key = match format {
        Format::Minisign => "an Ed25519 key makes minisign signatures",
        Format::ModelSigning => "a P-256 key makes model signatures",
    };
    let other = match format {
        Format::Minisign => "for model signatures, use a P-256 key: `apr keygen sign-p256` makes one",
        Format::ModelSigning => "for minisign signatures, use an Ed25519 key: `apr keygen sign` makes one",
    };
    let refused = |what: String| Err(Failure::new(CODE_USAGE, what).because(key).help(other));
    if let Some(wanted) = args.format.filter(|wanted| *wanted != format) {
        return refused(format!("the key is not one for the format {}", wanted.name()));
    }
    let misfits: &[(&str, bool)] = match format {
        Format::Minisign => &[("ignore", !args.ignore.is_empty()), ("shard-size", args.shard_size.is_some())],
        Format::ModelSigning => &[("comment", args.comment.is_some())],
    };
    match misfits.iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => {
            refused(format!("--{name} has no place in a signature of the format {}", format.name()))
        }
        None => Ok(()),
    }
}

fn refused_folder(folder: &Path) -> Failure {
    Failure::new(CODE_USAGE, "minisign signatures are of files, and this is a folder")
        .in_file(folder)
        .help("sign its files, or sign the folder with a P-256 key, which `apr keygen sign-p256` makes")
}

fn minisign(
    input: &Path,
    output: &Path,
    key: &apr_crypto::minisign::SecretKey,
    comment: Option<&String>,
    overwrite: Overwrite,
    console: &Console,
) -> Result<(u64, u64), Failure> {
    let comment = match comment {
        Some(comment) => comment.clone(),
        None => {
            let name = input.file_name().unwrap_or_default().to_string_lossy();
            format!("file:{}", escape::escaped(&name))
        }
    };
    let seen = Mutex::new(0);
    let signature =
        watched(console, "hashing", &seen, |watch| sign_file(input, key, &comment, UNTRUSTED, watch))?;
    output::write_file(output, signature.to_string().as_bytes(), overwrite)?;
    Ok((1, seen.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Does work that tells how many bytes it has read, counts them, and shows a progress line.
///
/// # Errors
///
/// Those of the work.
pub(crate) fn watched<T>(
    console: &Console,
    label: &'static str,
    seen: &Mutex<u64>,
    work: impl FnOnce(apr_manifest::Watch<'_>) -> Result<T, apr_manifest::Error>,
) -> Result<T, Failure> {
    let progress: Mutex<Progress> = Mutex::new(console.progress(label, 0));
    let watch = |now: u64, total: u64| {
        *seen.lock().unwrap_or_else(PoisonError::into_inner) += now;
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.expect(total);
        progress.advance(usize::try_from(now).unwrap_or(usize::MAX));
    };
    Ok(work(&watch)?)
}

fn shard_size(text: &str) -> Result<NonZeroU64, Failure> {
    NonZeroU64::new(parse_size(text)?)
        .ok_or_else(|| Failure::new(CODE_USAGE, "a shard has at least one byte"))
}

/// Default path of a signature.
fn default_place(input: &Path, format: Format) -> PathBuf {
    match format {
        Format::Minisign => minisign_path(input),
        Format::ModelSigning => bundle_places(input).swap_remove(0),
    }
}

/// Where a model signature is put and looked for: of a folder in it, then beside it.
pub(crate) fn bundle_places(input: &Path) -> Vec<PathBuf> {
    let beside = || {
        // `folder/` and `..` have no name to add to.
        let whole = input.canonicalize().ok();
        let named = if input.file_name().is_some() { Some(input) } else { whole.as_deref() };
        named.map(|named| {
            let mut name = named.file_name().unwrap_or_default().to_owned();
            name.push(".sig");
            named.with_file_name(name)
        })
    };
    let inside = input.is_dir().then(|| input.join("model.sig"));
    inside.into_iter().chain(beside()).collect()
}
