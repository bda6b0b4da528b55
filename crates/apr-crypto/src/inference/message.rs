//! The encrypted part of requests and responses: fields, length, content, padding.

use alloc::vec::Vec;
use core::num::NonZeroU32;
use core::ops::Range;

use zeroize::Zeroizing;

use crate::encrypt::aead::{AesKey, Nonce, Tag, try_with_capacity};
use crate::error::{Error, ErrorKind};
use crate::random::Rng;

const LENGTH_LEN: usize = 8;

/// How the length of an input or output is hidden: messages are filled up with zeros, so that all that fall into one bucket
/// look alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Padding {
    /// Not at all.
    #[default]
    None,
    /// To the next multiple of so many bytes.
    Multiple(NonZeroU32),
    /// To the next power of two, at least 256 bytes: few buckets, for at most twice the length.
    PowerOfTwo,
}

impl Padding {
    const LEAST_POWER: usize = 256;

    /// Length of a body of `len` bytes after padding, or `None` if there is no such number.
    fn padded(self, len: usize) -> Option<usize> {
        match self {
            Self::None => Some(len),
            Self::Multiple(unit) => len.checked_next_multiple_of(usize::try_from(unit.get()).ok()?),
            Self::PowerOfTwo => len.max(Self::LEAST_POWER).checked_next_power_of_two(),
        }
    }
}

/// A message before it is encrypted.
pub(super) struct Draft<'a> {
    /// The plaintext prefix.
    pub(super) front: &'a [&'a [u8]],
    pub(super) fields: &'a [u8],
    pub(super) content: &'a [u8],
    pub(super) padding: Padding,
}

impl Draft<'_> {
    /// `front | nonce | ciphertext | tag`. The plaintext lies nowhere but where it is encrypted.
    pub(super) fn seal(
        self,
        rng: &mut (impl Rng + ?Sized),
        key: &AesKey,
        associated_data: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let front_len = self.front.iter().map(|part| part.len()).sum::<usize>();
        let too_long = ErrorKind::OutOfMemory { len: self.content.len() as u64 };
        let body_len = self.content.len().checked_add(self.fields.len() + LENGTH_LEN);
        let body_len = body_len.and_then(|len| self.padding.padded(len)).ok_or(too_long)?;
        let len = body_len.checked_add(front_len + AesKey::OVERHEAD).ok_or(too_long)?;
        let mut out = try_with_capacity(len)?;
        self.front.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(&[0; Nonce::LEN]);
        out.extend_from_slice(self.fields);
        out.extend_from_slice(&(self.content.len() as u64).to_le_bytes());
        out.extend_from_slice(self.content);
        out.resize(len - Tag::LEN, 0);
        let (head, body) = out.split_at_mut(front_len + Nonce::LEN);
        let (nonce, tag) = key.seal_in_place(rng, associated_data, body)?;
        head.split_at_mut(front_len).1.copy_from_slice(&nonce.to_bytes());
        out.extend_from_slice(&tag.to_bytes());
        Ok(out)
    }
}

/// The body of a message after it was decrypted; wiped when dropped.
pub(super) struct Body {
    bytes: Zeroizing<Vec<u8>>,
    fields_len: usize,
    content: Range<usize>,
}

impl Body {
    /// `None` if lengths or padding are not those of a message.
    pub(super) fn new(bytes: Vec<u8>, fields_len: usize) -> Option<Self> {
        let bytes = Zeroizing::new(bytes);
        let (_, rest) = bytes.split_at_checked(fields_len)?;
        let (len, rest) = rest.split_first_chunk::<LENGTH_LEN>()?;
        let len = usize::try_from(u64::from_le_bytes(*len)).ok()?;
        let (_, padding) = rest.split_at_checked(len)?;
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let begin = fields_len + LENGTH_LEN;
        Some(Self { bytes, fields_len, content: begin..begin + len })
    }

    pub(super) fn fields(&self) -> &[u8] {
        self.bytes.get(..self.fields_len).unwrap_or_default()
    }

    pub(super) fn content(&self) -> &[u8] {
        self.bytes.get(self.content.clone()).unwrap_or_default()
    }
}
