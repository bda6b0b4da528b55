//! Loads models from files.

use std::path::PathBuf;

use apr_container::{
    Expect, Limits, LoadOptions, Metadata, ReadOptions, UncheckedSignature, inspect_reader,
    load_from_bytes_with, v2, verify_signature,
};
use apr_models::{AnyModel, MODEL_KEY, Tensors};
use model_file::{FileKind, ModelFormat};
use pyo3::prelude::*;
use st_core::Header;

use super::keys::{Keys, Opening};
use super::loaded::Loaded;
use super::model::Model;
use super::refusal::Refusal;
use super::source::Source;
use super::values::metadata_of_v2;

/// Longest file that is taken for a model: none that version 1 can describe is longer.
const MAX_LEN: u64 = 1 << 34;

/// Loads the model of an `.apr` file of either version, or of a safetensors file that holds one. The file is read once; its
/// signature is verified first, then it is decrypted, then decoded.
///
/// file: its path (str, os.PathLike), or its bytes.
/// password: str or bytes, for files encrypted with a password.
/// identity: a recipient's secret key, for files encrypted for it: the path of the key's file, which only its owner may be able
///     to read, or the text of the key. key_password: the password of the key itself.
/// verify_key: the public key that must have signed the file, or a list of accepted ones: text or path of each.
/// trusted_keys: the path of a list of such keys, one `NAME KEY` per line. any_signer: accept a valid signature by any key; it
///     detects changes and does not show the origin of the file.
/// allow_unverified: load a signed file without verifying its signature; without this option and without a key it is refused.
/// compat: accept what other programs accept; among that encrypted files whose header is not authenticated, and signed files
///     without verification.
/// trusted: no limit for the memory of a model that a small file expands to.
///
/// Raises AprError with a code, for example "ac-encrypted", "ac-decryption" (a wrong key, or a changed file), "ac-not-signed",
/// "ac-signature", "ac-untrusted-signer", "ac-signed", "ac-checksum"; OSError; ValueError for arguments that exclude each
/// other.
#[pyfunction]
#[pyo3(signature = (
    file, *, password=None, identity=None, key_password=None, verify_key=None, trusted_keys=None, any_signer=false,
    allow_unverified=false, compat=false, trusted=false
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
    trusted: bool,
) -> PyResult<Model> {
    let source = Source::of(file)?;
    let opening = Opening { password, identity, key_password, verify_key, trusted_keys, any_signer };
    let keys = Keys::new(py, opening)?;
    let mut options = if compat { ReadOptions::COMPAT } else { ReadOptions::STRICT };
    if allow_unverified {
        options.unchecked_signature = UncheckedSignature::Allow;
    }
    if trusted {
        options.limits = Limits::TRUSTED;
    }
    let loaded = py.detach(|| loaded(&source, &keys, &options));
    loaded.map(Model::new).map_err(|refusal| refusal.raise_of(py, source.path(), source.refused()))
}

fn loaded(source: &Source, keys: &Keys, options: &ReadOptions) -> Result<Loaded, Refusal> {
    let holds_models = |format| {
        matches!(format, FileKind::Model(ModelFormat::AprV1 | ModelFormat::AprV2 | ModelFormat::SafeTensors))
    };
    let (format, file) = source.read(MAX_LEN, holds_models)?;
    match format {
        FileKind::Model(ModelFormat::AprV1) => version_1(&file, keys, options),
        FileKind::Model(ModelFormat::AprV2) => {
            keys.refuse_for("an .apr file of version 2")?;
            let index = v2::Index::from_bytes(&file, options)?;
            let tensors = Tensors::from_apr2(&file)?;
            let metadata = metadata_of_v2(index.metadata(), MODEL_KEY);
            of_tensors(&tensors, metadata)
        }
        FileKind::Model(ModelFormat::SafeTensors) => {
            keys.refuse_for("a safetensors file")?;
            of_safetensors(&file)
        }
        FileKind::Model(ModelFormat::Sealed) => Err(foreign("a sealed file: apr.open_sealed opens it")),
        FileKind::Model(ModelFormat::Gguf) => {
            Err(foreign("a GGUF file, which holds tensors of a network and no model that predicts"))
        }
        // Its reader says what is wrong with it.
        FileKind::Foreign(_) | FileKind::Unknown => version_1(&file, keys, options),
    }
}

fn foreign(what: &str) -> Refusal {
    Refusal::Said { code: "ac-magic", text: what.to_owned() }
}

fn version_1(file: &[u8], keys: &Keys, options: &ReadOptions) -> Result<Loaded, Refusal> {
    let access = keys.access();
    let model = load_from_bytes_with(file, Expect::AnyKnown, LoadOptions { read: *options, access })?;
    let signer = verify_signature(file, access.trust(), options)?;
    let info = inspect_reader(file, file.len() as u64, options)?;
    Ok(Loaded { model, metadata: info.metadata, signer: signer.map(|signer| keys.signed_by(signer)) })
}

fn of_safetensors(file: &[u8]) -> Result<Loaded, Refusal> {
    let header = Header::from_bytes(file, &st_core::ReadOptions::STRICT)?;
    let mut metadata = Metadata::default();
    for (key, text) in header.metadata().iter().flat_map(st_core::Metadata::iter) {
        if key != MODEL_KEY {
            metadata.custom.insert(key.to_owned(), text);
        }
    }
    of_tensors(&Tensors::from_safetensors(file)?, metadata)
}

fn of_tensors(tensors: &Tensors, metadata: Metadata) -> Result<Loaded, Refusal> {
    Ok(Loaded { model: AnyModel::from_tensors(tensors)?, metadata, signer: None })
}
