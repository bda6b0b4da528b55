//! Loads models from files.

use alloc::sync::Arc;
use std::path::PathBuf;

use apr_container::{Limits, ReadOptions, UncheckedSignature};
use apr_models::MODEL_KEY;
use apr_sealed::{SealedHeader, SealedLimits};
use model_file::{Contents, ErrorKind, FileKind, ModelFormat, OpenOptions};
use pyo3::prelude::*;

use super::inspect::look;
use super::keys::{Keys, Opening, SignedBy};
use super::loaded::Loaded;
use super::model::Model;
use super::refusal::Refusal;
use super::source::{Bytes, Source};
use super::values::metadata_of_v2;

/// Loads the model of an `.apr` file of either version, of a safetensors file that holds one, or of a sealed file of one of these. The file is read once; its
/// signature is verified first, then it is decrypted, then decoded.
///
/// file: its path (str, os.PathLike) or URL, or its bytes.
/// password: str or bytes, for files encrypted with a password.
/// identity: a recipient's secret key, for files encrypted for it: the path of the key's file, which only its owner may be able
///     to read, or the text of the key. key_password: the password of the key itself.
/// verify_key: the public key that must have signed the file, or a list of accepted ones: text or path of each.
/// trusted_keys: the path of a list of such keys, one `NAME KEY` per line. any_signer: accept a valid signature by any key; it
///     detects changes and does not show the origin of the file.
/// allow_unverified: load a signed file without verifying its signature; without this option and without a key it is refused.
/// compat: accept what other programs accept; among that encrypted files whose header is not authenticated, and signed files
///     without verification.
/// no_size_limit: no limit for the memory of a model that a small file expands to.
/// fs, allow_http: as for `apr.open`.
///
/// Raises AprError with a code, for example "ac-encrypted", "ac-decryption" (a wrong key, or a changed file), "ac-not-signed",
/// "ac-signature", "ac-untrusted-signer", "ac-signed", "ac-checksum"; OSError; ValueError for arguments that exclude each
/// other.
#[pyfunction]
#[pyo3(signature = (
    file, *, password=None, identity=None, key_password=None, verify_key=None, trusted_keys=None, any_signer=false,
    allow_unverified=false, compat=false, no_size_limit=false, fs=None, allow_http=false
))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn load(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    password: Option<&Bound<'_, PyAny>>,
    identity: Option<&Bound<'_, PyAny>>,
    key_password: Option<&Bound<'_, PyAny>>,
    verify_key: Option<&Bound<'_, PyAny>>,
    trusted_keys: Option<PathBuf>,
    any_signer: bool,
    allow_unverified: bool,
    compat: bool,
    no_size_limit: bool,
    fs: Option<&Bound<'_, PyAny>>,
    allow_http: bool,
) -> PyResult<Model> {
    let source = Source::anywhere(file, fs, allow_http)?;
    let opening = Opening { password, identity, key_password, verify_key, trusted_keys, any_signer };
    let keys = Keys::new(py, opening)?;
    let mut options = if compat { ReadOptions::COMPAT } else { ReadOptions::STRICT };
    if allow_unverified {
        options.unchecked_signature = UncheckedSignature::Allow;
    }
    if no_size_limit {
        options.limits = Limits::TRUSTED;
    }
    let loaded = py.detach(|| loaded(&source, &keys, &options));
    loaded.map(Model::new).map_err(|refusal| refusal.raise_of(py, source.path(), source.refused()))
}

fn loaded(source: &Source, keys: &Keys, options: &ReadOptions) -> Result<Loaded, Refusal> {
    let bytes = source.open()?;
    let read = model_file::ReadOptions { apr: *options, ..model_file::ReadOptions::STRICT };
    let mut options = OpenOptions::new().with_read_options(read);
    let kind = FileKind::of_source(&bytes).map_err(model_file::Error::from)?;
    let mut sealed_by = None;
    match kind.model() {
        Some(ModelFormat::AprV1) => options = options.with_access(keys.access()),
        Some(ModelFormat::AprV2) => keys.refuse_for("an .apr file of version 2")?,
        Some(ModelFormat::SafeTensors) => keys.refuse_for("a safetensors file")?,
        Some(ModelFormat::Sealed) => {
            let (header, access) = (SealedHeader::read(&bytes, &SealedLimits::default())?, keys.access());
            // The signature first: who signed it counts for what is inside.
            sealed_by = header.verify(access.trust())?.map(SignedBy::from);
            if header.is_encrypted() && access.key().is_none() {
                let text = "the file is encrypted".to_owned();
                return Err(Refusal::Said { code: "ac-encrypted", text });
            }
            options = options.with_access(access);
        }
        Some(ModelFormat::Gguf) => return Err(foreign(GGUF)),
        Some(ModelFormat::Foreign(format)) => return Err(foreign(format.title())),
        None => {}
    }
    let file = look(&bytes, kind, &options).map_err(|refusal| or_damage(refusal, &bytes))?;
    let (signer, metadata) = match file.contents() {
        Contents::AprV1(file) => (file.signer().map(|signer| signer.as_signer().into()), None),
        Contents::AprV2(file) => (None, Some(metadata_of_v2(file.index().metadata(), MODEL_KEY))),
        // Inside a sealed file; by itself it was refused above.
        Contents::Gguf(_) => return Err(foreign(GGUF)),
        _ => (None, None),
    };
    let signer = sealed_by.or(signer);
    let named = file.model().map_err(|error| match error.kind() {
        ErrorKind::ForeignPayload { .. } => {
            Refusal::Said { code: "am-unknown-model", text: error.to_string() }
        }
        _ => error.into(),
    })?;
    let metadata = match metadata {
        Some(metadata) => metadata,
        None => file.as_apr_v1_metadata()?,
    };
    // So that the model has one owner.
    drop(file);
    let categories = named.categories;
    Ok(Loaded { model: Arc::unwrap_or_clone(named.model), metadata, categories, signer })
}

/// A file with bytes that belong to no part of it was changed after it was written, unless its checksum matches.
fn or_damage(refusal: Refusal, bytes: &Bytes<'_>) -> Refusal {
    if matches!(&refusal, Refusal::Library(error) if error.code() == "ac-unowned")
        && let Ok(Some(mismatch)) = apr_container::checksum_mismatch_from(bytes)
    {
        return mismatch.into();
    }
    refusal
}

const GGUF: &str = "a GGUF file, which holds tensors of a network and no model that predicts";

fn foreign(what: &str) -> Refusal {
    Refusal::Said { code: "ac-magic", text: what.to_owned() }
}
