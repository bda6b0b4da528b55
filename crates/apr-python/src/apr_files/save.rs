//! Models to files.

use std::path::PathBuf;

use apr_container::{Compression, Protection, SaveOptions, to_vec_protected};
use apr_crypto::{OsRandom, Password, RecipientPublic, SigningKey};
use apr_models::Model as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::keys::{password_of, recipient_of, signing_key_of};
use super::model::Model;
use super::refusal::Refusal;
use super::values::metadata_of;

/// Arguments of the functions that write files.
#[derive(Default)]
pub(crate) struct Saving<'a, 'py> {
    pub(crate) compression: Option<&'a str>,
    pub(crate) metadata: Option<&'a Bound<'py, PyDict>>,
    pub(crate) password: Option<&'a Bound<'py, PyAny>>,
    pub(crate) recipients: Option<&'a Bound<'py, PyAny>>,
    pub(crate) sign_key: Option<&'a Bound<'py, PyAny>>,
    pub(crate) key_password: Option<&'a Bound<'py, PyAny>>,
}

/// Saves a model as an `.apr` file of version 1, replacing an old file in one step: whatever happens, the name leads
/// to the old file or to the new one.
///
/// compression: None, "zstd", "zstd-max" or "lz4".
/// metadata: a dict with what to say about the model, in the fields of the format ("model_name", "description",
///     "hyperparameters", "metrics", "custom", ...); without it, what the model's own file said. "created_at" is filled in where it
///     is missing: from SOURCE_DATE_EPOCH, or the clock.
/// password: encrypt under this str or bytes. recipients: encrypt for the owner of this public key (text or path); the format
///     has room for one.
/// sign_key: sign with this key: the path of the key's file, which nobody else may be able to read, or the text of the key.
///     key_password: the password that the key itself is under.
///
/// What is encrypted is the payload: the metadata stay readable for everybody. Raises AprError, OSError, ValueError, TypeError.
#[pyfunction]
#[pyo3(signature = (
    model, path, *, compression=None, metadata=None, password=None, recipients=None, sign_key=None, key_password=None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn save(
    py: Python<'_>,
    model: &Bound<'_, Model>,
    path: PathBuf,
    compression: Option<&str>,
    metadata: Option<&Bound<'_, PyDict>>,
    password: Option<&Bound<'_, PyAny>>,
    recipients: Option<&Bound<'_, PyAny>>,
    sign_key: Option<&Bound<'_, PyAny>>,
    key_password: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let saving = Saving { compression, metadata, password, recipients, sign_key, key_password };
    to_file(py, model.get(), path, &saving)
}

/// How to write a file.
struct Plan {
    options: SaveOptions,
    lock: Option<Lock>,
    signer: Option<SigningKey>,
}

enum Lock {
    Password(Password),
    Recipient(RecipientPublic),
}

impl Plan {
    fn new(model: &Model, saving: &Saving<'_, '_>) -> PyResult<Self> {
        let compression = match saving.compression {
            None => Compression::None,
            Some(name) => Compression::from_name(name).ok_or_else(|| {
                PyValueError::new_err(format!(
                    "compression {name:?} is not known: None, \"zstd\", \"zstd-max\" or \"lz4\""
                ))
            })?,
        };
        let metadata = match saving.metadata {
            Some(dict) => metadata_of(dict)?,
            None => model.loaded().metadata.clone(),
        };
        let lock = match (saving.password, saving.recipients) {
            (None, None) => None,
            (Some(password), None) => Some(Lock::Password(password_of(password)?)),
            (None, Some(keys)) => Some(Lock::Recipient(recipient_of(keys)?)),
            (Some(_), Some(_)) => {
                let text = "a file is encrypted by password= or by recipients=, not by both";
                return Err(PyValueError::new_err(text));
            }
        };
        let signer = saving.sign_key.map(|key| signing_key_of(key, saving.key_password)).transpose()?;
        if signer.is_none() && saving.key_password.is_some() {
            return Err(PyValueError::new_err("key_password= is of a key: give sign_key="));
        }
        let options = SaveOptions::default().with_compression(compression).with_metadata(metadata);
        Ok(Self { options, lock, signer })
    }

    fn protection(&self) -> Protection<'_> {
        let protection = match &self.lock {
            None => Protection::default(),
            Some(Lock::Password(password)) => Protection::default().with_password(password),
            Some(Lock::Recipient(key)) => Protection::default().for_recipient(key),
        };
        match &self.signer {
            Some(key) => protection.signed_by(key),
            None => protection,
        }
    }

    /// Whether the file is made in memory. That of a model that was decrypted is: its metadata speak of a key.
    fn is_protected(&self, model: &Model) -> bool {
        self.lock.is_some() || self.signer.is_some() || model.loaded().was_encrypted
    }
}

pub(crate) fn to_file(py: Python<'_>, model: &Model, path: PathBuf, saving: &Saving<'_, '_>) -> PyResult<()> {
    let plan = Plan::new(model, saving)?;
    let save = || {
        let (loaded, options) = (model.loaded(), plan.options.clone());
        let (any, kind) = (&loaded.model, loaded.model.model_type());
        if plan.is_protected(model) {
            return apr_container::save_protected(any, kind, &path, options, &plan.protection());
        }
        apr_container::save(any, kind, &path, options)
    };
    py.detach(save).map_err(|error| Refusal::from(error).raise(py, Some(&path)))
}

pub(crate) fn to_bytes<'py>(
    py: Python<'py>,
    model: &Model,
    saving: &Saving<'_, '_>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = Plan::new(model, saving)?;
    let any = &model.loaded().model;
    let make = || to_vec_protected(any, any.model_type(), &plan.options, &plan.protection(), &mut OsRandom);
    let file = py.detach(make).map_err(|error| Refusal::from(error).raise(py, None))?;
    Ok(PyBytes::new(py, &file))
}
