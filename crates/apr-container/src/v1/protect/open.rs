//! Encrypted and signed files to models.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::path::Path;

use apr_crypto::{
    Access, AesKey, Argon2Cost, DecryptionKey, EphemeralPublic, ErrorKind as CryptoErrorKind,
    RecipientPublic, Salt, Signer,
};
#[cfg(feature = "std")]
use apr_crypto::{Password, RecipientSecret, Trust};

use super::binding::Surroundings;
#[cfg(feature = "std")]
use super::streamed::check_before_reading;
use super::trust::verify_block;
use super::{COMMITMENT_KEY, COMMITMENT_LABEL};
use crate::codec::{DecodePayload, SliceSource};
use crate::compression::{Bound, decompress};
use crate::error::{Error, ErrorKind};
use crate::limits::{ReadOptions, UncheckedSignature};
#[cfg(feature = "std")]
use crate::model_type::ModelType;
use crate::v1::candidates::Candidates;
use crate::v1::container::{Container, EncryptedPayload, Payload};
use crate::v1::header::HEADER_LEN;
use crate::v1::load::{Expect, check_type};

/// A model out of a protected file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened<'k, M> {
    /// The model.
    pub model: M,
    /// Who signed the file, if a signature was demanded.
    pub signer: Option<Signer<'k>>,
}

/// Opens a protected file: its signature is verified before anything of it is decrypted, and its payload decrypted before
/// anything of it is decoded.
///
/// Strict reading demands what [`to_vec_protected`](super::to_vec_protected) writes: that the payload is bound to header
/// and metadata. Files of other makes lack that; `ReadOptions::COMPAT` opens them.
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`] and of decoding; [`ErrorKind::NotSigned`], [`ErrorKind::SignatureInvalid`],
/// [`ErrorKind::UntrustedSigner`], [`ErrorKind::SignatureUnchecked`]; [`ErrorKind::Encrypted`] without a key for an
/// encrypted payload, [`ErrorKind::NotEncrypted`] with one for a plain one; [`ErrorKind::DecryptionFailed`] for another key
/// and for damage alike; [`ErrorKind::Rebound`], and in strict reading [`ErrorKind::Unbound`].
pub fn open_protected<'k, M: DecodePayload>(
    file: &[u8],
    expect: impl Into<Expect>,
    access: &Access<'k>,
    options: &ReadOptions,
) -> Result<Opened<'k, M>, Error> {
    let container = Container::from_bytes_with(file, options)?;
    let signer = verified(&container, access, options)?;
    check_type::<M>(container.header(), expect.into())?;
    let model = match (container.payload(), access.key()) {
        (Payload::Plain(payload), None) => payload.decode()?,
        (Payload::Plain(_), Some(_)) => return Err(ErrorKind::NotEncrypted.at(21)),
        (Payload::Encrypted(_), None) => return Err(ErrorKind::Encrypted.at(21)),
        (Payload::Encrypted(payload), Some(key)) => decrypt(&container, payload, key, options)?,
    };
    Ok(Opened { model, signer })
}

/// Verifies the signature that is demanded; one that is there and not demanded is an error in strict reading.
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

fn decrypt<M: DecodePayload>(
    container: &Container<'_>,
    payload: EncryptedPayload<'_>,
    key: DecryptionKey<'_>,
    options: &ReadOptions,
) -> Result<M, Error> {
    let (header, metadata) = (container.header(), container.metadata_bytes());
    let Plaintext { bytes, payload_len } = plaintext(container, payload, key, options)?;
    let payload = bytes.get(..payload_len).unwrap_or_default();
    Candidates::new(header, metadata, options)?
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

/// Decrypts a payload, and compares its binding with what is around it.
pub(super) fn plaintext(
    container: &Container<'_>,
    payload: EncryptedPayload<'_>,
    key: DecryptionKey<'_>,
    options: &ReadOptions,
) -> Result<Plaintext, Error> {
    let (header, metadata) = (container.header(), container.metadata_bytes());
    let at = (HEADER_LEN + metadata.len()) as u64;
    let commitment = commitment(container, options)?;
    let (key, key_block, sealed) = unlock(key, payload.stored(), at)?;
    // Before the ciphertext is touched: one that two keys open has one meaning here.
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

/// The commitment that the metadata hold.
fn commitment(container: &Container<'_>, options: &ReadOptions) -> Result<Option<Vec<u8>>, Error> {
    let metadata = match container.metadata() {
        Ok(metadata) => metadata,
        Err(error) if options.is_strict() => return Err(error),
        Err(_) => return Ok(None),
    };
    let stored = metadata.custom.get(COMMITMENT_KEY);
    // Something else under this key is no commitment to any key.
    Ok(stored.map(|value| {
        value.as_str().and_then(|text| base16ct::mixed::decode_vec(text).ok()).unwrap_or_default()
    }))
}

/// Wrong keys and damage are one error. What is wrong with this machine is another.
fn hide(error: apr_crypto::Error, at: u64) -> Error {
    match error.kind() {
        CryptoErrorKind::OutOfMemory { .. } => error.into(),
        _ => ErrorKind::DecryptionFailed.at(at),
    }
}

/// The key of the payload, the key block it begins with, and what follows.
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

/// Loads a model from a protected file.
///
/// # Errors
///
/// [`ErrorKind::File`], [`ErrorKind::Io`], and those of [`open_protected`].
#[cfg(feature = "std")]
pub fn load_protected<'k, M: DecodePayload>(
    path: impl AsRef<Path>,
    expect: impl Into<Expect>,
    access: &Access<'k>,
    options: &ReadOptions,
) -> Result<Opened<'k, M>, Error> {
    let regular = durable_file::open_regular(path.as_ref(), crate::v1::file::FILE_LEN_MAX)?;
    check_before_reading(regular.file(), regular.len(), access.trust(), options)?;
    open_protected(&regular.into_bytes()?, expect, access, options)
}

/// Loads a model that was saved for a password.
///
/// # Errors
///
/// As [`load_protected`], with [`ReadOptions::STRICT`].
#[cfg(feature = "std")]
pub fn load_encrypted<M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    password: &str,
) -> Result<M, Error> {
    let password = Password::from(password);
    let access = Access::default().with_password(&password);
    Ok(load_protected(path, model_type, &access, &ReadOptions::STRICT)?.model)
}

/// Loads a model that was saved for this recipient.
///
/// # Errors
///
/// As [`load_protected`], with [`ReadOptions::STRICT`].
#[cfg(feature = "std")]
pub fn load_as_recipient<M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    secret: &RecipientSecret,
) -> Result<M, Error> {
    let access = Access::default().with_recipient(secret);
    Ok(load_protected(path, model_type, &access, &ReadOptions::STRICT)?.model)
}

/// Loads a model if the file has a valid signature by a trusted key: one [`VerifyingKey`](apr_crypto::VerifyingKey), or one
/// of some [`TrustedKeys`](apr_crypto::TrustedKeys). With [`Trust::Anyone`] use [`load_protected`], which says so.
///
/// # Errors
///
/// As [`load_protected`], with [`ReadOptions::STRICT`].
#[cfg(feature = "std")]
pub fn load_verified<'k, M: DecodePayload>(
    path: impl AsRef<Path>,
    model_type: ModelType,
    trust: impl Into<Trust<'k>>,
) -> Result<M, Error> {
    let access = Access::default().with_trust(trust);
    Ok(load_protected(path, model_type, &access, &ReadOptions::STRICT)?.model)
}
