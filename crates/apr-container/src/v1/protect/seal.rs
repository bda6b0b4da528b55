//! Models to encrypted and signed files.

use alloc::vec::Vec;
#[cfg(feature = "std")]
use std::io::Write as _;
#[cfg(feature = "std")]
use std::path::Path;

#[cfg(feature = "std")]
use apr_crypto::OsRandom;
use apr_crypto::{AesKey, Argon2Cost, Nonce, Password, RecipientPublic, Rng, Salt, SigningKey};

use super::binding::{self, Surroundings};
use super::{COMMITMENT_KEY, COMMITMENT_LABEL, MODE_KEY, PASSWORD_MODE, RECIPIENT_MODE};
use crate::codec::{EncodePayload, Sink as _};
use crate::crc::crc32;
use crate::error::{Error, ErrorKind};
use crate::metadata::{Metadata, Value};
use crate::model_type::ModelType;
use crate::v1::flags::Flags;
use crate::v1::header::HEADER_LEN;
use crate::v1::save::{Plan, SaveOptions};

/// How to protect a file: encrypted for a password or a recipient, signed, or both. What is signed is the file with the
/// encrypted payload, so that it can be verified without the key to read it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Protection<'k> {
    lock: Option<Lock<'k>>,
    signer: Option<&'k SigningKey>,
}

#[derive(Clone, Copy, Debug)]
enum Lock<'k> {
    Password(&'k Password),
    Recipient(&'k RecipientPublic),
}

impl<'k> Protection<'k> {
    /// Encrypted for whoever knows the password: AES-256-GCM under a key of Argon2id (19 MiB, two passes; tens of
    /// milliseconds).
    #[must_use]
    pub const fn with_password(mut self, password: &'k Password) -> Self {
        self.lock = Some(Lock::Password(password));
        self
    }

    /// Encrypted for whoever has the secret half of this key.
    #[must_use]
    pub const fn for_recipient(mut self, recipient: &'k RecipientPublic) -> Self {
        self.lock = Some(Lock::Recipient(recipient));
        self
    }

    /// Signed with this key (Ed25519).
    #[must_use]
    pub const fn signed_by(mut self, key: &'k SigningKey) -> Self {
        self.signer = Some(key);
        self
    }

    /// A new key if one is asked for, and the metadata that go with it; those of a file that was read once are taken out.
    pub(super) fn lock(
        &self,
        metadata: &mut Metadata,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Option<Locked>, Error> {
        metadata.custom.remove(COMMITMENT_KEY);
        metadata.custom.remove(MODE_KEY);
        let locked = self.lock.map(|lock| lock.make(rng)).transpose()?;
        if let Some(Locked { key, mode, .. }) = &locked {
            let commitment = base16ct::lower::encode_string(&key.commitment(COMMITMENT_LABEL).to_bytes());
            metadata.custom.insert(COMMITMENT_KEY.into(), Value::from(commitment.as_str()));
            metadata.custom.insert(MODE_KEY.into(), Value::from(*mode));
        }
        Ok(locked)
    }

    pub(super) const fn signer(&self) -> Option<&'k SigningKey> {
        self.signer
    }
}

/// A new key and what the file says of it.
pub(super) struct Locked {
    key: AesKey,
    /// Salt, or ephemeral key and recipient: the beginning of the stored payload.
    key_block: Vec<u8>,
    mode: &'static str,
}

impl Lock<'_> {
    fn make(self, rng: &mut (impl Rng + ?Sized)) -> Result<Locked, Error> {
        Ok(match self {
            Self::Password(password) => {
                if password.is_empty() {
                    return Err(
                        ErrorKind::Limit { what: "length of the password", found: 0, limit: 1 }.into()
                    );
                }
                let salt = Salt::generate(rng)?;
                let key = password.derive_key(&salt, &Argon2Cost::APR_V1)?;
                Locked { key, key_block: salt.to_bytes().to_vec(), mode: PASSWORD_MODE }
            }
            Self::Recipient(recipient) => {
                let (ephemeral, key) = recipient.agree_v1(rng)?;
                let key_block = [ephemeral.to_bytes().as_slice(), &recipient.id()].concat();
                Locked { key, key_block, mode: RECIPIENT_MODE }
            }
        })
    }
}

/// The model as the bytes of a protected file. Salts, nonces and ephemeral keys come from `rng`: two files of one model
/// differ.
///
/// ```
/// use apr_container::{Expect, ModelType, Protection, ReadOptions, SaveOptions};
/// use apr_crypto::{Access, Signer, Trust};
/// use apr_container::{open_protected, to_vec_protected};
/// use apr_crypto::{OsRandom, RecipientSecret, SigningKey};
/// # use apr_container::{DecodePayload, EncodePayload, Error, PayloadReader, PayloadWriter};
/// # struct Weights(Vec<f32>);
/// # impl EncodePayload for Weights {
/// #     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> { out.f32s(&self.0) }
/// # }
/// # impl DecodePayload for Weights {
/// #     fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> { Ok(Self(input.f32s()?)) }
/// # }
///
/// let (seller, buyer) = (SigningKey::generate(&mut OsRandom)?, RecipientSecret::generate(&mut OsRandom)?);
/// let buyer_public = buyer.public();
/// let protection = Protection::default().for_recipient(&buyer_public).signed_by(&seller);
/// let options = SaveOptions::default();
/// let file = to_vec_protected(&Weights(vec![0.5]), ModelType::Custom, &options, &protection, &mut OsRandom)?;
///
/// let seller_public = seller.verifying_key();
/// let access = Access::default().with_recipient(&buyer).with_trust(&seller_public);
/// let opened = open_protected::<Weights>(&file, ModelType::Custom, &access, &ReadOptions::STRICT)?;
/// assert_eq!(opened.model.0, [0.5]);
/// assert_eq!(opened.signer, Some(Signer::Trusted(None)));
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`to_vec`](crate::to_vec); [`ErrorKind::Limit`] for an empty password; [`ErrorKind::Crypto`] if there is no
/// randomness, no memory for the password, or the recipient's key protects nothing.
pub fn to_vec_protected<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    options: &SaveOptions,
    protection: &Protection<'_>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<u8>, Error> {
    let mut options = options.clone();
    let locked = protection.lock(&mut options.metadata, rng)?;
    let plan = Plan::new(model, model_type, &options)?;
    seal(model, plan, &options, locked.as_ref(), protection.signer, rng)
}

/// The bytes of a planned file.
pub(super) fn seal<M: EncodePayload + ?Sized>(
    model: &M,
    mut plan: Plan,
    options: &SaveOptions,
    locked: Option<&Locked>,
    signer: Option<&SigningKey>,
    rng: &mut (impl Rng + ?Sized),
) -> Result<Vec<u8>, Error> {
    let signer = signer.map(|key| (key, key.verifying_key()));
    if signer.is_some() {
        plan.flags = plan.flags.with(Flags::SIGNED);
    }
    let mut file = Vec::from([0; HEADER_LEN]);
    file.extend_from_slice(&plan.metadata);
    let payload_at = file.len();
    if let Some(Locked { key, key_block, .. }) = locked {
        plan.flags = plan.flags.with(Flags::ENCRYPTED);
        plan.trailer_len = binding::LEN as u64;
        let header = plan.header(0, options)?;
        let signer = signer.as_ref().map_or([0; 32], |(_, public)| *public.as_bytes());
        let surroundings = Surroundings { header: &header, metadata: &plan.metadata, key_block, signer };
        file.extend_from_slice(key_block);
        let nonce_at = file.len();
        file.extend_from_slice(&[0; Nonce::LEN]);
        let ciphertext_at = file.len();
        plan.write_payload(model, options, &surroundings.binding(), &mut file)?;
        let (nonce, tag) = key.seal_in_place(rng, b"", file.get_mut(ciphertext_at..).unwrap_or_default())?;
        let place = file.get_mut(nonce_at..ciphertext_at).unwrap_or_default();
        place.copy_from_slice(&nonce.to_bytes());
        file.extend_from_slice(&tag.to_bytes());
    } else {
        plan.write_payload(model, options, &[], &mut file)?;
    }
    let header = plan.header((file.len() - payload_at) as u64, options)?;
    if let Some(place) = file.first_chunk_mut() {
        *place = header.to_bytes();
    }
    if let Some((key, public)) = &signer {
        let signature = key.sign(&file);
        file.put(&signature.to_bytes())?;
        file.put(public.as_bytes())?;
    }
    let crc = crc32(&file);
    file.put(&crc.to_le_bytes())?;
    Ok(file)
}

/// Saves a protected model, replacing the file at `path` if there is one, as [`save`](crate::save()) does.
///
/// # Errors
///
/// Those of [`to_vec_protected`], [`ErrorKind::File`], [`ErrorKind::Io`].
#[cfg(feature = "std")]
pub fn save_protected<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions,
    protection: &Protection<'_>,
) -> Result<(), Error> {
    let file = to_vec_protected(model, model_type, &options, protection, &mut OsRandom)?;
    let mut replacement = durable_file::Replacement::create(path.as_ref())?;
    replacement.write_all(&file)?;
    Ok(replacement.commit()?)
}

/// Saves a model for whoever knows the password.
///
/// # Errors
///
/// As [`save_protected`].
#[cfg(feature = "std")]
pub fn save_encrypted<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions,
    password: &str,
) -> Result<(), Error> {
    let password = Password::from(password);
    save_protected(model, model_type, path, options, &Protection::default().with_password(&password))
}

/// Saves a model for whoever has the secret half of the recipient's key.
///
/// # Errors
///
/// As [`save_protected`].
#[cfg(feature = "std")]
pub fn save_for_recipient<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions,
    recipient: &RecipientPublic,
) -> Result<(), Error> {
    save_protected(model, model_type, path, options, &Protection::default().for_recipient(recipient))
}

/// Saves a model with a signature.
///
/// # Errors
///
/// As [`save_protected`].
#[cfg(feature = "std")]
pub fn save_signed<M: EncodePayload + ?Sized>(
    model: &M,
    model_type: ModelType,
    path: impl AsRef<Path>,
    options: SaveOptions,
    key: &SigningKey,
) -> Result<(), Error> {
    save_protected(model, model_type, path, options, &Protection::default().signed_by(key))
}
