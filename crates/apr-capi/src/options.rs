//! How a file is opened.

use apr_container::ErrorKind;
use apr_crypto::{
    Access, AnyPublicKey, AnySecretKey, Argon2Limits, Password, RecipientSecret, Trusted, TrustedKeys,
};
use model_file::{ModelFile, ModelFormat, OpenOptions, ReadOptions};
use read_at::ReadAt;

use crate::failure::{Failure, usage};

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'o> {
    /// Accept what the reference implementations accept.
    pub compat: bool,
    /// Accept signed files without verifying the signature.
    pub allow_unverified: bool,
    /// Accept a valid signature by any key.
    pub any_signer: bool,
    /// The public key that must have signed the file, as text.
    pub verify_key: Option<&'o str>,
    /// The secret key of a recipient, as text.
    pub identity: Option<&'o str>,
    /// The password that the file is encrypted under; with `identity`, that of the key.
    pub password: Option<&'o str>,
}

/// The keys of [`Options`], read.
#[derive(Debug)]
pub struct Keys {
    identity: Identity,
    trusted: Trusted,
}

#[derive(Debug)]
enum Identity {
    None,
    Password(Password),
    Recipient(RecipientSecret),
}

impl Options<'_> {
    /// Strictness and limits.
    pub(crate) fn read_options(&self) -> ReadOptions {
        let options = if self.compat { ReadOptions::COMPAT } else { ReadOptions::STRICT };
        if self.allow_unverified { options.with_unchecked_signatures() } else { options }
    }

    /// Reads the keys.
    pub(crate) fn keys(&self) -> Result<Keys, Failure> {
        let identity = match (self.identity, self.password) {
            (None, None) => Identity::None,
            (None, Some(password)) => Identity::Password(Password::new(password)),
            (Some(key), password) => {
                let unlock = || match password {
                    Some(password) => Ok(Password::new(password)),
                    None => Err(usage("the key is encrypted, and no password was given")),
                };
                let key = AnySecretKey::from_text_with(key, &Argon2Limits::default(), unlock)?;
                Identity::Recipient(key.key.into_recipient()?)
            }
        };
        let trusted = match (self.any_signer, self.verify_key) {
            (true, Some(_)) => return Err(usage("any signer and a key to verify exclude each other")),
            (true, None) => Trusted::Anyone,
            (false, None) => Trusted::NoSignature,
            (false, Some(key)) => {
                let key = AnyPublicKey::from_text(key)?.key.into_verifying()?;
                let mut keys = TrustedKeys::new();
                keys.add(&key.fingerprint().to_string(), key)?;
                Trusted::AnyOf(keys)
            }
        };
        Ok(Keys { identity, trusted })
    }
}

impl Keys {
    /// The options of opening with these keys, if there are any.
    pub(crate) fn open_options<'k>(&'k self, options: &Options<'_>) -> OpenOptions<'k> {
        let open = OpenOptions::new().with_read_options(options.read_options());
        let access = Access::default().with_trust(self.trusted.trust());
        match (&self.identity, &self.trusted) {
            (Identity::None, Trusted::NoSignature) => open,
            (Identity::None, _) => open.with_access(access),
            (Identity::Password(password), _) => open.with_access(access.with_password(password)),
            (Identity::Recipient(secret), _) => open.with_access(access.with_recipient(secret)),
        }
    }

    /// Refuses a file of a format without signatures and encryption if either is required.
    pub(crate) fn refuse_for<R: ReadAt>(&self, file: &ModelFile<R>) -> Result<(), Failure> {
        if file.is_sealed() || file.format() == ModelFormat::AprV1 {
            return Ok(());
        }
        let kind = match (&self.identity, &self.trusted) {
            (Identity::None, Trusted::NoSignature) => return Ok(()),
            (Identity::None, _) => ErrorKind::NotSigned,
            _ => ErrorKind::NotEncrypted,
        };
        Err(apr_container::Error::from(kind).into())
    }
}
