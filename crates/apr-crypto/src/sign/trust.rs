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
    Trusted(Option<&'k str>),
    /// The key in the file, which is not among trusted ones. Anyone can sign with a key of their own.
    Unknown(VerifyingKey),
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
    /// The key to verify a signature with, given the public key `embedded` in the file; `None` if no signature is required.
    ///
    /// # Errors
    ///
    /// [`RejectedSigner::Untrusted`] if the key is not trusted, [`RejectedSigner::InvalidKey`] if it is not a public key.
    pub fn accept(
        self,
        embedded: &[u8; VerifyingKey::LEN],
    ) -> Result<Option<(VerifyingKey, Signer<'k>)>, RejectedSigner> {
        let (key, signer) = match self {
            Self::NoSignature => return Ok(None),
            Self::Key(key) => (*key, Signer::Trusted(None)),
            Self::AnyOf(keys) => {
                let found = keys.iter().find(|(_, key)| key.as_bytes() == embedded);
                let (name, key) = found.ok_or(RejectedSigner::Untrusted)?;
                (*key, Signer::Trusted(Some(name)))
            }
            Self::Anyone => {
                let key = VerifyingKey::from_bytes(embedded).map_err(|_| RejectedSigner::InvalidKey)?;
                (key, Signer::Unknown(key))
            }
        };
        // The key in the file may itself not be covered by the signature: a third party can replace it.
        match key.as_bytes() == embedded {
            true => Ok(Some((key, signer))),
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
