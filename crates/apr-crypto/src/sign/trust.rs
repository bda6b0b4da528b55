//! Trusted signers of a file, and the keys to verify and decrypt it with.

use crate::encrypt::password::Password;
use crate::encrypt::recipient::RecipientSecret;
use crate::keys::TrustedKeys;
use crate::sign::ed25519::VerifyingKey;

/// Whose signature a file must have.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Trust<'k> {
    /// No signature is required. Strict readers refuse a signature that is present and not verified.
    #[default]
    NoSignature,
    /// Only this key.
    Key(&'k VerifyingKey),
    /// Any of these keys.
    AnyOf(&'k TrustedKeys),
    /// Any key: the key in the file is used as it is. That proves that the file is unchanged since it was signed, and nothing
    /// about the signer, who is [`Signer::Unknown`].
    Anyone,
}

/// Whose signature a file must have, with the keys: what programs keep and [`Trust`] borrows from.
#[derive(Clone, Debug, Default)]
pub enum Trusted {
    /// No signature is required.
    #[default]
    NoSignature,
    /// That of one of these keys.
    AnyOf(TrustedKeys),
    /// Any key: the signature shows that the file is unchanged since it was signed, not who signed it.
    Anyone,
}

impl Trusted {
    /// The same, borrowed.
    #[must_use]
    pub const fn trust(&self) -> Trust<'_> {
        match self {
            Self::NoSignature => Trust::NoSignature,
            Self::AnyOf(keys) => Trust::AnyOf(keys),
            Self::Anyone => Trust::Anyone,
        }
    }
}

impl<'k> From<&'k VerifyingKey> for Trust<'k> {
    fn from(key: &'k VerifyingKey) -> Self {
        Self::Key(key)
    }
}

impl<'k> From<&'k TrustedKeys> for Trust<'k> {
    fn from(keys: &'k TrustedKeys) -> Self {
        Self::AnyOf(keys)
    }
}

/// `None` is [`Trust::Anyone`]: a signature is required, by whatever key.
impl<'k> From<Option<&'k VerifyingKey>> for Trust<'k> {
    fn from(key: Option<&'k VerifyingKey>) -> Self {
        key.map_or(Self::Anyone, Self::Key)
    }
}

/// Who signed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer<'k> {
    /// A trusted key, with its name in the list of trusted keys if it has one.
    Trusted(VerifyingKey, Option<&'k str>),
    /// The key in the file, which is not among trusted ones. Anyone can sign with a key of their own.
    Unknown(VerifyingKey),
}

impl<'k> Signer<'k> {
    /// The key of the signature.
    #[must_use]
    pub const fn key(&self) -> &VerifyingKey {
        match self {
            Self::Trusted(key, _) | Self::Unknown(key) => key,
        }
    }

    /// Its name in the list of trusted keys.
    #[must_use]
    pub const fn name(&self) -> Option<&'k str> {
        match self {
            Self::Trusted(_, name) => *name,
            Self::Unknown(_) => None,
        }
    }

    /// Whether it is a trusted key.
    #[must_use]
    pub const fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted(..))
    }
}

/// Why the public key in a file is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedSigner {
    /// It is not a trusted key.
    Untrusted,
    /// It is not a valid public key.
    InvalidKey,
}

impl<'k> Trust<'k> {
    /// The signer whose key verifies the signature, given the public key `embedded` in the file; `None` if no signature is required.
    ///
    /// # Errors
    ///
    /// [`RejectedSigner::Untrusted`] if the key is not trusted, [`RejectedSigner::InvalidKey`] if it is not a public key.
    pub fn accept(self, embedded: &[u8; VerifyingKey::LEN]) -> Result<Option<Signer<'k>>, RejectedSigner> {
        let signer = match self {
            Self::NoSignature => return Ok(None),
            Self::Key(key) => Signer::Trusted(*key, None),
            Self::AnyOf(keys) => {
                let found = keys.iter().find(|(_, key)| key.as_bytes() == embedded);
                let (name, key) = found.ok_or(RejectedSigner::Untrusted)?;
                Signer::Trusted(*key, Some(name))
            }
            Self::Anyone => {
                let key = VerifyingKey::from_bytes(embedded).map_err(|_| RejectedSigner::InvalidKey)?;
                Signer::Unknown(key)
            }
        };
        // The key in the file may itself not be covered by the signature: a third party can replace it.
        match signer.key().as_bytes() == embedded {
            true => Ok(Some(signer)),
            false => Err(RejectedSigner::Untrusted),
        }
    }
}

/// The key that decrypts a file, and whose signature the file must have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'k> {
    key: Option<DecryptionKey<'k>>,
    trust: Trust<'k>,
}

/// Decrypts a file.
#[derive(Clone, Copy, Debug)]
pub enum DecryptionKey<'k> {
    /// A password.
    Password(&'k Password),
    /// The secret key of a recipient.
    Recipient(&'k RecipientSecret),
}

impl<'k> Access<'k> {
    /// Decrypts with this password. The file must be encrypted.
    #[must_use]
    pub const fn with_password(mut self, password: &'k Password) -> Self {
        self.key = Some(DecryptionKey::Password(password));
        self
    }

    /// Decrypts with this key. The file must be encrypted.
    #[must_use]
    pub const fn with_recipient(mut self, secret: &'k RecipientSecret) -> Self {
        self.key = Some(DecryptionKey::Recipient(secret));
        self
    }

    /// Requires a signature.
    #[must_use]
    pub fn with_trust(mut self, trust: impl Into<Trust<'k>>) -> Self {
        self.trust = trust.into();
        self
    }

    /// The key that decrypts the file, if one was given.
    #[must_use]
    pub const fn key(&self) -> Option<DecryptionKey<'k>> {
        self.key
    }

    /// Whose signature the file must have.
    #[must_use]
    pub const fn trust(&self) -> Trust<'k> {
        self.trust
    }
}
