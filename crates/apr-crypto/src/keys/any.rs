//! Keys in any supported format: key line, PEM, minisign.

use crate::encrypt::password::{Argon2Limits, Password};
use crate::error::{Error, ErrorKind};
#[cfg(feature = "std")]
use crate::keys::file::{refuse_exposed, text_of};
use crate::keys::stored::{PREFIXES, PublicKey, SecretKey, StoredKey};
use crate::minisign;

/// The text format of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyFormat {
    /// One line of bech32, under a comment perhaps.
    Line,
    /// PKCS#8 or SubjectPublicKeyInfo in PEM.
    Pem,
    /// As minisign writes it.
    Minisign,
}

impl KeyFormat {
    /// The format of a text, by how it begins; a text that is no key counts as a line.
    ///
    /// ```
    /// use apr_crypto::KeyFormat;
    ///
    /// assert_eq!(KeyFormat::of("-----BEGIN PUBLIC KEY-----\n"), KeyFormat::Pem);
    /// assert_eq!(KeyFormat::of("# releases\napr-verify-1qqq"), KeyFormat::Line);
    /// ```
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = text.trim_start();
        if text.starts_with("-----BEGIN") {
            Self::Pem
        } else if text.starts_with("untrusted comment:") || minisign::PublicKey::from_text(text).is_ok() {
            Self::Minisign
        } else {
            Self::Line
        }
    }

    /// The name of the format: `apr`, `pem`, `minisign`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Line => "apr",
            Self::Pem => "pem",
            Self::Minisign => "minisign",
        }
    }
}

/// Whether a text is meant as a key and not as the path of its file: no file is called like that.
///
/// ```
/// assert!(apr_crypto::is_key_text("apr-public-1qqq"));
/// assert!(!apr_crypto::is_key_text("keys/buyer.pub"));
/// ```
#[must_use]
pub fn is_key_text(text: &str) -> bool {
    let begins = |prefix: &str| {
        text.trim_start()
            .as_bytes()
            .get(..prefix.len())
            .is_some_and(|b| b.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    PREFIXES
        .iter()
        .any(|prefix| begins(prefix) && text.trim_start().as_bytes().get(prefix.len()) == Some(&b'1'))
        || begins("-----begin")
        || text.contains('\n')
        || minisign::PublicKey::from_text(text).is_ok()
}

/// A public key in any format.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AnyPublicKey {
    /// The key.
    pub key: PublicKey,
    /// Its format.
    pub format: KeyFormat,
    /// What minisign calls it, if it is one of minisign's.
    pub key_id: Option<minisign::KeyId>,
}

impl AnyPublicKey {
    /// Reads a key line, SubjectPublicKeyInfo in PEM, or a public key of minisign's.
    ///
    /// ```
    /// use apr_crypto::{AnyPublicKey, KeyFormat, PublicKey, SigningKey};
    ///
    /// let key = SigningKey::from_seed(&[1; 32]).verifying_key();
    /// let found = AnyPublicKey::from_text(&PublicKey::from(key).to_spki_pem())?;
    /// assert_eq!((found.format, found.key), (KeyFormat::Pem, key.into()));
    /// # Ok::<(), apr_crypto::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] for a secret key; otherwise the error of the format, as
    /// [`PublicKey::from_file_text`], [`PublicKey::from_spki_pem`] and [`minisign::PublicKey::from_text`] say it.
    pub fn from_text(text: &str) -> Result<Self, Error> {
        // Of minisign's files only those of secret keys have a line as long as this.
        let is_secret =
            text.contains("PRIVATE KEY-----") || text.lines().nth(1).is_some_and(|line| line.len() == 212);
        let format = KeyFormat::of(text);
        let mut key_id = None;
        let key = match format {
            KeyFormat::Pem | KeyFormat::Minisign if is_secret => {
                return Err(ErrorKind::KeyKind { expected: "a public key", found: "a secret key" }.into());
            }
            KeyFormat::Pem => PublicKey::from_spki_pem(text)?,
            KeyFormat::Minisign => {
                let key = minisign::PublicKey::from_text(text.trim_end())?;
                key_id = Some(key.id());
                (*key.key()).into()
            }
            KeyFormat::Line => PublicKey::from_file_text(text)?,
        };
        Ok(Self { key, format, key_id })
    }

    /// Reads the content of a public key's file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`] for bytes that are not UTF-8; those of [`from_text`](Self::from_text).
    #[cfg(feature = "std")]
    pub fn from_file_content(content: &[u8]) -> Result<Self, Error> {
        text_of(content).and_then(Self::from_text)
    }
}

/// A secret key in any format, unlocked.
#[derive(Debug)]
#[non_exhaustive]
pub struct AnySecretKey {
    /// The key.
    pub key: SecretKey,
    /// Its format.
    pub format: KeyFormat,
    /// What minisign calls it, if it is one of minisign's.
    pub key_id: Option<minisign::KeyId>,
    /// Whether it was under a password.
    pub is_locked: bool,
}

impl AnySecretKey {
    /// Reads a key line, PKCS#8 in PEM, or a secret key of minisign's; `ask` provides the password of an encrypted one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::KeyKind`] for a public key, which may be known; errors of `ask`; [`ErrorKind::Open`] for a wrong password;
    /// [`ErrorKind::MinisignPassword`] without the feature `scrypt`; otherwise the error of the format.
    pub fn from_text_with<E: From<Error>>(
        text: &str,
        limits: &Argon2Limits,
        ask: impl FnOnce() -> Result<Password, E>,
    ) -> Result<Self, E> {
        if let Ok(public) = AnyPublicKey::from_text(text) {
            let found = match public.key {
                PublicKey::Recipient(_) => "a recipient's public key",
                PublicKey::Verifying(_) => "a verifying key",
            };
            return Err(Error::from(ErrorKind::KeyKind { expected: "a secret key", found }).into());
        }
        let (mut key_id, mut is_locked) = (None, false);
        let ask = || {
            is_locked = true;
            ask()
        };
        let format = KeyFormat::of(text);
        let key = match format {
            KeyFormat::Pem => SecretKey::from_pkcs8_pem(text)?,
            KeyFormat::Line => StoredKey::from_file_text(text, limits)?.unlock_with(ask)?,
            KeyFormat::Minisign => {
                let key = minisign_key(text, limits, ask)?;
                key_id = Some(key.public().id());
                key.into_key().into()
            }
        };
        Ok(Self { key, format, key_id, is_locked })
    }

    /// Reads the content of a secret key's file. On Unix, a file that group or others may access is refused, as by
    /// [`refuse_exposed`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Text`] for bytes that are not UTF-8; [`ErrorKind::Exposed`]; those of [`from_text_with`](Self::from_text_with).
    #[cfg(feature = "std")]
    pub fn from_file_content_with<E: From<Error>>(
        content: &[u8],
        metadata: &std::fs::Metadata,
        limits: &Argon2Limits,
        ask: impl FnOnce() -> Result<Password, E>,
    ) -> Result<Self, E> {
        let text = text_of(content)?;
        // Anyone may know a public key: what is wrong with it is its kind.
        if AnyPublicKey::from_text(text).is_err() {
            refuse_exposed(metadata)?;
        }
        Self::from_text_with(text, limits, ask)
    }
}

#[cfg(feature = "scrypt")]
fn minisign_key<E: From<Error>>(
    text: &str,
    limits: &Argon2Limits,
    ask: impl FnOnce() -> Result<Password, E>,
) -> Result<minisign::SecretKey, E> {
    minisign::SecretKey::from_text_with(text, limits, ask)
}

#[cfg(not(feature = "scrypt"))]
fn minisign_key<E: From<Error>>(
    text: &str,
    _: &Argon2Limits,
    _: impl FnOnce() -> Result<Password, E>,
) -> Result<minisign::SecretKey, E> {
    Ok(minisign::SecretKey::from_text(text)?)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};

    use super::*;
    use crate::encrypt::password::Argon2Cost;
    use crate::encrypt::recipient::RecipientSecret;
    use crate::random::fixed::Seeded;
    use crate::sign::ed25519::SigningKey;

    fn never() -> Result<Password, Error> {
        panic!("no password is needed")
    }

    fn secret(text: &str) -> Result<AnySecretKey, Error> {
        AnySecretKey::from_text_with(text, &Argon2Limits::default(), never)
    }

    fn signing() -> SigningKey {
        SigningKey::from_seed(&[1; 32])
    }

    #[test]
    fn every_spelling_of_both_halves() {
        let id = minisign::KeyId(*b"12345678");
        let minisign = minisign::SecretKey::new(id, signing());
        let public = PublicKey::from(signing().verifying_key());
        let line = SecretKey::from(signing());
        let spellings: [(String, String, KeyFormat); 3] = [
            (
                line.to_file_text("c").unwrap().as_str().into(),
                public.to_file_text("c").unwrap(),
                KeyFormat::Line,
            ),
            (line.to_pkcs8_pem().as_str().into(), public.to_spki_pem(), KeyFormat::Pem),
            (minisign.to_text().as_str().into(), minisign.public().to_string(), KeyFormat::Minisign),
        ];
        for (secret_text, public_text, format) in spellings {
            assert_eq!(KeyFormat::of(&secret_text), format);
            let found = secret(&secret_text).unwrap();
            assert_eq!((found.key.public(), found.format, found.is_locked), (public, format, false));
            assert_eq!(found.key_id, (format == KeyFormat::Minisign).then_some(id));
            let found = AnyPublicKey::from_text(&public_text).unwrap();
            assert_eq!((found.key, found.format), (public, format));
            assert_eq!(found.key_id, (format == KeyFormat::Minisign).then_some(id));
            // Each half where the other is needed.
            assert_eq!(AnyPublicKey::from_text(&secret_text).unwrap_err().code(), "cy-key-kind");
            assert_eq!(secret(&public_text).unwrap_err().code(), "cy-key-kind");
            assert!(is_key_text(&secret_text) && is_key_text(&public_text));
        }
    }

    #[test]
    fn the_password_is_asked_for_once_and_only_where_there_is_one() {
        let limits = Argon2Limits::default().with_memory_kib(8..=1024);
        let cost = Argon2Cost::new(8, 1, 1, &limits).unwrap();
        let key = SecretKey::from(RecipientSecret::from_bytes(&[3; 32]));
        let text = key.lock(&mut Seeded(1), &Password::from("pw"), &cost).unwrap().to_text();
        let with = |password: &'static str| {
            AnySecretKey::from_text_with(&text, &limits, || Ok::<_, Error>(Password::from(password)))
        };
        let found = with("pw").unwrap();
        assert!(found.is_locked);
        assert_eq!(found.key.public(), key.public());
        assert_eq!(with("other").unwrap_err().code(), "cy-open");
    }

    #[test]
    fn keys_and_paths_are_told_apart() {
        let public = PublicKey::from(signing().verifying_key()).to_string();
        let bare = minisign::SecretKey::new(minisign::KeyId([0; 8]), signing()).public().to_string();
        for key in
            [public.as_str(), &public.to_uppercase(), &format!(" {public}"), bare.lines().nth(1).unwrap()]
        {
            assert!(is_key_text(key), "{key}");
        }
        for path in ["", "a.key", "apr-public", "apr-public-2", "keys/apr-sign-1", "ünï.pub", "-----"] {
            assert!(!is_key_text(path), "{path}");
        }
    }
}
