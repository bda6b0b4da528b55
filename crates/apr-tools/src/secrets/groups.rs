//! Groups of options that commands share.

use alloc::collections::BTreeSet;
use std::path::{Path, PathBuf};

use apr_crypto::{
    Access, AnySecretKey, Fingerprint, Password, RecipientPublic, RecipientSecret, SigningKey, Trust,
    TrustedKeys,
};
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use super::key_file::{load_public, load_secret};
use super::limits::Limits;
use super::password::{ASK, DESCRIPTOR, FILE, HEADING, PasswordArgs, Purpose};
use crate::error::{CODE_USAGE, Failure};

const IDENTITY: &str = "identity";
const RECIPIENT: &str = "recipient";
const SIGN: &str = "sign";
const SIGNER: &str = "signer";
const TRUSTED_KEYS: &str = "trusted-keys";
const ANY_SIGNER: &str = "any-signer";

fn path_arg(name: &'static str, value_name: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value_name)
        .value_parser(value_parser!(PathBuf))
        .help_heading(HEADING)
}

fn paths(matches: &ArgMatches, name: &str) -> Vec<PathBuf> {
    matches.try_get_many::<PathBuf>(name).ok().flatten().into_iter().flatten().cloned().collect()
}

/// `--key-password-file`, `--key-password-fd`, `--max-password-cost`: for commands that read secret keys' files. Once per command, whatever groups it has.
pub(crate) fn key_password_args() -> [Arg; 3] {
    PasswordArgs::key_args()
}

/// What opens an encrypted file: `--identity`, or a password.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdentityArgs {
    file: Option<PathBuf>,
    password: PasswordArgs,
    key_password: PasswordArgs,
}

/// What opens an encrypted file.
#[derive(Debug)]
pub(crate) enum Identity {
    Password(Password),
    Recipient(RecipientSecret),
}

impl IdentityArgs {
    /// The options. [`key_password_args`] belong to the same command.
    pub(crate) fn args() -> Vec<Arg> {
        let identity = path_arg(IDENTITY, "KEYFILE")
            .conflicts_with_all([ASK, FILE, DESCRIPTOR])
            .help("Open the file with this secret key of a recipient");
        [identity, Limits::recipients_arg()].into_iter().chain(PasswordArgs::args()).collect()
    }

    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        Self {
            file: paths(matches, IDENTITY).pop(),
            password: PasswordArgs::from_matches(matches),
            key_password: PasswordArgs::of_keys(matches),
        }
    }

    /// Whether one of the options was given.
    pub(crate) fn is_given(&self) -> bool {
        self.file.is_some() || self.password.is_given()
    }

    /// What the file may ask for.
    pub(crate) fn limits(&self) -> Limits {
        self.password.limits()
    }

    /// Whether standard input is where a password comes from.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.password.takes_stdin() || self.key_password.takes_stdin()
    }

    /// What opens the file: the key of the options, or the password; asked for if no option was given.
    ///
    /// # Errors
    ///
    /// If the key file cannot be read or unlocked, or holds another kind of key; if there is no password to be had.
    pub(crate) fn load(&self, file: &Path) -> Result<Identity, Failure> {
        match &self.file {
            Some(path) => {
                let AnySecretKey { key, .. } = load_secret(path, &self.key_password)?;
                let secret = key.into_recipient().map_err(|error| Failure::from(error).in_file(path))?;
                Ok(Identity::Recipient(secret))
            }
            None => self.password.read(&file.to_string_lossy(), Purpose::Open).map(Identity::Password),
        }
    }
}

impl Identity {
    /// As the reader of a file wants it.
    pub(crate) fn access(&self) -> Access<'_> {
        match self {
            Self::Password(password) => Access::default().with_password(password),
            Self::Recipient(secret) => Access::default().with_recipient(secret),
        }
    }
}

/// For whom a file is encrypted: `--recipient`, as often as there are recipients, or a password.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecipientArgs {
    recipients: Vec<PathBuf>,
    password: PasswordArgs,
}

/// For whom a file is encrypted.
#[derive(Debug)]
pub(crate) enum Audience {
    Password(Password),
    /// At least one, none of them twice.
    Recipients(Vec<RecipientPublic>),
}

impl RecipientArgs {
    /// `--recipient` alone, for commands whose password is that of the file.
    pub(crate) fn recipient_arg() -> Arg {
        path_arg(RECIPIENT, "KEY-OR-FILE").action(ArgAction::Append)
    }

    pub(crate) fn args() -> Vec<Arg> {
        let recipient = Self::recipient_arg()
            .conflicts_with_all([ASK, FILE, DESCRIPTOR])
            .help("Encrypt for the owner of this public key: the key itself, or its file");
        [recipient].into_iter().chain(PasswordArgs::args()).collect()
    }

    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        Self { recipients: paths(matches, RECIPIENT), password: PasswordArgs::from_matches(matches) }
    }

    /// Whether standard input is where the password comes from.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.password.takes_stdin()
    }

    /// How many recipients are named.
    pub(crate) fn count(&self) -> usize {
        self.recipients.len()
    }

    /// Whether one of the options was given.
    pub(crate) fn is_given(&self) -> bool {
        self.count() > 0 || self.password.is_given()
    }

    /// The recipients or the password; `None` if no option was given.
    ///
    /// # Errors
    ///
    /// If a key cannot be read, is of another kind, or stands there twice; if there is no password to be had, or it is empty.
    pub(crate) fn load(&self, file: &Path) -> Result<Option<Audience>, Failure> {
        if self.recipients.is_empty() {
            if !self.password.is_given() {
                return Ok(None);
            }
            return Ok(Some(Audience::Password(self.password.read(&file.to_string_lossy(), Purpose::Lock)?)));
        }
        self.load_recipients().map(|keys| Some(Audience::Recipients(keys)))
    }

    /// The recipients, which may be none.
    ///
    /// # Errors
    ///
    /// If a key cannot be read, is of another kind, or stands there twice.
    pub(crate) fn load_recipients(&self) -> Result<Vec<RecipientPublic>, Failure> {
        let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
        for path in &self.recipients {
            let key = load_public(path)?.key.into_recipient().map_err(|error| named(error, path))?;
            if !seen.insert(*key.as_bytes()) {
                let what = format!("the recipient {} is given twice", key.fingerprint());
                return Err(Failure::new(CODE_USAGE, what).help("name each recipient once"));
            }
            keys.push(key);
        }
        Ok(keys)
    }
}

/// The fingerprint of a recipient: the fingerprint itself, or that of a public key.
///
/// # Errors
///
/// If the key cannot be read, or is of another kind.
pub(crate) fn load_fingerprint(word: &Path) -> Result<Fingerprint, Failure> {
    let fingerprint = word.to_str().filter(|_| word.symlink_metadata().is_err()).map(str::parse);
    if let Some(Ok(fingerprint)) = fingerprint {
        return Ok(fingerprint);
    }
    let key = load_public(word)?.key.into_recipient().map_err(|error| named(error, word))?;
    Ok(key.fingerprint())
}

/// An error about a key given as KEY-OR-FILE.
fn named(error: apr_crypto::Error, key_or_file: &Path) -> Failure {
    let failure = Failure::from(error);
    if key_or_file.symlink_metadata().is_ok() { failure.in_file(key_or_file) } else { failure }
}

/// Whose signature a file must have: `--signer`, `--trusted-keys`, `--any-signer`.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustArgs {
    signers: Vec<PathBuf>,
    list: Option<PathBuf>,
    takes_any: bool,
}

/// Whose signature a file must have.
#[derive(Clone, Debug, Default)]
pub(crate) enum Trusted {
    /// Nobody asks.
    #[default]
    Unasked,
    /// That of one of these keys. Keys given without a name are called by their fingerprint.
    Keys(TrustedKeys),
    /// Whoever's: it shows that nothing was changed since, not who signed.
    Anyone,
}

impl TrustArgs {
    /// `--signer` alone, once.
    pub(crate) fn signer_arg() -> Arg {
        path_arg(SIGNER, "KEY-OR-FILE")
            .help("Demand a signature by this verifying key: the key itself, or its file")
    }

    pub(crate) fn args() -> [Arg; 3] {
        [
            Self::signer_arg().action(ArgAction::Append).help(
                "Demand a signature by this verifying key: the key itself, or its file; of several, by any",
            ),
            path_arg(TRUSTED_KEYS, "FILE")
                .help("Demand a signature by a key of this list, `NAME KEY` a line"),
            Arg::new(ANY_SIGNER)
                .long(ANY_SIGNER)
                .action(ArgAction::SetTrue)
                .conflicts_with_all([SIGNER, TRUSTED_KEYS])
                .help_heading(HEADING)
                .help(
                    "Demand a signature, whoever made it: that shows damage and says nothing of its origin",
                ),
        ]
    }

    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        Self {
            signers: paths(matches, SIGNER),
            list: paths(matches, TRUSTED_KEYS).pop(),
            takes_any: matches.try_get_one::<bool>(ANY_SIGNER).ok().flatten() == Some(&true),
        }
    }

    /// Whether a signature is demanded.
    pub(crate) fn is_given(&self) -> bool {
        self.takes_any || !self.signers.is_empty() || self.list.is_some()
    }

    /// The keys.
    ///
    /// # Errors
    ///
    /// If one cannot be read or is of another kind; if others may change the list, or it holds no key.
    pub(crate) fn load(&self) -> Result<Trusted, Failure> {
        if self.takes_any {
            return Ok(Trusted::Anyone);
        }
        if !self.is_given() {
            return Ok(Trusted::Unasked);
        }
        let mut keys = match &self.list {
            Some(path) => TrustedKeys::open_file(path)?,
            None => TrustedKeys::new(),
        };
        for path in &self.signers {
            let key = load_public(path)?.key.into_verifying().map_err(|error| named(error, path))?;
            // One that is listed, or given twice, is trusted already.
            if keys.name_of(&key).is_none() {
                keys.add(&key.fingerprint().to_string(), key)?;
            }
        }
        match (keys.is_empty(), &self.list) {
            (true, Some(path)) => {
                Err(Failure::new("cy-no-key", "the list of trusted keys is empty").in_file(path))
            }
            _ => Ok(Trusted::Keys(keys)),
        }
    }
}

impl Trusted {
    /// As the reader of a file wants it.
    pub(crate) fn trust(&self) -> Trust<'_> {
        match self {
            Self::Unasked => Trust::NoSignature,
            Self::Keys(keys) => Trust::AnyOf(keys),
            Self::Anyone => Trust::Anyone,
        }
    }
}

/// Who signs: `--sign`.
#[derive(Clone, Debug, Default)]
pub(crate) struct SigningArgs {
    file: Option<PathBuf>,
    key_password: PasswordArgs,
}

impl SigningArgs {
    /// The option. [`key_password_args`] belong to the same command.
    pub(crate) fn args() -> [Arg; 1] {
        [path_arg(SIGN, "KEYFILE").help("Sign with this signing key")]
    }

    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        Self { file: paths(matches, SIGN).pop(), key_password: PasswordArgs::of_keys(matches) }
    }

    /// Whether standard input is where the key's password comes from.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.file.is_some() && self.key_password.takes_stdin()
    }

    /// The signing key; `None` if the option was not given.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or unlocked, or holds another kind of key.
    pub(crate) fn load(&self) -> Result<Option<SigningKey>, Failure> {
        let Some(path) = &self.file else { return Ok(None) };
        let AnySecretKey { key, .. } = load_secret(path, &self.key_password)?;
        key.into_signing().map(Some).map_err(|error| Failure::from(error).in_file(path))
    }
}

#[cfg(test)]
mod tests;
