//! Streaming encryption.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::chunks::MessageKey;
use super::{CHUNK_LEN, ChunkedLayout, SEALED_CHUNK_LEN};
use crate::encrypt::aead::Tag;
use crate::encrypt::file_key::FileKey;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::{Secret, redacted};

/// Seals a message that comes in pieces of any size; keeps less than one chunk of it.
///
/// The output is the same however the message is cut up. `ChunkedWriter` (feature `std`) does the same between
/// a writer and `std::io::Write`.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{ChunkedEncryptor, FileKey};
///
/// let key = FileKey::generate(rng)?;
/// let mut sealed = Vec::new();
/// let mut encryptor = ChunkedEncryptor::new(&key, rng, b"header", &mut sealed)?;
/// encryptor.update(b"wei", &mut sealed)?;
/// encryptor.update(b"ghts", &mut sealed)?;
/// encryptor.finish(&mut sealed)?;
/// assert_eq!(key.open_chunked(b"header", &sealed)?, b"weights");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[must_use = "a message without its last chunk does not open"]
pub struct ChunkedEncryptor {
    key: Box<MessageKey>,
    /// Number of the chunk that is being filled.
    idx: u64,
    pending: Secret<CHUNK_LEN>,
    pending_len: usize,
}

impl ChunkedEncryptor {
    /// Begins a message under a new salt and appends its header to `out`. Salt and key together are used for this
    /// message alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn new(
        file_key: &FileKey,
        rng: &mut (impl Rng + ?Sized),
        context: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Self, Error> {
        let (key, header) = MessageKey::begin(file_key, rng, context)?;
        out.extend_from_slice(&header);
        Ok(Self { key: Box::new(key), idx: 0, pending: Secret::zeroed(), pending_len: 0 })
    }

    /// Takes the next piece and appends the chunks that are full to `out`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLong`] beyond [`ChunkedLayout::MAX_PLAINTEXT_LEN`], [`ErrorKind::OutOfMemory`]. Nothing is taken or
    /// appended then.
    pub fn update(&mut self, mut data: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let total = self.idx * CHUNK_LEN as u64 + self.pending_len as u64;
        let total = total.saturating_add(data.len() as u64);
        ChunkedLayout::of_plaintext(total)?;
        let full = (self.pending_len + data.len() % CHUNK_LEN) / CHUNK_LEN + data.len() / CHUNK_LEN;
        reserve(out, full.saturating_mul(SEALED_CHUNK_LEN))?;

        if self.pending_len > 0 {
            let (_, free) = self.pending.bytes_mut().split_at_mut(self.pending_len);
            let (now, rest) = data.split_at(free.len().min(data.len()));
            free.iter_mut().zip(now).for_each(|(to, from)| *to = *from);
            self.pending_len += now.len();
            data = rest;
            if self.pending_len < CHUNK_LEN {
                return Ok(());
            }
            self.key.append(self.idx, self.pending.bytes(), out)?;
            self.idx += 1;
            self.pending_len = 0;
        }
        let n_full = data.len() / CHUNK_LEN;
        let (run, rest) = data.split_at(n_full * CHUNK_LEN);
        self.key.append_run(self.idx, run, out)?;
        self.idx += n_full as u64;
        self.pending.bytes_mut().iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        self.pending_len = rest.len();
        Ok(())
    }

    /// Appends the last chunk to `out`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfMemory`].
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), Error> {
        let (last, _) = self.pending.bytes().split_at(self.pending_len);
        reserve(out, last.len() + Tag::LEN)?;
        self.key.append(self.idx, last, out)
    }

    #[cfg(test)]
    pub(super) fn skip_to(&mut self, idx: u64) {
        self.idx = idx;
    }
}

redacted!(ChunkedEncryptor);

fn reserve(out: &mut Vec<u8>, len: usize) -> Result<(), Error> {
    out.try_reserve(len).map_err(|_| ErrorKind::OutOfMemory { len: len as u64 }.into())
}
