//! Groups of options that commands share.

use alloc::collections::BTreeSet;
use std::path::{Path, PathBuf};

use apr_crypto::{
    Access, AnySecretKey, Fingerprint, Password, RecipientPublic, RecipientSecret, SigningKey, Trusted,
    TrustedKeys,
};
use clap::{Args, value_parser};

use super::key_file::{load_public, load_secret};
use super::keys::{Keys, refuse_shared_stdin};
use super::limits::Limits;
use super::password::{HEADING, KeyPasswordArgs, PasswordArgs, Purpose};
use crate::error::{CODE_USAGE, Failure};

/// What opens an encrypted file: `--identity`, or a password.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct IdentityArgs {
    /// Open the file with this secret key of a recipient.
    #[arg(long, value_name = "KEYFILE", help_heading = HEADING)]
    #[arg(conflicts_with_all = ["ask_password", "password_file", "password_fd"])]
    identity: Option<PathBuf>,
    /// Maximum number of recipients of a sealed file for which the key is tried [default: 1024].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..), help_heading = HEADING)]
    max_recipients: Option<u16>,
    #[command(flatten)]
    password: PasswordArgs,
}

/// The keys of a command for encrypted and signed files.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct KeysArgs {
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) key_password: KeyPasswordArgs,
}

/// What opens an encrypted file.
#[derive(Debug)]
pub(crate) enum Identity {
    Password(Password),
    Recipient(RecipientSecret),
}

impl KeysArgs {
    /// Whether a key or a password that opens the file was given.
    pub(crate) fn has_identity(&self) -> bool {
        self.identity.identity.is_some() || self.identity.password.is_given()
    }

    /// What the file may ask for.
    pub(crate) fn limits(&self) -> Limits {
        Limits::new(self.key_password.max_password_cost, self.identity.max_recipients)
    }

    /// Whether standard input is where a password comes from.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.identity.password.takes_stdin() || self.key_password.takes_stdin()
    }

    /// What opens the file: the key of the options, or the password; asked for if no option was given.
    ///
    /// # Errors
    ///
    /// If the key file cannot be read or unlocked, or holds another kind of key; if there is no password.
    pub(crate) fn load_identity(&self, file: &Path) -> Result<Identity, Failure> {
        match &self.identity.identity {
            Some(path) => load_recipient_secret(path, &self.key_password).map(Identity::Recipient),
            None => {
                self.identity.password.read(&file.to_string_lossy(), Purpose::Open).map(Identity::Password)
            }
        }
    }

    /// The keys. A password is asked for only if `--ask-password` says so, or a key file needs it.
    ///
    /// # Errors
    ///
    /// If one cannot be read; if standard input would have to be both a password and one of `inputs`.
    pub(crate) fn load<'p>(&self, inputs: impl IntoIterator<Item = &'p Path>) -> Result<Keys, Failure> {
        let mut first = None;
        for input in inputs {
            refuse_shared_stdin(self.takes_stdin(), input)?;
            first.get_or_insert(input);
        }
        let keys = Keys::of_signers(self.trust.load()?).with_limits(self.limits());
        if !self.has_identity() {
            return Ok(keys);
        }
        Ok(keys.with_identity(self.load_identity(first.unwrap_or(Path::new("-")))?))
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
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RecipientArgs {
    /// Encrypt for the owner of this public key: the key itself, or its file.
    #[arg(long = "recipient", id = "recipient", value_name = "KEY-OR-FILE", help_heading = HEADING)]
    #[arg(conflicts_with_all = ["ask_password", "password_file", "password_fd"])]
    recipients: Vec<PathBuf>,
    #[command(flatten)]
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
        load_recipients(&self.recipients).map(|keys| Some(Audience::Recipients(keys)))
    }
}

/// The recipients, which may be none.
///
/// # Errors
///
/// If a key cannot be read, is of another kind, or is given twice.
pub(crate) fn load_recipients(keys_or_files: &[PathBuf]) -> Result<Vec<RecipientPublic>, Failure> {
    let (mut keys, mut seen) = (Vec::new(), BTreeSet::new());
    for path in keys_or_files {
        let key = load_recipient(path)?;
        if !seen.insert(*key.as_bytes()) {
            let what = format!("the recipient {} is given twice", key.fingerprint());
            return Err(Failure::new(CODE_USAGE, what).help("name each recipient once"));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The public key of one recipient.
///
/// # Errors
///
/// If it cannot be read or is of another kind.
pub(crate) fn load_recipient(key_or_file: &Path) -> Result<RecipientPublic, Failure> {
    load_public(key_or_file)?.key.into_recipient().map_err(|error| named(error, key_or_file))
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
    Ok(load_recipient(word)?.fingerprint())
}

/// An error about a key given as KEY-OR-FILE.
fn named(error: apr_crypto::Error, key_or_file: &Path) -> Failure {
    let failure = Failure::from(error);
    if key_or_file.symlink_metadata().is_ok() { failure.in_file(key_or_file) } else { failure }
}

/// Whose signature a file must have: `--signer`, `--trusted-keys`, `--any-signer`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TrustArgs {
    /// Require a signature by this public key: the key itself, or its file; of several, by any.
    #[arg(long = "signer", id = "signer", value_name = "KEY-OR-FILE", help_heading = HEADING)]
    signers: Vec<PathBuf>,
    /// Require a signature by a key of this list, `NAME KEY` a line.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    trusted_keys: Option<PathBuf>,
    /// Require a signature by any key: it shows that the file was not modified, not who signed it.
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["signer", "trusted_keys"])]
    any_signer: bool,
}

impl TrustArgs {
    /// Whether a signature is demanded.
    pub(crate) fn is_given(&self) -> bool {
        self.any_signer || !self.signers.is_empty() || self.trusted_keys.is_some()
    }

    /// The keys.
    ///
    /// # Errors
    ///
    /// If one cannot be read or is of another kind; if others may change the list, or it holds no key.
    pub(crate) fn load(&self) -> Result<Trusted, Failure> {
        if self.any_signer {
            return Ok(Trusted::Anyone);
        }
        if !self.is_given() {
            return Ok(Trusted::NoSignature);
        }
        let mut keys = match &self.trusted_keys {
            Some(path) => TrustedKeys::open_file(path)?,
            None => TrustedKeys::new(),
        };
        for path in &self.signers {
            add_signer(&mut keys, path)?;
        }
        match (keys.is_empty(), &self.trusted_keys) {
            (true, Some(path)) => {
                Err(Failure::new("cy-no-key", "the list of trusted keys is empty").in_file(path))
            }
            _ => Ok(Trusted::AnyOf(keys)),
        }
    }
}

fn add_signer(keys: &mut TrustedKeys, key_or_file: &Path) -> Result<(), Failure> {
    let key = load_public(key_or_file)?.key.into_verifying().map_err(|error| named(error, key_or_file))?;
    // One that is listed, or given twice, is trusted already.
    if keys.name_of(&key).is_none() {
        keys.add(&key.fingerprint().to_string(), key)?;
    }
    Ok(())
}

/// The key of one signer, which is to be trusted.
///
/// # Errors
///
/// If it cannot be read or is of another kind.
pub(crate) fn load_trusted(key_or_file: &Path) -> Result<Trusted, Failure> {
    let mut keys = TrustedKeys::new();
    add_signer(&mut keys, key_or_file)?;
    Ok(Trusted::AnyOf(keys))
}

/// Who signs: `--sign`.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SigningArgs {
    /// Sign with this signing key.
    #[arg(long, value_name = "KEYFILE", help_heading = HEADING)]
    sign: Option<PathBuf>,
    #[command(flatten)]
    key_password: KeyPasswordArgs,
}

impl SigningArgs {
    /// Whether standard input is where the key's password comes from.
    pub(crate) fn takes_stdin(&self) -> bool {
        self.sign.is_some() && self.key_password.takes_stdin()
    }

    /// The signing key; `None` if the option was not given.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or unlocked, or holds another kind of key.
    pub(crate) fn load(&self) -> Result<Option<SigningKey>, Failure> {
        self.sign.as_deref().map(|path| load_signing(path, &self.key_password)).transpose()
    }
}

/// The secret key of a recipient in a file.
///
/// # Errors
///
/// If the file cannot be read or unlocked, or holds another kind of key.
pub(crate) fn load_recipient_secret(
    path: &Path,
    password: &KeyPasswordArgs,
) -> Result<RecipientSecret, Failure> {
    let AnySecretKey { key, .. } = load_secret(path, password)?;
    key.into_recipient().map_err(|error| Failure::from(error).in_file(path))
}

/// The signing key in a file.
///
/// # Errors
///
/// If the file cannot be read or unlocked, or holds another kind of key.
pub(crate) fn load_signing(path: &Path, password: &KeyPasswordArgs) -> Result<SigningKey, Failure> {
    let AnySecretKey { key, .. } = load_secret(path, password)?;
    key.into_signing().map_err(|error| Failure::from(error).in_file(path))
}

#[cfg(test)]
mod tests;
