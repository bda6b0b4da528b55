//! Keys for detached signatures: Ed25519 or P-256.

use std::path::Path;

use apr_crypto::{AnyPublicKey, AnySecretKey, Fingerprint, VerifyingKey, minisign, p256};

use super::key_file::{load_public, load_secret};
use super::password::KeyPasswordArgs;
use super::process::keep_secrets;
use crate::error::Failure;

/// A key that signs.
#[derive(Debug)]
pub(crate) enum Signer {
    /// For minisign signatures.
    Ed25519(minisign::SecretKey),
    /// For model signatures.
    P256(p256::SigningKey),
}

/// A key that signatures are checked with.
#[derive(Clone, Debug)]
pub(crate) enum Verifier {
    Ed25519 {
        key: VerifyingKey,
        /// Of a key of minisign's.
        id: Option<minisign::KeyId>,
    },
    P256(p256::VerifyingKey),
}

#[cfg(feature = "remote")]
impl Verifier {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Ed25519 { key, .. } => key.fingerprint(),
            Self::P256(key) => key.fingerprint(),
        }
    }
}

impl Signer {
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Ed25519(key) => key.public().key().fingerprint(),
            Self::P256(key) => key.verifying_key().fingerprint(),
        }
    }
}

/// Reads the file of a signing key: `apr`'s own format, PEM or minisign's. Only its owner may have permission to read it.
///
/// # Errors
///
/// If it cannot be read or others can read it too; if it holds no signing key; if the password is wrong.
pub(crate) fn load_signer(path: &Path, password: &KeyPasswordArgs) -> Result<Signer, Failure> {
    keep_secrets();
    match p256::SigningKey::open_file(path) {
        Ok(key) => return Ok(Signer::P256(key)),
        Err(error) if error.code() == "cy-key-mismatch" => return Err(error.into()),
        // What is wrong with a key of another kind is said by who knows that kind.
        Err(_) => {}
    }
    let AnySecretKey { key, key_id, .. } = load_secret(path, password)?;
    let key = key.into_signing().map_err(|error| Failure::from(error).in_file(path))?;
    Ok(Signer::Ed25519(match key_id {
        Some(id) => minisign::SecretKey::new(id, key),
        None => key.into(),
    }))
}

/// A verifying key: the key itself, or the file that holds it.
///
/// # Errors
///
/// If the file cannot be read, or holds no verifying key.
pub(crate) fn load_verifier(key_or_file: &Path) -> Result<Verifier, Failure> {
    if let Ok(key) = p256::VerifyingKey::open_file(key_or_file) {
        return Ok(Verifier::P256(key));
    }
    let AnyPublicKey { key, key_id: id, .. } = load_public(key_or_file)?;
    let key = key.into_verifying().map_err(|error| Failure::from(error).in_file(key_or_file))?;
    Ok(Verifier::Ed25519 { key, id })
}
