//! Whose signatures count.

use apr_crypto::{Signature, TrustedKeys, VerifyingKey};

use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v1::container::{Container, SignatureBlock};

/// Whose signature a file must have to be loaded.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Trust<'k> {
    /// No signature is asked for. One that is there is refused unchecked in strict reading.
    #[default]
    NoSignature,
    /// This key's.
    Key(&'k VerifyingKey),
    /// That of any of these keys.
    AnyOf(&'k TrustedKeys),
    /// Anyone's: the key in the file is taken as it comes. That proves that the file is as its signer left it, and nothing
    /// about who that is: [`Opened::signer`](super::Opened::signer) says [`Signer::Unknown`].
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

/// Who signed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer<'k> {
    /// A trusted key, by its name among the trusted ones if it has one.
    Trusted(Option<&'k str>),
    /// Whoever has the key in the file. Anyone can sign with a key of their own.
    Unknown(VerifyingKey),
}

/// Who signed a file, encrypted or not; nothing of it is decrypted or decoded. `None` for [`Trust::NoSignature`].
///
/// # Errors
///
/// Those of [`Container::from_bytes_with`]; [`ErrorKind::NotSigned`], [`ErrorKind::SignatureInvalid`],
/// [`ErrorKind::UntrustedSigner`].
pub fn verify_signature<'k>(
    file: &[u8],
    trust: impl Into<Trust<'k>>,
    options: &ReadOptions,
) -> Result<Option<Signer<'k>>, Error> {
    trust.into().verify(Container::from_bytes_with(file, options)?.signature())
}

impl<'k> Trust<'k> {
    /// Verifies the signature in front of anything else that is done with the file.
    pub(super) fn verify(self, block: Option<SignatureBlock<'_>>) -> Result<Option<Signer<'k>>, Error> {
        if matches!(self, Self::NoSignature) {
            return Ok(None);
        }
        let Some(block) = block else { return Err(ErrorKind::NotSigned.at(21)) };
        let at = block.signed_bytes().len() as u64;
        let invalid = || ErrorKind::SignatureInvalid.at(at);
        let signature: [u8; Signature::LEN] = block.signature().try_into().map_err(|_| invalid())?;
        let embedded: &[u8; VerifyingKey::LEN] = block.public_key().try_into().map_err(|_| invalid())?;
        let Some((key, signer)) = self.accept(embedded).map_err(|kind| kind.at(at))? else {
            return Ok(None);
        };
        key.verify(block.signed_bytes(), &Signature::from_bytes(signature)).map_err(|_| invalid())?;
        Ok(Some(signer))
    }

    /// The key to verify with, if a signature by the key in the file is acceptable; none if no signature is asked for.
    pub(crate) fn accept(
        self,
        embedded: &[u8; VerifyingKey::LEN],
    ) -> Result<Option<(VerifyingKey, Signer<'k>)>, ErrorKind> {
        let (key, signer) = match self {
            Self::NoSignature => return Ok(None),
            Self::Key(key) => (*key, Signer::Trusted(None)),
            Self::AnyOf(keys) => {
                let found = keys.iter().find(|(_, key)| key.as_bytes() == embedded);
                let (name, key) = found.ok_or(ErrorKind::UntrustedSigner)?;
                (*key, Signer::Trusted(Some(name)))
            }
            Self::Anyone => {
                let key = VerifyingKey::from_bytes(embedded).map_err(|_| ErrorKind::SignatureInvalid)?;
                (key, Signer::Unknown(key))
            }
        };
        // The key in the file may itself not be signed; another one there is the work of a third party.
        if key.as_bytes() != embedded {
            return Err(ErrorKind::UntrustedSigner);
        }
        Ok(Some((key, signer)))
    }
}
