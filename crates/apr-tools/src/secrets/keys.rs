//! What a command brings for encrypted and signed files.

use std::io;
use std::path::Path;

use apr_crypto::{Access, Signer};
use clap::{Arg, ArgMatches};

use super::groups::{Identity, IdentityArgs, TrustArgs, Trusted, key_password_args};
use super::limits::Limits;
use crate::error::{CODE_USAGE, Failure};
use crate::report::json::JsonWriter;
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
            None => format!("by whoever has the key {fingerprint}"),
        }
    }
}

impl SignedBy {
    /// As an object.
    pub(crate) fn write_json<W: io::Write>(&self, json: &mut JsonWriter<W>) -> io::Result<()> {
        json.object()?;
        json.field_opt_str("name", self.name.as_deref())?;
        json.field_str("fingerprint", &self.fingerprint)?;
        json.field_bool("trusted", self.name.is_some())?;
        json.end_object()
    }
}

impl Keys {
    /// The options of the two groups.
    pub(crate) fn args() -> Vec<Arg> {
        IdentityArgs::args().into_iter().chain(TrustArgs::args()).chain(key_password_args()).collect()
    }

    /// Those of the command line. A password is asked for only if `--ask-password` says so, or a key file needs it.
    ///
    /// # Errors
    ///
    /// If one cannot be had; if standard input would have to be both a password and one of `inputs`.
    pub(crate) fn from_matches<'p>(
        matches: &ArgMatches,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Self, Failure> {
        let (identity, trust) = (IdentityArgs::from_matches(matches), TrustArgs::from_matches(matches));
        let mut first = None;
        for input in inputs {
            refuse_shared_stdin(identity.takes_stdin(), input)?;
            first.get_or_insert(input);
        }
        let trusted = trust.load()?;
        let asked_of = first.unwrap_or(Path::new("-"));
        let identity = if identity.is_given() { Some(identity.load(asked_of)?) } else { None };
        Ok(Self { identity, trusted, limits: Limits::from_matches(matches) })
    }

    /// Only whose signature a file must have.
    pub(crate) fn of_signers(trusted: Trusted) -> Self {
        Self { trusted, ..Self::default() }
    }

    /// With what opens the payload.
    #[must_use]
    pub(crate) fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    pub(crate) fn is_given(&self) -> bool {
        self.identity.is_some() || self.demands_signature()
    }

    pub(crate) fn demands_signature(&self) -> bool {
        !matches!(self.trusted, Trusted::Unasked)
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

    /// Names the signer that a reader found with these keys.
    pub(crate) fn signed_by(&self, signer: Signer<'_>) -> SignedBy {
        match signer {
            Signer::Trusted(name) => {
                let key = match &self.trusted {
                    Trusted::Keys(keys) => name.and_then(|name| keys.key_of(name)),
                    Trusted::Unasked | Trusted::Anyone => None,
                };
                let fingerprint = key.map(|key| key.fingerprint().to_string()).unwrap_or_default();
                SignedBy { name: Some(name.map_or_else(|| fingerprint.clone(), str::to_owned)), fingerprint }
            }
            Signer::Unknown(key) => SignedBy { name: None, fingerprint: key.fingerprint().to_string() },
        }
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

/// Refuses standard input as both a password's source and a model.
///
/// # Errors
///
/// If it is both.
pub(crate) fn refuse_shared_stdin(password_takes_it: bool, input: &Path) -> Result<(), Failure> {
    if password_takes_it && input.as_os_str() == "-" {
        return Err(Failure::new(CODE_USAGE, "standard input can be only one of password and model"));
    }
    Ok(())
}
