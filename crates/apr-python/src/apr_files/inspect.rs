//! Descriptions of files, without reading their payload.

use alloc::sync::Arc;
use std::path::Path;

use apr_container::{KeyHint, ModelInfo, prefix_len, v2};
use apr_crypto::VerifyingKey;
use apr_sealed::{SealedHeader, StanzaKind};
use gguf_core::{Endian, Value as GgufValue};
use model_file::{
    Contents, FileKind, Foreign, Gguf, ModelFile, ModelFormat, OpenOptions, ReadOptions, Tensor, Warning,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use read_at::ReadAt;

use super::refusal::Refusal;
use super::source::{Bytes, Source};
use super::values::metadata_to_python;

/// Of a file that does not begin as any of them does.
const UNKNOWN: &str = "not an .apr, sealed, safetensors or GGUF file";

/// Describes a model file as a dict, from its header: nothing is decrypted or decoded, no checksum or signature is compared,
/// and everything is unauthenticated information from the file.
///
/// file: the path (str, os.PathLike) or the bytes of an `.apr` file of either version, a sealed file, a safetensors file, a GGUF
/// file, a file of another program that `apr.open` reads, or the folder of a model. compat: accept what other programs accept.
/// fs, allow_http: as for `apr.open`; the path may be a URL.
///
/// Of every file: "format" ("apr", "sealed", "safetensors", "gguf", "torch", "onnx" and so on), "file_size", "metadata". Of `.apr`
/// also "version" (1 or 2), "format_version", "model_type", "flags", "warnings"; of version 1 "model", "compression",
/// "payload_size", "uncompressed_size", "encryption" and "signature" (None, or a dict); of all others but sealed ones "tensors":
/// name -> {"dtype": str, "shape": tuple, "nbytes": int}. Of other programs' files also "aliases", other names of tensors with the
/// name in "tensors", and "warnings": what is left out, and which tensors cannot be represented.
///
/// Raises AprError, OSError.
#[pyfunction]
#[pyo3(signature = (file, *, compat=false, fs=None, allow_http=false))]
pub(crate) fn inspect<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    compat: bool,
    fs: Option<&Bound<'py, PyAny>>,
    allow_http: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::anywhere(file, fs, allow_http)?;
    let read = if compat { ReadOptions::COMPAT } else { ReadOptions::STRICT };
    let options = OpenOptions::new().with_read_options(read);
    let raise = |refusal: Refusal| refusal.raise_of(py, source.path(), source.refused());
    let in_folder = |path: &Path| {
        let opened = py.detach(|| ModelFile::open(path, &options)).map_err(|error| raise(error.into()))?;
        described(py, &opened).map_err(raise)?
    };
    let bytes = match (source.open(), source.local_path()) {
        (Ok(bytes), _) => bytes,
        (Err(_), Some(folder)) if folder.is_dir() => return in_folder(folder),
        (Err(refusal), _) => return Err(raise(refusal)),
    };
    let kind = py
        .detach(|| FileKind::of_source(&bytes))
        .map_err(|error| raise(model_file::Error::from(error).into()))?;
    if let (Some(ModelFormat::Foreign(_)), Some(path)) = (kind.model(), source.local_path()) {
        // With the files beside it.
        return in_folder(path);
    }
    let opened = py.detach(|| look(&bytes, kind, &options)).map_err(raise)?;
    described(py, &opened).map_err(raise)?
}

/// An open file as a dict.
fn described<'py, R: ReadAt>(
    py: Python<'py>,
    opened: &ModelFile<R>,
) -> Result<PyResult<Bound<'py, PyDict>>, Refusal> {
    let (version, file_size) = (opened.version()?, opened.file_len()?);
    let listed = match opened.contents() {
        Contents::AprV1(_) | Contents::Sealed(_) => None,
        _ => Some(opened.tensors()?),
    };
    let dict = || {
        let dict = PyDict::new(py);
        dict.set_item("format", opened.format().name())?;
        if let Some(version) = version {
            dict.set_item("version", version)?;
        }
        dict.set_item("file_size", file_size)?;
        if let Some(listed) = &listed {
            dict.set_item("tensors", tensors(py, listed)?)?;
        }
        match opened.contents() {
            Contents::AprV1(file) => add_apr_v1(&dict, opened, file.info())?,
            Contents::AprV2(file) => add_apr_v2(&dict, file.index())?,
            Contents::Sealed(header) => add_sealed(&dict, opened, header)?,
            Contents::Gguf(file) => add_gguf(&dict, file)?,
            Contents::Foreign(file) => add_foreign(&dict, file, &opened.warnings())?,
            Contents::SafeTensors(_) => {}
        }
        dict.set_item("metadata", metadata(py, opened)?)?;
        Ok(dict)
    };
    Ok(dict())
}

/// What a file says of itself, by key.
pub(crate) fn metadata<'py, R: ReadAt>(py: Python<'py>, file: &ModelFile<R>) -> PyResult<Bound<'py, PyAny>> {
    let raise = |refusal: Refusal| refusal.raise(py, None);
    let metadata = PyDict::new(py);
    match file.contents() {
        Contents::AprV1(file) => return metadata_to_python(py, &file.info().metadata),
        Contents::AprV2(file) => return json(py, &file.index().metadata().to_json()),
        Contents::Sealed(header) => {
            header.public_declared().iter().try_for_each(|(key, text)| metadata.set_item(key, text))?;
        }
        Contents::SafeTensors(files) => {
            let headers = files.headers().map_err(|error| raise(error.into()))?;
            for (key, text) in
                headers.iter().filter_map(|header| header.metadata()).flat_map(|all| all.iter())
            {
                metadata.set_item(key, text)?;
            }
        }
        Contents::Gguf(file) => {
            let header = file.header().map_err(|error| raise(error.into()))?;
            for entry in header.entries() {
                metadata.set_item(entry.key().to_str_lossy(), gguf_value(py, entry.value())?)?;
            }
        }
        Contents::Foreign(file) => {
            file.model()
                .entries()
                .iter()
                .try_for_each(|(path, text)| metadata.set_item(path, json(py, text)?))?;
        }
    }
    Ok(metadata.into_any())
}

fn add_foreign(dict: &Bound<'_, PyDict>, file: &Foreign, warnings: &[Warning]) -> PyResult<()> {
    let aliases = PyDict::new(dict.py());
    file.model().aliases().iter().try_for_each(|alias| aliases.set_item(&alias.name, &alias.of))?;
    dict.set_item("aliases", aliases)?;
    dict.set_item("warnings", warnings.iter().map(|warning| &warning.message).collect::<Vec<_>>())
}

/// Those that are no other name of one before.
fn tensors<'py>(py: Python<'py>, tensors: &[Tensor<'_>]) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    for tensor in tensors.iter().filter(|tensor| tensor.alias_of().is_none()) {
        let dict = PyDict::new(py);
        dict.set_item("dtype", tensor.dtype().name())?;
        dict.set_item("shape", PyTuple::new(py, tensor.shape())?)?;
        dict.set_item("nbytes", tensor.byte_len())?;
        all.set_item(tensor.name(), dict)?;
    }
    Ok(all)
}

/// Opens a file of a kind that was detected.
pub(super) fn look<'b>(
    bytes: &Bytes<'b>,
    kind: FileKind,
    options: &OpenOptions<'_>,
) -> Result<ModelFile<Bytes<'b>>, Refusal> {
    if kind.model().is_none() {
        // What is no file at all is refused by the reader of the package's own format.
        let len = bytes.total_len();
        let mut first = vec![0; len.min(32) as usize];
        bytes.read_exact_at(0, &mut first).map_err(model_file::Error::from)?;
        return Err(match prefix_len(&first, len, &options.read_options().apr) {
            Err(error) if error.code() != "ac-magic" => error.into(),
            _ => Refusal::Said { code: "ac-magic", text: UNKNOWN.to_owned() },
        });
    }
    Ok(ModelFile::read(Arc::clone(bytes), options)?)
}

pub(crate) fn gguf_options(compat: bool) -> gguf_core::ReadOptions {
    if compat { gguf_core::ReadOptions::COMPAT } else { gguf_core::ReadOptions::STRICT }
}

fn add_apr_v1<R: ReadAt>(dict: &Bound<'_, PyDict>, file: &ModelFile<R>, info: &ModelInfo) -> PyResult<()> {
    let py = dict.py();
    dict.set_item("format_version", info.format_version)?;
    dict.set_item("model_type", info.model_type.to_string())?;
    dict.set_item("model", info.model_name())?;
    dict.set_item("flags", info.flags.names().collect::<Vec<_>>())?;
    dict.set_item("compression", info.compression.to_string())?;
    dict.set_item("payload_size", info.payload_size)?;
    dict.set_item("uncompressed_size", info.uncompressed_size)?;
    dict.set_item("metadata_size", info.metadata_size)?;
    dict.set_item("quality", info.quality)?;
    let encryption = PyDict::new(py);
    encryption.set_item(
        "by",
        info.key_hint().map(|hint| match hint {
            KeyHint::Password => "password",
            KeyHint::Recipient => "recipient",
            _ => "something newer",
        }),
    )?;
    let recipient = file.recipient_declared().map(|id| base16ct::lower::encode_string(&id));
    encryption.set_item("recipient", recipient)?;
    encryption.set_item("bound", info.has_key_commitment())?;
    dict.set_item("encryption", info.encrypted.then_some(encryption))?;
    dict.set_item("signature", signature(py, info.signed, file.signer_declared())?)?;
    dict.set_item("warnings", info.warnings().map(|warning| warning.to_string()).collect::<Vec<_>>())
}

/// The key that the file names as its signer, not verified.
fn signature<'py>(
    py: Python<'py>,
    is_signed: bool,
    key: Option<VerifyingKey>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    if !is_signed {
        return Ok(None);
    }
    let dict = PyDict::new(py);
    dict.set_item("key", key.map(|key| key.to_string()))?;
    dict.set_item("fingerprint", key.map(|key| key.fingerprint().to_string()))?;
    Ok(Some(dict))
}

fn add_apr_v2(dict: &Bound<'_, PyDict>, index: &v2::Index) -> PyResult<()> {
    dict.set_item("format_version", index.header().version())?;
    dict.set_item("model_type", &index.metadata().model_type)?;
    dict.set_item("flags", index.header().flags().names().collect::<Vec<_>>())?;
    dict.set_item("warnings", index.warnings().iter().map(ToString::to_string).collect::<Vec<_>>())
}

fn json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.getattr("loads")?.call1((text,))
}

fn add_sealed<R: ReadAt>(
    dict: &Bound<'_, PyDict>,
    file: &ModelFile<R>,
    header: &SealedHeader,
) -> PyResult<()> {
    let py = dict.py();
    dict.set_item("suite", header.suite().to_string())?;
    let count = |wanted: fn(&StanzaKind) -> bool| header.stanzas().iter().filter(|kind| wanted(kind)).count();
    let encryption = PyDict::new(py);
    encryption.set_item("recipients", count(|kind| matches!(kind, StanzaKind::Recipient)))?;
    encryption.set_item("password", count(|kind| matches!(kind, StanzaKind::Password)) > 0)?;
    encryption.set_item("bound", header.has_bound_recipients())?;
    dict.set_item("encryption", header.is_encrypted().then_some(encryption))?;
    dict.set_item("signature", signature(py, header.is_signed(), file.signer_declared())?)
}

fn add_gguf(dict: &Bound<'_, PyDict>, file: &Gguf) -> PyResult<()> {
    let py = dict.py();
    let header = file.header().map_err(|error| Refusal::from(error).raise(py, None))?;
    let byte_order = match header.endian() {
        Endian::Little => "little",
        Endian::Big => "big",
    };
    dict.set_item("byte_order", byte_order)?;
    dict.set_item("alignment", header.alignment())
}

/// Texts that are not UTF-8 have replacement characters. Lists are no deeper than the header's reader permits.
pub(crate) fn gguf_value<'py>(py: Python<'py>, value: GgufValue<'_>) -> PyResult<Bound<'py, PyAny>> {
    if let Some(text) = value.as_text() {
        return Ok(text.to_str_lossy().into_pyobject(py)?.into_any());
    }
    if let Some(array) = value.as_array() {
        let values = array.iter().map(|value| gguf_value(py, value)).collect::<PyResult<Vec<_>>>()?;
        return Ok(PyList::new(py, values)?.into_any());
    }
    Ok(match value {
        GgufValue::Bool(value) => pyo3::types::PyBool::new(py, value).to_owned().into_any(),
        GgufValue::F32(value) => value.into_pyobject(py)?.into_any(),
        GgufValue::F64(value) => value.into_pyobject(py)?.into_any(),
        _ => match (value.to_u64(), value.to_i64()) {
            (Some(value), _) => value.into_pyobject(py)?.into_any(),
            (_, Some(value)) => value.into_pyobject(py)?.into_any(),
            _ => py.None().into_bound(py),
        },
    })
}
