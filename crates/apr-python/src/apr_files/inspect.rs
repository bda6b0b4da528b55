//! Descriptions of files, without reading their payload.

use alloc::sync::Arc;

use apr_container::{KeyHint, ModelInfo, prefix_len, v2};
use apr_crypto::{RecipientPublic, VerifyingKey};
use apr_sealed::{SealedHeader, StanzaKind};
use gguf_core::{Endian, Value as GgufValue};
use model_file::{Contents, FileKind, Gguf, ModelFile, OpenOptions, ReadOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use read_at::ReadAt;
use st_core::Header;

use super::refusal::Refusal;
use super::source::{Source, open};
use super::values::metadata_to_python;

/// Bytes before the metadata of a file of version 1, and of a signature in front of its key.
const HEADER_LEN: u64 = 32;
const SIGNATURE_LEN: u64 = 64;
/// Of a file that does not begin as any of them does.
const UNKNOWN: &str = "not an .apr, sealed, safetensors or GGUF file";

/// Describes a model file as a dict, from its header: nothing is decrypted or decoded, no checksum or signature is compared,
/// and everything is unauthenticated information from the file.
///
/// file: the path (str, os.PathLike) or the bytes of an `.apr` file of either version, a sealed file, a safetensors file or
/// a GGUF file. compat: accept what other programs accept.
///
/// Of every file: "format" ("apr", "sealed", "safetensors", "gguf"), "file_size", "metadata". Of `.apr` also "version" (1 or 2),
/// "format_version", "model_type", "flags", "warnings"; of version 1 "model", "compression", "payload_size",
/// "uncompressed_size", "encryption" and "signature" (None, or a dict); of version 2, safetensors and GGUF "tensors": name ->
/// {"dtype": str, "shape": tuple, "nbytes": int}.
///
/// Raises AprError, OSError.
#[pyfunction]
#[pyo3(signature = (file, *, compat=false))]
pub(crate) fn inspect<'py>(
    py: Python<'py>,
    file: &Bound<'py, PyAny>,
    compat: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::of(file)?;
    let found = py.detach(|| {
        let bytes: Bytes<'_> = match source.path() {
            Some(path) => Arc::new(open(path)?),
            None => Arc::new(source.bytes().unwrap_or_default()),
        };
        let file = look(&bytes, compat)?;
        let declared = match file.contents() {
            Contents::AprV1(file) => declared(&bytes, file.info()),
            _ => Declared::default(),
        };
        Ok((file, declared))
    });
    let raise = |refusal: Refusal| refusal.raise_of(py, source.path(), source.refused());
    let (file, declared) = found.map_err(raise)?;
    match file.contents() {
        Contents::AprV1(file) => of_apr1(py, file.info(), &declared),
        Contents::AprV2(file) => of_apr2(py, file.index()),
        Contents::Sealed(header) => of_sealed(py, header),
        Contents::SafeTensors(files) => {
            let headers = files.headers().map_err(|error| raise(error.into()))?;
            headers.first().map_or_else(|| Ok(PyDict::new(py)), |header| of_safetensors(py, header))
        }
        Contents::Gguf(file) => of_gguf(py, file),
    }
}

/// A file's bytes.
pub(super) type Bytes<'b> = Arc<dyn ReadAt + Send + Sync + 'b>;

/// What a protected file declares next to its payload.
#[derive(Default)]
struct Declared {
    /// The key of the signature; `None` if its bytes are no key.
    signer: Option<VerifyingKey>,
    /// The beginning of the recipient's public key.
    recipient: Option<[u8; RecipientPublic::ID_LEN]>,
}

/// Opens a file without keys.
pub(super) fn look<'b>(bytes: &Bytes<'b>, compat: bool) -> Result<ModelFile<Bytes<'b>>, Refusal> {
    let read = if compat { ReadOptions::COMPAT } else { ReadOptions::STRICT };
    let len = bytes.total_len();
    let mut first = vec![0; len.min(FileKind::PREFIX as u64) as usize];
    bytes.read_exact_at(0, &mut first).map_err(model_file::Error::from)?;
    if FileKind::of(&first).model().is_none() {
        // What is no file at all is refused by the reader of the package's own format.
        let first = first.get(..HEADER_LEN as usize).unwrap_or(&first);
        return Err(match prefix_len(first, len, &read.apr) {
            Err(error) if error.code() != "ac-magic" => error.into(),
            _ => Refusal::Said { code: "ac-magic", text: UNKNOWN.to_owned() },
        });
    }
    Ok(ModelFile::read(Arc::clone(bytes), &OpenOptions::new().with_read_options(read))?)
}

fn declared(file: &Bytes<'_>, info: &ModelInfo) -> Declared {
    let payload_at = HEADER_LEN + info.metadata_size;
    let mut declared = Declared::default();
    if info.signed {
        let key = bytes_at(file, payload_at + info.payload_size + SIGNATURE_LEN);
        declared.signer = key.and_then(|key| VerifyingKey::from_bytes(&key).ok());
    }
    if info.encrypted && info.key_hint() == Some(KeyHint::Recipient) {
        declared.recipient = bytes_at(file, payload_at + RecipientPublic::LEN as u64);
    }
    declared
}

fn bytes_at<const N: usize>(file: &Bytes<'_>, offset: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(offset, &mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn gguf_options(compat: bool) -> gguf_core::ReadOptions {
    if compat { gguf_core::ReadOptions::COMPAT } else { gguf_core::ReadOptions::STRICT }
}

fn of_apr1<'py>(py: Python<'py>, info: &ModelInfo, declared: &Declared) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("format", "apr")?;
    dict.set_item("version", 1)?;
    dict.set_item("format_version", info.format_version)?;
    dict.set_item("model_type", info.model_type.to_string())?;
    dict.set_item("model", info.model_name())?;
    dict.set_item("flags", info.flags.names().collect::<Vec<_>>())?;
    dict.set_item("compression", info.compression.to_string())?;
    dict.set_item("file_size", info.file_size)?;
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
    let recipient = declared.recipient.map(|id| base16ct::lower::encode_string(&id));
    encryption.set_item("recipient", recipient)?;
    encryption.set_item("bound", info.has_key_commitment())?;
    dict.set_item("encryption", info.encrypted.then_some(encryption))?;
    dict.set_item("signature", signature(py, info.signed, declared.signer)?)?;
    dict.set_item("metadata", metadata_to_python(py, &info.metadata)?)?;
    dict.set_item("warnings", info.warnings().map(|warning| warning.to_string()).collect::<Vec<_>>())?;
    Ok(dict)
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

fn of_apr2<'py>(py: Python<'py>, index: &v2::Index) -> PyResult<Bound<'py, PyDict>> {
    let (dict, tensors) = (PyDict::new(py), PyDict::new(py));
    for info in index.iter() {
        let shape = info.shape().iter().copied();
        tensors.set_item(info.name(), row(py, info.dtype().to_string(), shape, info.byte_len())?)?;
    }
    dict.set_item("format", "apr")?;
    dict.set_item("version", 2)?;
    dict.set_item("format_version", index.header().version())?;
    dict.set_item("model_type", &index.metadata().model_type)?;
    dict.set_item("flags", index.header().flags().names().collect::<Vec<_>>())?;
    dict.set_item("file_size", index.file_len())?;
    dict.set_item("tensors", tensors)?;
    dict.set_item("metadata", json(py, &index.metadata().to_json())?)?;
    dict.set_item("warnings", index.warnings().iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(dict)
}

fn json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.getattr("loads")?.call1((text,))
}

fn row<'py>(
    py: Python<'py>,
    dtype: impl AsRef<str>,
    shape: impl Iterator<Item = u64>,
    byte_len: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("dtype", dtype.as_ref())?;
    dict.set_item("shape", pyo3::types::PyTuple::new(py, shape.collect::<Vec<u64>>())?)?;
    dict.set_item("nbytes", byte_len)?;
    Ok(dict)
}

fn of_sealed<'py>(py: Python<'py>, header: &SealedHeader) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("format", "sealed")?;
    dict.set_item("file_size", header.lens().iter().sum::<u64>())?;
    dict.set_item("suite", header.suite().to_string())?;
    let count = |wanted: fn(&StanzaKind) -> bool| header.stanzas().iter().filter(|kind| wanted(kind)).count();
    let encryption = PyDict::new(py);
    encryption.set_item("recipients", count(|kind| matches!(kind, StanzaKind::Recipient)))?;
    encryption.set_item("password", count(|kind| matches!(kind, StanzaKind::Password)) > 0)?;
    encryption.set_item("bound", header.has_bound_recipients())?;
    dict.set_item("encryption", header.is_encrypted().then_some(encryption))?;
    let key = header.signer_declared().and_then(|key| VerifyingKey::from_bytes(&key).ok());
    dict.set_item("signature", signature(py, header.is_signed(), key)?)?;
    let metadata = PyDict::new(py);
    header.public_declared().iter().try_for_each(|(key, text)| metadata.set_item(key, text))?;
    dict.set_item("metadata", metadata)?;
    Ok(dict)
}

fn of_safetensors<'py>(py: Python<'py>, header: &Header) -> PyResult<Bound<'py, PyDict>> {
    let (dict, tensors, metadata) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    for info in header.iter() {
        let shape = info.shape().iter().map(|&dim| dim as u64);
        tensors.set_item(info.name(), row(py, info.dtype().name(), shape, info.byte_len())?)?;
    }
    for (key, text) in header.metadata().iter().flat_map(st_core::Metadata::iter) {
        metadata.set_item(key, text)?;
    }
    dict.set_item("format", "safetensors")?;
    dict.set_item("file_size", header.file_len())?;
    dict.set_item("tensors", tensors)?;
    dict.set_item("metadata", metadata)?;
    Ok(dict)
}

fn of_gguf<'py>(py: Python<'py>, file: &Gguf) -> PyResult<Bound<'py, PyDict>> {
    let header = file.header().map_err(|error| Refusal::from(error).raise(py, None))?;
    let (dict, tensors, metadata) = (PyDict::new(py), PyDict::new(py), PyDict::new(py));
    for info in header.tensors() {
        let name = info.name().to_str_lossy();
        tensors.set_item(name, row(py, info.dtype().name(), info.shape(), info.byte_len())?)?;
    }
    for entry in header.entries() {
        metadata.set_item(entry.key().to_str_lossy(), gguf_value(py, entry.value())?)?;
    }
    dict.set_item("format", "gguf")?;
    dict.set_item("version", header.version())?;
    dict.set_item(
        "byte_order",
        match header.endian() {
            Endian::Little => "little",
            Endian::Big => "big",
        },
    )?;
    dict.set_item("alignment", header.alignment())?;
    dict.set_item("file_size", file.file_len())?;
    dict.set_item("tensors", tensors)?;
    dict.set_item("metadata", metadata)?;
    Ok(dict)
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
