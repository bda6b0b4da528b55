//! Key lines: one line of bech32 per key.
//!
//! | prefix | key | data |
//! |---|---|---|
//! | `apr-secret-` | recipient's secret key (X25519) | 32 bytes |
//! | `apr-public-` | recipient's public key (X25519) | 32 bytes |
//! | `apr-sign-` | signing key (Ed25519) | 32 bytes, the seed |
//! | `apr-verify-` | verifying key (Ed25519) | 32 bytes |
//! | `apr-locked-secret-` | recipient's secret key under a password | 76 bytes, a [`PasswordStanza`] |
//! | `apr-locked-sign-` | signing key under a password | 76 bytes, a [`PasswordStanza`] |
//!
//! The stanza of a locked key differs from a file's in its info: `apr-lock-v1 Argon2id HKDF-SHA-256 AES-256-GCM`, a zero
//! byte, the 12 bytes of the cost, the prefix.

use core::fmt;
use core::str::FromStr;

use crate::encrypt::file_key::PasswordStanza;
use crate::encrypt::password::{Argon2Cost, Argon2Limits, Password};
use crate::encrypt::recipient::{RecipientPublic, RecipientSecret};
use crate::error::{Error, ErrorKind};
use crate::keys::bech32;
use crate::random::Rng;
use crate::secret::SecretText;
use crate::sign::ed25519::{SigningKey, VerifyingKey};

const SECRET: &str = "apr-secret-";
pub(crate) const PUBLIC: &str = "apr-public-";
const SIGN: &str = "apr-sign-";
pub(crate) const VERIFY: &str = "apr-verify-";
const LOCKED_SECRET: &str = "apr-locked-secret-";
const LOCKED_SIGN: &str = "apr-locked-sign-";

/// What key lines begin with, before the `1` of bech32.
pub(crate) const PREFIXES: [&str; 6] = [SECRET, PUBLIC, SIGN, VERIFY, LOCKED_SECRET, LOCKED_SIGN];

/// A public key of either kind.
///
/// ```
/// use apr_crypto::{PublicKey, SigningKey};
///
/// let key = SigningKey::from_seed(&[1; 32]).verifying_key();
/// let text = PublicKey::Verifying(key).to_string();
/// assert!(text.starts_with("apr-verify-1"));
/// assert_eq!(text.parse::<PublicKey>()?.into_verifying()?, key);
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A verifying key carries its point; neither is kept in large numbers.
pub enum PublicKey {
    /// For encrypting to its owner.
    Recipient(RecipientPublic),
    /// For checking its owner's signatures.
    Verifying(VerifyingKey),
}

impl PublicKey {
    /// The recipient's key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] if it is a verifying key.
    pub fn into_recipient(self) -> Result<RecipientPublic, Error> {
        match self {
            Self::Recipient(key) => Ok(key),
            Self::Verifying(_) => Err(other_kind(PUBLIC, VERIFY)),
        }
    }

    /// The verifying key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] if it is a recipient's.
    pub fn into_verifying(self) -> Result<VerifyingKey, Error> {
        match self {
            Self::Verifying(key) => Ok(key),
            Self::Recipient(_) => Err(other_kind(VERIFY, PUBLIC)),
        }
    }
}

impl From<RecipientPublic> for PublicKey {
    fn from(key: RecipientPublic) -> Self {
        Self::Recipient(key)
    }
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self::Verifying(key)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recipient(key) => key.fmt(f),
            Self::Verifying(key) => key.fmt(f),
        }
    }
}

impl FromStr for PublicKey {
    type Err = Error;

    /// One key line. A secret key is refused, and named as such.
    fn from_str(line: &str) -> Result<Self, Error> {
        let (hrp, data) = bech32::decode(line)?;
        match hrp.as_str() {
            PUBLIC => Ok(Self::Recipient(RecipientPublic::from_bytes(&exactly(&data)?)?)),
            VERIFY => Ok(Self::Verifying(VerifyingKey::from_bytes(&exactly(&data)?)?)),
            other => Err(other_kind("", other)),
        }
    }
}

impl fmt::Display for RecipientPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(bech32::encode(PUBLIC, self.as_bytes()).as_str())
    }
}

impl FromStr for RecipientPublic {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self, Error> {
        line.parse::<PublicKey>().map_err(|error| expecting(PUBLIC, error))?.into_recipient()
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(bech32::encode(VERIFY, self.as_bytes()).as_str())
    }
}

impl FromStr for VerifyingKey {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self, Error> {
        line.parse::<PublicKey>().map_err(|error| expecting(VERIFY, error))?.into_verifying()
    }
}

/// A secret key of either kind.
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = apr_crypto::SecretKey::from(key).clone();
/// ```
#[derive(Debug)]
pub enum SecretKey {
    /// For opening what was encrypted to its owner.
    Recipient(RecipientSecret),
    /// For signing.
    Signing(SigningKey),
}

impl SecretKey {
    /// The recipient's key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] if it is a signing key.
    pub fn into_recipient(self) -> Result<RecipientSecret, Error> {
        match self {
            Self::Recipient(key) => Ok(key),
            Self::Signing(_) => Err(other_kind(SECRET, SIGN)),
        }
    }

    /// The signing key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] if it is a recipient's.
    pub fn into_signing(self) -> Result<SigningKey, Error> {
        match self {
            Self::Signing(key) => Ok(key),
            Self::Recipient(_) => Err(other_kind(SIGN, SECRET)),
        }
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        match self {
            Self::Recipient(key) => key.public().into(),
            Self::Signing(key) => key.verifying_key().into(),
        }
    }

    /// The key line.
    #[must_use]
    pub fn to_text(&self) -> SecretText {
        match self {
            Self::Recipient(key) => key.to_text(),
            Self::Signing(key) => key.to_text(),
        }
    }

    /// Puts the key under a password.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`], [`ErrorKind::OutOfMemory`].
    pub fn lock(
        &self,
        rng: &mut (impl Rng + ?Sized),
        password: &Password,
        cost: &Argon2Cost,
    ) -> Result<LockedKey, Error> {
        let (prefix, bytes) = match self {
            Self::Recipient(key) => (LOCKED_SECRET, key.expose()),
            Self::Signing(key) => (LOCKED_SIGN, key.expose_seed()),
        };
        // The prefix is bound: a locked key of one kind does not open as the other.
        Ok(LockedKey { prefix, stanza: PasswordStanza::lock_key_line(bytes, rng, password, cost, prefix)? })
    }
}

impl From<RecipientSecret> for SecretKey {
    fn from(key: RecipientSecret) -> Self {
        Self::Recipient(key)
    }
}

impl From<SigningKey> for SecretKey {
    fn from(key: SigningKey) -> Self {
        Self::Signing(key)
    }
}

impl RecipientSecret {
    /// The key line `apr-secret-1...`.
    #[must_use]
    pub fn to_text(&self) -> SecretText {
        bech32::encode(SECRET, self.expose())
    }
}

impl SigningKey {
    /// The key line `apr-sign-1...`.
    #[must_use]
    pub fn to_text(&self) -> SecretText {
        bech32::encode(SIGN, self.expose_seed())
    }
}

/// A secret key under a password.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{Argon2Cost, Argon2Limits, Password, SecretKey, SigningKey, StoredKey};
///
/// let key = SecretKey::from(SigningKey::generate(rng)?);
/// let password = Password::from("correct horse battery staple");
/// let line = key.lock(rng, &password, &Argon2Cost::APR_V1)?.to_text();
/// let StoredKey::Locked(locked) = StoredKey::from_text(&line, &Argon2Limits::default())? else { panic!() };
/// assert_eq!(locked.unlock(&password)?.public(), key.public());
/// assert_eq!(locked.unlock(&Password::from("wrong")).unwrap_err().code(), "cy-open");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
pub struct LockedKey {
    prefix: &'static str,
    stanza: PasswordStanza,
}

impl LockedKey {
    /// What a guess costs.
    #[must_use]
    pub const fn cost(&self) -> &Argon2Cost {
        self.stanza.cost()
    }

    /// The key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`] for another password or a changed line, [`ErrorKind::OutOfMemory`].
    pub fn unlock(&self, password: &Password) -> Result<SecretKey, Error> {
        let key = self.stanza.unlock_key_line(password, self.prefix)?;
        Ok(match self.prefix {
            LOCKED_SECRET => SecretKey::Recipient(RecipientSecret::from_bytes(key.bytes())),
            _ => SecretKey::Signing(SigningKey::from_seed(key.bytes())),
        })
    }

    /// The key line.
    #[must_use]
    pub fn to_text(&self) -> alloc::string::String {
        bech32::encode(self.prefix, &self.stanza.to_bytes()).as_str().into()
    }
}

/// Without salt and ciphertext: with them, passwords can be tried.
impl fmt::Debug for LockedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockedKey").field("cost", self.cost()).finish_non_exhaustive()
    }
}

/// A secret key as it was stored: open, or under a password.
#[derive(Debug)]
pub enum StoredKey {
    /// Ready to use.
    Open(SecretKey),
    /// Needs its password.
    Locked(LockedKey),
}

impl StoredKey {
    /// One key line. `limits` bound what a locked key's password may cost.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Bech32`], [`ErrorKind::Checksum`], [`ErrorKind::KeyKind`] for a public key, [`ErrorKind::Cost`].
    pub fn from_text(line: &str, limits: &Argon2Limits) -> Result<Self, Error> {
        let (hrp, data) = bech32::decode(line)?;
        let locked = |prefix, data: &[u8]| {
            let stanza = PasswordStanza::from_bytes(&exactly(data)?, limits)?;
            Ok(Self::Locked(LockedKey { prefix, stanza }))
        };
        match hrp.as_str() {
            SECRET => Ok(Self::Open(RecipientSecret::from_bytes(exactly_ref(&data)?).into())),
            SIGN => Ok(Self::Open(SigningKey::from_seed(exactly_ref(&data)?).into())),
            LOCKED_SECRET => locked(LOCKED_SECRET, &data),
            LOCKED_SIGN => locked(LOCKED_SIGN, &data),
            other => Err(other_kind("secret", other)),
        }
    }

    /// The key, with the password from `ask` if it is encrypted.
    ///
    /// # Errors
    ///
    /// Errors of `ask`; [`ErrorKind::Open`] for a wrong password.
    pub fn unlock_with<E: From<Error>>(
        self,
        ask: impl FnOnce() -> Result<Password, E>,
    ) -> Result<SecretKey, E> {
        match self {
            Self::Open(key) => Ok(key),
            Self::Locked(locked) => Ok(locked.unlock(&ask()?)?),
        }
    }
}

fn exactly_ref<const N: usize>(data: &[u8]) -> Result<&[u8; N], Error> {
    data.try_into()
        .map_err(|_| ErrorKind::Bech32 { what: "the length is not that of its kind of key" }.into())
}

fn exactly<const N: usize>(data: &[u8]) -> Result<[u8; N], Error> {
    exactly_ref(data).copied()
}

/// A key with prefix `found` where one with prefix `expected` is needed.
fn other_kind(expected: &str, found: &str) -> Error {
    let name = |prefix: &str, otherwise| match prefix {
        SECRET | LOCKED_SECRET => "a recipient's secret key",
        PUBLIC => "a recipient's public key",
        SIGN | LOCKED_SIGN => "a signing key",
        VERIFY => "a verifying key",
        "secret" => "a secret key",
        _ => otherwise,
    };
    ErrorKind::KeyKind { expected: name(expected, "a public key"), found: name(found, "of an unknown kind") }
        .into()
}

/// Says what exactly was needed where a public key of any kind was.
fn expecting(prefix: &str, error: Error) -> Error {
    match (error.kind(), other_kind(prefix, "").kind()) {
        (ErrorKind::KeyKind { found, .. }, ErrorKind::KeyKind { expected, .. }) => {
            ErrorKind::KeyKind { expected, found }.into()
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use proptest::prelude::*;

    use super::*;
    use crate::random::fixed::{Bytes, Seeded};

    fn cheap() -> (Argon2Cost, Argon2Limits) {
        let limits = Argon2Limits::default().with_memory_kib(8..=1024);
        (Argon2Cost::new(8, 1, 1, &limits).unwrap(), limits)
    }

    fn lines() -> [String; 6] {
        let rng = &mut Seeded(11);
        let secret = SecretKey::from(RecipientSecret::generate(rng).unwrap());
        let sign = SecretKey::from(SigningKey::generate(rng).unwrap());
        let lock = |key: &SecretKey, rng: &mut Seeded| {
            key.lock(rng, &Password::from("pw"), &cheap().0).unwrap().to_text()
        };
        [
            secret.to_text().as_str().into(),
            secret.public().to_string(),
            sign.to_text().as_str().into(),
            sign.public().to_string(),
            lock(&secret, rng),
            lock(&sign, rng),
        ]
    }

    #[test]
    fn each_kind_there_and_back() {
        let [secret, public, sign, verify, locked_secret, locked_sign] = lines();
        let limits = cheap().1;
        let open = |line: &str| match StoredKey::from_text(line, &limits).unwrap() {
            StoredKey::Open(key) => (key, false),
            StoredKey::Locked(key) => (key.unlock(&Password::from("pw")).unwrap(), true),
        };
        for (line, public, is_locked) in [
            (&secret, &public, false),
            (&sign, &verify, false),
            (&locked_secret, &public, true),
            (&locked_sign, &verify, true),
        ] {
            let (key, was_locked) = open(line);
            assert_eq!((key.public().to_string(), was_locked), (public.clone(), is_locked));
            let asked = StoredKey::from_text(line, &limits).unwrap();
            let key = asked.unlock_with(|| Ok::<_, Error>(Password::from("pw"))).unwrap();
            assert_eq!(&key.public().to_string(), public);
        }
        assert_eq!(public.parse::<RecipientPublic>().unwrap().to_string(), public);
        assert_eq!(verify.parse::<VerifyingKey>().unwrap().to_string(), verify);
        assert_eq!(verify.to_ascii_uppercase().parse::<VerifyingKey>().unwrap().to_string(), verify);
    }

    /// Computed by an implementation of `docs/crypto.md` in Python, over OpenSSL.
    #[test]
    fn lines_are_those_of_the_specification() {
        let bytes = core::array::from_fn(|idx| idx.to_le_bytes()[0]);
        let sign = SecretKey::from(SigningKey::from_seed(&bytes));
        let text = "apr-sign-1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0suw880y";
        assert_eq!(sign.to_text().as_str(), text);
        let verify = sign.public();
        let text = "apr-verify-1qwss00lnecgtu8tsm5vwwj7qn9n7f43snwjs6hcamjrxgyj4xxuqwet45k";
        assert_eq!(verify.to_string(), text);
        let fingerprint = verify.into_verifying().unwrap().fingerprint();
        assert_eq!(fingerprint.to_string(), "l3kc-vf3l-mp3n-u3ek-rgjr-kbut-ze");

        let secret = SecretKey::from(RecipientSecret::from_bytes(&bytes));
        let text = "apr-secret-1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0se6vexc";
        assert_eq!(secret.to_text().as_str(), text);
        let text = "apr-public-13aqvttdk3ujkyjh9kg2w5an6dmy5mq5a84a4uxk3hfhnugfc9p0s40mqlu";
        assert_eq!(secret.public().to_string(), text);
        let fingerprint = secret.into_recipient().unwrap().public().fingerprint();
        assert_eq!(fingerprint.to_string(), "ms4w-kzes-b4go-yaeb-hphr-hszh-va");
        assert_eq!(alloc::format!("{fingerprint:?}"), "Fingerprint(ms4w-kzes-b4go-yaeb-hphr-hszh-va)");

        let cost = Argon2Cost::new(64, 2, 1, &cheap().1).unwrap();
        let locked = sign.lock(&mut Bytes(&[0x33; 16]), &Password::from("correct horse"), &cost).unwrap();
        let text = "apr-locked-sign-1gqqqqqqzqqqqqqgqqqqrxvenxvenxvenxvenxvenxven8gj8xdmtcay7gvfjfgr\
                    vrldwwwe5ktfgxxgf7k6cvxppm86khjnqwches63crcvu7c2fhrhkl92ljqqt8fcd";
        assert_eq!(locked.to_text(), text);
        assert_eq!(sign.into_signing().unwrap().expose_seed(), &bytes);
    }

    #[test]
    fn keys_of_another_kind_are_named() {
        let [secret, public, sign, verify, locked, _] = lines();
        let kind = |expected, found| ErrorKind::KeyKind { expected, found };
        let parse = |line: &str| *line.parse::<RecipientPublic>().unwrap_err().kind();
        assert_eq!(parse(&verify), kind("a recipient's public key", "a verifying key"));
        assert_eq!(parse(&secret), kind("a recipient's public key", "a recipient's secret key"));
        assert_eq!(parse(&locked), kind("a recipient's public key", "a recipient's secret key"));
        let parse = |line: &str| *line.parse::<VerifyingKey>().unwrap_err().kind();
        assert_eq!(parse(&public), kind("a verifying key", "a recipient's public key"));
        assert_eq!(parse(&sign), kind("a verifying key", "a signing key"));
        assert_eq!(*sign.parse::<PublicKey>().unwrap_err().kind(), kind("a public key", "a signing key"));
        let parse = |line: &str| *StoredKey::from_text(line, &cheap().1).unwrap_err().kind();
        assert_eq!(parse(&public), kind("a secret key", "a recipient's public key"));
        let age = bech32::encode("age", &[0; 32]);
        assert_eq!(parse(age.as_str()), kind("a secret key", "of an unknown kind"));
        let key = SecretKey::from(SigningKey::from_seed(&[1; 32]));
        assert_eq!(key.into_recipient().unwrap_err().code(), "cy-key-kind");
        let key = SecretKey::from(RecipientSecret::from_bytes(&[1; 32]));
        assert_eq!(key.into_signing().unwrap_err().code(), "cy-key-kind");
    }

    #[test]
    fn lengths_and_weak_keys_are_refused() {
        let limits = cheap().1;
        for len in [0, 31, 33, 76] {
            let data = alloc::vec![1; len];
            for prefix in [SECRET, SIGN] {
                let line = bech32::encode(prefix, &data);
                assert_eq!(StoredKey::from_text(line.as_str(), &limits).unwrap_err().code(), "cy-bech32");
            }
            for prefix in [PUBLIC, VERIFY] {
                let line = bech32::encode(prefix, &data);
                assert_eq!(line.as_str().parse::<PublicKey>().unwrap_err().code(), "cy-bech32");
            }
        }
        let line = bech32::encode(LOCKED_SIGN, &[1; 75]);
        assert_eq!(StoredKey::from_text(line.as_str(), &limits).unwrap_err().code(), "cy-bech32");
        // A cost of 16 million KiB.
        let line = bech32::encode(LOCKED_SIGN, &[1; 76]);
        assert_eq!(StoredKey::from_text(line.as_str(), &limits).unwrap_err().code(), "cy-cost");
        for prefix in [PUBLIC, VERIFY] {
            let line = bech32::encode(prefix, &[0; 32]);
            assert_eq!(line.as_str().parse::<PublicKey>().unwrap_err().code(), "cy-weak-key");
        }
    }

    /// Kind and password are both bound: a locked key under the other prefix does not open.
    #[test]
    fn a_locked_key_keeps_its_kind() {
        let limits = cheap().1;
        let [.., locked, _] = lines();
        let (_, data) = bech32::decode(&locked).unwrap();
        let line = bech32::encode(LOCKED_SIGN, &data);
        let StoredKey::Locked(key) = StoredKey::from_text(line.as_str(), &limits).unwrap() else { panic!() };
        assert_eq!(key.unlock(&Password::from("pw")).unwrap_err().kind(), &ErrorKind::Open);
        assert_eq!(key.cost().memory_kib(), 8);
        let shown = alloc::format!("{key:?}");
        assert_eq!(shown, "LockedKey { cost: Argon2Cost { memory_kib: 8, passes: 1, lanes: 1 }, .. }");
    }

    proptest! {
        #[test]
        fn random_text_is_no_key(text in "(apr-[a-z]{0,8}-1)?[ -~]{0,100}") {
            prop_assert!(text.parse::<PublicKey>().is_err());
            prop_assert!(StoredKey::from_text(&text, &Argon2Limits::default()).is_err());
        }

        #[test]
        fn random_data_under_any_prefix_do_not_panic(data in prop::collection::vec(any::<u8>(), 0..100)) {
            for prefix in [SECRET, PUBLIC, SIGN, VERIFY, LOCKED_SECRET, LOCKED_SIGN] {
                let line = bech32::encode(prefix, &data);
                let _ = line.as_str().parse::<PublicKey>();
                let _ = StoredKey::from_text(line.as_str(), &Argon2Limits::default());
            }
        }
    }
}
