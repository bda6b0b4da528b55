//! The file key, and its encryption to recipients and with passwords.

use crate::array::split;
use crate::encrypt::aead::{Nonce, Tag};
use crate::encrypt::cipher::Cipher;
use crate::encrypt::kdf::{hkdf_sha256, key_sha256};
use crate::encrypt::mac::MacKey;
use crate::encrypt::password::{Argon2Cost, Argon2Limits, Password, Salt};
use crate::encrypt::recipient::{EphemeralPublic, RecipientPublic, RecipientSecret};
use crate::error::Error;
use crate::random::Rng;
use crate::secret::{Secret, redacted};

/// Info of the wrapping key for a recipient.
const RECIPIENT_INFO: &[u8] = b"apr-wrap-v1 X25519 HKDF-SHA-256 AES-256-GCM\0";

/// Info of the wrapping key for a file's password.
const PASSWORD_INFO: &[u8] = b"apr-wrap-v1 Argon2id HKDF-SHA-256 AES-256-GCM\0";

/// Info of the wrapping key for a key line's password: a locked key that an attacker puts into a file as its stanza must not
/// open there.
const KEY_LINE_INFO: &[u8] = b"apr-lock-v1 Argon2id HKDF-SHA-256 AES-256-GCM\0";

/// A wrapped key: 32 bytes and a tag, never more. GCM does not commit to its key: with two blocks and a tag at one's
/// disposal, a ciphertext can be made that opens under three chosen passwords. One of more blocks would serve for more, and
/// each attempt to open it would try them all. Which of three keys is the file's is settled by what the file key
/// authenticates: header and commitment.
const WRAPPED_LEN: usize = FileKey::LEN + Tag::LEN;

/// The key of one file: 32 random bytes from which everything in it is encrypted and authenticated, and which itself is
/// handed to recipients or locked with a password.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{FileKey, RecipientSecret};
///
/// let buyer = RecipientSecret::generate(rng)?;
/// let file_key = FileKey::generate(rng)?;
/// // `context` binds the stanza to its file: the file's id, its suite.
/// let stanza = file_key.wrap_for(rng, &buyer.public(), b"file id")?;
/// let same = stanza.unwrap(&buyer, b"file id")?;
/// # assert_eq!(same.mac_key("x").tag(&[]), file_key.mac_key("x").tag(&[]));
/// assert_eq!(stanza.unwrap(&buyer, b"other id").unwrap_err().code(), "cy-open");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::FileKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = key.clone();
/// ```
///
/// ```compile_fail,E0277
/// fn write(value: &impl serde::Serialize) {}
/// # let key = apr_crypto::FileKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// write(&1);
/// write(&key);
/// ```
pub struct FileKey(Secret<{ Self::LEN }>);

impl FileKey {
    /// Length in bytes.
    pub const LEN: usize = 32;

    /// A new key; each file gets its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`](crate::ErrorKind::Randomness) if there is none.
    pub fn generate(rng: &mut (impl Rng + ?Sized)) -> Result<Self, Error> {
        Ok(Self(Secret::generate(rng)?))
    }

    /// A key that was agreed on elsewhere: uniformly random bytes, never a password. Wiping `bytes` is the caller's task.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        Self(Secret::copy_of(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; Self::LEN] {
        self.0.bytes()
    }

    /// The key for authenticating what `label` names: HKDF-SHA-256 of the file key without salt, `label` as info.
    #[must_use]
    pub fn mac_key(&self, label: &str) -> MacKey {
        MacKey::new(key_sha256(self.0.bytes(), &[label.as_bytes()]))
    }

    /// Encrypts this key to a recipient. Every call makes a new ephemeral key, so that two stanzas have nothing in common.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`](crate::ErrorKind::Randomness) if there is none.
    pub fn wrap_for(
        &self,
        rng: &mut (impl Rng + ?Sized),
        recipient: &RecipientPublic,
        context: &[u8],
    ) -> Result<RecipientStanza, Error> {
        let (ephemeral, agreement) = recipient.agree(rng)?;
        let mut material = Secret::zeroed();
        agreement.expand(&[RECIPIENT_INFO, context], material.bytes_mut());
        Ok(RecipientStanza { ephemeral, wrapped: wrap(&material, &self.0)? })
    }

    /// Locks this key with a password.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Randomness`](crate::ErrorKind::Randomness) if there is none, [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory) if the password's cost asks for too much.
    pub fn wrap_with_password(
        &self,
        rng: &mut (impl Rng + ?Sized),
        password: &Password,
        cost: &Argon2Cost,
        context: &[u8],
    ) -> Result<PasswordStanza, Error> {
        PasswordStanza::lock(&self.0, rng, password, cost, &[PASSWORD_INFO, context])
    }
}

redacted!(FileKey);

/// A file key encrypted to one recipient.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 32 | ephemeral X25519 public key |
/// | 32 | 48 | file key, AES-256-GCM: ciphertext and tag |
///
/// Key and nonce of the wrapping are HKDF-SHA-256 of the shared secret; salt: ephemeral public key, recipient's public
/// key; info: `apr-wrap-v1 X25519 HKDF-SHA-256 AES-256-GCM`, a zero byte, the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecipientStanza {
    ephemeral: EphemeralPublic,
    wrapped: [u8; WRAPPED_LEN],
}

impl RecipientStanza {
    /// Length in bytes.
    pub const LEN: usize = RecipientPublic::LEN + WRAPPED_LEN;

    /// The bytes to store.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (ephemeral, wrapped) = bytes.split_at_mut(RecipientPublic::LEN);
        ephemeral.copy_from_slice(&self.ephemeral.to_bytes());
        wrapped.copy_from_slice(&self.wrapped);
        bytes
    }

    /// A stanza that a file holds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WeakKey`](crate::ErrorKind::WeakKey) or [`ErrorKind::InvalidKey`](crate::ErrorKind::InvalidKey) for its ephemeral key.
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Result<Self, Error> {
        let (ephemeral, wrapped) = split(bytes);
        Ok(Self { ephemeral: EphemeralPublic::from_file(*ephemeral)?, wrapped: *wrapped })
    }

    /// The file key, if this stanza is for `secret` and was made with `context`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`](crate::ErrorKind::Open) if not, or if the stanza was changed.
    pub fn unwrap(&self, secret: &RecipientSecret, context: &[u8]) -> Result<FileKey, Error> {
        let mut material = Secret::zeroed();
        secret.agree(&self.ephemeral)?.expand(&[RECIPIENT_INFO, context], material.bytes_mut());
        Ok(FileKey(unwrap(&material, &self.wrapped)?))
    }
}

/// A file key locked with a password.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 12 | Argon2id: memory in KiB, passes, lanes; `u32`, little-endian |
/// | 12 | 16 | salt |
/// | 28 | 48 | file key, AES-256-GCM: ciphertext and tag |
///
/// Key and nonce of the wrapping are HKDF-SHA-256 of Argon2id's 32 bytes; no salt; info:
/// `apr-wrap-v1 Argon2id HKDF-SHA-256 AES-256-GCM`, a zero byte, the 12 bytes of the cost, the context.
///
/// ```
/// # let rng = &mut apr_crypto::OsRandom;
/// use apr_crypto::{Argon2Cost, Argon2Limits, FileKey, Password, PasswordStanza};
///
/// let password = Password::from("correct horse battery staple");
/// let key = FileKey::generate(rng)?;
/// let stanza = key.wrap_with_password(rng, &password, &Argon2Cost::APR_V1, b"file id")?;
/// // A file's cost is bounded before a byte of memory is asked for.
/// let stanza = PasswordStanza::from_bytes(&stanza.to_bytes(), &Argon2Limits::default())?;
/// let same = stanza.unwrap(&password, b"file id")?;
/// # assert_eq!(same.mac_key("x").tag(&[]), key.mac_key("x").tag(&[]));
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PasswordStanza {
    cost: Argon2Cost,
    salt: Salt,
    wrapped: [u8; WRAPPED_LEN],
}

impl PasswordStanza {
    /// Length in bytes.
    pub const LEN: usize = Argon2Cost::LEN + Salt::LEN + WRAPPED_LEN;

    /// What a guess costs.
    #[must_use]
    pub const fn cost(&self) -> &Argon2Cost {
        &self.cost
    }

    /// The bytes to store.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let (cost, rest) = bytes.split_at_mut(Argon2Cost::LEN);
        let (salt, wrapped) = rest.split_at_mut(Salt::LEN);
        cost.copy_from_slice(&self.cost.to_bytes());
        salt.copy_from_slice(&self.salt.to_bytes());
        wrapped.copy_from_slice(&self.wrapped);
        bytes
    }

    /// A stanza that a file holds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cost`](crate::ErrorKind::Cost) if a guess would cost less or more than `limits` allow.
    pub fn from_bytes(bytes: &[u8; Self::LEN], limits: &Argon2Limits) -> Result<Self, Error> {
        let (cost, rest) = split::<{ Self::LEN }, _, { Salt::LEN + WRAPPED_LEN }>(bytes);
        let (salt, wrapped) = split(rest);
        let cost = Argon2Cost::from_bytes(cost, limits)?;
        Ok(Self { cost, salt: Salt::from_file(*salt), wrapped: *wrapped })
    }

    /// The file key, if `password` and `context` are the ones it was locked with.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Open`](crate::ErrorKind::Open) if not, or if the stanza was changed; [`ErrorKind::OutOfMemory`](crate::ErrorKind::OutOfMemory).
    pub fn unwrap(&self, password: &Password, context: &[u8]) -> Result<FileKey, Error> {
        Ok(FileKey(self.unlock(password, &[PASSWORD_INFO, context])?))
    }

    /// Locks the key of a key line, which begins with `prefix`.
    pub(crate) fn lock_key_line(
        key: &[u8; 32],
        rng: &mut (impl Rng + ?Sized),
        password: &Password,
        cost: &Argon2Cost,
        prefix: &str,
    ) -> Result<Self, Error> {
        Self::lock(&Secret::copy_of(key), rng, password, cost, &[KEY_LINE_INFO, prefix.as_bytes()])
    }

    /// The key of a key line, which begins with `prefix`.
    pub(crate) fn unlock_key_line(&self, password: &Password, prefix: &str) -> Result<Secret<32>, Error> {
        self.unlock(password, &[KEY_LINE_INFO, prefix.as_bytes()])
    }

    fn lock(
        key: &Secret<32>,
        rng: &mut (impl Rng + ?Sized),
        password: &Password,
        cost: &Argon2Cost,
        info: &[&[u8]; 2],
    ) -> Result<Self, Error> {
        let salt = Salt::generate(rng)?;
        let wrapped = wrap(&password_material(password, &salt, cost, info)?, key)?;
        Ok(Self { cost: *cost, salt, wrapped })
    }

    fn unlock(&self, password: &Password, info: &[&[u8]; 2]) -> Result<Secret<32>, Error> {
        unwrap(&password_material(password, &self.salt, &self.cost, info)?, &self.wrapped)
    }
}

/// A key and a nonce for one wrapping.
type Material = Secret<44>;

/// HKDF's info is `purpose`, the cost, `context`.
fn password_material(
    password: &Password,
    salt: &Salt,
    cost: &Argon2Cost,
    [purpose, context]: &[&[u8]; 2],
) -> Result<Material, Error> {
    let (mut stretched, mut material) = (Secret::<32>::zeroed(), Material::zeroed());
    password.derive(salt, cost, stretched.bytes_mut())?;
    hkdf_sha256(&[], stretched.bytes(), &[purpose, &cost.to_bytes(), context], material.bytes_mut())?;
    Ok(material)
}

fn cipher_and_nonce(material: &Material) -> (Cipher, &[u8; Nonce::LEN]) {
    let (key, nonce) = split::<44, 32, _>(material.bytes());
    (Cipher::new(key), nonce)
}

fn wrap(material: &Material, key: &Secret<{ FileKey::LEN }>) -> Result<[u8; WRAPPED_LEN], Error> {
    let (cipher, nonce) = cipher_and_nonce(material);
    let mut wrapped = [0; WRAPPED_LEN];
    let (out, tag) = wrapped.split_at_mut(FileKey::LEN);
    out.copy_from_slice(key.bytes());
    tag.copy_from_slice(&cipher.seal(nonce, &[], out)?);
    Ok(wrapped)
}

fn unwrap(material: &Material, wrapped: &[u8; WRAPPED_LEN]) -> Result<Secret<32>, Error> {
    let (cipher, nonce) = cipher_and_nonce(material);
    let mut key = Secret::zeroed();
    let (ciphertext, tag) = split::<_, { FileKey::LEN }, _>(wrapped);
    key.bytes_mut().copy_from_slice(ciphertext);
    cipher.open(nonce, &[], key.bytes_mut(), tag)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;
    use crate::error::ErrorKind;
    use crate::hex::array;
    use crate::random::fixed::{Bytes, Seeded};

    fn cheap() -> (Argon2Cost, Argon2Limits) {
        let limits = Argon2Limits::default().with_memory_kib(8..=1024);
        (Argon2Cost::new(8, 1, 1, &limits).unwrap(), limits)
    }

    /// Computed by an implementation of `docs/crypto.md` in Python, over OpenSSL.
    #[test]
    fn stanzas_are_those_of_the_specification() {
        let key = FileKey::from_bytes(&core::array::from_fn(|idx| idx.to_le_bytes()[0]));
        let tag = key.mac_key("header").tag(&[b"data"]);
        assert_eq!(tag, array("522bd179223cd67274b597879136d020ad282fc78aec10e31dacf9fe540467be"));

        let bob = RecipientSecret::from_bytes(&[0x22; 32]);
        let stanza = key.wrap_for(&mut Bytes(&[0x11; 32]), &bob.public(), b"file id").unwrap();
        let expected = "7b4e909bbe7ffe44c465a220037d608ee35897d31ef972f07f74892cb0f73f13c8b78f5a2a3b38b4edb34476\
                        805748ee822053894faa618542abcdcab85a0e44ab85d2e702e72f564c57ed81f8d764df";
        assert_eq!(stanza.to_bytes(), array(expected));

        let cost = Argon2Cost::new(64, 2, 1, &cheap().1).unwrap();
        let (rng, password) = (&mut Bytes(&[0x33; 16]), Password::from("correct horse"));
        let stanza = key.wrap_with_password(rng, &password, &cost, b"file id").unwrap();
        let expected = "40000000020000000100000033333333333333333333333333333333263bc388c622b02d3cc0e517a57ed189\
                        23cda298cf94837fc005cae24d1dfb9d999983f27c73820321dc4c5826f7db92";
        assert_eq!(stanza.to_bytes(), array(expected));
    }

    #[test]
    fn a_changed_stanza_does_not_open() {
        let rng = &mut Seeded(5);
        let (bob, key) = (RecipientSecret::generate(rng).unwrap(), FileKey::generate(rng).unwrap());
        let stanza = key.wrap_for(rng, &bob.public(), b"id").unwrap();
        assert_eq!(stanza.unwrap(&bob, b"id").unwrap().bytes(), key.bytes());
        let good = stanza.to_bytes();
        assert_eq!(RecipientStanza::from_bytes(&good).unwrap(), stanza);
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let opened = RecipientStanza::from_bytes(&bytes).and_then(|stanza| stanza.unwrap(&bob, b"id"));
            let kind = *opened.unwrap_err().kind();
            // The highest bit of the point leaves its canonical encoding.
            assert_eq!(kind, if bit == 255 { ErrorKind::InvalidKey } else { ErrorKind::Open }, "bit {bit}");
        }
    }

    #[test]
    fn stanzas_open_for_their_recipient_in_their_file_only() {
        let rng = &mut Seeded(6);
        let (bob, eve) = (RecipientSecret::generate(rng).unwrap(), RecipientSecret::generate(rng).unwrap());
        let key = FileKey::generate(rng).unwrap();
        let (one, two) = (
            key.wrap_for(rng, &bob.public(), b"1").unwrap(),
            key.wrap_for(rng, &bob.public(), b"1").unwrap(),
        );
        assert_ne!(one, two);
        assert_eq!(one.unwrap(&eve, b"1").unwrap_err().kind(), &ErrorKind::Open);
        assert_eq!(one.unwrap(&bob, b"2").unwrap_err().kind(), &ErrorKind::Open);
        assert_eq!(one.unwrap(&bob, b"").unwrap_err().kind(), &ErrorKind::Open);
        // A wrapped key under another message's ephemeral key.
        let mixed = RecipientStanza { ephemeral: one.ephemeral, wrapped: two.wrapped };
        assert_eq!(mixed.unwrap(&bob, b"1").unwrap_err().kind(), &ErrorKind::Open);
    }

    #[test]
    fn a_changed_password_stanza_does_not_open() {
        let rng = &mut Seeded(7);
        let (cost, limits) = cheap();
        let (password, key) = (Password::from("p"), FileKey::generate(rng).unwrap());
        let stanza = key.wrap_with_password(rng, &password, &cost, b"id").unwrap();
        assert_eq!(stanza.unwrap(&password, b"id").unwrap().bytes(), key.bytes());
        assert_eq!(stanza.unwrap(&Password::from("P"), b"id").unwrap_err().kind(), &ErrorKind::Open);
        assert_eq!(stanza.unwrap(&password, b"xd").unwrap_err().kind(), &ErrorKind::Open);
        let good = stanza.to_bytes();
        assert_eq!(PasswordStanza::from_bytes(&good, &limits).unwrap(), stanza);
        for bit in 0..good.len() * 8 {
            let mut bytes = good;
            bytes[bit / 8] ^= 1 << (bit % 8);
            let opened = PasswordStanza::from_bytes(&bytes, &limits)
                .and_then(|stanza| stanza.unwrap(&password, b"id"));
            let kind = *opened.unwrap_err().kind();
            assert!(
                kind == ErrorKind::Open || bit < 96 && matches!(kind, ErrorKind::Cost { .. }),
                "bit {bit}: {kind}"
            );
        }
        // An excessive cost is refused before any of it is spent.
        let refused = PasswordStanza::from_bytes(&good, &Argon2Limits::default());
        assert_eq!(refused.unwrap_err().code(), "cy-cost");
    }

    /// A user's key line as the stanza of a file whose id is the line's prefix: the password does not open it there.
    #[test]
    fn a_locked_key_line_is_no_stanza_of_a_file() {
        let (rng, password, prefix) = (&mut Seeded(8), Password::from("p"), "apr-locked-sign-");
        let locked = PasswordStanza::lock_key_line(&[1; 32], rng, &password, &cheap().0, prefix).unwrap();
        assert_eq!(locked.unlock_key_line(&password, prefix).unwrap().bytes(), &[1; 32]);
        assert_eq!(locked.unwrap(&password, prefix.as_bytes()).unwrap_err().kind(), &ErrorKind::Open);
    }

    #[test]
    fn keys_for_different_purposes_differ() {
        let key = FileKey::from_bytes(&[1; 32]);
        assert_ne!(key.mac_key("header").tag(&[]), key.mac_key("footer").tag(&[]));
        assert_eq!(format!("{key:?}"), "FileKey(..)");
    }
}
