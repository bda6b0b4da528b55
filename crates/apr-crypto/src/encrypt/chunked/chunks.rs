//! Keys of a message, and encryption of full chunks with them.

use alloc::vec::Vec;

use super::{CHUNK_LEN, COMMITMENT_LEN, HEADER_LEN, SALT_LEN, SEALED_CHUNK_LEN};
use crate::array::split;
use crate::encrypt::aead::{Nonce, Tag};
use crate::encrypt::cipher::Cipher;
use crate::encrypt::file_key::FileKey;
use crate::encrypt::kdf::expand_sha512;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::Secret;

const INFO: &[u8] = b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0";

/// Fewer chunks than this are not worth waking another core for.
#[cfg(feature = "rayon")]
const PARALLEL_FROM: usize = 8;

/// Chunks that are copied before they are opened in place: as many as the cores' shared cache still holds then.
#[cfg(feature = "rayon")]
const RUN: usize = 1024;

/// The key of one message, and where its nonces begin.
pub(super) struct MessageKey {
    cipher: Cipher,
    base_nonce: [u8; Nonce::LEN],
}

impl MessageKey {
    /// The key of a new message, under a new salt, and the message's header.
    pub(super) fn begin(
        file_key: &FileKey,
        rng: &mut (impl Rng + ?Sized),
        context: &[u8],
    ) -> Result<(Self, [u8; HEADER_LEN]), Error> {
        let mut header = [0; HEADER_LEN];
        let mut salt = [0; SALT_LEN];
        rng.fill(&mut salt)?;
        let (key, commitment) = Self::derive(file_key, &salt, context)?;
        let (front, back) = header.split_at_mut(SALT_LEN);
        front.copy_from_slice(&salt);
        back.copy_from_slice(&commitment);
        Ok((key, header))
    }

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
        let message = Self { cipher: Cipher::new(key), base_nonce: *base_nonce };
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
        body.copy_from_slice(plaintext);
        tag.copy_from_slice(&self.cipher.seal(&self.nonce(idx), &[], body)?);
        Ok(())
    }

    /// Seals one chunk and appends it to `out`: the plaintext is copied and encrypted in place. That is faster than to fill the
    /// place with zeros first, and than to encrypt from one place to another, by a third where both are in main memory.
    pub(super) fn append(&self, idx: u64, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let begin = out.len();
        out.extend_from_slice(plaintext);
        let sealed = self.cipher.seal(&self.nonce(idx), &[], out.split_at_mut(begin).1);
        if sealed.is_err() {
            // No plaintext stays where ciphertext should be.
            out.truncate(begin);
        }
        out.extend_from_slice(&sealed?);
        Ok(())
    }

    /// Opens one chunk into `out`, which is shorter by a tag and holds no plaintext if the tag does not match.
    pub(super) fn open(&self, idx: u64, sealed: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let (body, tag) = sealed.split_last_chunk::<{ Tag::LEN }>().ok_or(ErrorKind::Open)?;
        if body.len() != out.len() {
            return Err(ErrorKind::Open.into());
        }
        out.copy_from_slice(body);
        self.cipher.open(&self.nonce(idx), &[], out, tag)
    }

    /// Opens one chunk and appends it to `out`.
    pub(super) fn append_open(&self, idx: u64, sealed: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let (body, tag) = sealed.split_last_chunk::<{ Tag::LEN }>().ok_or(ErrorKind::Open)?;
        let begin = out.len();
        out.extend_from_slice(body);
        self.cipher.open(&self.nonce(idx), &[], out.split_at_mut(begin).1, tag)
    }

    /// Seals full chunks and appends them to `out`, whose capacity suffices, on all cores if there are many.
    pub(super) fn append_run(&self, first: u64, plaintext: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        #[cfg(feature = "rayon")]
        if is_parallel(plaintext.len()) {
            let begin = out.len();
            out.resize(begin + plaintext.len() / CHUNK_LEN * SEALED_CHUNK_LEN, 0);
            return self.seal_run(first, plaintext, out.split_at_mut(begin).1);
        }
        let mut chunks = (first..).zip(plaintext.chunks(CHUNK_LEN));
        chunks.try_for_each(|(idx, plaintext)| self.append(idx, plaintext, out))
    }

    /// Seals full chunks, on all cores if there are many.
    pub(super) fn seal_run(&self, first: u64, plaintext: &[u8], out: &mut [u8]) -> Result<(), Error> {
        #[cfg(feature = "rayon")]
        if is_parallel(plaintext.len()) {
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

    /// Opens full chunks into new memory with capacity for one more, on all cores: each core copies a part and opens it in place, so
    /// that the memory need not be zeroed first.
    #[cfg(feature = "rayon")]
    pub(super) fn open_new(&self, sealed: &[u8]) -> Result<Vec<u8>, Error> {
        use rayon::prelude::*;
        let n_chunks = sealed.len() / SEALED_CHUNK_LEN;
        let mut chunks = Vec::<[u8; CHUNK_LEN]>::new();
        let len = n_chunks.saturating_add(1).saturating_mul(CHUNK_LEN) as u64;
        chunks.try_reserve_exact(n_chunks + 1).map_err(|_| ErrorKind::OutOfMemory { len })?;
        for (first, run) in (0..).step_by(RUN).zip(sealed.chunks(RUN * SEALED_CHUNK_LEN)) {
            let run = run.par_chunks(SEALED_CHUNK_LEN);
            chunks.par_extend(run.clone().map(|sealed| *sealed.first_chunk().expect("longer by a tag")));
            let (_, copies) = chunks.split_at_mut(first);
            copies.par_iter_mut().with_min_len(PARALLEL_FROM / 2).zip(run).enumerate().try_for_each(
                |(idx, (copy, sealed))| {
                    let (_, tag) = sealed.split_last_chunk().ok_or(ErrorKind::Open)?;
                    self.cipher.open(&self.nonce((first + idx) as u64), &[], copy, tag)
                },
            )?;
        }
        Ok(chunks.into_flattened())
    }

    /// Opens full chunks, on all cores if there are many.
    pub(super) fn open_run(&self, first: u64, sealed: &[u8], out: &mut [u8]) -> Result<(), Error> {
        #[cfg(feature = "rayon")]
        if is_parallel(out.len()) {
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

/// Whether so many bytes of plaintext are worth waking other cores for, and there are any.
#[cfg(feature = "rayon")]
pub(super) fn is_parallel(len: usize) -> bool {
    len >= PARALLEL_FROM * CHUNK_LEN && rayon::current_num_threads() > 1
}

#[cfg(test)]
impl MessageKey {
    /// The base nonce, for vectors that give it.
    pub(super) fn base_nonce(&self) -> [u8; Nonce::LEN] {
        self.base_nonce
    }
}
