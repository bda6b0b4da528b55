//! Random access to a sealed message.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use read_at::{ReadAt, check_range};

use super::chunks::MessageKey;
use super::{CHUNK_LEN, COMMITMENT_LEN, ChunkedLayout, HEADER_LEN, SALT_LEN, SEALED_CHUNK_LEN};
use crate::array::split;
use crate::encrypt::aead::try_with_capacity;
use crate::encrypt::file_key::FileKey;
use crate::error::{Error, ErrorKind};
use crate::secret::{Secret, constant_time_eq};

/// Chunks that are read from the source at once: as many as stay in a core's cache until they are opened.
const BATCH: usize = 16;

/// The same where all cores open them.
#[cfg(feature = "rayon")]
const PARALLEL_BATCH: usize = 64;

/// A sealed message over any source, opened where it is read.
///
/// Opening it reads the header and the last chunk, so that the key is the right one and the length is authentic.
/// Reading `[a, b)` reads and opens the chunks this range touches and no other, and returns no byte whose chunk is
/// not authentic. A chunk cannot be moved, left out, doubled or taken from another message. The reader is itself a
/// [`ReadAt`], of the plaintext.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{ChunkedReader, FileKey};
/// use read_at::ReadAt;
///
/// let key = FileKey::generate(rng)?;
/// let sealed = key.seal_chunked(rng, b"header", &[7; 100_000])?;
/// let reader = ChunkedReader::open(&sealed, &key, b"header")?;
/// assert_eq!(reader.total_len(), 100_000);
/// let mut out = [0; 10];
/// reader.read_exact_at(50_000, &mut out)?;
/// assert_eq!(out, [7; 10]);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
pub struct ChunkedReader<R> {
    source: R,
    layout: ChunkedLayout,
    key: Arc<MessageKey>,
}

impl<R: ReadAt> ChunkedReader<R> {
    /// Opens a message that fills the source; see [`Window`](read_at::Window) for one that is a part of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ChunkedLength`] for a length that no message has; [`ErrorKind::Open`] if key or context is another
    /// one or the header, the length or the last chunk was changed; errors of the source.
    pub fn open(source: R, file_key: &FileKey, context: &[u8]) -> Result<Self, Error> {
        let reader = Self::open_of_known_len(source, file_key, context)?;
        reader.with_chunk(reader.layout.n_chunks() - 1, |_| ())?;
        Ok(reader)
    }

    /// As [`open`](Self::open), without the last chunk, which authenticates the length: for a message whose length is known to be right,
    /// as that of signed content is.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), but for the length and the last chunk.
    pub fn open_of_known_len(source: R, file_key: &FileKey, context: &[u8]) -> Result<Self, Error> {
        let layout = ChunkedLayout::of_sealed(source.total_len())?;
        let mut header = [0; HEADER_LEN];
        source.read_exact_at(0, &mut header)?;
        let (salt, stored) = split::<HEADER_LEN, SALT_LEN, COMMITMENT_LEN>(&header);
        let (key, commitment) = MessageKey::derive(file_key, salt, context)?;
        if !constant_time_eq(&commitment, stored) {
            return Err(ErrorKind::Open.into());
        }
        Ok(Self { source, layout, key: Arc::new(key) })
    }

    /// The message's lengths.
    #[must_use]
    pub const fn layout(&self) -> &ChunkedLayout {
        &self.layout
    }

    /// The opened message without its source.
    #[must_use]
    pub fn message(&self) -> ChunkedMessage {
        ChunkedMessage { layout: self.layout, key: self.key.clone() }
    }

    /// Opens one chunk and lets `look` see its plaintext.
    fn with_chunk<T>(&self, idx: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        let place = self.layout.chunk(idx);
        let (mut sealed, mut plain) = (try_with_capacity(SEALED_CHUNK_LEN)?, Secret::<CHUNK_LEN>::zeroed());
        // A chunk is no longer than that, and no shorter than its tag.
        let len = usize::try_from(place.end - place.start).unwrap_or(SEALED_CHUNK_LEN);
        sealed.resize(len.min(SEALED_CHUNK_LEN), 0);
        self.source.read_exact_at(place.start, &mut sealed)?;
        let (plain, _) = plain.bytes_mut().split_at_mut(sealed.len().saturating_sub(crate::Tag::LEN));
        self.key.open(idx, &sealed, plain)?;
        Ok(look(plain))
    }

    /// Fills `out` from the middle of chunk `idx`.
    fn read_part(&self, idx: u64, from: usize, out: &mut [u8]) -> Result<(), Error> {
        self.with_chunk(idx, |plain| {
            let part = plain.get(from..).and_then(|rest| rest.get(..out.len()));
            out.copy_from_slice(part.expect("the range was checked against the plaintext"));
        })
    }

    /// Fills `out` with whole chunks from `idx` on.
    fn read_run(&self, mut idx: u64, out: &mut [u8]) -> Result<(), Error> {
        if out.is_empty() {
            return Ok(());
        }
        if let Some(all) = self.source.in_memory() {
            let begin = usize::try_from(self.layout.chunk(idx).start).ok();
            let rest = begin.and_then(|begin| all.get(begin..));
            let run = rest.and_then(|rest| rest.get(..out.len() / CHUNK_LEN * SEALED_CHUNK_LEN));
            return self.key.open_run(idx, run.ok_or(ErrorKind::Open)?, out);
        }
        #[cfg(feature = "rayon")]
        let batch = if super::chunks::is_parallel(out.len()) { PARALLEL_BATCH } else { BATCH };
        #[cfg(not(feature = "rayon"))]
        let batch = BATCH;
        let mut sealed = try_with_capacity(batch.min(out.len() / CHUNK_LEN) * SEALED_CHUNK_LEN)?;
        for run in out.chunks_mut(batch * CHUNK_LEN) {
            let n_chunks = run.len() / CHUNK_LEN;
            sealed.resize(n_chunks * SEALED_CHUNK_LEN, 0);
            self.source.read_exact_at(self.layout.chunk(idx).start, &mut sealed)?;
            self.key.open_run(idx, &sealed, run)?;
            idx += n_chunks as u64;
        }
        Ok(())
    }

    /// Fills `out` with the plaintext that begins at `offset`; with zeros if anything is wrong with any of it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`]; [`ErrorKind::Open`] if a chunk is not authentic; errors of the source.
    pub fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        check_range(offset, out.len(), self.layout.plaintext_len())?;
        self.read(offset, out).inspect_err(|_| out.fill(0))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let (mut idx, from) = (offset / CHUNK_LEN as u64, (offset % CHUNK_LEN as u64) as usize);
        let mut rest = out;
        if from > 0 {
            let (part, after) = rest.split_at_mut((CHUNK_LEN - from).min(rest.len()));
            if !part.is_empty() {
                self.read_part(idx, from, part)?;
            }
            rest = after;
            idx += 1;
        }
        let (whole, tail) = rest.split_at_mut(rest.len() / CHUNK_LEN * CHUNK_LEN);
        let n_chunks = (whole.len() / CHUNK_LEN) as u64;
        self.read_run(idx, whole)?;
        idx += n_chunks;
        if tail.is_empty() { Ok(()) } else { self.read_part(idx, 0, tail) }
    }
}

impl ChunkedReader<&[u8]> {
    /// The whole plaintext of a message in memory, without a copy of its chunks.
    pub(super) fn into_vec(self) -> Result<Vec<u8>, Error> {
        let len = self.layout.plaintext_len();
        let len = usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory { len })?;
        let (_, sealed) = self.source.split_at_checked(HEADER_LEN).ok_or(ErrorKind::Open)?;
        #[cfg(feature = "rayon")]
        if super::chunks::is_parallel(len) {
            let full = len / CHUNK_LEN;
            let (run, last) = sealed.split_at_checked(full * SEALED_CHUNK_LEN).ok_or(ErrorKind::Open)?;
            let mut plaintext = self.key.open_new(run)?;
            self.key.append_open(full as u64, last, &mut plaintext)?;
            return Ok(plaintext);
        }
        let mut plaintext = try_with_capacity(len)?;
        let mut chunks = (0..).zip(sealed.chunks(SEALED_CHUNK_LEN));
        chunks.try_for_each(|(idx, chunk)| self.key.append_open(idx, chunk, &mut plaintext))?;
        Ok(plaintext)
    }
}

impl<R: ReadAt> ReadAt for ChunkedReader<R> {
    /// Length of the plaintext.
    fn total_len(&self) -> u64 {
        self.layout.plaintext_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        Ok(self.read_exact_at(offset, out)?)
    }

    /// The source is told of whole chunks.
    fn will_read(&self, range: Range<u64>) {
        let sealed = self.layout.sealed_range(range.start, range.end.saturating_sub(range.start));
        if let Ok(sealed) = sealed {
            self.source.will_read(sealed);
        }
    }
}

impl<R> fmt::Debug for ChunkedReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkedReader").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// A message that was opened once, to be read over other sources of the same bytes: one that keeps what it read last, a
/// new connection. Each chunk is authenticated wherever it comes from.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{ChunkedReader, FileKey};
/// use read_at::ReadAt;
///
/// let key = FileKey::generate(rng)?;
/// let sealed = key.seal_chunked(rng, b"header", b"weights")?;
/// let message = ChunkedReader::open(&sealed, &key, b"header")?.message();
///
/// let elsewhere = sealed.clone();
/// let mut out = [0; 7];
/// message.over(elsewhere)?.read_exact_at(0, &mut out)?;
/// assert_eq!(&out, b"weights");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone)]
pub struct ChunkedMessage {
    layout: ChunkedLayout,
    key: Arc<MessageKey>,
}

impl ChunkedMessage {
    /// The message's lengths.
    #[must_use]
    pub const fn layout(&self) -> &ChunkedLayout {
        &self.layout
    }

    /// A reader over `source`. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`] if the source has another length than the message.
    pub fn over<R: ReadAt>(&self, source: R) -> Result<ChunkedReader<R>, Error> {
        if source.total_len() != self.layout.sealed_len() {
            return Err(ErrorKind::Open.into());
        }
        Ok(ChunkedReader { source, layout: self.layout, key: self.key.clone() })
    }
}

impl fmt::Debug for ChunkedMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkedMessage").field("layout", &self.layout).finish_non_exhaustive()
    }
}
