//! `apr decrypt`: restores the content of an encrypted `.apr` model or of a sealed file.

use std::path::PathBuf;

use apr_container::{KeyHint, RawModel, UncheckedSignature, inspect_bytes_with, verify_signature};
use model_file::FileKind;
use serde::Serialize;

use crate::args::{CompatArg, PayloadArgs, WriteArgs};
use crate::error::{CODE_FOREIGN_FORMAT, Exit, Failure};
use crate::input::{Format, Rules, Source};
use crate::report::{Report, Written};
use crate::secrets::{Keys, KeysArgs, SignedBy, refuse_shared_stdin};
use crate::terminal::Console;
use crate::{commands::open, whole_file};

const AFTER_HELP: &str = "Without an option for it, the password is asked for at the terminal. With --signer, --trusted-keys or \
    --any-signer the signature is verified before anything is decrypted; a signed file is not used unverified \
    unless --allow-unverified says so. Nothing is written unless all of it is as its maker left it. Wrong key, \
    wrong password and damage are one error. Files that other programs encrypted are bound to nothing: --compat \
    opens them. Of a sealed file this is what `apr open` does; a signed one is never opened unverified.\n\n\
    Examples:\n  apr decrypt sold.apr -o bought.apr --identity buyer.key --signer maker.key.pub\n  \
    apr decrypt locked.apr -o unlocked.apr --password-file password.txt\n\n\
    Exit codes: 0 success, 2 OUT exists or no password, 3 invalid file or key, 4 not decrypted, not \
    verified or not encrypted, 5 I/O, 6 another format, or a recipient's key is needed.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// An encrypted .apr model of version 1 or a sealed file, or `-` for standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The plain file, or `-` for standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    keys: KeysArgs,
}

/// The report.
#[derive(Serialize)]
struct DecryptReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    was_signed: bool,
    signer: Option<&'a SignedBy>,
}

impl Report for DecryptReport<'_> {
    const SCHEMA: &'static str = "apr.decrypt/1";
}

/// Runs `apr decrypt`.
///
/// # Errors
///
/// If the file cannot be read, verified or decrypted; if a key or the password cannot be had; if the output cannot be
/// written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let (path, mut rules) = (args.input.as_path(), args.payload.apply(args.compat.rules()));
    refuse_shared_stdin(args.keys.takes_stdin(), path)?;
    let output = args.write.output([&args.input], &args.output, console)?;
    let source = Source::open_local(path)?;
    if source.format() == Format::Sealed {
        return open::open(&source, output, None, &args.keys, console);
    }
    refuse_plain(&source)?;
    let source = whole_file::of_version_1(
        source,
        "`apr` decrypts sealed files and encrypted .apr models of version 1",
    )?;
    let keys = Keys::of_signers(args.keys.trust.load()?);
    let bytes = whole_file::read(&source, &rules, keys.trusted().trust(), console)?;
    let refused = |error: apr_container::Error, rules: &Rules| {
        whole_file::refused(error.into(), &bytes, &source, rules)
    };

    // The signature is verified first, then the metadata are read, then the user is asked for the password.
    let signer = verify_signature(&bytes, keys.trusted().trust(), &rules.apr)
        .map_err(|error| refused(error, &rules))?
        .map(SignedBy::from);
    if signer.is_some() {
        rules.apr.unchecked_signature = UncheckedSignature::Allow;
    }
    let info = inspect_bytes_with(&bytes, &rules.apr).map_err(|error| refused(error, &rules))?;
    if !info.encrypted {
        let failure = Failure::new("ac-not-encrypted", "this file is not encrypted").in_file(path);
        return Err(failure.help("there is nothing to decrypt: it is read as it is"));
    }
    if info.signed && signer.is_none() && rules.apr.unchecked_signature == UncheckedSignature::Refuse {
        return Err(refused(apr_container::ErrorKind::SignatureUnchecked.into(), &rules));
    }
    if info.key_hint() == Some(KeyHint::Recipient) && !args.keys.has_identity() {
        let failure = Failure::new("ac-encrypted", "the file is encrypted for a recipient, its metadata say");
        return Err(failure.in_file(path).help("open it with the recipient's key: --identity KEYFILE"));
    }
    let keys = keys.with_identity(args.keys.load_identity(path)?);
    let model =
        RawModel::open(&bytes, &keys.decryption(), &rules.apr).map_err(|error| refused(error, &rules))?;
    let file = model.to_vec()?;
    output.write(&file, console)?;

    if info.signed {
        let checked = match &signer {
            Some(signer) => format!("signed {}", signer.by()),
            None => "signed, and the signature was not verified".to_owned(),
        };
        console.remark(format_args!("the file was {checked}; the output has no signature"));
    }
    if console.is_json() {
        console.report(&DecryptReport {
            file: Written::new(path, output.destination.label(), output.run, file.len() as u64),
            was_signed: info.signed,
            signer: signer.as_ref(),
        })?;
        return Ok(Exit::Success);
    }
    output.tell("not encrypted, not signed", file.len(), console)?;
    Ok(Exit::Success)
}

/// Refuses a model in a format that has no encryption.
fn refuse_plain(source: &Source) -> Result<(), Failure> {
    match source.kind() {
        FileKind::Model(Format::SafeTensors | Format::AprV2 | Format::Gguf) => {
            Err(Failure::new(CODE_FOREIGN_FORMAT, "this file is not encrypted")
                .in_file(source.label())
                .because(format!("it is {}", source.format().title()))
                .help("there is nothing to decrypt: it is read as it is"))
        }
        _ => Ok(()),
    }
}
