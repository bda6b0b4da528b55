//! `apr encrypt`: an `.apr` model for one recipient, or under a password.

use apr_container::{Metadata, Protection, Trust};
use apr_crypto::OsRandom;
use clap::{ArgMatches, Command};

use crate::console::Console;
use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{self, Rules};
use crate::output::{self, Output, Run};
use crate::secrets::{Audience, RecipientArgs, SigningArgs, key_password_args, refuse_shared_stdin};
use crate::whole_file;

/// What helps where this command does not.
const SEAL: &str = "`apr seal` encrypts files of every format and size, for any number of recipients";

pub(crate) fn command() -> Command {
    Command::new("encrypt")
        .about("Encrypt an .apr model for a recipient or under a password, and sign it")
        .arg(
            input::input_arg()
                .value_name("MODEL")
                .help("An .apr model of version 1, of any type, or `-` for standard input"),
        )
        .arg(output::output_arg("The encrypted file, or `-` for standard output"))
        .arg(input::compat_arg())
        .arg(output::force_arg())
        .arg(output::dry_run_arg())
        .arg(input::unverified_arg())
        .arg(input::trusted_arg())
        .args(RecipientArgs::args())
        .args(SigningArgs::args())
        .args(key_password_args())
        .after_help(
            "The payload is encrypted (AES-256-GCM), whatever type of model it is: nothing of it is decoded. Header and \
             metadata stay readable for everybody, and are bound to the payload: who opens the file learns of every \
             change. With --sign, everybody who has the signer's public key can check that without opening. The file \
             opens in aprender 0.10 to 0.72 as well. Files of other formats, and several recipients: apr seal.\n\n\
             Examples:\n  apr encrypt model.apr -o order.apr --recipient buyer.key.pub --sign maker.key\n  \
             apr encrypt model.apr -o secret.apr --password-file password.txt\n\n\
             Exit codes: 0 written, 2 OUT exists, no recipient or no password, 3 not a sound file or key, 4 damaged, \
             signed or a key that others can read, 5 I/O, 6 another format or encrypted already.",
        )
}

/// Runs `apr encrypt`.
///
/// # Errors
///
/// If the model cannot be read, is of another format or protected already; if a key or the password cannot be had; if the
/// output cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let (path, rules) = (input::path(matches), Rules::from_matches(matches));
    let (recipients, signing) = (RecipientArgs::from_matches(matches), SigningArgs::from_matches(matches));
    refuse_shared_stdin(recipients.takes_stdin() || signing.takes_stdin(), path)?;
    let output = Output::from_matches(matches, console)?;
    let source = whole_file::source(path, SEAL)?;
    let bytes = whole_file::read(&source, &rules, Trust::NoSignature, console)?;
    let model = whole_file::open_plain(&bytes, &source, &rules).map_err(already_protected)?;
    let was_signed =
        apr_container::inspect_bytes_with(&bytes, &rules.for_looking().apr).is_ok_and(|info| info.signed);
    drop(bytes);

    let signer = signing.load()?;
    let Some(audience) = recipients.load(output.destination.label())? else {
        return Err(Failure::new(CODE_USAGE, "for whom is the file to be encrypted?").help(
            "name --recipient KEY, or take a password: --ask-password, --password-file, --password-fd",
        ));
    };
    let mut protection = Protection::default();
    let (mode, recipient) = match &audience {
        Audience::Password(password) => {
            protection = protection.with_password(password);
            ("password", None)
        }
        Audience::Recipients(keys) => {
            let [key] = keys.as_slice() else {
                let what = format!("{} recipients, and a file of this format has one", keys.len());
                return Err(Failure::new(CODE_USAGE, what).help(SEAL));
            };
            protection = protection.for_recipient(key);
            ("recipient", Some(key.fingerprint().to_string()))
        }
    };
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
