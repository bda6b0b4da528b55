//! RustCrypto's implementation: AES instructions where the CPU has them, bit-sliced elsewhere.

use aes_gcm::aead::{AeadInOut, KeyInit};
use aes_gcm::{Aes256Gcm, P_MAX};

use super::{NONCE_LEN, TAG_LEN};
use crate::error::{Error, ErrorKind};

/// A key, expanded; wiped when dropped.
pub(crate) struct Cipher(Aes256Gcm);

#[cfg_attr(feature = "ring", allow(dead_code, reason = "sealing is the other implementation's task then"))]
impl Cipher {
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self(Aes256Gcm::new(key.into()))
    }

    /// Encrypts in place.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; NONCE_LEN],
        associated_data: &[u8],
        buffer: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Error> {
        let len = buffer.len() as u64;
        let tag = self.0.encrypt_inout_detached(nonce.into(), associated_data, buffer.into());
        let tag = tag.map_err(|_| ErrorKind::TooLong { what: "the message", len, limit: P_MAX })?;
        Ok(tag.into())
    }

    /// Decrypts in place. The buffer does not change unless the tag matches.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        associated_data: &[u8],
        buffer: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Error> {
        let opened = self.0.decrypt_inout_detached(nonce.into(), associated_data, buffer.into(), tag.into());
        opened.map_err(|_| ErrorKind::Open.into())
    }
}
