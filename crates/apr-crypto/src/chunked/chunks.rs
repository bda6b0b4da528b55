//! Keys of a message, and runs of full chunks under them.

use aes_gcm::Aes256Gcm;
use aes_gcm::aead::KeyInit;
use aes_gcm::aead::inout::InOutBuf;

use super::{CHUNK_LEN, COMMITMENT_LEN, SALT_LEN, SEALED_CHUNK_LEN};
use crate::aead::{Nonce, Tag, decrypt, encrypt};
use crate::array::split;
use crate::error::{Error, ErrorKind};
use crate::file_key::FileKey;
use crate::kdf::expand_sha512;
use crate::secret::Secret;

const INFO: &[u8] = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0";

/// Fewer chunks than this are not worth waking another core for.
#[cfg(feature = "rayon")]
const PARALLEL_FROM: usize = 8;

/// The key of one message, and where its nonces begin.
pub(super) struct MessageKey {
    cipher: Aes256Gcm,
    base_nonce: [u8; Nonce::LEN],
}

impl MessageKey {
    /// Key, base nonce and commitment of a message.
    pub(super) fn derive(
        file_key: &FileKey,
        salt: &[u8; SALT_LEN],
        context: &[u8],
    ) -> Result<(Self, [u8; COMMITMENT_LEN]), Error> {
        let mut material = Secret::<{ 32 + Nonce::LEN + COMMITMENT_LEN }>::zeroed();
        expand_sha512(file_key.bytes(), &[INFO, salt, context], material.bytes_mut())?;
        let (key, rest) = split::<{ 32 + Nonce::LEN + COMMITMENT_LEN }, 32, { Nonce::LEN + COMMITMENT_LEN }>(
            material.bytes(),
        );
        let (base_nonce, commitment) = split(rest);
        let message = Self { cipher: Aes256Gcm::new(key.into()), base_nonce: *base_nonce };
        Ok((message, *commitment))
    }

    /// The base nonce XOR the chunk's number, big-endian.
    fn nonce(&self, idx: u64) -> [u8; Nonce::LEN] {
        let mut nonce = self.base_nonce;
        for (byte, number) in nonce.iter_mut().rev().zip(idx.to_le_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Seals one chunk into `out`, which is longer by a tag.
    pub(super) fn seal(&self, idx: u64, plaintext: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let (body, tag) = out.split_at_mut(plaintext.len());
        let buffer = InOutBuf::new(plaintext, body).expect("split to the same length");
        tag.copy_from_slice(&encrypt(&self.cipher, &self.nonce(idx), &[], buffer)?.to_bytes());
        Ok(())
    }

    /// Opens one chunk into `out`, which is shorter by a tag and does not change if the tag does not match.
    pub(super) fn open(&self, idx: u64, sealed: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let (body, tag) = sealed.split_last_chunk::<{ Tag::LEN }>().ok_or(ErrorKind::Open)?;
        let buffer = InOutBuf::new(body, out).map_err(|_| ErrorKind::Open)?;
        decrypt(&self.cipher, &self.nonce(idx), &[], buffer, tag)
    }

    /// Seals full chunks, on all cores if there are many.
    pub(super) fn seal_run(&self, first: u64, plaintext: &[u8], out: &mut [u8]) -> Result<(), Error> {
        #[cfg(feature = "rayon")]
        if plaintext.len() >= PARALLEL_FROM * CHUNK_LEN {
            use rayon::prelude::*;
            return plaintext
                .par_chunks(CHUNK_LEN)
                .with_min_len(PARALLEL_FROM / 2)
                .zip(out.par_chunks_mut(SEALED_CHUNK_LEN))
                .enumerate()
                .try_for_each(|(idx, (plaintext, out))| self.seal(first + idx as u64, plaintext, out));
        }
        let chunks = plaintext.chunks(CHUNK_LEN).zip(out.chunks_mut(SEALED_CHUNK_LEN));
        (first..).zip(chunks).try_for_each(|(idx, (plaintext, out))| self.seal(idx, plaintext, out))
    }

    /// Opens full chunks, on all cores if there are many.
    pub(super) fn open_run(&self, first: u64, sealed: &[u8], out: &mut [u8]) -> Result<(), Error> {
        #[cfg(feature = "rayon")]
        if out.len() >= PARALLEL_FROM * CHUNK_LEN {
            use rayon::prelude::*;
            return sealed
                .par_chunks(SEALED_CHUNK_LEN)
                .with_min_len(PARALLEL_FROM / 2)
                .zip(out.par_chunks_mut(CHUNK_LEN))
                .enumerate()
                .try_for_each(|(idx, (sealed, out))| self.open(first + idx as u64, sealed, out));
        }
        let chunks = sealed.chunks(SEALED_CHUNK_LEN).zip(out.chunks_mut(CHUNK_LEN));
        (first..).zip(chunks).try_for_each(|(idx, (sealed, out))| self.open(idx, sealed, out))
    }
}

#[cfg(test)]
impl MessageKey {
    /// The base nonce, for vectors that give it.
    pub(super) fn base_nonce(&self) -> [u8; Nonce::LEN] {
        self.base_nonce
    }
}
