//! `apr rekey`: changes the recipients of a sealed file in place.

use alloc::borrow::Cow;
use std::path::PathBuf;

use serde::Serialize;

use apr_crypto::Trusted;
use apr_sealed::{RekeyOptions, StanzaKind};

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::Source;
use crate::interruption;
use crate::report::{self, Report};
use crate::sealed_file::SealedFile;
use crate::secrets::{HEADING, KeysArgs, load_fingerprint, load_recipients, load_signing};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::plural;

const AFTER_HELP: &str = "Two small writes, whatever the size of the file; a crash leaves it with the old recipients or the new ones. The \
    signature of the file stays valid, for it covers the content and not for whom it is. Where the maker bound the \
    recipients, the signing key is needed: --sign. Who is removed may have kept the file's key or a copy \
    of the file: what they must not see any more has to be sealed anew.\n\n\
    Examples:\n  apr rekey model.sealed --identity buyer.key --recipient second.key.pub\n  \
    apr rekey model.sealed --identity buyer.key --remove second.key.pub\n  \
    apr rekey model.sealed --identity buyer.key --recipient second.key.pub --remove-others\n\n\
    Exit codes: 0 success, 2 nothing to change, no such recipient, no space or no signing key, 3 invalid file or key, 4 not \
    decrypted, not verified or not encrypted, 5 I/O, 6 another format, or a recipient's key is needed.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A sealed and encrypted file; it is changed in place.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Open the file for the owner of this public key, too: the key, or its file.
    #[arg(long, value_name = "KEY-OR-FILE", help_heading = HEADING)]
    recipient: Vec<PathBuf>,
    /// Remove this recipient: a public key, its file, or its fingerprint, as `apr inspect --identity` lists it.
    #[arg(long, value_name = "KEY", conflicts_with = "remove_others")]
    remove: Vec<PathBuf>,
    /// Remove all other recipients and passwords: only your own key and those named with --recipient stay.
    #[arg(long)]
    remove_others: bool,
    #[command(flatten)]
    keys: KeysArgs,
    /// Sign with this signing key.
    #[arg(long, value_name = "KEYFILE", help_heading = HEADING)]
    sign: Option<PathBuf>,
}

/// The report.
#[derive(Serialize)]
struct RekeyReport<'a> {
    file: Cow<'a, str>,
    added: Vec<String>,
    removed: Vec<String>,
    removed_others: bool,
    before: &'a str,
    after: &'a str,
    revision: u64,
}

impl Report for RekeyReport<'_> {
    const SCHEMA: &'static str = "apr.rekey/2";
}

/// Runs `apr rekey`.
///
/// # Errors
///
/// If the file cannot be opened with the key, the recipients exceed the capacity, or the file cannot be written.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let path = args.input.as_path();
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "standard input cannot be changed in place"));
    }
    let removes = args.remove_others;
    let recipients = load_recipients(&args.recipient)?;
    let removed = args.remove.iter().map(|word| load_fingerprint(word)).collect::<Result<Vec<_>, _>>()?;
    if recipients.is_empty() && removed.is_empty() && !removes {
        return Err(Failure::new(CODE_USAGE, "nothing to change")
            .help("name --recipient KEY, --remove KEY or --remove-others"));
    }
    let signer = args.sign.as_deref().map(|path| load_signing(path, &args.keys.key_password)).transpose()?;
    let source = Source::open_local(path)?;
    let file = SealedFile::open(&source, args.keys.limits())?;
    if !file.header().is_encrypted() {
        return Err(Failure::new("ac-not-encrypted", "the file is not encrypted").in_file(path));
    }
    // Changing recipients uses no content of the file, so any valid signature is enough: it detects damage.
    let trusted = match args.keys.trust.load()? {
        Trusted::NoSignature if file.header().is_signed() => Trusted::Anyone,
        trusted => trusted,
    };
    let keys = file.keys(trusted, &args.keys, console)?;
    let mut options =
        recipients.iter().fold(RekeyOptions::default(), |options, key| options.for_recipient(*key));
    options = removed.iter().fold(options, |options, name| options.without(*name));
    if removes {
        options = options.without_others();
    }
    if let Some(signer) = &signer {
        options = options.signed_by(signer);
    }
    let before = described(file.header().stanzas());
    interruption::in_place(&[path], || apr_sealed::rekey(path, &file.access(&keys), &options, file.limits()))
        .map_err(|error| file.refused(error))?;
    let changed = SealedFile::open(&source, args.keys.limits())?;
    let after = described(changed.header().stanzas());

    if removes || !removed.is_empty() {
        console.remark(
            "who was removed may have kept a copy or the file's key: what they must not see is sealed anew",
        );
    }
    if console.is_json() {
        console.report(&RekeyReport {
            file: report::path(path),
            added: recipients.iter().map(|key| key.fingerprint().to_string()).collect(),
            removed: removed.iter().map(ToString::to_string).collect(),
            removed_others: removes,
            before: &before,
            after: &after,
            revision: changed.header().revision_declared(),
        })?;
        return Ok(Exit::Success);
    }
    console.note(format_args!("changed {}: opens with {after}, before with {before}", escape::path(path)));
    Ok(Exit::Success)
}

/// What opens a file, in words.
pub(crate) fn described(stanzas: &[StanzaKind]) -> String {
    let recipients = stanzas.iter().filter(|kind| **kind == StanzaKind::Recipient).count() as u64;
    let others = stanzas.iter().filter(|kind| matches!(kind, StanzaKind::Other(_))).count() as u64;
    match (stanzas, others) {
        ([StanzaKind::Password], _) => "a password".to_owned(),
        (_, 0) => format!("the key of {}", plural(recipients, "recipient")),
        (_, _) => format!(
            "the key of {}, or in {} that this version does not know",
            plural(recipients, "recipient"),
            plural(others, "way")
        ),
    }
}
