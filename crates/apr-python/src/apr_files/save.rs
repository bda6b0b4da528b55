//! Saves models.

use std::path::PathBuf;

use apr_container::{Compression, Protection, SaveOptions, save, to_vec};
use apr_crypto::{Password, RecipientPublic, SigningKey};
use apr_models::Model as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::keys::{password_of, recipient_of, signing_key_of};
use super::loaded::Loaded;
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

/// How to write a file.
struct Plan {
    options: SaveOptions<'static>,
    lock: Option<Lock>,
    signer: Option<SigningKey>,
}

enum Lock {
    Password(Password),
    Recipient(RecipientPublic),
}

impl Plan {
    fn new(loaded: &Loaded, saving: &Saving<'_, '_>) -> PyResult<Self> {
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
            None => loaded.metadata.clone(),
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

    fn options(&self) -> SaveOptions<'_> {
        let protection = match &self.lock {
            None => Protection::default(),
            Some(Lock::Password(password)) => Protection::default().with_password(password),
            Some(Lock::Recipient(key)) => Protection::default().for_recipient(key),
        };
        let protection = match &self.signer {
            Some(key) => protection.signed_by(key),
            None => protection,
        };
        self.options.clone().with_protection(protection)
    }
}

pub(crate) fn to_file(
    py: Python<'_>,
    loaded: &Loaded,
    path: PathBuf,
    saving: &Saving<'_, '_>,
) -> PyResult<()> {
    let plan = Plan::new(loaded, saving)?;
    let any = &loaded.model;
    py.detach(|| save(any, any.model_type(), &path, plan.options()))
        .map_err(|error| Refusal::from(error).raise(py, Some(&path)))
}

pub(crate) fn to_bytes<'py>(
    py: Python<'py>,
    loaded: &Loaded,
    saving: &Saving<'_, '_>,
) -> PyResult<Bound<'py, PyBytes>> {
    let plan = Plan::new(loaded, saving)?;
    let any = &loaded.model;
    let file = py
        .detach(|| to_vec(any, any.model_type(), &plan.options()))
        .map_err(|error| Refusal::from(error).raise(py, None))?;
    Ok(PyBytes::new(py, &file))
}
