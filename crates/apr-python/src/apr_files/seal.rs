//! Seals files of any format.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::io;
use std::path::{Path, PathBuf};

use apr_crypto::{Password, RecipientPublic, SigningKey};
use apr_sealed::{Part, Plan, SealOptions, seal_file};
use gguf_core::Endian;
use model_file::{Contents, ModelFile, OpenOptions, ReadOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use read_at::{FileSource, ReadAt as _};

use super::keys::{password_of, recipients_of, signing_key_of};
use super::refusal::Refusal;
use super::source::{Bytes, open};

/// Where a sealed file keeps the name of what was sealed: `apr open` restores it under that name.
const NAME_KEY: &str = "file.name";

type Texts = BTreeMap<String, String>;

/// Seals a file: encrypted, signed or both, replacing `out` in one step. Of safetensors and GGUF files each tensor can be read
/// alone afterwards; files of other formats are restored as a whole.
///
/// path, out: str or os.PathLike. password: encrypt with this str or bytes. recipients: encrypt for the owners of these public
///     keys (one, or a list; text or path of each).
/// sign_key: sign with this key (path or text); key_password: the password of the key itself.
/// metadata: texts by name that anyone can read; private_metadata: texts for those who can open the file.
///
/// Raises AprError, OSError, ValueError if the file would be neither encrypted nor signed.
#[pyfunction]
#[pyo3(signature = (
    path, out, *, password=None, recipients=None, sign_key=None, key_password=None, metadata=None, private_metadata=None
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn seal(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    password: Option<&Bound<'_, PyAny>>,
    recipients: Option<&Bound<'_, PyAny>>,
    sign_key: Option<&Bound<'_, PyAny>>,
    key_password: Option<&Bound<'_, PyAny>>,
    metadata: Option<Texts>,
    private_metadata: Option<Texts>,
) -> PyResult<()> {
    let password = password.map(password_of).transpose()?;
    let recipients = recipients.map(recipients_of).transpose()?.unwrap_or_default();
    if password.is_some() && !recipients.is_empty() {
        return Err(PyValueError::new_err("a file is encrypted by password= or by recipients=, not by both"));
    }
    if sign_key.is_none() && key_password.is_some() {
        return Err(PyValueError::new_err("key_password= is of a key: give sign_key="));
    }
    let signer = sign_key.map(|key| signing_key_of(key, key_password)).transpose()?;
    if password.is_none() && recipients.is_empty() && signer.is_none() {
        return Err(PyValueError::new_err(
            "neither encrypted nor signed: give password=, recipients= or sign_key=",
        ));
    }
    let keys = SealKeys { password, recipients, signer };
    let (metadata, private) = (metadata.unwrap_or_default(), private_metadata.unwrap_or_default());
    let sealed = py.detach(|| sealed(&path, &out, &keys, metadata, private));
    sealed.map_err(|refusal| refusal.raise(py, Some(&path)))
}

struct SealKeys {
    password: Option<Password>,
    recipients: Vec<RecipientPublic>,
    signer: Option<SigningKey>,
}

fn sealed(path: &Path, out: &Path, keys: &SealKeys, public: Texts, private: Texts) -> Result<(), Refusal> {
    let source = open(path)?;
    let len = source.total_len();
    let mut file = source.into_file();
    // Read by offset: the position of the file stays at its beginning.
    let bytes: Bytes<'_> = Arc::new(FileSource::with_len(file.try_clone().map_err(Refusal::Io)?, len));
    let plan = plan(&bytes, len)?;
    let mut options = SealOptions::default();
    (options.public, options.private) = (public, private);
    if let Some(name) = path.file_name() {
        options.private.entry(NAME_KEY.to_owned()).or_insert_with(|| name.to_string_lossy().into_owned());
    }
    for key in &keys.recipients {
        options = options.for_recipient(*key);
    }
    if let Some(password) = &keys.password {
        options = options.with_password(password);
    }
    if let Some(key) = &keys.signer {
        options = options.signed_by(key);
    }
    Ok(seal_file(out, &plan, &options, |out| io::copy(&mut file, out).map(drop))?)
}

/// The tensors of the file and the bytes between them, if its header lists tensors.
fn plan(file: &Bytes<'_>, len: u64) -> Result<Plan, Refusal> {
    let options = OpenOptions::new().with_read_options(ReadOptions::COMPAT);
    let opened = ModelFile::read(Arc::clone(file), &options).map_err(Refusal::from);
    let tensors = opened.and_then(|file| tensors(&file));
    // What its reader refuses may be sealed all the same.
    match Plan::of_file(len, tensors.unwrap_or_default()) {
        Ok(plan) => Ok(plan),
        // Overlapping tensors: the file is sealed as a whole.
        Err(_) => Ok(Plan::of_file(len, [])?),
    }
}

/// The tensors of a file that has them as such, with their offsets.
fn tensors(file: &ModelFile<Bytes<'_>>) -> Result<Vec<(u64, Part)>, Refusal> {
    match file.contents() {
        Contents::SafeTensors(_) => {}
        // The element types of sealed files are little-endian.
        Contents::Gguf(gguf) if gguf.header()?.endian() == Endian::Little => {}
        _ => return Ok(Vec::new()),
    }
    let part = |tensor: model_file::Tensor<'_>| {
        let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
        let part = Part::tensor(tensor.name(), tensor.dtype().name(), shape, tensor.byte_len());
        Some((tensor.file_offset()?, part))
    };
    Ok(file.tensors()?.into_iter().filter_map(part).collect())
}
