//! Writing of encrypted and signed files.

use alloc::vec::Vec;

use apr_crypto::{AesKey, Argon2Cost, Nonce, Password, RecipientPublic, Rng, Salt, SigningKey};

use super::binding::{self, Surroundings};
use super::{COMMITMENT_KEY, COMMITMENT_LABEL, MODE_KEY, PASSWORD_MODE, RECIPIENT_MODE, remove_entries};
use crate::codec::{EncodePayload, Sink as _};
use crate::crc::crc32;
use crate::error::{Error, ErrorKind};
use crate::metadata::{Metadata, Value};
use crate::v1::flags::Flags;
use crate::v1::header::HEADER_LEN;
use crate::v1::save::{Plan, SaveOptions};

/// How to protect a file: encrypted with a password or to a recipient, signed, or both. The signature covers the encrypted
/// payload, so that it can be verified without a decryption key.
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
    /// Encrypted with a password: AES-256-GCM under a key of Argon2id (19 MiB, two passes; tens of
    /// milliseconds).
    #[must_use]
    pub const fn with_password(mut self, password: &'k Password) -> Self {
        self.lock = Some(Lock::Password(password));
        self
    }

    /// Encrypted to the holder of the secret key that belongs to this public key.
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

    /// A new key if the payload is to be encrypted, with its entries in the metadata. Entries of another file's protection are
    /// removed.
    pub(crate) fn lock(
        &self,
        metadata: &mut Metadata,
        rng: &mut (impl Rng + ?Sized),
    ) -> Result<Option<Locked>, Error> {
        remove_entries(metadata);
        let locked = self.lock.map(|lock| lock.make(rng)).transpose()?;
        if let Some(Locked { key, mode, .. }) = &locked {
            let commitment = base16ct::lower::encode_string(&key.commitment(COMMITMENT_LABEL).to_bytes());
            metadata.custom.insert(COMMITMENT_KEY.into(), Value::from(commitment.as_str()));
            metadata.custom.insert(MODE_KEY.into(), Value::from(*mode));
        }
        Ok(locked)
    }

    pub(crate) const fn is_none(&self) -> bool {
        self.lock.is_none() && self.signer.is_none()
    }

    pub(crate) const fn signer(&self) -> Option<&'k SigningKey> {
        self.signer
    }
}

/// A new encryption key and its entries in the file.
pub(crate) struct Locked {
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

/// The bytes of a planned file.
pub(crate) fn seal<M: EncodePayload + ?Sized>(
    model: &M,
    mut plan: Plan,
    options: &SaveOptions<'_>,
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
