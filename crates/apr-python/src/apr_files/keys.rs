//! Passwords and keys from arguments.

use std::path::{Path, PathBuf};

use apr_crypto::{
    Access, AnyPublicKey, AnySecretKey, Argon2Limits, Password, PublicKey, RecipientPublic, RecipientSecret,
    SecretKey, Signer, SigningKey, Trusted, TrustedKeys, is_key_text,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use zeroize::Zeroizing;

use super::refusal::Refusal;
use crate::buffer::{Buffer, Wanted};

/// Longest key file that is looked at.
const MAX_LEN: u64 = 64 << 10;

/// Keys for opening files, and the signatures that are required.
#[derive(Default)]
pub(crate) struct Keys {
    identity: Option<Identity>,
    trusted: Trusted,
}

enum Identity {
    Password(Password),
    Recipient(RecipientSecret),
}

/// Arguments of the functions that open files.
pub(crate) struct Opening<'a, 'py> {
    pub(crate) password: Option<&'a Bound<'py, PyAny>>,
    pub(crate) identity: Option<&'a Bound<'py, PyAny>>,
    pub(crate) key_password: Option<&'a Bound<'py, PyAny>>,
    pub(crate) verify_key: Option<&'a Bound<'py, PyAny>>,
    pub(crate) trusted_keys: Option<PathBuf>,
    pub(crate) any_signer: bool,
}

impl Keys {
    pub(crate) fn new(py: Python<'_>, opening: Opening<'_, '_>) -> PyResult<Self> {
        let Opening { password, identity, key_password, verify_key, trusted_keys, any_signer } = opening;
        if identity.is_none() && key_password.is_some() {
            return Err(PyValueError::new_err(
                "key_password= is of a key: give identity=, or password= for the file",
            ));
        }
        let identity = match (password, identity) {
            (None, None) => None,
            (Some(password), None) => Some(Identity::Password(password_of(password)?)),
            (None, Some(key)) => {
                let source = KeySource::of(key)?;
                let secret = source.secret(py, key_password.map(password_of).transpose()?)?.into_recipient();
                let secret = secret.map_err(|error| Refusal::from(error).raise(py, source.path()))?;
                Some(Identity::Recipient(secret))
            }
            (Some(_), Some(_)) => {
                return Err(PyValueError::new_err(
                    "a file is opened by password= or by identity=, not by both",
                ));
            }
        };
        let is_named = verify_key.is_some() || trusted_keys.is_some();
        let trusted = match (any_signer, is_named) {
            (true, true) => {
                let text =
                    "any_signer=True takes any signature: leave verify_key= and trusted_keys= out, or it";
                return Err(PyValueError::new_err(text));
            }
            (true, false) => Trusted::Anyone,
            (false, false) => Trusted::NoSignature,
            (false, true) => Trusted::AnyOf(trusted(py, verify_key, trusted_keys.as_deref())?),
        };
        Ok(Self { identity, trusted })
    }

    pub(crate) fn access(&self) -> Access<'_> {
        let access = Access::default().with_trust(self.trusted.trust());
        match &self.identity {
            None => access,
            Some(Identity::Password(password)) => access.with_password(password),
            Some(Identity::Recipient(secret)) => access.with_recipient(secret),
        }
    }

    /// Refuses a file of a format without encryption and signatures if either was required.
    pub(crate) fn refuse_for(&self, format: &str) -> Result<(), Refusal> {
        if !matches!(self.trusted, Trusted::NoSignature) {
            let text = format!("a signature was demanded, and {format} holds none");
            return Err(Refusal::Said { code: "ac-not-signed", text });
        }
        if self.identity.is_some() {
            let text = format!("a password or key was given, and {format} is not encrypted");
            return Err(Refusal::Said { code: "ac-not-encrypted", text });
        }
        Ok(())
    }
}

/// The keys whose signatures are accepted.
fn trusted(
    py: Python<'_>,
    verify_key: Option<&Bound<'_, PyAny>>,
    list: Option<&Path>,
) -> PyResult<TrustedKeys> {
    let raise = |error: apr_crypto::Error| Refusal::from(error).raise(py, list);
    let mut keys = match list {
        Some(path) => TrustedKeys::open_file(path).map_err(raise)?,
        None => TrustedKeys::new(),
    };
    for given in verify_key.map(one_or_many).transpose()?.unwrap_or_default() {
        let source = KeySource::of(&given)?;
        let raise = |error: apr_crypto::Error| Refusal::from(error).raise(py, source.path());
        let key = source.public(py)?.into_verifying().map_err(raise)?;
        // One that is listed, or given twice, is trusted already.
        if keys.name_of(&key).is_none() {
            keys.add(&key.fingerprint().to_string(), key).map_err(raise)?;
        }
    }
    if keys.is_empty() {
        return Err(PyValueError::new_err("no key whose signature would count: name at least one"));
    }
    Ok(keys)
}

/// A key, or those of a list or tuple.
fn one_or_many<'py>(keys: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match keys.is_instance_of::<PyList>() || keys.is_instance_of::<PyTuple>() {
        true => keys.try_iter()?.collect(),
        false => Ok(vec![keys.clone()]),
    }
}

/// The one public key of a recipient.
pub(crate) fn recipient_of(keys: &Bound<'_, PyAny>) -> PyResult<RecipientPublic> {
    match recipients_of(keys)?.as_slice() {
        [key] => Ok(*key),
        given => Err(PyValueError::new_err(format!(
            "{} recipients, and an .apr file has one: apr.seal encrypts for several",
            given.len()
        ))),
    }
}

/// The public keys of recipients.
pub(crate) fn recipients_of(keys: &Bound<'_, PyAny>) -> PyResult<Vec<RecipientPublic>> {
    let mut found: Vec<RecipientPublic> = Vec::new();
    for given in one_or_many(keys)? {
        let source = KeySource::of(&given)?;
        let key = source.public(keys.py())?.into_recipient();
        let key = key.map_err(|error| Refusal::from(error).raise(keys.py(), source.path()))?;
        if found.iter().any(|known| known.as_bytes() == key.as_bytes()) {
            return Err(PyValueError::new_err(format!("the recipient {} is given twice", key.fingerprint())));
        }
        found.push(key);
    }
    if found.is_empty() {
        return Err(PyValueError::new_err("no recipient: name at least one"));
    }
    Ok(found)
}

/// The key that signs.
pub(crate) fn signing_key_of(
    key: &Bound<'_, PyAny>,
    key_password: Option<&Bound<'_, PyAny>>,
) -> PyResult<SigningKey> {
    let py = key.py();
    let source = KeySource::of(key)?;
    let key = source.secret(py, key_password.map(password_of).transpose()?)?.into_signing();
    key.map_err(|error| Refusal::from(error).raise(py, source.path()))
}

/// A str, or bytes for passwords that are none.
pub(crate) fn password_of(password: &Bound<'_, PyAny>) -> PyResult<Password> {
    if let Ok(text) = password.cast::<PyString>() {
        return Ok(Password::from(text.to_str()?));
    }
    match Buffer::of(password, Wanted::Bytes) {
        Ok(buffer) => Ok(Password::new(buffer.bytes())),
        Err(_) => {
            let kind = password.get_type().name()?;
            Err(PyTypeError::new_err(format!("a password is str or bytes, not {kind}")))
        }
    }
}

/// Who signed a file.
#[derive(Clone, Debug)]
pub(crate) struct SignedBy {
    /// The name among the trusted keys.
    name: Option<String>,
    fingerprint: String,
    is_trusted: bool,
}

impl From<Signer<'_>> for SignedBy {
    fn from(signer: Signer<'_>) -> Self {
        Self {
            name: signer.name().map(str::to_owned),
            fingerprint: signer.key().fingerprint().to_string(),
            is_trusted: signer.is_trusted(),
        }
    }
}

impl SignedBy {
    pub(crate) fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("name", self.name.as_ref().filter(|name| **name != self.fingerprint))?;
        dict.set_item("fingerprint", &self.fingerprint)?;
        dict.set_item("trusted", self.is_trusted)?;
        Ok(dict)
    }
}

/// A key, or the file that holds it.
pub(crate) enum KeySource {
    Text(Zeroizing<String>),
    File(PathBuf),
}

impl KeySource {
    /// A str with the text of a key or the path of its file; bytes with the text; os.PathLike.
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = object.cast::<PyString>() {
            let text = text.to_str()?;
            return Ok(if is_key_text(text) {
                Self::Text(Zeroizing::new(text.to_owned()))
            } else {
                Self::File(text.into())
            });
        }
        if let Ok(path) = object.extract::<PathBuf>() {
            return Ok(Self::File(path));
        }
        let Ok(buffer) = Buffer::of(object, Wanted::Bytes) else {
            let kind = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a key is its text or the path of its file, not {kind}"
            )));
        };
        let text = core::str::from_utf8(buffer.bytes())
            .map_err(|_| PyValueError::new_err("not the text of a key: bytes that are not UTF-8"))?;
        Ok(Self::Text(Zeroizing::new(text.to_owned())))
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Text(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// The secret key, unlocked; only the owner may have permission to read its file.
    fn secret(&self, py: Python<'_>, password: Option<Password>) -> PyResult<SecretKey> {
        let missing = || Refusal::Said { code: "cy-open", text: "the key is under a password".to_owned() };
        let (limits, ask) = (Argon2Limits::default(), || password.ok_or_else(missing));
        let read = || match self {
            Self::Text(text) => AnySecretKey::from_text_with(text, &limits, ask),
            Self::File(path) => {
                let regular = durable_file::open_regular(path, MAX_LEN)?;
                let metadata = regular.file().metadata().map_err(Refusal::Io)?;
                let content = Zeroizing::new(regular.into_bytes()?);
                AnySecretKey::from_file_content_with(&content, &metadata, &limits, ask)
            }
        };
        let key = py.detach(read).map_err(|refusal: Refusal| refusal.raise(py, self.path()))?;
        Ok(key.key)
    }

    fn public(&self, py: Python<'_>) -> PyResult<PublicKey> {
        let read = || match self {
            Self::Text(text) => Ok(AnyPublicKey::from_text(text)?),
            Self::File(path) => {
                let content = durable_file::open_regular(path, MAX_LEN)?.into_bytes()?;
                Ok(AnyPublicKey::from_file_content(&Zeroizing::new(content))?)
            }
        };
        let key = py.detach(read).map_err(|refusal: Refusal| refusal.raise(py, self.path()))?;
        Ok(key.key)
    }
}
