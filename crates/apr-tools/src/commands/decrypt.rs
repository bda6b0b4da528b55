//! `apr decrypt`: what was encrypted, as it was: an `.apr` model, or what is inside a sealed file.

use apr_container::{KeyHint, RawModel, UncheckedSignature, inspect_bytes_with, verify_signature};
use clap::{ArgMatches, Command};

use crate::error::{Exit, Failure};
use crate::input::{self, Format, Rules, Source};
use crate::output::{self, Output, Run};
use crate::secrets::{IdentityArgs, Keys, SignedBy, TrustArgs, key_password_args, refuse_shared_stdin};
use crate::terminal::Console;
use crate::{commands::open, whole_file};

pub(crate) fn command() -> Command {
    Command::new("decrypt")
        .about("Decrypt a model with a recipient's key or a password, and verify its signature")
        .arg(
            input::input_arg()
                .value_name("FILE")
                .help("An encrypted .apr model of version 1 or a sealed file, or `-` for standard input"),
        )
        .arg(output::output_arg("The plain file, or `-` for standard output"))
        .arg(input::compat_arg())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .args(IdentityArgs::args())
        .args(TrustArgs::args())
        .args(key_password_args())
        .after_help(
            "Without an option for it, the password is asked for at the terminal. With --signer, --trusted-keys or \
             --any-signer the signature is verified before anything is decrypted; a signed file is not used unverified \
             unless --allow-unverified says so. Nothing is written unless all of it is as its maker left it. Wrong key, \
             wrong password and damage are one error. Files that other programs encrypted are bound to nothing: --compat \
             opens them. Of a sealed file this is what `apr open` does; a signed one is never opened unverified.\n\n\
             Examples:\n  apr decrypt sold.apr -o bought.apr --identity buyer.key --signer maker.key.pub\n  \
             apr decrypt locked.apr -o unlocked.apr --password-file password.txt\n\n\
             Exit codes: 0 written, 2 OUT exists or no password, 3 not a sound file or key, 4 not decrypted, not \
             verified or not encrypted, 5 I/O, 6 another format, or a recipient's key is needed.",
        )
}

/// Runs `apr decrypt`.
///
/// # Errors
///
/// If the file cannot be read, verified or decrypted; if a key or the password cannot be had; if the output cannot be
/// written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (path, mut rules) = (input::path(matches), input::rules_of(matches));
    let (identity, trust) = (IdentityArgs::from_matches(matches), TrustArgs::from_matches(matches));
    refuse_shared_stdin(identity.takes_stdin(), path)?;
    let output = Output::from_matches(matches, console)?;
    let source = Source::open(path)?;
    if source.format() == Format::Sealed {
        return open::open(&source, matches, console);
    }
    let source =
        whole_file::of_version_1(source, "sealed files and .apr models of version 1 are what is encrypted")?;
    let keys = Keys::of_signers(trust.load()?);
    let bytes = whole_file::read(&source, &rules, keys.trusted().trust(), console)?;
    let refused = |error: apr_container::Error, rules: &Rules| {
        whole_file::refused(error.into(), &bytes, &source, rules)
    };

    // The signature first, then what the file says of itself, then the question for the password.
    let signer = verify_signature(&bytes, keys.trusted().trust(), &rules.apr)
        .map_err(|error| refused(error, &rules))?
        .map(|signer| keys.signed_by(signer));
    if signer.is_some() {
        rules.apr.unchecked_signature = UncheckedSignature::Allow;
    }
    let info = inspect_bytes_with(&bytes, &rules.apr).map_err(|error| refused(error, &rules))?;
    if !info.encrypted {
        let failure = Failure::new("ac-not-encrypted", "the file is not encrypted").in_file(path);
        return Err(failure.help("there is nothing to decrypt: it is read as it is"));
    }
    if info.signed && signer.is_none() && rules.apr.unchecked_signature == UncheckedSignature::Refuse {
        return Err(refused(apr_container::ErrorKind::SignatureUnchecked.into(), &rules));
    }
    if info.key_hint() == Some(KeyHint::Recipient) && !identity.is_given() {
        let failure = Failure::new("ac-encrypted", "the file is encrypted for a recipient, its metadata say");
        return Err(failure.in_file(path).help("open it with the recipient's key: --identity KEYFILE"));
    }
    let keys = keys.with_identity(identity.load(path)?);
    let model =
        RawModel::open(&bytes, &keys.decryption(), &rules.apr).map_err(|error| refused(error, &rules))?.model;
    let file = model.to_vec()?;
    output.write(&file, console)?;

    if info.signed {
        let checked = match &signer {
            Some(signer) => format!("signed {}", signer.by()),
            None => "signed, which nobody has checked".to_owned(),
        };
        console.remark(format_args!("the file was {checked}; the output has no signature"));
    }
    if console.is_json() {
        console.json("apr.decrypt/1", |json| {
            json.field_str("input", &path.to_string_lossy())?;
            json.field_str("output", &output.destination.label().to_string_lossy())?;
            json.field_bool("written", output.run == Run::Write)?;
            json.field_uint("bytes", file.len() as u64)?;
            json.field_bool("was_signed", info.signed)?;
            json.field_opt("signer", signer.as_ref(), SignedBy::write_json)
        })?;
        return Ok(Exit::Success);
    }
    output.tell("not encrypted, not signed", file.len(), console)?;
    Ok(Exit::Success)
}
