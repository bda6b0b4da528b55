//! Chunked encryption with random access: C2SP chunked-encryption, the instance Cobblestone-256.
//!
//! <https://c2sp.org/chunked-encryption>: HKDF-Expand-SHA-512 and AES-256-GCM. A sealed message is
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 24 | salt |
//! | 24 | 32 | commitment to the key |
//! | 56 + 16,400 k | 16,400 | chunk k: 16,384 bytes and a tag; the last is shorter, 16 to 16,399 |

mod chunks;
mod encryptor;
mod geometry;
mod reader;
#[cfg(feature = "std")]
mod writer;

use alloc::vec::Vec;

pub use encryptor::ChunkedEncryptor;
pub use geometry::ChunkedLayout;
pub use reader::{ChunkedMessage, ChunkedReader};
#[cfg(feature = "std")]
pub use writer::ChunkedWriter;

use crate::encrypt::aead::try_with_capacity;
use crate::encrypt::file_key::FileKey;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;

/// Plaintext of a full chunk.
const CHUNK_LEN: usize = 16_384;

/// Ciphertext of a full chunk.
const SEALED_CHUNK_LEN: usize = CHUNK_LEN + crate::Tag::LEN;

const SALT_LEN: usize = 24;
const COMMITMENT_LEN: usize = 32;
const HEADER_LEN: usize = SALT_LEN + COMMITMENT_LEN;

impl FileKey {
    /// Seals a message in chunks. `context` is bound into every chunk's key: the same bytes, for example the hash of a
    /// header, are needed to open it.
    ///
    /// ```
    /// # let rng = &mut apr_crypto::OsRandom;
    /// let key = apr_crypto::FileKey::generate(rng)?;
    /// let sealed = key.seal_chunked(rng, b"header", &[7; 20_000])?;
    /// assert_eq!(sealed.len(), 56 + 20_000 + 2 * 16);
    /// assert_eq!(key.open_chunked(b"header", &sealed)?, [7; 20_000]);
    /// assert_eq!(key.open_chunked(b"headex", &sealed).unwrap_err().code(), "cy-open");
    /// # Ok::<(), apr_crypto::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`], [`ErrorKind::OutOfMemory`].
    pub fn seal_chunked(
        &self,
        rng: &mut (impl Rng + ?Sized),
        context: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let len = sealed_len(plaintext)?;
        #[cfg(feature = "rayon")]
        if chunks::is_parallel(plaintext.len()) {
            let mut sealed = crate::encrypt::aead::zeroed(len)?;
            self.seal_chunked_into(rng, context, plaintext, &mut sealed)?;
            return Ok(sealed);
        }
        let mut sealed = try_with_capacity(len)?;
        let mut encryptor = ChunkedEncryptor::new(self, rng, context, &mut sealed)?;
        encryptor.update(plaintext, &mut sealed)?;
        encryptor.finish(&mut sealed)?;
        Ok(sealed)
    }

    /// Opens a whole message.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ChunkedLength`] for a length that no message has, [`ErrorKind::Open`] for everything else that is
    /// not right, [`ErrorKind::OutOfMemory`].
    pub fn open_chunked(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        ChunkedReader::open(sealed, self, context)?.into_vec()
    }

    /// Seals a message into a buffer of the caller: `out` is exactly as long as [`ChunkedLayout::sealed_len`] says.
    ///
    /// ```
    /// # let rng = &mut apr_crypto::OsRandom;
    /// let key = apr_crypto::FileKey::generate(rng)?;
    /// let layout = apr_crypto::ChunkedLayout::of_plaintext(20_000)?;
    /// let mut sealed = [0; 56 + 20_000 + 2 * 16];
    /// assert_eq!(sealed.len() as u64, layout.sealed_len());
    /// key.seal_chunked_into(rng, b"header", &[7; 20_000], &mut sealed)?;
    /// assert_eq!(key.open_chunked(b"header", &sealed)?, [7; 20_000]);
    /// # Ok::<(), apr_crypto::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ChunkedLength`] for another length of `out`, which is not written to then;
    /// [`ErrorKind::Randomness`].
    pub fn seal_chunked_into(
        &self,
        rng: &mut (impl Rng + ?Sized),
        context: &[u8],
        plaintext: &[u8],
        out: &mut [u8],
    ) -> Result<(), Error> {
        if out.len() != sealed_len(plaintext)? {
            return Err(ErrorKind::ChunkedLength { len: out.len() as u64 }.into());
        }
        let (key, header) = chunks::MessageKey::begin(self, rng, context)?;
        let n_full = plaintext.len() / CHUNK_LEN;
        let (full, last) = plaintext.split_at(n_full * CHUNK_LEN);
        let (front, body) = out.split_at_mut(HEADER_LEN);
        front.copy_from_slice(&header);
        let (run, end) = body.split_at_mut(n_full * SEALED_CHUNK_LEN);
        key.seal_run(0, full, run)?;
        key.seal(n_full as u64, last, end)
    }
}

/// Length of a message, once it is sealed.
fn sealed_len(plaintext: &[u8]) -> Result<usize, Error> {
    let len = ChunkedLayout::of_plaintext(plaintext.len() as u64)?.sealed_len();
    usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory { len }.into())
}

#[cfg(test)]
mod tests;
