//! Hash algorithms of a list.

use core::fmt;

use base16ct::HexDisplay;
use blake2::Blake2b512;
use sha2::{Digest as _, Sha256};

/// A hash of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HashAlgorithm {
    /// SHA-256.
    Sha256,
    /// BLAKE2b with 64 bytes.
    Blake2b,
    /// BLAKE3 with 32 bytes.
    Blake3,
}

impl HashAlgorithm {
    /// The name in a statement.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Blake2b => "blake2b",
            Self::Blake3 => "blake3",
        }
    }

    /// The hash of this name.
    ///
    /// ```
    /// use apr_manifest::HashAlgorithm;
    ///
    /// assert_eq!(HashAlgorithm::from_name("sha256"), Some(HashAlgorithm::Sha256));
    /// assert_eq!(HashAlgorithm::from_name("md5"), None);
    /// ```
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Sha256, Self::Blake2b, Self::Blake3].into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Length of its digests in bytes.
    #[must_use]
    pub const fn digest_len(self) -> usize {
        match self {
            Self::Sha256 | Self::Blake3 => 32,
            Self::Blake2b => 64,
        }
    }
}

/// A digest; shown in hexadecimal.
#[derive(Clone, PartialEq, Eq)]
pub struct Digest(Vec<u8>);

impl Digest {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }

    /// Of `len` bytes, in lower case, which is the canonical encoding.
    pub(crate) fn from_hex(text: &str, len: usize) -> Option<Self> {
        base16ct::lower::decode_vec(text).ok().filter(|bytes| bytes.len() == len).map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&HexDisplay(&self.0), f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// A streaming hash.
pub(crate) enum Hasher {
    Sha256(Sha256),
    Blake2b(Box<Blake2b512>),
    Blake3(Box<blake3::Hasher>),
}

impl Hasher {
    pub(crate) fn new(algorithm: HashAlgorithm) -> Self {
        match algorithm {
            HashAlgorithm::Sha256 => Self::Sha256(Sha256::new()),
            HashAlgorithm::Blake2b => Self::Blake2b(Box::default()),
            HashAlgorithm::Blake3 => Self::Blake3(Box::default()),
        }
    }

    pub(crate) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(data),
            Self::Blake2b(hasher) => hasher.update(data),
            Self::Blake3(hasher) => {
                hasher.update(data);
            }
        }
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(match self {
            Self::Sha256(hasher) => hasher.finalize().to_vec(),
            Self::Blake2b(hasher) => hasher.finalize().to_vec(),
            Self::Blake3(hasher) => hasher.finalize().as_bytes().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_published_ones() {
        // Of "abc": FIPS 180-4, RFC 7693, and the official vectors of BLAKE3 for nothing.
        let of = |algorithm, data: &[u8]| {
            let mut hasher = Hasher::new(algorithm);
            data.iter().for_each(|byte| hasher.update(&[*byte]));
            let digest = hasher.finish();
            assert_eq!(digest.as_bytes().len(), algorithm.digest_len());
            digest.to_string()
        };
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(of(HashAlgorithm::Sha256, b"abc"), expected);
        let expected = "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
                        7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923";
        assert_eq!(of(HashAlgorithm::Blake2b, b"abc"), expected);
        let expected = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(of(HashAlgorithm::Blake3, b""), expected);
    }

    #[test]
    fn digests_have_one_spelling() {
        let digest = Digest::from_hex("00ff7a", 3).unwrap();
        assert_eq!(
            (digest.as_bytes(), format!("{digest:?}")),
            (&[0, 0xff, 0x7a][..], "Digest(00ff7a)".into())
        );
        for text in ["", "00ff7", "00ff7a0", "00ff7a00", "00FF7a", "00ff7g", "00ff é", "0x00ff", "+0ff7a"] {
            assert_eq!(Digest::from_hex(text, 3), None, "{text}");
        }
    }
}
