//! `apr sign`: a signature beside a file or a folder, or inside a model.

mod inside;

use core::num::NonZeroU64;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use apr_manifest::{Bundle, Manifest, Method, SignOptions, minisign_path, sign_file};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input;
use crate::output::{self, Overwrite};
use crate::report::json::JsonWriter;
use crate::secrets::{PasswordArgs, Signer, key_password_args, load_signer};
use crate::terminal::escape;
use crate::terminal::human;
use crate::terminal::{Console, Progress};

/// What a minisign signature says about itself, for everybody to change.
const UNTRUSTED: &str = "signature by apr";

/// What a signature is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

pub(crate) fn command() -> Command {
    let path = || value_parser!(PathBuf);
    Command::new("sign")
        .about("Put a signature beside a file or a folder, or inside an .apr model")
        .arg(
            Arg::new("input")
                .value_name("PATH")
                .required(true)
                .num_args(1..)
                .value_parser(path())
                .help("Files of any format; with a P-256 key also folders"),
        )
        .arg(
            Arg::new("key")
                .long("key")
                .value_name("KEYFILE")
                .required(true)
                .value_parser(path())
                .help("The signing key: Ed25519 for minisign signatures, P-256 (PEM) for model signatures"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("SIG")
                .value_parser(path())
                .help("The signature, if there is one PATH [default: PATH.minisig; PATH.sig, of a folder PATH/model.sig]; with --inside the signed model"),
        )
        .arg(
            Arg::new("inside")
                .long("inside")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["format", "comment", "ignore", "shard-size"])
                .help("Write the .apr model of version 1 with the signature in it, to the file of -o; the key is Ed25519"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(PossibleValuesParser::new(["minisign", "model-signing"]))
                .help("What the signature has to be; a key of the other kind is refused"),
        )
        .arg(
            Arg::new("comment")
                .long("comment")
                .value_name("TEXT")
                .help("minisign: a line that is signed as well [default: file:NAME]"),
        )
        .arg(
            Arg::new("ignore")
                .long("ignore")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Model signing: leave this file or folder out; its name below PATH"),
        )
        .arg(
            Arg::new("shard-size")
                .long("shard-size")
                .value_name("SIZE")
                .help("Model signing: list every SIZE bytes of a file (1GB) instead of whole files"),
        )
        .args(key_password_args())
        .arg(output::force_arg())
        .arg(input::compat_arg().requires("inside"))
        .arg(input::unverified_arg().requires("inside"))
        .arg(input::trusted_arg().requires("inside"))
        .after_help(
            "A minisign signature is of one file. A model signature (OpenSSF Model Signing 1.0) lists every file of a folder; \
             `.git*` at its top and the signature itself are left out. Both can be checked with other programs: \
             minisign 0.11, model-signing 1.1.1.\n\n\
             With --inside the signature is a part of the model, where `apr verify`, `apr predict --signer` and `apr embed --signer` \
             look for it. It covers header, metadata and payload.\n\n\
             Examples:\n  apr sign model.safetensors --key publisher.key --comment 'version 1.2'\n  \
             apr sign checkpoint --key publisher.pem\n  \
             apr sign model.apr --inside -o signed.apr --key publisher.key\n\n\
             Exit codes: 0 signed, 2 SIG exists or does not fit the key, 3 no key or nothing to sign, 4 a symbolic link in the \
             folder, or signed already, 5 I/O, 6 no place for a signature inside, or encrypted.",
        )
}

/// A signature that was made.
struct Made {
    input: PathBuf,
    output: PathBuf,
    n_files: u64,
    n_bytes: u64,
}

/// Runs `apr sign`.
///
/// # Errors
///
/// If the key, a file or the folder cannot be read, or a signature cannot be written. Those written before stay.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let inputs: Vec<&PathBuf> = matches.get_many("input").into_iter().flatten().collect();
    let key_file: &PathBuf = matches.get_one("key").expect("clap requires --key");
    if matches.get_flag("inside") {
        return inside::run(&inputs, key_file, matches, console);
    }
    let output: Option<&PathBuf> = matches.get_one("output");
    if output.is_some() && inputs.len() > 1 {
        return Err(Failure::new(CODE_USAGE, "-o names one signature, and there are several files"));
    }
    let key = load_signer(key_file, &PasswordArgs::of_keys(matches))?;
    let format = Format::of(&key);
    refuse_misfits(matches, format)?;
    let comment: Option<&String> = matches.get_one("comment");
    let method = match matches.get_one::<String>("shard-size") {
        Some(size) => Method::Shards(shard_size(size)?),
        None => Method::Files,
    };
    let ignore = matches.get_many("ignore").into_iter().flatten().cloned().collect();
    let options = SignOptions { method, ignore, ..SignOptions::default() };
    let overwrite = output::overwrite(matches);

    let target = |input: &PathBuf| output.cloned().unwrap_or_else(|| default_place(input, format));
    // Refused before anything is read.
    inputs.iter().try_for_each(|input| output::check_file(&target(input), overwrite))?;
    let mut made = Vec::new();
    for input in inputs {
        let output = target(input);
        let (n_files, n_bytes) = match &key {
            Signer::Ed25519(key) => minisign(input, &output, key, comment, overwrite, console)?,
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
        made.push(Made { input: input.clone(), output, n_files, n_bytes });
    }
    if console.is_json() {
        console.json("apr.sign/1", |json| {
            json.field_str("format", format.name())?;
            json.field_str("fingerprint", &key.fingerprint().to_string())?;
            json.key("signatures")?;
            json.array()?;
            made.iter().try_for_each(|made| made.write_json(json))?;
            json.end_array()
        })?;
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
fn refuse_misfits(matches: &ArgMatches, format: Format) -> Result<(), Failure> {
    let key = match format {
        Format::Minisign => "an Ed25519 key makes minisign signatures",
        Format::ModelSigning => "a P-256 key makes model signatures",
    };
    let refused = |what: String| Err(Failure::new(CODE_USAGE, what).because(key));
    if let Some(wanted) = matches.get_one::<String>("format").filter(|wanted| *wanted != format.name()) {
        return refused(format!("the key is not one for the format {wanted}"));
    }
    let misfits: &[&str] = match format {
        Format::Minisign => &["ignore", "shard-size"],
        Format::ModelSigning => &["comment"],
    };
    match misfits.iter().find(|name| matches.contains_id(name)) {
        Some(name) => {
            refused(format!("--{name} has no place in a signature of the format {}", format.name()))
        }
        None => Ok(()),
    }
}

fn minisign(
    input: &Path,
    output: &Path,
    key: &apr_crypto::minisign::SecretKey,
    comment: Option<&String>,
    overwrite: Overwrite,
    console: &Console,
) -> Result<(u64, u64), Failure> {
    if input.is_dir() {
        return Err(Failure::new(CODE_USAGE, "minisign signatures are of files, and this is a folder")
            .in_file(input)
            .help("sign its files, or sign the folder with a P-256 key"));
    }
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
    NonZeroU64::new(human::parse_size(text)?)
        .ok_or_else(|| Failure::new(CODE_USAGE, "a shard has at least one byte"))
}

/// Where a signature goes if nobody says where.
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

impl Made {
    fn write_json<W: io::Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object()?;
        json.field_str("input", &self.input.to_string_lossy())?;
        json.field_str("output", &self.output.to_string_lossy())?;
        json.field_uint("files", self.n_files)?;
        json.field_uint("bytes", self.n_bytes)?;
        json.end_object()
    }
}
