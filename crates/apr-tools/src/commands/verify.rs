//! `apr verify`: verifies the signature of a file or folder.

use alloc::borrow::Cow;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use apr_container::{ReadOptions, verify_source};
use apr_crypto::{TrustedKeys, VerifyingKey, minisign};
use apr_manifest::{
    Limits, minisign_path, model_name, read_signature, verify_file_any, verify_model, verify_model_file,
};
use apr_sealed::SealedLimits;
use read_at::ReadAt as _;
use serde::Serialize;

use crate::commands::sign::{bundle_places, watched};
use crate::error::{CODE_NO_SIGNATURE, CODE_NOT_COVERED, CODE_SIGNED_NAME, CODE_USAGE, Exit, Failure};
use crate::input::{Format, Source};
use crate::remote::is_url;
use crate::report::{self, Report};
use crate::secrets::{Verifier, load_verifier};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::{self, plural};

const AFTER_HELP: &str = "An Ed25519 key checks minisign signatures and those inside .apr (version 1) and sealed files, a P-256 key model signatures. A model \
    signature lists the files of a folder: those that were changed, added or taken away are named. A key that came with \
    the file proves nothing about who signed it: get the public key another way.\n\n\
    Examples:\n  apr verify published.safetensors --key publisher.pub\n  \
    apr verify checkpoint --key publisher-p256.pub --signature checkpoint.sig --strict\n\n\
    Exit codes: 0 success, 2 usage, 3 no key, 4 refused, 5 I/O, 6 another kind of signature.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A file of any format, or a folder; or the URL of a file with a signature inside.
    #[arg(value_name = "PATH")]
    input: PathBuf,
    /// The signer's public key: the key itself, or its file (ours, PEM or minisign's).
    #[arg(long, visible_alias = "signer", value_name = "KEY-OR-FILE", group = "trust")]
    key: Option<PathBuf>,
    /// Accept any key of this list, `NAME KEY` a line.
    #[arg(long, value_name = "FILE", group = "trust")]
    trusted_keys: Option<PathBuf>,
    /// Accept the key inside an .apr file without knowing whose it is: that detects corruption and says nothing of its origin.
    #[arg(long, group = "trust")]
    any_signer: bool,
    /// The signature [default: PATH.minisig; PATH.sig, of a folder also PATH/model.sig; or inside an .apr or sealed file].
    #[arg(long, value_name = "SIG", conflicts_with = "any_signer")]
    signature: Option<PathBuf>,
    /// Refuse what is only warned about: a file signed under another name, files in the folder that the signature does not cover.
    #[arg(long)]
    strict: bool,
}

/// What was verified.
#[derive(Serialize)]
struct VerifyReport<'a> {
    input: Cow<'a, str>,
    format: &'a str,
    signature: Option<Cow<'a, str>>,
    signer: Option<&'a str>,
    fingerprint: &'a str,
    trusted: bool,
    comment: Option<&'a str>,
    files: u64,
    bytes: u64,
    not_covered: &'a [String],
    other_name: Option<&'a str>,
}

impl Report for VerifyReport<'_> {
    const SCHEMA: &'static str = "apr.verify/1";
}

/// Whose signature counts.
enum Trust {
    Key(Verifier),
    List(TrustedKeys),
    Anyone,
}

/// What was found to be right.
#[derive(Debug)]
struct Finding {
    /// `minisign`, `model-signing` or `embedded`.
    format: &'static str,
    /// The signature's file; none if it is inside.
    signature: Option<PathBuf>,
    /// The name of the key on the list.
    signer: Option<String>,
    fingerprint: String,
    /// Whether the user said that this key counts.
    is_trusted: bool,
    comment: Option<String>,
    n_files: u64,
    n_bytes: u64,
    not_covered: Vec<String>,
    /// Those of them that are not the signature.
    uncovered: Vec<String>,
    /// What the signer called the file or folder, if it is called otherwise now.
    other_name: Option<String>,
}

/// Runs `apr verify`.
///
/// # Errors
///
/// If there is no signature, it is not that of the key, or the bytes are not the signed ones.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let input = &args.input;
    let trust = match (&args.key, &args.trusted_keys) {
        (Some(key), _) => Trust::Key(load_verifier(key)?),
        (None, Some(list)) => Trust::List(trusted(list)?),
        (None, None) if args.any_signer => Trust::Anyone,
        (None, None) => return Err(no_key(input)),
    };
    let found = check(input, args.signature.as_ref(), &trust, console)?;
    if args.strict {
        found.check_strictly(input)?;
    }
    console.finished("verified");
    if console.is_json() {
        console.report(&found.report(input))?;
    } else {
        console.text(|out, style| {
            writeln!(out, "{}  {}: {}", style.green("verified"), escape::path(input), found.sentence())?;
            found.lines().iter().try_for_each(|line| writeln!(out, "  {line}"))
        })?;
    }
    Ok(Exit::Success)
}

fn no_key(input: &Path) -> Failure {
    Failure::new(CODE_USAGE, "no key is given: whose signature should it be?").in_file(input).help(
        "give the signer's public key, which the signer publishes apart from the file: --key KEY-OR-FILE takes a line or file of \
         `apr`, PEM, or minisign's .pub; --trusted-keys FILE takes a list",
    )
}

fn trusted(list: &Path) -> Result<TrustedKeys, Failure> {
    let keys = TrustedKeys::open_file(list)?;
    if keys.is_empty() {
        return Err(Failure::new("cy-no-key", "the list of trusted keys is empty").in_file(list));
    }
    Ok(keys)
}

fn check(
    input: &Path,
    signature: Option<&PathBuf>,
    trust: &Trust,
    console: &Console,
) -> Result<Finding, Failure> {
    if is_url(input) {
        return remote(input, signature, trust);
    }
    std::fs::metadata(input).map_err(|error| Failure::io("read the file", input, &error))?;
    let beside = Beside::find(input, signature)?;
    let (bundle, minisig) = (beside.bundle.as_deref(), beside.minisig.as_deref());
    match (trust, bundle, minisig) {
        (Trust::Key(Verifier::P256(key)), Some(bundle), _) => model(input, input, bundle, key, console),
        (Trust::Key(Verifier::P256(_)), None, Some(minisig)) => {
            Err(misfit("the signature is minisign's, and the key is a P-256 key", minisig))
        }
        (Trust::Key(_) | Trust::List(_), _, Some(minisig)) => file(input, input, minisig, trust, console),
        (Trust::Key(_) | Trust::List(_) | Trust::Anyone, ..)
            if matches!(Source::peek(input), Format::AprV1 | Format::Sealed) =>
        {
            embedded(input, &Source::open(input)?, trust)
        }
        (Trust::Key(_) | Trust::List(_), Some(bundle), None) => Err(misfit(
            "the signature is a model signature, which needs the P-256 key given with --key",
            bundle,
        )),
        (Trust::Anyone, ..) if bundle.or(minisig).is_some() => {
            Err(Failure::new(CODE_USAGE, "a signature beside a file carries no key: say whose it should be")
                .help("give the signer's public key with --key"))
        }
        _ => Err(no_signature(input)),
    }
}

/// The signature inside the file of a URL.
fn remote(input: &Path, signature: Option<&PathBuf>, trust: &Trust) -> Result<Finding, Failure> {
    let is_beside = || {
        Failure::not_remote(input).help(
            "signatures inside .apr (version 1) and sealed files are verified by URL; for one beside the file, download both first",
        )
    };
    if signature.is_some() {
        return Err(is_beside());
    }
    let source = Source::open(input)?;
    match source.format() {
        Format::AprV1 | Format::Sealed => embedded(input, &source, trust),
        _ => Err(is_beside()),
    }
}

/// Detached signatures of a file or folder.
struct Beside {
    bundle: Option<PathBuf>,
    minisig: Option<PathBuf>,
}

impl Beside {
    /// The one that is named, else those in the usual places.
    fn find(input: &Path, named: Option<&PathBuf>) -> Result<Self, Failure> {
        if let Some(path) = named {
            let (bundle, minisig) = match is_minisign(path)? {
                true => (None, Some(path.clone())),
                false => (Some(path.clone()), None),
            };
            return Ok(Self { bundle, minisig });
        }
        let is_there = |path: &PathBuf| path.symlink_metadata().is_ok();
        Ok(Self {
            bundle: bundle_places(input).into_iter().find(is_there),
            minisig: Some(minisign_path(input)).filter(is_there),
        })
    }
}

/// Verifies the file `bytes`, a copy of the file `input`, by a signature beside that: what the signer called it, if it is
/// called otherwise now.
///
/// # Errors
///
/// If there is no signature, it is not that of the key, or the bytes are not the signed ones.
pub(crate) fn bytes_of(
    input: &Path,
    bytes: &Path,
    signature: Option<&PathBuf>,
    key: &Verifier,
    console: &Console,
) -> Result<Option<String>, Failure> {
    let beside = Beside::find(input, signature)?;
    let found = match (key, beside.bundle, beside.minisig) {
        (Verifier::P256(key), Some(bundle), _) => model(input, bytes, &bundle, key, console),
        (Verifier::Ed25519 { .. }, _, Some(minisig)) => {
            file(input, bytes, &minisig, &Trust::Key(key.clone()), console)
        }
        (_, None, None) => Err(no_signature(input).help(
            "fetch the signature too, or name it with --signature; for one inside the file, use --signer instead of --key",
        )),
        (_, bundle, minisig) => Err(misfit(
            "the signature is of another kind than the key: minisign needs Ed25519, model signing P-256",
            &bundle.or(minisig).unwrap_or_default(),
        )),
    };
    Ok(found?.other_name)
}

/// Verifies a file or folder that was fetched by a list that its server made, as `--strict` does. The name of a folder is the user's own.
///
/// # Errors
///
/// If there is no signature, it is not that of the key, the bytes or the name are not the signed ones, or a file is not covered.
#[cfg(feature = "remote")]
pub(crate) fn fetched(input: &Path, key: &Verifier, console: &Console) -> Result<(), Failure> {
    let mut found = check(input, None, &Trust::Key(key.clone()), console)?;
    if input.is_dir() {
        found.other_name = None;
    }
    found.check_strictly(input)
}

fn misfit(what: &str, signature: &Path) -> Failure {
    Failure::new("cy-key-kind", what).in_file(signature).help(
        "give the signer's other public key: `apr keygen sign` and minisign make Ed25519 keys, for FILE.minisig; `apr keygen sign-p256` makes \
         P-256 keys, for FILE.sig",
    )
}

fn no_signature(input: &Path) -> Failure {
    let failure = Failure::new(CODE_NO_SIGNATURE, "there is no signature").in_file(input);
    if is_url(input) {
        return failure
            .because("there is none inside the file")
            .help("signatures beside a URL are not looked for: download both, and verify the file");
    }
    let places: Vec<String> = signature_places(input).map(|place| escape::path(&place)).collect();
    failure.because(format!("looked for {}", places.join(", ")))
}

/// A bundle with its list, over a file or a folder, or over the file `bytes` that is a copy of it.
fn model(
    input: &Path,
    bytes: &Path,
    signature: &Path,
    key: &apr_crypto::p256::VerifyingKey,
    console: &Console,
) -> Result<Finding, Failure> {
    let verified = watched(console, "hashing", &Mutex::new(0), |watch| match bytes == input {
        true => verify_model(input, signature, key, &Limits::default(), watch),
        false => verify_model_file(bytes, &model_name(input), signature, key, &Limits::default(), watch),
    })?;
    Ok(Finding {
        format: "model-signing",
        signature: Some(signature.to_owned()),
        signer: None,
        fingerprint: key.fingerprint().to_string(),
        is_trusted: true,
        comment: None,
        n_files: verified.manifest().files().len() as u64,
        n_bytes: verified.n_bytes(),
        not_covered: verified.not_covered().to_vec(),
        uncovered: verified.uncovered().map(str::to_owned).collect(),
        other_name: other_name(input, Some(verified.manifest().name())),
    })
}

/// A minisign signature of a file, whose bytes are in the file `bytes`.
fn file(
    input: &Path,
    bytes: &Path,
    path: &Path,
    trust: &Trust,
    console: &Console,
) -> Result<Finding, Failure> {
    if input.is_dir() {
        let what = "minisign signatures are of files, and this is a folder";
        return Err(Failure::new(CODE_USAGE, what).in_file(input).help("verify its files one by one"));
    }
    let signature = read_signature(path)?;
    // A key that has no id of minisign's takes that of the signature: who signed is told by the key alone.
    let with_id = |key: &VerifyingKey, id: Option<minisign::KeyId>| {
        minisign::PublicKey::new(id.unwrap_or_else(|| signature.key_id()), *key)
    };
    let (keys, names): (Vec<_>, Vec<_>) = match trust {
        Trust::Key(Verifier::Ed25519 { key, id }) => (vec![with_id(key, *id)], vec![None]),
        Trust::List(list) => {
            list.iter().map(|(name, key)| (with_id(key, None), Some(name.to_owned()))).unzip()
        }
        Trust::Key(Verifier::P256(_)) | Trust::Anyone => (Vec::new(), Vec::new()),
    };
    let (idx, verified) = watched(console, "hashing", &Mutex::new(0), |watch| {
        verify_file_any(bytes, &keys, &signature, watch)
    })?;
    let fingerprint = keys.get(idx).map(|key| key.key().fingerprint().to_string()).unwrap_or_default();
    Ok(Finding {
        format: "minisign",
        signature: Some(path.to_owned()),
        signer: names.into_iter().nth(idx).flatten(),
        fingerprint,
        is_trusted: true,
        comment: Some(verified.trusted_comment().to_owned()),
        n_files: 1,
        n_bytes: verified.n_bytes(),
        not_covered: Vec::new(),
        uncovered: Vec::new(),
        other_name: other_name(input, verified.signed_name()),
    })
}

/// The signature inside an `.apr` file of version 1 or a sealed file. Nothing of it is decrypted or decoded.
fn embedded(input: &Path, source: &Source, trust: &Trust) -> Result<Finding, Failure> {
    let accepted = match trust {
        Trust::Key(Verifier::Ed25519 { key, .. }) => apr_crypto::Trust::Key(key),
        Trust::Key(Verifier::P256(_)) => {
            return Err(misfit(
                "the signature inside is an Ed25519 key's, and the key is a P-256 key",
                input,
            ));
        }
        Trust::List(list) => apr_crypto::Trust::AnyOf(list),
        Trust::Anyone => apr_crypto::Trust::Anyone,
    };
    let refused = |error: apr_container::Error| match error.kind() {
        apr_container::ErrorKind::NotSigned => no_signature(input),
        _ => Failure::from(error).in_file(input),
    };
    let bytes = source.bytes()?;
    let signer = if source.format() == Format::Sealed {
        let verified = apr_sealed::verify(&bytes, accepted, &SealedLimits::default());
        Some(verified.map_err(|error| match error.kind() {
            apr_sealed::ErrorKind::NotSigned => no_signature(input),
            _ => Failure::from(error).in_file(input),
        })?)
    } else {
        verify_source(&bytes, accepted, &ReadOptions::STRICT).map_err(refused)?
    };
    let signer = signer.ok_or_else(|| no_signature(input))?;
    Ok(Finding {
        format: "embedded",
        signature: None,
        signer: signer.name().map(str::to_owned),
        fingerprint: signer.key().fingerprint().to_string(),
        is_trusted: signer.is_trusted(),
        comment: None,
        n_files: 1,
        n_bytes: bytes.total_len(),
        not_covered: Vec::new(),
        uncovered: Vec::new(),
        other_name: None,
    })
}

/// The signature at the path where `apr verify` looks for one, beside a file or in a folder.
pub(crate) fn signature_beside(input: &Path) -> Option<PathBuf> {
    signature_places(input).find(|place| place.is_file())
}

/// Where `apr verify` looks for a signature that is not named.
pub(crate) fn signature_places(input: &Path) -> impl Iterator<Item = PathBuf> {
    core::iter::once(minisign_path(input)).chain(bundle_places(input))
}

/// The name under which a file or folder was signed, unless it has that name: the one that was given, since a link can lead to any file
/// of the same signer, or that one escaped as in the comments that `apr sign` writes.
fn other_name(input: &Path, signed: Option<&str>) -> Option<String> {
    let name =
        input.file_name().map_or_else(|| model_name(input), |name| name.to_string_lossy().into_owned());
    let is_its = |signed: &&str| name == *signed || escape::escaped(&name) == *signed;
    signed.filter(|signed| !is_its(signed)).map(str::to_owned)
}

/// Whether a signature's file is minisign's, by its first letter: the other kind is a JSON object.
fn is_minisign(path: &Path) -> Result<bool, Failure> {
    let file = durable_file::open_regular(path, u64::MAX)?.into_file();
    let mut first = Vec::new();
    file.take(64).read_to_end(&mut first).map_err(|error| Failure::io("read the file", path, &error))?;
    Ok(first.trim_ascii_start().first() != Some(&b'{'))
}

impl Finding {
    /// Refuses what is otherwise a warning.
    fn check_strictly(&self, input: &Path) -> Result<(), Failure> {
        if let Some(name) = &self.other_name {
            let what = "the file or folder was signed under another name";
            return Err(Failure::new(CODE_SIGNED_NAME, what).in_file(input).because(format!("as {name}")));
        }
        if !self.uncovered.is_empty() {
            let what = "the folder holds files that the signature does not cover";
            let names = escape::some_of(&self.uncovered);
            return Err(Failure::new(CODE_NOT_COVERED, what).in_file(input).because(names));
        }
        Ok(())
    }

    /// Whose signature it is, as far as it is known.
    fn sentence(&self) -> String {
        let Self { format, fingerprint, .. } = self;
        let kind = match *format {
            "model-signing" => "P-256 key ",
            _ => "key ",
        };
        match (&self.signer, self.is_trusted) {
            (Some(name), _) => format!("signed by {} ({kind}{fingerprint})", escape::escaped(name)),
            (None, true) => format!("signed by the {kind}{fingerprint}"),
            (None, false) => format!("valid, but {kind}{fingerprint} is not a key you trust"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let what = match self.format {
            "model-signing" => format!("{}, {}", plural(self.n_files, "file"), human::bytes(self.n_bytes)),
            "minisign" => human::bytes(self.n_bytes),
            _ => format!("{}: header, metadata, content", human::bytes(self.n_bytes)),
        };
        lines.push(format!("signed:       {what}"));
        match &self.signature {
            Some(path) => lines.push(format!("signature:    {} ({})", escape::path(path), self.format)),
            None => lines.push("signature:    inside the file".to_owned()),
        }
        if let Some(comment) = &self.comment {
            lines.push(format!("comment:      {}", escape::cut(comment, 200)));
        }
        if !self.not_covered.is_empty() {
            lines.push(format!("not covered:  {}", escape::some_of(&self.not_covered)));
        }
        if let Some(name) = &self.other_name {
            lines.push(format!("warning:      signed under another name: {}", escape::cut(name, 200)));
        }
        lines
    }

    fn report<'a>(&'a self, input: &'a Path) -> VerifyReport<'a> {
        VerifyReport {
            input: report::path(input),
            format: self.format,
            signature: self.signature.as_deref().map(report::path),
            signer: self.signer.as_deref(),
            fingerprint: &self.fingerprint,
            trusted: self.is_trusted,
            comment: self.comment.as_deref(),
            files: self.n_files,
            bytes: self.n_bytes,
            not_covered: &self.not_covered,
            other_name: self.other_name.as_deref(),
        }
    }
}
