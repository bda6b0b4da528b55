//! `apr keygen`: a new key, or one of another program, as a key file.

use alloc::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use apr_crypto::inference::service::SIGNED_KEY_COMMENT;
use apr_crypto::{Argon2Cost, OsRandom, PublicKey, RecipientSecret, SecretKey, SigningKey, p256};
use clap::ValueEnum;
use serde::Serialize;

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::interruption;
use crate::output::{self, Overwrite};
use crate::report::{self, Report};
use crate::secrets::{KeyPasswordArgs, PasswordArgs, Purpose, keep_secrets, load_secret};
use crate::terminal::Console;
use crate::terminal::escape;

/// What keys of P-256 are called here and in JSON.
pub(crate) const SIGN_P256: &str = "sign-p256";

const AFTER_HELP: &str = "FILE is created for its owner alone (mode 0600) and never replaces anything. FILE.pub may be given to \
    anyone; so may the fingerprint, which two people can compare by phone. With a password option, \
    FILE is of use only with that password. Nothing secret is printed. Keep a copy of FILE where it is safe: \
    without it, what was encrypted for it stays closed.\n\n\
    Examples:\n  apr keygen encrypt -o my.key --comment 'Alice, laptop'\n  \
    apr keygen sign -o team.key --password-file password.txt\n  \
    apr keygen sign -o imported.key --from ed25519.pem\n  \
    apr keygen inference -o owner.key\n\n\
    Exit codes: 0 success, 2 a file exists or the password cannot be used, 3 not a key of that kind (--from), 4 \
    others can read it, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// encrypt: a recipient's key (X25519); inference: the same for encrypted requests to a model; sign: a signer's key (Ed25519);
    /// sign-p256: one for model signatures of files and folders (ECDSA over P-256, as PEM).
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// The new secret file; the public key goes to FILE.pub.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A line for people, in both files: whose key it is, what for.
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// Take the key of this file (PEM, minisign's, or ours) instead of generating one.
    #[arg(long, value_name = "KEYFILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    key_password: KeyPasswordArgs,
}

/// What a key is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Encrypt,
    Inference,
    Sign,
    #[value(name = SIGN_P256)]
    SignP256,
}

/// A new pair.
#[derive(Serialize)]
struct KeygenReport<'a> {
    file: Cow<'a, str>,
    public_file: Cow<'a, str>,
    kind: &'a str,
    locked: bool,
    public_key: &'a str,
    fingerprint: &'a str,
}

impl Report for KeygenReport<'_> {
    const SCHEMA: &'static str = "apr.keygen/1";
}

/// Runs `apr keygen`.
///
/// # Errors
///
/// If a file exists or cannot be written, there is no randomness or no password, or the key to import is none.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let path = &args.output;
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "a secret key is not written to standard output"));
    }
    keep_secrets();
    let public_path = beside(path);
    for path in [path, &public_path] {
        // `--force` does not apply: files for a lost key cannot be opened any more.
        output::check_file(path, Overwrite::Refuse)
            .map_err(|failure| failure.help("keys are never replaced: choose another name"))?;
    }
    if args.kind == Kind::SignP256 {
        return p256_pair(args, path, &public_path, console);
    }
    let is_signing = args.kind == Kind::Sign;
    let key = match &args.from {
        Some(from) => imported(from, is_signing, &args.key_password)?,
        None if is_signing => SecretKey::from(SigningKey::generate(&mut OsRandom)?),
        None => SecretKey::from(RecipientSecret::generate(&mut OsRandom)?),
    };
    let public = key.public();
    let comment = args.comment.as_deref();
    // Checked before it is used.
    let public_text = public.to_file_text(comment.unwrap_or_default())?;
    let secret_comment = comment.map_or_else(|| format!("public key: {public}"), str::to_owned);
    let is_locked = args.password.is_given();
    let locked = match is_locked {
        true => {
            let password = args.password.read(&path.to_string_lossy(), Purpose::Lock)?;
            Some(key.lock(&mut OsRandom, &password, &Argon2Cost::RFC_9106)?)
        }
        false => None,
    };
    write_pair(
        path,
        &public_path,
        || match &locked {
            Some(locked) => Ok(locked.create_file(path, &secret_comment)?),
            None => Ok(key.create_file(path, &secret_comment)?),
        },
        || write_public(&public_path, &public_text),
    )?;
    let made = Made {
        kind: kind(&public),
        public: public.to_string(),
        fingerprint: fingerprint(&public),
        is_locked,
    };
    print(path, &public_path, &made, console)?;
    if args.kind == Kind::Inference {
        let public = escape::path(&public_path);
        console.remark(format_args!(
            "next: `apr sign MODEL --inside --inference-key {public} --key SIGNER -o OUT` binds a model to the key, and \
             `apr sign {public} --key SIGNER --comment '{SIGNED_KEY_COMMENT}'` lets `apr serve` offer the key signed"
        ));
    }
    Ok(Exit::Success)
}

/// A pair as other programs keep it: PEM, which knows neither our passwords nor comments.
fn p256_pair(args: &Args, path: &Path, public_path: &Path, console: &mut Console) -> Result<Exit, Failure> {
    if args.password.is_given() || args.comment.is_some() {
        return Err(Failure::new(CODE_USAGE, "a P-256 key is kept as PEM, without password and comment")
            .help("leave the option out; the file is its owner's alone"));
    }
    let key = match &args.from {
        Some(from) => p256::SigningKey::open_file(from)?,
        None => p256::SigningKey::generate(&mut OsRandom)?,
    };
    let public = key.verifying_key();
    write_pair(path, public_path, || Ok(key.create_file(path)?), || Ok(public.create_file(public_path)?))?;
    let made = Made {
        kind: SIGN_P256,
        public: public.to_pem(),
        fingerprint: public.fingerprint().to_string(),
        is_locked: false,
    };
    print(path, public_path, &made, console)?;
    Ok(Exit::Success)
}

/// Writes both files or none.
fn write_pair(
    path: &Path,
    public_path: &Path,
    write_secret: impl FnOnce() -> Result<(), Failure>,
    write_public: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    interruption::in_place(&[path, public_path], || {
        write_secret()?;
        write_public().inspect_err(|_| {
            // It is not in use yet; half a pair would be in the way of the next try.
            let _ = fs::remove_file(path);
        })
    })
}

/// The report of a new key pair.
struct Made {
    kind: &'static str,
    /// The line, or the PEM.
    public: String,
    fingerprint: String,
    is_locked: bool,
}

fn write_public(path: &Path, text: &str) -> Result<(), Failure> {
    output::write_file(path, text.as_bytes(), Overwrite::Refuse)
}

/// `FILE.pub`.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".pub");
    name.into()
}

fn imported(path: &Path, is_signing: bool, password: &KeyPasswordArgs) -> Result<SecretKey, Failure> {
    let key = load_secret(path, password)?.key;
    let checked = match is_signing {
        true => key.into_signing().map(SecretKey::from),
        false => key.into_recipient().map(SecretKey::from),
    };
    checked.map_err(|error| Failure::from(error).in_file(path))
}

fn print(path: &Path, public_path: &Path, made: &Made, console: &mut Console) -> Result<(), Failure> {
    let Made { kind, public, fingerprint, is_locked } = made;
    if console.is_json() {
        return console.report(&KeygenReport {
            file: report::path(path),
            public_file: report::path(public_path),
            kind,
            locked: *is_locked,
            public_key: public,
            fingerprint,
        });
    }
    console.text(|out, _| match public.contains('\n') {
        true => write!(out, "fingerprint: {fingerprint}\n{public}"),
        false => writeln!(out, "public key:  {public}\nfingerprint: {fingerprint}"),
    })?;
    let (file, public_file) = (escape::path(path), escape::path(public_path));
    console.note(format_args!(
        "wrote {file} (secret: keep it, and a copy) and {public_file} (public: give it away)"
    ));
    if !is_locked {
        let help = if *kind == SIGN_P256 { "" } else { " (--ask-password)" };
        console.remark(format_args!(
            "the key is not under a password: anyone who can read the file has it{help}"
        ));
    }
    Ok(())
}

/// As JSON and `keygen` call it.
pub(crate) const fn kind(key: &PublicKey) -> &'static str {
    match key {
        PublicKey::Recipient(_) => "encrypt",
        PublicKey::Verifying(_) => "sign",
    }
}

pub(crate) fn fingerprint(key: &PublicKey) -> String {
    match key {
        PublicKey::Recipient(key) => key.fingerprint().to_string(),
        PublicKey::Verifying(key) => key.fingerprint().to_string(),
    }
}
