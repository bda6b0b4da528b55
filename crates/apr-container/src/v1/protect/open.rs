//! Verification and decryption of a file in memory.

use alloc::vec::Vec;

use apr_crypto::{
    Access, AesKey, Argon2Cost, DecryptionKey, EphemeralPublic, ErrorKind as CryptoErrorKind,
    RecipientPublic, Salt, Signer,
};

use super::binding::Surroundings;
use super::trust::verify_block;
use super::{COMMITMENT_KEY, COMMITMENT_LABEL};
use crate::codec::{DecodePayload, SliceSource};
use crate::compression::{Bound, decompress};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, UncheckedSignature};
use crate::v1::candidates::Candidates;
use crate::v1::container::{Container, Payload};
use crate::v1::header::HEADER_LEN;

/// Verifies the signature if one is required; an unverified one is refused unless the options allow it.
pub(super) fn verified<'k>(
    container: &Container<'_>,
    access: &Access<'k>,
    options: &ReadOptions,
) -> Result<Option<Signer<'k>>, Error> {
    let signer = verify_block(access.trust(), container.signature())?;
    let is_unchecked = container.signature().is_some() && signer.is_none();
    if is_unchecked && options.unchecked_signature == UncheckedSignature::Refuse {
        return Err(ErrorKind::SignatureUnchecked.at(21));
    }
    Ok(signer)
}

/// Decrypts the payload and decodes the model in it.
pub(crate) fn decrypt<M: DecodePayload>(
    container: &Container<'_>,
    key: DecryptionKey<'_>,
    options: &ReadOptions,
) -> Result<M, Error> {
    let Plaintext { bytes, payload_len } = plaintext(container, key, options)?;
    let payload = bytes.get(..payload_len).unwrap_or_default();
    Candidates::new(container.header(), container.metadata_bytes(), options)?
        .decode(Bound::Exactly(payload.len() as u64), |read| read(&mut SliceSource::new(payload)))
}

/// A payload after decryption and decompression, with the binding that follows it.
pub(super) struct Plaintext {
    bytes: Vec<u8>,
    payload_len: usize,
}

impl Plaintext {
    /// The payload without its binding.
    pub(super) fn into_payload(mut self) -> Vec<u8> {
        self.bytes.truncate(self.payload_len);
        self.bytes
    }
}

/// Decrypts the payload, and compares its binding with the file around it.
pub(super) fn plaintext(
    container: &Container<'_>,
    key: DecryptionKey<'_>,
    options: &ReadOptions,
) -> Result<Plaintext, Error> {
    let Payload::Encrypted(payload) = container.payload() else {
        return Err(ErrorKind::NotEncrypted.at(21));
    };
    let (header, metadata) = (container.header(), container.metadata_bytes());
    let at = (HEADER_LEN + metadata.len()) as u64;
    let commitment = commitment(container, options)?;
    let (key, key_block, sealed) = unlock(key, payload.stored(), at)?;
    // Compared before decryption: a ciphertext that two keys could decrypt is accepted under one of them only.
    let agrees = match &commitment {
        Some(stored) => key.commitment(COMMITMENT_LABEL).matches(stored),
        None if options.is_strict() => return Err(ErrorKind::Unbound.at(HEADER_LEN as u64)),
        None => true,
    };
    let compressed = match agrees {
        true => key.open(b"", sealed).map_err(|error| hide(error, at))?,
        false => return Err(ErrorKind::DecryptionFailed.at(at)),
    };
    let bound = header.bound(options)?;
    let plaintext = decompress(header.compression, &compressed, bound)?;
    drop(compressed);
    bound.check_end(plaintext.len() as u64)?;
    let signer = container.signature().and_then(|block| block.public_key().try_into().ok());
    let surroundings = Surroundings { header, metadata, key_block, signer: signer.unwrap_or([0; 32]) };
    let payload_len = surroundings.unbind(&plaintext, options.is_strict())?.len();
    Ok(Plaintext { bytes: plaintext, payload_len })
}

/// The commitment in the metadata.
fn commitment(container: &Container<'_>, options: &ReadOptions) -> Result<Option<Vec<u8>>, Error> {
    let metadata = match container.metadata() {
        Ok(metadata) => metadata,
        Err(error) if options.is_strict() => return Err(error),
        Err(_) => return Ok(None),
    };
    let stored = metadata.custom.get(COMMITMENT_KEY);
    // A value of another type is a commitment that matches no key.
    Ok(stored.map(|value| {
        value.as_str().and_then(|text| base16ct::mixed::decode_vec(text).ok()).unwrap_or_default()
    }))
}

/// A wrong key and a modified file are one error. Lack of memory is another.
fn hide(error: apr_crypto::Error, at: u64) -> Error {
    match error.kind() {
        CryptoErrorKind::OutOfMemory { .. } => error.into(),
        _ => ErrorKind::DecryptionFailed.at(at),
    }
}

/// The key of the payload, the key block at its beginning, and the rest.
fn unlock<'f>(
    key: DecryptionKey<'_>,
    stored: &'f [u8],
    at: u64,
) -> Result<(AesKey, &'f [u8], &'f [u8]), Error> {
    let block_len = match key {
        DecryptionKey::Password(_) => Salt::LEN,
        DecryptionKey::Recipient(_) => RecipientPublic::LEN + RecipientPublic::ID_LEN,
    };
    let needed = (block_len + AesKey::OVERHEAD) as u64;
    let available = stored.len() as u64;
    let Some((block, sealed)) = stored.split_at_checked(block_len).filter(|_| available >= needed) else {
        return Err(ErrorKind::Truncated { part: "encrypted payload", needed, available }.at(at));
    };
    let failed = || ErrorKind::DecryptionFailed.at(at);
    let key = match key {
        DecryptionKey::Password(password) => {
            let salt = Salt::from_file(block.try_into().map_err(|_| failed())?);
            password.derive_key(&salt, &Argon2Cost::APR_V1)?
        }
        DecryptionKey::Recipient(secret) => {
            let (ephemeral, id) = block.split_first_chunk().ok_or_else(failed)?;
            let id = id.try_into().map_err(|_| failed())?;
            if !secret.public().has_id(id) {
                return Err(failed());
            }
            let ephemeral = EphemeralPublic::from_file(*ephemeral).map_err(|_| failed())?;
            secret.agree_v1(&ephemeral).map_err(|_| failed())?
        }
    };
    Ok((key, block, sealed))
}
