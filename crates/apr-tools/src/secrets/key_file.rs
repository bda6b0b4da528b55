//! Key files of each format.

use std::fs::File;
use std::path::Path;

use apr_crypto::minisign;
use apr_crypto::{Argon2Limits, PublicKey, SecretKey, StoredKey};
use zeroize::Zeroizing;

use super::password::{PasswordArgs, Purpose};
use crate::error::Failure;

/// Longest key file that is looked at.
const MAX_LEN: u64 = 64 << 10;

/// How a key file spells its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One line of bech32, as `apr keygen` writes it.
    Line,
    /// PKCS#8 or SubjectPublicKeyInfo.
    Pem,
    /// As minisign writes it.
    Minisign,
}

impl Format {
    fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with("-----BEGIN") {
            Self::Pem
        } else if text.starts_with("untrusted comment:") || minisign::PublicKey::from_text(text).is_ok() {
            Self::Minisign
        } else {
            Self::Line
        }
    }

    /// As JSON calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Line => "apr",
            Self::Pem => "pem",
            Self::Minisign => "minisign",
        }
    }
}

/// A public key out of a file or an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicEntry {
    pub(crate) key: PublicKey,
    pub(crate) format: Format,
    /// Of a key of minisign's.
    pub(crate) key_id: Option<minisign::KeyId>,
}

/// A secret key out of a file, unlocked.
#[derive(Debug)]
pub(crate) struct SecretEntry {
    pub(crate) key: SecretKey,
    pub(crate) format: Format,
    /// Of a key of minisign's.
    pub(crate) key_id: Option<minisign::KeyId>,
    /// Whether the file keeps it under a password.
    pub(crate) is_locked: bool,
}

/// A key of either half, as `apr key show` shows it.
#[derive(Debug)]
pub(crate) struct KeyFile {
    pub(crate) public: PublicKey,
    pub(crate) format: Format,
    /// Of a key of minisign's.
    pub(crate) key_id: Option<minisign::KeyId>,
    pub(crate) is_secret: bool,
    /// Whether the file keeps the secret under a password.
    pub(crate) is_locked: bool,
}

/// The public half of whatever key this is: a public key, its file, or the file of a secret key.
///
/// # Errors
///
/// Those of [`load_public`], or of [`load_secret`] for a secret key.
pub(crate) fn load_any(key_or_file: &Path, password: &PasswordArgs) -> Result<KeyFile, Failure> {
    match load_public(key_or_file) {
        Ok(PublicEntry { key, format, key_id }) => {
            Ok(KeyFile { public: key, format, key_id, is_secret: false, is_locked: false })
        }
        // A secret key where a public one was looked for.
        Err(failure) if failure.code() == "cy-key-kind" => {
            let SecretEntry { key, format, key_id, is_locked } = load_secret(key_or_file, password)?;
            Ok(KeyFile { public: key.public(), format, key_id, is_secret: true, is_locked })
        }
        Err(failure) => Err(failure),
    }
}

/// Reads a secret key's file, which nobody but its owner may be able to read, and unlocks it if it is locked.
///
/// # Errors
///
/// If it cannot be read or others can read it too; if it holds no secret key; if the password is another one.
pub(crate) fn load_secret(path: &Path, password: &PasswordArgs) -> Result<SecretEntry, Failure> {
    let regular = durable_file::open_regular(path, MAX_LEN)?;
    let exposed = refuse_exposed(regular.file(), path);
    let text = text_of(Zeroizing::new(regular.into_bytes()?), path)?;
    let secret = match (exposed, parse_public(&text)) {
        (Ok(()), Err(_)) => parse_secret(&text, path, password),
        // Of a public key anybody may know: what is wrong with it is its kind.
        (_, Ok(public)) => {
            Err(Failure::new("cy-key-kind", format!("a secret key needed, this is {}", of_kind(&public.key))))
        }
        (Err(exposed), _) => Err(exposed),
    };
    secret.map_err(|failure| failure.in_file(path))
}

fn parse_secret(text: &str, path: &Path, password: &PasswordArgs) -> Result<SecretEntry, Failure> {
    let format = Format::of(text);
    let (mut key_id, mut is_locked) = (None, false);
    let key = match format {
        Format::Pem => SecretKey::from_pkcs8_pem(text)?,
        Format::Minisign => {
            let key = minisign::SecretKey::from_text_with(text, &Argon2Limits::default(), || {
                is_locked = true;
                password.read(&path.to_string_lossy(), Purpose::Open)
            })?;
            key_id = Some(key.public().id());
            key.into_key().into()
        }
        Format::Line => {
            let stored = StoredKey::from_file_text(text, &Argon2Limits::default())?;
            is_locked = matches!(stored, StoredKey::Locked(_));
            stored.unlock_with(|| password.read(&path.to_string_lossy(), Purpose::Open))?
        }
    };
    Ok(SecretEntry { key, format, key_id, is_locked })
}

/// A public key: the key itself, or the file that holds it.
///
/// # Errors
///
/// If the file cannot be read, or holds no public key. What a secret key's file holds is not shown.
pub(crate) fn load_public(key_or_file: &Path) -> Result<PublicEntry, Failure> {
    // No file is called like a key: what looks like one is meant as one.
    if let Some(word) = key_or_file.to_str()
        && (word.to_ascii_lowercase().starts_with("apr-public-1")
            || word.to_ascii_lowercase().starts_with("apr-verify-1")
            || minisign::PublicKey::from_text(word).is_ok())
        && key_or_file.symlink_metadata().is_err()
    {
        return parse_public(word);
    }
    let regular = durable_file::open_regular(key_or_file, MAX_LEN)?;
    let text = text_of(Zeroizing::new(regular.into_bytes()?), key_or_file)?;
    parse_public(&text).map_err(|failure| failure.in_file(key_or_file))
}

/// The public key of a text.
///
/// # Errors
///
/// If it holds none.
pub(crate) fn parse_public(text: &str) -> Result<PublicEntry, Failure> {
    let format = Format::of(text);
    let is_secret =
        text.contains("PRIVATE KEY-----") || text.lines().nth(1).is_some_and(|line| line.len() == 212);
    let mut key_id = None;
    let key = match format {
        Format::Pem | Format::Minisign if is_secret => {
            return Err(Failure::new("cy-key-kind", "a public key needed, this is a secret key"));
        }
        Format::Pem => PublicKey::from_spki_pem(text)?,
        Format::Minisign => {
            let key = minisign::PublicKey::from_text(text.trim_end())?;
            key_id = Some(key.id());
            (*key.key()).into()
        }
        Format::Line => PublicKey::from_file_text(text)?,
    };
    Ok(PublicEntry { key, format, key_id })
}

/// What a public key is, for sentences.
fn of_kind(key: &PublicKey) -> &'static str {
    match key {
        PublicKey::Recipient(_) => "a recipient's public key",
        PublicKey::Verifying(_) => "a verifying key",
    }
}

fn text_of(bytes: Zeroizing<Vec<u8>>, path: &Path) -> Result<Zeroizing<String>, Failure> {
    let mut bytes = bytes;
    match String::from_utf8(core::mem::take(&mut *bytes)) {
        Ok(text) => Ok(Zeroizing::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            Err(Failure::new("cy-text", "not a key file: bytes that are not UTF-8").in_file(path))
        }
    }
}

/// Refuses a file with a secret in it to which group or others have any right. Where the system has no such rights, nothing
/// is checked.
///
/// # Errors
///
/// If they have.
pub(super) fn refuse_exposed(file: &File, path: &Path) -> Result<(), Failure> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let metadata = file.metadata().map_err(|error| Failure::io("inspect", path, &error))?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let kind = apr_crypto::ErrorKind::Exposed { mode };
            return Err(Failure::from(apr_crypto::Error::from(kind)).in_file(path));
        }
    }
    #[cfg(not(unix))]
    let _ = (file, path);
    Ok(())
}
