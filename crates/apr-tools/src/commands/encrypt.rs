//! `apr encrypt`: encrypts an `.apr` model for one recipient or with a password; other files, or for several recipients, as
//! `apr seal`.

use std::path::PathBuf;

use apr_container::{Metadata, Protection};
use apr_crypto::OsRandom;
use apr_crypto::Trust;
use serde::Serialize;

use crate::args::{CompatArg, PayloadArgs, WriteArgs};
use crate::commands::seal::{self, Extras};
use crate::error::{CODE_FOREIGN_FORMAT, CODE_USAGE, Exit, Failure};
use crate::input::{Format, Source};
use crate::report::{Report, Written};
use crate::secrets::{Audience, RecipientArgs, SigningArgs, refuse_shared_stdin};
use crate::terminal::Console;
use crate::whole_file;

/// What to do with a file that is sealed already.
const SEALED: &str =
    "`apr rekey` changes for whom a sealed file is encrypted; `apr open` gives back what is inside";

const AFTER_HELP: &str = "An .apr model of version 1 stays one if it is for one recipient or under a password: the payload is encrypted \
    (AES-256-GCM), whatever type of model it is, and nothing of it is decoded. Header and metadata stay readable for \
    anyone, and are bound to the payload: opening the file detects every modification. Such a file opens in aprender \
    0.10 to 0.72 as well. Files of every other format, and of several recipients, become sealed files, as `apr seal` \
    makes them with more options. `apr decrypt` opens both. With --sign, anyone who has the signer's public key \
    can check the file without opening it.\n\n\
    Examples:\n  apr encrypt model.apr -o order.apr --recipient buyer.key.pub --sign maker.key\n  \
    apr encrypt model.apr -o secret.apr --password-file password.txt\n  \
    apr encrypt model.safetensors -o order.sealed --recipient buyer.key.pub\n\n\
    Exit codes: 0 success, 2 OUT exists, no recipient or no password, 3 invalid file or key, 4 corrupted, \
    signed or a key that others can read, 5 I/O, 6 encrypted already.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A file of any format, or `-` for standard input.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// The encrypted file; `-` for standard output, which a sealed file cannot be.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    recipients: RecipientArgs,
    #[command(flatten)]
    signing: SigningArgs,
}

/// The report, with the recipients.
#[derive(Serialize)]
struct EncryptReport<'a> {
    #[serde(flatten)]
    file: Written<'a>,
    mode: &'a str,
    recipient: Option<&'a str>,
    signer: Option<&'a str>,
}

impl Report for EncryptReport<'_> {
    const SCHEMA: &'static str = "apr.encrypt/1";
}

/// Runs `apr encrypt`.
///
/// # Errors
///
/// If the model cannot be read, or is protected already; if a key or the password cannot be had; if the
/// output cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let (path, rules) = (args.input.as_path(), args.payload.apply(args.compat.rules()));
    let (recipients, signing) = (&args.recipients, &args.signing);
    refuse_shared_stdin(recipients.takes_stdin() || signing.takes_stdin(), path)?;
    let output = args.write.output([&args.input], &args.output, console)?;
    if !recipients.is_given() {
        return Err(Failure::new(CODE_USAGE, "no recipient or password is given").help(
            "name --recipient KEY, or take a password: --ask-password, --password-file, --password-fd",
        ));
    }
    let source = Source::open_local(path)?;
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
            return seal::seal(source, path, output, recipients, signing, &Extras::default(), console);
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
        console.remark("the metadata stays readable for anyone: `apr inspect` shows what they say");
    }
    if console.is_json() {
        console.report(&EncryptReport {
            file: Written::new(path, output.destination.label(), output.run, file.len() as u64),
            mode,
            recipient: recipient.as_deref(),
            signer: signer.as_deref(),
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

/// Whether the metadata have more than the time and the type of the file.
fn tells_much(metadata: &Metadata) -> bool {
    metadata.description.is_some()
        || metadata.training.is_some()
        || metadata.model_card.is_some()
        || !metadata.hyperparameters.is_empty()
        || !metadata.metrics.is_empty()
        || !metadata.custom.is_empty()
}
