//! minisign's keys.

use alloc::string::String;
use core::fmt;

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::{UNTRUSTED, concat, decode, end, lines, wrong};
use crate::array::split;
use crate::error::{Error, ErrorKind};
use crate::keys::text::check_line;
use crate::secret::{SecretText, constant_time_eq};
use crate::sign::ed25519::{SigningKey, Verification, VerifyingKey};
use crate::sign::minisign::{Prehash, Signature};

const PUBLIC_FORMAT: &str = "a minisign public key";
const SECRET_FORMAT: &str = "a minisign secret key";

/// Which key made a signature: eight bytes that minisign draws at random. A help for finding the key, no proof.
///
/// Keys of ours have none; they get the first eight bytes of their [fingerprint](VerifyingKey::fingerprint).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyId(pub [u8; 8]);

/// As minisign shows it: hexadecimal digits, the last byte first, no zeros before them.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}", u64::from_le_bytes(self.0))
    }
}

impl KeyId {
    fn of(key: &VerifyingKey) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = *key.fingerprint().as_bytes();
        Self([a, b, c, d, e, f, g, h])
    }
}

/// minisign's public key: a verifying key and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey {
    id: KeyId,
    key: VerifyingKey,
}

impl PublicKey {
    /// A key with the given id.
    #[must_use]
    pub const fn new(id: KeyId, key: VerifyingKey) -> Self {
        Self { id, key }
    }

    /// The key's id.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &VerifyingKey {
        &self.key
    }

    /// Reads a public key's file, or the line of base64 alone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`]; [`ErrorKind::WeakKey`], [`ErrorKind::InvalidKey`].
    pub fn from_text(text: &str) -> Result<Self, Error> {
        let mut lines = lines(PUBLIC_FORMAT, text)?;
        let mut line = lines.next().unwrap_or_default();
        if line.starts_with(UNTRUSTED.trim_end()) {
            line = lines.next().ok_or_else(|| wrong(PUBLIC_FORMAT, "no line after its comment"))?;
        }
        end(PUBLIC_FORMAT, lines)?;
        let bytes = decode::<42>(PUBLIC_FORMAT, line)?;
        let [b'E', b'd', a, b, c, d, e, f, g, h, key @ ..] = &*bytes else {
            return Err(wrong(PUBLIC_FORMAT, "unknown algorithm"));
        };
        Ok(Self { id: KeyId([*a, *b, *c, *d, *e, *f, *g, *h]), key: VerifyingKey::from_bytes(key)? })
    }

    /// Checks a signature of the file with this hash, and of its comment. Of the two, the comment alone is handed out. It is
    /// what the signer wrote, on one line; escape control characters before showing it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyId`] if the signature names another key; [`ErrorKind::Signature`] if it does not match; [`ErrorKind::Text`] if it is
    /// of the old kind, which needs [`verification`](Self::verification).
    pub fn verify<'a>(&self, hash: &[u8; Prehash::LEN], signature: &'a Signature) -> Result<&'a str, Error> {
        if !signature.is_prehashed() {
            return Err(wrong("a signature of a hash", "of the old kind, which signs the file itself"));
        }
        self.check_id(signature)?;
        self.key.verify(hash, signature.signature())?;
        signature.verify_comment(&self.key)
    }

    /// Checks a signature of a file in memory, of either kind, and of its comment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyId`] if the signature names another key; [`ErrorKind::Signature`] if it does not match.
    pub fn verify_file<'a>(&self, file: &[u8], signature: &'a Signature) -> Result<&'a str, Error> {
        let mut verification = self.verification(signature)?;
        verification.update(file);
        verification.finish()
    }

    /// Checks a signature of a file that is read piece by piece, of either kind, and of its comment.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyId`] if the signature names another key; [`ErrorKind::Signature`] if no file could have it.
    pub fn verification<'a>(&self, signature: &'a Signature) -> Result<FileVerification<'a>, Error> {
        self.check_id(signature)?;
        let message = match signature.is_prehashed() {
            true => Message::Hash(Prehash::new()),
            false => Message::File(self.key.verification(signature.signature())?),
        };
        Ok(FileVerification { key: self.key, signature, message })
    }

    fn check_id(&self, signature: &Signature) -> Result<(), Error> {
        match constant_time_eq(&signature.key_id().0, &self.id.0) {
            true => Ok(()),
            false => Err(ErrorKind::KeyId.into()),
        }
    }
}

/// A file whose signature is being checked; see [`PublicKey::verification`].
///
/// ```
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom)?;
/// # let key = apr_crypto::minisign::SecretKey::from(key);
/// # let mut hash = apr_crypto::minisign::Prehash::new();
/// # hash.update(b"weights");
/// # let signature = key.sign(&hash.finish(), "version 1.2", "")?;
/// let mut verification = key.public().verification(&signature)?;
/// verification.update(b"wei");
/// verification.update(b"ghts");
/// assert_eq!(verification.finish()?, "version 1.2");
/// # Ok::<(), apr_crypto::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is checked before `finish`"]
pub struct FileVerification<'a> {
    key: VerifyingKey,
    signature: &'a Signature,
    message: Message,
}

/// What is signed.
#[derive(Debug)]
enum Message {
    Hash(Prehash),
    /// Old signatures.
    File(Verification),
}

impl<'a> FileVerification<'a> {
    /// Takes the next piece of the file.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.message {
            Message::Hash(hash) => hash.update(data),
            Message::File(verification) => verification.update(data),
        }
    }

    /// The trusted comment, if the file and the comment are the signed ones. Escape control characters before showing it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Signature`] if they are not.
    pub fn finish(self) -> Result<&'a str, Error> {
        match self.message {
            Message::Hash(hash) => self.key.verify(&hash.finish(), self.signature.signature())?,
            Message::File(verification) => verification.finish()?,
        }
        self.signature.verify_comment(&self.key)
    }
}

impl From<VerifyingKey> for PublicKey {
    fn from(key: VerifyingKey) -> Self {
        Self { id: KeyId::of(&key), key }
    }
}

/// The text of a public key's file.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = concat(&[b"Ed", &self.id.0, self.key.as_bytes()]);
        writeln!(f, "{UNTRUSTED}minisign public key {}\n{}", self.id, Base64::encode_string(&bytes))
    }
}

/// minisign's secret key, not under a password.
///
/// ```compile_fail,E0599
/// # let key = apr_crypto::SigningKey::generate(&mut apr_crypto::OsRandom).unwrap();
/// let copy = apr_crypto::minisign::SecretKey::from(key).clone();
/// ```
#[derive(Debug)]
pub struct SecretKey {
    id: KeyId,
    key: SigningKey,
}

impl SecretKey {
    /// A key with the given id.
    #[must_use]
    pub const fn new(id: KeyId, key: SigningKey) -> Self {
        Self { id, key }
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey { id: self.id, key: self.key.verifying_key() }
    }

    /// The signing key.
    #[must_use]
    pub fn into_key(self) -> SigningKey {
        self.key
    }

    /// Reads a secret key's file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::MinisignPassword`] if it is under a password (with the feature `scrypt`, `from_text_with` asks for it); [`ErrorKind::KeyMismatch`] if its halves do not belong
    /// together; [`ErrorKind::Text`].
    pub fn from_text(text: &str) -> Result<Self, Error> {
        Self::from_fields(&Fields::from_text(text)?)
    }

    pub(super) fn from_fields(fields: &Fields) -> Result<Self, Error> {
        match fields.kdf() {
            [0, 0] => Self::from_halves(fields.secret()),
            [b'S', b'c'] => Err(ErrorKind::MinisignPassword.into()),
            _ => Err(wrong(SECRET_FORMAT, "unknown way of deriving a key from a password")),
        }
    }

    /// Key id, seed and public key. A checksum follows that only a password gives a meaning.
    pub(super) fn from_halves(secret: &[u8; 104]) -> Result<Self, Error> {
        let (id, rest) = split::<104, 8, 96>(secret);
        let (seed, rest) = split::<96, 32, 64>(rest);
        let (public, _) = split::<64, 32, 32>(rest);
        let key = SigningKey::from_seed(seed);
        if !constant_time_eq(key.verifying_key().as_bytes(), public) {
            return Err(ErrorKind::KeyMismatch.into());
        }
        Ok(Self { id: KeyId(*id), key })
    }

    /// The text of a secret key's file, without a password: `minisign -C` puts one on.
    #[must_use]
    pub fn to_text(&self) -> SecretText {
        let public = self.key.verifying_key();
        let head = b"Ed\0\0B2";
        let bytes =
            concat(&[head, &[0; 48], &self.id.0, self.key.expose_seed(), public.as_bytes(), &[0; 32]]);
        let base64 = Zeroizing::new(Base64::encode_string(&bytes));
        let mut text = SecretText::with_capacity(base64.len() + 64);
        for part in [UNTRUSTED, "minisign secret key\n", &base64, "\n"] {
            text.push_str(part);
        }
        text
    }

    /// Signs the file with this hash, and the trusted comment with it. Anyone can change the untrusted one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Comment`] for a line break or control character in a comment, [`ErrorKind::TooLong`] beyond 1,000
    /// bytes.
    pub fn sign(
        &self,
        hash: &[u8; Prehash::LEN],
        trusted_comment: &str,
        untrusted_comment: &str,
    ) -> Result<Signature, Error> {
        check_line(trusted_comment)?;
        check_line(untrusted_comment)?;
        let signature = self.key.sign(hash);
        let comment = self.key.sign_parts(&[&signature.to_bytes(), trusted_comment.as_bytes()]);
        let (trusted, untrusted) = (String::from(trusted_comment), String::from(untrusted_comment));
        Ok(Signature::made(self.id, signature, comment, trusted, untrusted))
    }
}

impl From<SigningKey> for SecretKey {
    fn from(key: SigningKey) -> Self {
        Self { id: KeyId::of(&key.verifying_key()), key }
    }
}

/// The bytes of a secret key's file.
pub(super) struct Fields(Zeroizing<[u8; 158]>);

impl Fields {
    pub(super) fn from_text(text: &str) -> Result<Self, Error> {
        let mut lines = lines(SECRET_FORMAT, text)?;
        if !lines.next().is_some_and(|line| line.starts_with(UNTRUSTED.trim_end())) {
            return Err(wrong(SECRET_FORMAT, "no `untrusted comment:` line at its beginning"));
        }
        let line = lines.next().ok_or_else(|| wrong(SECRET_FORMAT, "no line after its comment"))?;
        end(SECRET_FORMAT, lines)?;
        let bytes = decode::<158>(SECRET_FORMAT, line)?;
        match &*bytes {
            [b'E', b'd', _, _, b'B', b'2', ..] => Ok(Self(bytes)),
            _ => Err(wrong(SECRET_FORMAT, "unknown algorithm")),
        }
    }

    /// How a key is derived from the password: two zeros, or `Sc`.
    pub(super) fn kdf(&self) -> [u8; 2] {
        let [_, _, a, b, ..] = *self.0;
        [a, b]
    }

    /// What a password needs: salt (32), work (8), memory in bytes (8).
    #[cfg(feature = "scrypt")]
    pub(super) fn cost(&self) -> &[u8; 48] {
        split::<152, 48, 104>(split::<158, 6, 152>(&self.0).1).0
    }

    /// Key id, seed, public key and checksum.
    pub(super) fn secret(&self) -> &[u8; 104] {
        split::<152, 48, 104>(split::<158, 6, 152>(&self.0).1).1
    }
}
