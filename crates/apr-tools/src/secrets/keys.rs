//! The keys of a command for encrypted and signed files.

use std::path::Path;

use apr_crypto::{Access, Signer, Trusted};

use serde::ser::{Serialize, SerializeStruct as _, Serializer};

use super::groups::Identity;
use super::limits::Limits;
use crate::error::{CODE_USAGE, Failure};
use crate::terminal::escape;

/// What opens files, and whose signature they must have.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    identity: Option<Identity>,
    trusted: Trusted,
    limits: Limits,
}

/// Who signed a file, as far as anybody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SignedBy {
    /// The name among the trusted keys; the fingerprint of one that has none there.
    pub(crate) name: Option<String>,
    pub(crate) fingerprint: String,
}

impl SignedBy {
    /// For sentences: `by alice (us56-...)`.
    pub(crate) fn by(&self) -> String {
        let Self { name, fingerprint } = self;
        match name.as_ref().filter(|name| *name != fingerprint) {
            Some(name) => format!("by {} ({fingerprint})", escape::escaped(name)),
            None if name.is_some() => format!("by {fingerprint}"),
            None => format!("by the untrusted key {fingerprint}"),
        }
    }
}

impl From<Signer<'_>> for SignedBy {
    fn from(signer: Signer<'_>) -> Self {
        let fingerprint = signer.key().fingerprint().to_string();
        let name = || signer.name().map_or_else(|| fingerprint.clone(), str::to_owned);
        Self { name: signer.is_trusted().then(name), fingerprint }
    }
}

impl Serialize for SignedBy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("SignedBy", 3)?;
        object.serialize_field("name", &self.name)?;
        object.serialize_field("fingerprint", &self.fingerprint)?;
        object.serialize_field("trusted", &self.name.is_some())?;
        object.end()
    }
}

impl Keys {
    /// Only whose signature a file must have.
    pub(crate) fn of_signers(trusted: Trusted) -> Self {
        Self { trusted, ..Self::default() }
    }

    /// With what files may ask for.
    #[must_use]
    pub(super) fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// With what opens the payload.
    #[must_use]
    pub(crate) fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Only whose signature a file must have, and what it may ask for.
    #[must_use]
    pub(crate) fn without_identity(&self) -> Self {
        Self { identity: None, trusted: self.trusted.clone(), limits: self.limits }
    }

    pub(crate) fn is_given(&self) -> bool {
        self.identity.is_some() || self.demands_signature()
    }

    pub(crate) fn demands_signature(&self) -> bool {
        !matches!(self.trusted, Trusted::NoSignature)
    }

    /// Whether a password is what opens files.
    pub(crate) fn has_password(&self) -> bool {
        matches!(self.identity, Some(Identity::Password(_)))
    }

    pub(crate) fn can_decrypt(&self) -> bool {
        self.identity.is_some()
    }

    /// What opens the payload, as the reader of a file wants it.
    pub(crate) fn decryption(&self) -> Access<'_> {
        self.identity.as_ref().map(Identity::access).unwrap_or_default()
    }

    /// What files may ask for.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn trusted(&self) -> &Trusted {
        &self.trusted
    }

    /// Refuses a file of a format in which there is neither encryption nor a signature: what was asked for cannot be had,
    /// and must not be passed over.
    ///
    /// # Errors
    ///
    /// If there are keys.
    pub(crate) fn refuse_for(&self, title: &str, path: &Path) -> Result<(), Failure> {
        if self.demands_signature() {
            let what = format!("a signature was demanded, and {title} holds none");
            return Err(Failure::new("ac-not-signed", what)
                .in_file(path)
                .help("`apr verify` checks signatures that lie beside a file"));
        }
        if self.can_decrypt() {
            let what = format!("a password or key was given, and {title} is not encrypted");
            return Err(Failure::new("ac-not-encrypted", what).in_file(path));
        }
        Ok(())
    }
}

/// Refuses standard input as both a password's source and an input.
///
/// # Errors
///
/// If it is both.
pub(crate) fn refuse_shared_stdin(password_takes_it: bool, input: &Path) -> Result<(), Failure> {
    if password_takes_it && input.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "standard input can be only one of password and input"));
    }
    Ok(())
}
