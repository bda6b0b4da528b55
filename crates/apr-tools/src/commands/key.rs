//! `apr key`: describes a key file without its secret.

use alloc::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use apr_crypto::{PublicKey, minisign, p256};
use serde::Serialize;

use crate::commands::keygen::{SIGN_P256, fingerprint, kind};
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::report::{self, Report};
use crate::secrets::{KeyFile, KeyPasswordArgs, load_any};
use crate::terminal::Console;

const AFTER_HELP: &str = "Examples:\n  apr key show maker.key\n  apr key show maker.key.pub --format pem\n\n\
    Exit codes: 0 success, 2 usage, 3 not a key, 4 others can read a secret file, or it cannot be unlocked, 5 I/O.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: KeyCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeyCommand {
    Show(ShowArgs),
}

const SHOW_AFTER_HELP: &str = "Of a secret key the public half is shown; a locked one has to be unlocked for that. minisign has no \
    recipients' keys, and P-256 keys are PEM alone.\n\n\
    Examples:\n  apr key show maker.key\n  apr key show maker.key --format minisign > minisign.pub\n\n\
    Exit codes: 0 success, 2 usage, 3 not a key, 4 others can read a secret file, or it cannot be unlocked, 5 I/O.";

/// Show the public key and the fingerprint of a key.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_AFTER_HELP)]
struct ShowArgs {
    /// A public key or its file, or the file of a secret key: ours, PEM, or minisign's.
    #[arg(value_name = "KEY-OR-FILE")]
    key: PathBuf,
    /// Print the public key alone, as a file of this format.
    #[arg(long, value_name = "FORMAT")]
    format: Option<KeyText>,
    #[command(flatten)]
    key_password: KeyPasswordArgs,
}

/// A value of `--format`.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum KeyText {
    Apr,
    Pem,
    Minisign,
}

#[derive(Serialize)]
struct KeyReport<'a> {
    file: Cow<'a, str>,
    kind: &'a str,
    secret: bool,
    locked: bool,
    format: &'a str,
    public_key: &'a str,
    fingerprint: &'a str,
    minisign_key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

impl Report for KeyReport<'_> {
    const SCHEMA: &'static str = "apr.key/1";
}

/// Runs `apr key show`.
///
/// # Errors
///
/// If it is no key, cannot be unlocked, or has no such format.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let KeyCommand::Show(args) = &args.command;
    let (path, wanted) = (&args.key, args.format);
    if let Some((public, is_secret)) = p256_key(path) {
        let text = match wanted {
            None => None,
            Some(KeyText::Pem) => Some(public.to_pem()),
            Some(_) => {
                let what = "a P-256 key has no other format than PEM";
                return Err(Failure::new(CODE_USAGE, what).help("take --format pem"));
            }
        };
        let shown = Shown {
            kind: SIGN_P256,
            what: "for model signatures (ECDSA over P-256)",
            format: "pem",
            public: public.to_pem(),
            fingerprint: public.fingerprint().to_string(),
            key_id: None,
            is_secret,
            is_locked: false,
            text,
        };
        shown.print(path, console)?;
        return Ok(Exit::Success);
    }
    let KeyFile { public, format, key_id, is_secret, is_locked } = load_any(path, &args.key_password)?;
    let text = match wanted {
        None => None,
        Some(KeyText::Pem) => Some(public.to_spki_pem()),
        Some(KeyText::Minisign) => Some(in_minisign(&public, key_id)?),
        Some(_) => Some(public.to_file_text("")?),
    };
    let shown = Shown {
        kind: kind(&public),
        what: match &public {
            PublicKey::Recipient(_) => "for encrypting (X25519)",
            PublicKey::Verifying(_) => "for signatures (Ed25519)",
        },
        format: format.name(),
        public: public.to_string(),
        fingerprint: fingerprint(&public),
        key_id: key_id.map(|id| id.to_string()),
        is_secret,
        is_locked,
        text,
    };
    shown.print(path, console)?;
    Ok(Exit::Success)
}

/// The public half of a P-256 key's file, and whether it holds the secret one; `None` for every other file.
fn p256_key(path: &Path) -> Option<(p256::VerifyingKey, bool)> {
    match p256::VerifyingKey::open_file(path) {
        Ok(key) => Some((key, false)),
        Err(_) => Some((p256::SigningKey::open_file(path).ok()?.verifying_key(), true)),
    }
}

/// The report of a key.
struct Shown {
    kind: &'static str,
    what: &'static str,
    format: &'static str,
    public: String,
    fingerprint: String,
    key_id: Option<String>,
    is_secret: bool,
    is_locked: bool,
    /// The requested file.
    text: Option<String>,
}

impl Shown {
    fn print(&self, path: &Path, console: &mut Console) -> Result<(), Failure> {
        let Self { kind, what, public, fingerprint, is_secret, is_locked, .. } = self;
        if console.is_json() {
            return console.report(&KeyReport {
                file: report::path(path),
                kind,
                secret: *is_secret,
                locked: *is_locked,
                format: self.format,
                public_key: public,
                fingerprint,
                minisign_key_id: self.key_id.as_deref(),
                text: self.text.as_deref(),
            });
        }
        let secret = match (is_secret, is_locked) {
            (true, true) => ", secret half under a password",
            (true, false) => ", secret half not under a password",
            _ => "",
        };
        console.text(|out, _| match &self.text {
            Some(text) => out.write_all(text.as_bytes()),
            None if public.contains('\n') => {
                write!(out, "fingerprint: {fingerprint}\nkind:        {what}{secret}\n{public}")
            }
            None => {
                writeln!(
                    out,
                    "public key:  {public}\nfingerprint: {fingerprint}\nkind:        {what}{secret}"
                )
            }
        })
    }
}

fn in_minisign(public: &PublicKey, id: Option<minisign::KeyId>) -> Result<String, Failure> {
    let PublicKey::Verifying(key) = public else {
        return Err(
            Failure::new(CODE_USAGE, "minisign has no keys for encrypting").help("take --format apr or pem")
        );
    };
    let key = match id {
        Some(id) => minisign::PublicKey::new(id, *key),
        None => (*key).into(),
    };
    Ok(key.to_string())
}
