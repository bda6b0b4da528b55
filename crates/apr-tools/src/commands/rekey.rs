//! `apr rekey`: other recipients for a sealed file, in place.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use apr_sealed::{RekeyOptions, StanzaKind};

use crate::error::{CODE_USAGE, Exit, Failure};
use crate::input::{self, Source};
use crate::interruption;
use crate::sealed_file::SealedFile;
use crate::secrets::{
    IdentityArgs, RecipientArgs, SigningArgs, TrustArgs, Trusted, key_password_args, load_fingerprint,
};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::plural;

pub(crate) fn command() -> Command {
    Command::new("rekey")
        .about("Change for whom a sealed file is encrypted, in place, without rewriting its content")
        .arg(input::input_arg().value_name("FILE").help("A sealed and encrypted file; it is changed in place"))
        .arg(RecipientArgs::recipient_arg().help("Open the file for the owner of this public key, too: the key, or its file"))
        .arg(
            Arg::new("remove")
                .long("remove")
                .value_name("KEY")
                .value_parser(value_parser!(PathBuf))
                .action(ArgAction::Append)
                .conflicts_with("remove-others")
                .help("Remove this recipient: a public key, its file, or its fingerprint, as `apr inspect --identity` lists it"),
        )
        .arg(
            Arg::new("remove-others")
                .long("remove-others")
                .action(ArgAction::SetTrue)
                .help("Remove every recipient except your own key and those named with --recipient; a password is removed, too"),
        )
        .args(IdentityArgs::args())
        .args(TrustArgs::args())
        .args(SigningArgs::args())
        .args(key_password_args())
        .after_help(
            "Two small writes, whatever the size of the file; a crash leaves it with the old recipients or the new ones. The \
             signature of the file stays valid, for it covers the content and not for whom it is. Where the maker bound the \
             recipients, the signing key is needed: --sign. Who is removed may have kept the file's key or a copy \
             of the file: what they must not see any more has to be sealed anew.\n\n\
             Examples:\n  apr rekey model.sealed --identity buyer.key --recipient second.key.pub\n  \
             apr rekey model.sealed --identity buyer.key --remove second.key.pub\n  \
             apr rekey model.sealed --identity buyer.key --recipient second.key.pub --remove-others\n\n\
             Exit codes: 0 changed, 2 nothing to change, no such recipient, no room or no signing key, 3 not a sound file or key, 4 not \
             decrypted, not verified or not encrypted, 5 I/O, 6 another format, or a recipient's key is needed.",
        )
}

/// Runs `apr rekey`.
///
/// # Errors
///
/// If the file cannot be opened with the key, the recipients have no room, or the file cannot be written.
pub(crate) fn run(matches: &ArgMatches, console: &mut Console) -> Result<Exit, Failure> {
    let path = input::path(matches);
    if path.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "standard input cannot be changed in place"));
    }
    let removes = matches.get_flag("remove-others");
    let recipients = RecipientArgs::from_matches(matches).load_recipients()?;
    let removed = matches.get_many::<PathBuf>("remove").into_iter().flatten();
    let removed = removed.map(|word| load_fingerprint(word)).collect::<Result<Vec<_>, _>>()?;
    if recipients.is_empty() && removed.is_empty() && !removes {
        return Err(Failure::new(CODE_USAGE, "nothing to change")
            .help("name --recipient KEY, --remove KEY or --remove-others"));
    }
    let (identity, trust) = (IdentityArgs::from_matches(matches), TrustArgs::from_matches(matches));
    let signer = SigningArgs::from_matches(matches).load()?;
    let source = Source::open(path)?;
    let file = SealedFile::open(&source, identity.limits())?;
    if !file.header().is_encrypted() {
        return Err(Failure::new("ac-not-encrypted", "the file is not encrypted").in_file(path));
    }
    // Whoever changes recipients relies on nothing in the file: the signature shows that it is whole.
    let trusted = match trust.load()? {
        Trusted::Unasked if file.header().is_signed() => Trusted::Anyone,
        trusted => trusted,
    };
    let keys = file.keys(trusted, &identity, console)?;
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
    let changed = SealedFile::open(&source, identity.limits())?;
    let after = described(changed.header().stanzas());

    if removes || !removed.is_empty() {
        console.remark(
            "who was removed may have kept a copy or the file's key: what they must not see is sealed anew",
        );
    }
    let added: Vec<String> = recipients.iter().map(|key| key.fingerprint().to_string()).collect();
    if console.is_json() {
        console.json("apr.rekey/1", |json| {
            json.field_str("file", &path.to_string_lossy())?;
            json.field_strings("added", added.iter().map(String::as_str))?;
            let removed: Vec<String> = removed.iter().map(ToString::to_string).collect();
            json.field_strings("removed", removed.iter().map(String::as_str))?;
            json.field_bool("removed_others", removes)?;
            json.field_str("before", &before)?;
            json.field_str("after", &after)?;
            json.field_uint("generation", changed.header().revision_declared())
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
