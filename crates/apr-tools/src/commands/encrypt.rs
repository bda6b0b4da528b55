//! `apr encrypt`: an `.apr` model for one recipient or under a password; every other file, or for several, as `apr seal` does it.

use apr_container::{Metadata, Protection};
use apr_crypto::{OsRandom, Trust};
use clap::{ArgMatches, Command};

use crate::error::{CODE_FOREIGN_FORMAT, CODE_USAGE, Exit, Failure};
use crate::input::{self, Format, Source};
use crate::output::{self, Output, Run};
use crate::secrets::{Audience, RecipientArgs, SigningArgs, key_password_args, refuse_shared_stdin};
use crate::terminal::Console;
use crate::{commands::seal, whole_file};

/// What to do with a file that is sealed already.
const SEALED: &str =
    "`apr rekey` changes for whom a sealed file is encrypted; `apr open` gives back what is inside";

pub(crate) fn command() -> Command {
    Command::new("encrypt")
        .about("Encrypt a model for recipients or under a password, and sign it")
        .arg(
            input::input_arg()
                .value_name("MODEL")
                .help("A file of any format, or `-` for standard input"),
        )
        .arg(output::output_arg("The encrypted file; `-` for standard output, which a sealed file cannot be"))
        .arg(input::compat_arg())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .args(RecipientArgs::args())
        .args(SigningArgs::args())
        .args(key_password_args())
        .after_help(
            "An .apr model of version 1 stays one if it is for one recipient or under a password: the payload is encrypted \
             (AES-256-GCM), whatever type of model it is, and nothing of it is decoded. Header and metadata stay readable for \
             everybody, and are bound to the payload: who opens the file learns of every change. Such a file opens in aprender \
             0.10 to 0.72 as well. Files of every other format, and of several recipients, become sealed files, as `apr seal` \
             makes them with more options. `apr decrypt` opens both. With --sign, everybody who has the signer's public key \
             can check the file without opening it.\n\n\
             Examples:\n  apr encrypt model.apr -o order.apr --recipient buyer.key.pub --sign maker.key\n  \
             apr encrypt model.apr -o secret.apr --password-file password.txt\n  \
             apr encrypt model.safetensors -o order.sealed --recipient buyer.key.pub\n\n\
             Exit codes: 0 written, 2 OUT exists, no recipient or no password, 3 not a sound file or key, 4 damaged, \
             signed or a key that others can read, 5 I/O, 6 encrypted already.",
        )
}

/// Runs `apr encrypt`.
///
/// # Errors
///
/// If the model cannot be read, or is protected already; if a key or the password cannot be had; if the
/// output cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (path, rules) = (input::path(matches), input::rules_of(matches));
    let (recipients, signing) = (RecipientArgs::from_matches(matches), SigningArgs::from_matches(matches));
    refuse_shared_stdin(recipients.takes_stdin() || signing.takes_stdin(), path)?;
    let output = Output::from_matches(matches, console)?;
    if !recipients.is_given() {
        return Err(Failure::new(CODE_USAGE, "for whom is the file to be encrypted?").help(
            "name --recipient KEY, or take a password: --ask-password, --password-file, --password-fd",
        ));
    }
    let source = Source::open(path)?;
    match source.format() {
        Format::AprV1 if recipients.count() <= 1 => {}
        Format::Sealed => {
            let failure =
                Failure::new(CODE_FOREIGN_FORMAT, "this is a sealed file, encrypted or signed already");
            return Err(failure.in_file(path).help(SEALED));
        }
        format => {
            if format == Format::AprV1 {
                console.remark("an .apr file has one recipient: for several, the output is a sealed file");
            }
            return seal::seal(source, matches, console);
        }
    }
    let bytes = whole_file::read(&source, &rules, Trust::NoSignature, console)?;
    let model = whole_file::open_plain(&bytes, &source, &rules).map_err(already_protected)?;
    let was_signed = apr_container::inspect_bytes_with(&bytes, &rules.with_unchecked_signatures().apr)
        .is_ok_and(|info| info.signed);
    drop(bytes);

    let signer = signing.load()?;
    let audience = recipients.load(output.destination.label())?;
    let mut protection = Protection::default();
    let (mut mode, mut recipient) = ("password", None);
    match &audience {
        Some(Audience::Password(password)) => protection = protection.with_password(password),
        // One: several are sealed.
        Some(Audience::Recipients(keys)) => {
            for key in keys {
                protection = protection.for_recipient(key);
                (mode, recipient) = ("recipient", Some(key.fingerprint().to_string()));
            }
        }
        None => {}
    }
    if let Some(signer) = &signer {
        protection = protection.signed_by(signer);
    }
    let file = model.to_vec_protected(&protection, &mut OsRandom)?;
    output.write(&file, console)?;

    let signer = signer.map(|key| key.verifying_key().fingerprint().to_string());
    if was_signed {
        console.remark("the signature of the input is not in the output: it was of other bytes");
    }
    if tells_much(&model.metadata) {
        console.remark("the metadata stay readable for everybody: `apr inspect` shows what they say");
    }
    if console.is_json() {
        console.json("apr.encrypt/1", |json| {
            json.field_str("input", &path.to_string_lossy())?;
            json.field_str("output", &output.destination.label().to_string_lossy())?;
            json.field_bool("written", output.run == Run::Write)?;
            json.field_uint("bytes", file.len() as u64)?;
            json.field_str("mode", mode)?;
            json.field_opt_str("recipient", recipient.as_deref())?;
            json.field_opt_str("signer", signer.as_deref())
        })?;
        return Ok(Exit::Success);
    }
    let whom = recipient.map_or_else(|| "under a password".to_owned(), |name| format!("for {name}"));
    let by = signer.map(|name| format!(", signed by {name}")).unwrap_or_default();
    output.tell(&format!("encrypted {whom}{by}"), file.len(), console)?;
    Ok(Exit::Success)
}

fn already_protected(failure: Failure) -> Failure {
    match failure.code() {
        "ac-encrypted" => failure.help("it is encrypted already: `apr decrypt` it first"),
        "ac-signed" => failure.help(
            "the signature is of the file as it is and would be lost: add --allow-unverified, and --sign to make a new one",
        ),
        _ => failure,
    }
}

/// Whether the metadata say more than when and for what the file was made.
fn tells_much(metadata: &Metadata) -> bool {
    metadata.description.is_some()
        || metadata.training.is_some()
        || metadata.model_card.is_some()
        || !metadata.hyperparameters.is_empty()
        || !metadata.metrics.is_empty()
        || !metadata.custom.is_empty()
}
