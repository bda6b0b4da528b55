//! Key files of each format.

use std::fs::{File, Metadata};
use std::path::Path;

use apr_crypto::minisign;
use apr_crypto::{AnyPublicKey, AnySecretKey, KeyFormat, PublicKey, is_key_text};
use zeroize::Zeroizing;

use super::password::KeyPasswordArgs;
use super::process::keep_secrets;
use crate::error::Failure;

/// Longest key file that is looked at.
const MAX_LEN: u64 = 64 << 10;

/// A key of either half, as `apr key show` shows it.
#[derive(Debug)]
pub(crate) struct KeyFile {
    pub(crate) public: PublicKey,
    pub(crate) format: KeyFormat,
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
pub(crate) fn load_any(key_or_file: &Path, password: &KeyPasswordArgs) -> Result<KeyFile, Failure> {
    match load_public(key_or_file) {
        Ok(AnyPublicKey { key, format, key_id, .. }) => {
            Ok(KeyFile { public: key, format, key_id, is_secret: false, is_locked: false })
        }
        // A secret key where a public one was looked for.
        Err(failure) if failure.code() == "cy-key-kind" && meant_as_key(key_or_file).is_none() => {
            let AnySecretKey { key, format, key_id, is_locked, .. } = load_secret(key_or_file, password)?;
            Ok(KeyFile { public: key.public(), format, key_id, is_secret: true, is_locked })
        }
        Err(failure) => Err(failure),
    }
}

/// Reads the file of a secret key and unlocks it if it is locked. Only its owner may have permission to read the file.
///
/// # Errors
///
/// If it cannot be read or others can read it too; if it holds no secret key; if the password is wrong.
pub(crate) fn load_secret(path: &Path, password: &KeyPasswordArgs) -> Result<AnySecretKey, Failure> {
    keep_secrets();
    let regular = durable_file::open_regular(path, MAX_LEN)?;
    let metadata = inspected(regular.file(), path)?;
    let content = Zeroizing::new(regular.into_bytes()?);
    let ask = || password.read(path);
    AnySecretKey::from_file_content_with(&content, &metadata, &password.limits(), ask)
        .map_err(|failure: Failure| failure.in_file(path))
}

/// A public key: the key itself, or the file that holds it.
///
/// # Errors
///
/// If the file cannot be read, or holds no public key. What a secret key's file holds is not shown.
pub(crate) fn load_public(key_or_file: &Path) -> Result<AnyPublicKey, Failure> {
    if let Some(word) = meant_as_key(key_or_file) {
        return Ok(AnyPublicKey::from_text(word)?);
    }
    let regular = durable_file::open_regular(key_or_file, MAX_LEN)?;
    let content = Zeroizing::new(regular.into_bytes()?);
    AnyPublicKey::from_file_content(&content).map_err(|error| Failure::from(error).in_file(key_or_file))
}

/// An argument that is a key itself.
fn meant_as_key(key_or_file: &Path) -> Option<&str> {
    key_or_file.to_str().filter(|word| is_key_text(word) && key_or_file.symlink_metadata().is_err())
}

/// Refuses a file with a secret in it to which group or others have any right.
///
/// # Errors
///
/// If they have.
pub(super) fn refuse_exposed(file: &File, path: &Path) -> Result<(), Failure> {
    apr_crypto::refuse_exposed(&inspected(file, path)?).map_err(|error| Failure::from(error).in_file(path))
}

fn inspected(file: &File, path: &Path) -> Result<Metadata, Failure> {
    file.metadata().map_err(|error| Failure::io("get the attributes of the file", path, &error))
}
