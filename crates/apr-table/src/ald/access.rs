//! Signatures and encryption.

use core::ops::Range;

use apr_crypto::{
    Access, Argon2Cost, DecryptionKey, EphemeralPublic, Nonce, RejectedSigner, Salt, Signature, Tag, Trust,
    VerifyingKey,
};
use read_at::ReadAt;

use super::{Ald, Encryption, read};
use crate::error::{Error, ErrorKind};

/// The key of a signature that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// The key.
    pub key: VerifyingKey,
    /// Its name in the list of trusted keys; none if any key was accepted.
    pub name: Option<String>,
    /// Whether it is a trusted key.
    pub is_trusted: bool,
}

/// A signature that is being verified, strictly.
pub(super) struct Verification {
    verification: apr_crypto::Verification,
    signer: Signed,
}

impl Verification {
    pub(super) fn begin(source: &dyn ReadAt, range: &Range<u64>, trust: Trust<'_>) -> Result<Self, Error> {
        let (mut signature, mut key) = ([0; Signature::LEN], [0; VerifyingKey::LEN]);
        read(source, range.start, &mut signature)?;
        read(source, range.start + Signature::LEN as u64, &mut key)?;
        let signer = trust.accept(&key).map_err(|rejected| match rejected {
            RejectedSigner::Untrusted => Error::from(ErrorKind::AldUntrusted {}),
            RejectedSigner::InvalidKey => ErrorKind::AldSignature {}.into(),
        });
        // The caller demands a signature.
        let signer = signer?.ok_or(ErrorKind::AldSigned {})?;
        let verification = signer.key().verification(&Signature::from_bytes(signature));
        let signer = Signed {
            key: *signer.key(),
            name: signer.name().map(str::to_owned),
            is_trusted: signer.is_trusted(),
        };
        Ok(Self { verification: verification.map_err(|_| ErrorKind::AldSignature {})?, signer })
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.verification.update(bytes);
    }

    pub(super) fn finish(self) -> Result<Signed, Error> {
        self.verification.finish().map_err(|_| ErrorKind::AldSignature {})?;
        Ok(self.signer)
    }
}

/// Decrypts the payload, in place.
pub(super) fn decrypt(mut payload: Vec<u8>, ald: &Ald, access: &Access<'_>) -> Result<Vec<u8>, Error> {
    let refused = || Error::from(ErrorKind::AldDecryption {});
    let start = ald.header.key_block.as_ref().map_or(0, |block| block.start);
    let after_mode = start + 1;
    let source = &*ald.source;
    let key = match (ald.encryption, access.key()) {
        (Some(Encryption::Password), Some(DecryptionKey::Password(password))) => {
            let salt = Salt::from_file(field(source, after_mode)?);
            password
                .derive_key(&salt, &Argon2Cost::APR_V1)
                .map_err(|error| Error::caused(ErrorKind::AldDecryption {}, error))?
        }
        (Some(Encryption::Recipient), Some(DecryptionKey::Recipient(secret))) => {
            let ephemeral = EphemeralPublic::from_file(field(source, after_mode)?).map_err(|_| refused())?;
            secret.agree_ald(&ephemeral).map_err(|_| refused())?
        }
        _ => return Err(refused()),
    };
    let nonce_at = ald.header.payload.start - Nonce::LEN as u64;
    let nonce = Nonce::from_file(field(source, nonce_at)?);
    let (ciphertext, tag) = payload.split_last_chunk_mut().ok_or_else(refused)?;
    let tag = Tag::from_file(*tag);
    key.open_in_place(&nonce, &[], ciphertext, &tag).map_err(|_| refused())?;
    payload.truncate(payload.len() - Tag::LEN);
    Ok(payload)
}

fn field<const N: usize>(source: &dyn ReadAt, at: u64) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    read(source, at, &mut bytes)?;
    Ok(bytes)
}
