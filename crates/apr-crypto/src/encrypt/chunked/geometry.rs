//! Geometry of a sealed message: offsets of chunks.

use core::ops::Range;

use super::{CHUNK_LEN, HEADER_LEN, SEALED_CHUNK_LEN};
use crate::encrypt::aead::Tag;
use crate::error::{Error, ErrorKind};

/// Most chunks of one message; the last one is shorter than the others.
const MAX_CHUNKS: u64 = 1 << 38;

const CHUNK: u64 = CHUNK_LEN as u64;
const SEALED_CHUNK: u64 = SEALED_CHUNK_LEN as u64;
const HEADER: u64 = HEADER_LEN as u64;
const TAG: u64 = Tag::LEN as u64;

/// The lengths of a sealed message and its plaintext, each known from the other.
///
/// ```
/// use apr_crypto::ChunkedLayout;
///
/// let layout = ChunkedLayout::of_plaintext(16_384)?;
/// // One full chunk and an empty one: the last chunk is always shorter.
/// assert_eq!(layout.n_chunks(), 2);
/// assert_eq!(layout.sealed_len(), 56 + 16_384 + 2 * 16);
/// assert_eq!(ChunkedLayout::of_sealed(layout.sealed_len())?, layout);
/// // Which bytes of the sealed message must be had to read these of the plaintext?
/// assert_eq!(layout.sealed_range(100, 10)?, 56..56 + 16_400);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkedLayout {
    plaintext_len: u64,
}

impl ChunkedLayout {
    /// Longest plaintext: 4 PiB less one byte.
    pub const MAX_PLAINTEXT_LEN: u64 = MAX_CHUNKS * CHUNK - 1;

    /// The layout of a message of `len` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooLong`] beyond [`MAX_PLAINTEXT_LEN`](Self::MAX_PLAINTEXT_LEN).
    pub fn of_plaintext(len: u64) -> Result<Self, Error> {
        let limit = Self::MAX_PLAINTEXT_LEN;
        if len > limit {
            return Err(ErrorKind::TooLong { what: "the message", len, limit }.into());
        }
        Ok(Self { plaintext_len: len })
    }

    /// The layout of a sealed message of `len` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ChunkedLength`] if no message has that length: less than header and one tag, a last chunk that is
    /// full, or one that is shorter than its tag.
    pub fn of_sealed(len: u64) -> Result<Self, Error> {
        let wrong = ErrorKind::ChunkedLength { len };
        let body = len.checked_sub(HEADER).ok_or(wrong)?;
        let (full, last) = (body / SEALED_CHUNK, body % SEALED_CHUNK);
        let last = last.checked_sub(TAG).ok_or(wrong)?;
        if full >= MAX_CHUNKS {
            return Err(wrong.into());
        }
        Ok(Self { plaintext_len: full * CHUNK + last })
    }

    /// Bytes of plaintext.
    #[must_use]
    pub const fn plaintext_len(&self) -> u64 {
        self.plaintext_len
    }

    /// Bytes of the sealed message, its header included.
    #[must_use]
    pub const fn sealed_len(&self) -> u64 {
        HEADER + self.plaintext_len + self.n_chunks() * TAG
    }

    /// Chunks, the last one included.
    #[must_use]
    pub const fn n_chunks(&self) -> u64 {
        self.plaintext_len / CHUNK + 1
    }

    /// The bytes of the sealed message that must be had to read `len` bytes of plaintext from `offset` on: whole chunks.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::OutOfRange`] if the plaintext does not have them.
    pub fn sealed_range(&self, offset: u64, len: u64) -> Result<Range<u64>, Error> {
        let available = self.plaintext_len;
        let end = offset.checked_add(len).filter(|end| *end <= available);
        let end = end.ok_or(ErrorKind::OutOfRange { offset, len, available })?;
        let begin = HEADER + offset / CHUNK * SEALED_CHUNK;
        if len == 0 {
            return Ok(begin..begin);
        }
        Ok(begin..(HEADER + end.div_ceil(CHUNK) * SEALED_CHUNK).min(self.sealed_len()))
    }

    /// The range of chunk `idx` in the sealed message; empty past the last.
    pub(super) fn chunk(&self, idx: u64) -> Range<u64> {
        let end = self.sealed_len();
        let place = |idx: u64| idx.saturating_mul(SEALED_CHUNK).saturating_add(HEADER).min(end);
        place(idx)..place(idx.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_length_there_and_back() {
        let edges = (0..5).flat_map(|k| {
            (0..40).map(move |d| k * CHUNK + d).chain((1..40).map(move |d| (k + 1) * CHUNK - d))
        });
        for len in edges.chain([ChunkedLayout::MAX_PLAINTEXT_LEN]) {
            let layout = ChunkedLayout::of_plaintext(len).unwrap();
            assert_eq!(ChunkedLayout::of_sealed(layout.sealed_len()).unwrap(), layout);
            assert_eq!(layout.chunk(layout.n_chunks() - 1).end, layout.sealed_len());
            assert!(layout.chunk(layout.n_chunks()).is_empty());
        }
    }

    /// Among all lengths, those that a plaintext leads to are accepted and no other.
    #[test]
    fn other_lengths_are_refused() {
        let limit = 56 + 3 * SEALED_CHUNK + 20;
        let possible: Vec<u64> = (0..3 * CHUNK + 20)
            .map(|len| ChunkedLayout::of_plaintext(len).unwrap().sealed_len())
            .take_while(|len| *len < limit)
            .collect();
        for len in 0..limit {
            let accepted = ChunkedLayout::of_sealed(len);
            assert_eq!(accepted.is_ok(), possible.binary_search(&len).is_ok(), "{len}");
            if let Err(error) = accepted {
                assert_eq!(error.kind(), &ErrorKind::ChunkedLength { len });
            }
        }
    }

    #[test]
    fn lengths_beyond_the_counter_are_refused() {
        let limit = ChunkedLayout::MAX_PLAINTEXT_LEN;
        for len in [limit + 1, u64::MAX] {
            assert_eq!(
                ChunkedLayout::of_plaintext(len).unwrap_err().kind(),
                &ErrorKind::TooLong { what: "the message", len, limit }
            );
        }
        let longest = ChunkedLayout::of_plaintext(limit).unwrap().sealed_len();
        for len in [longest + 1, longest + 17, u64::MAX] {
            assert!(ChunkedLayout::of_sealed(len).is_err());
        }
    }

    #[test]
    fn ranges_are_whole_chunks() {
        let layout = ChunkedLayout::of_plaintext(40_000).unwrap();
        let end = layout.sealed_len();
        let cases = [
            (0, 1, 56..16_456),
            (16_383, 1, 56..16_456),
            (16_383, 2, 56..32_856),
            (16_384, 16_384, 16_456..32_856),
            (0, 40_000, 56..end),
            (39_999, 1, 32_856..end),
            (5, 0, 56..56),
            (40_000, 0, 32_856..32_856),
        ];
        for (offset, len, range) in cases {
            assert_eq!(layout.sealed_range(offset, len).unwrap(), range, "{offset} {len}");
        }
        for (offset, len) in [(40_001, 0), (0, 40_001), (u64::MAX, 2), (2, u64::MAX)] {
            assert!(layout.sealed_range(offset, len).is_err());
        }
    }
}
