//! GGUF files: headers, quantization and dequantization, writing. `apr/gguf.py` has the Python classes.

mod entries;

use std::io;
use std::path::{Path, PathBuf};

use apr_quant::{Dtype, Quantizer, dequantize_parallel};
use durable_file::Replacement;
use gguf_core::{Endian, GgufBuilder, Header, Prefix};
use model_file::{Contents, FileKind, ModelFile, ModelFormat, OpenOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::apr_files::inspect::gguf_options;
use crate::apr_files::refusal::Refusal;
use crate::buffer::{Buffer, Wanted};
use crate::range_file::RangeFile;

/// Bytes of a file that are looked at first: the header of most models without a tokenizer.
const FIRST_LOOK: usize = 256 << 10;

/// The tensors of a GGUF file in memory or elsewhere, as a dict: "version", "byte_order", "alignment", and "tensors": name -> (type, shape,
/// offset, bytes), the shape with the slowest dimension first. Raises AprError.
#[pyfunction]
pub fn gguf_header<'py>(
    py: Python<'py>,
    memory: &Bound<'py, PyAny>,
    compat: bool,
    path: PathBuf,
) -> PyResult<Bound<'py, PyDict>> {
    with_header(py, memory, compat, &path, |header| {
        let (dict, tensors) = (PyDict::new(py), PyDict::new(py));
        for info in header.tensors() {
            let shape = PyTuple::new(py, info.shape().collect::<Vec<_>>())?;
            let row = (info.dtype().name(), shape, info.file_range().start, info.byte_len());
            tensors.set_item(info.name().to_str_lossy(), row)?;
        }
        dict.set_item("version", header.version())?;
        let order = if header.endian() == Endian::Big { "big" } else { "little" };
        dict.set_item("byte_order", order)?;
        dict.set_item("alignment", header.alignment())?;
        dict.set_item("tensors", tensors)?;
        Ok(dict)
    })
}

/// The keys of a GGUF file in memory or elsewhere, as two dicts: their values, and the names of the values' types. Raises AprError.
#[pyfunction]
pub fn gguf_metadata<'py>(
    py: Python<'py>,
    memory: &Bound<'py, PyAny>,
    compat: bool,
    path: PathBuf,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    with_header(py, memory, compat, &path, |header| entries::read(py, header))
}

/// A header of its own: the memory may be a file that others change, so what is looked at is a copy.
fn with_header<T>(
    py: Python<'_>,
    memory: &Bound<'_, PyAny>,
    compat: bool,
    path: &Path,
    then: impl FnOnce(&Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(file) = memory.cast::<RangeFile>() {
        return with_remote_header(py, file.get(), compat, then);
    }
    let memory = Buffer::of(memory, Wanted::Bytes)?;
    let raise = |error: gguf_core::Error| Refusal::from(error).raise(py, Some(path));
    let (options, len) = (gguf_options(compat), memory.bytes().len());
    let mut wanted = FIRST_LOOK.min(len);
    loop {
        let head = memory.bytes().get(..wanted).unwrap_or_default().to_vec();
        match Header::from_prefix(&head, len as u64, &options).map_err(raise)? {
            Prefix::Header(header) => {
                header.check_file_len(len as u64, options.strictness).map_err(raise)?;
                return then(&header);
            }
            Prefix::More { needed } => {
                let needed = usize::try_from(needed).unwrap_or(usize::MAX);
                wanted = needed.max(wanted.saturating_mul(4)).min(len);
            }
        }
    }
}

/// The same of a file that is elsewhere.
fn with_remote_header<T>(
    py: Python<'_>,
    file: &RangeFile,
    compat: bool,
    then: impl FnOnce(&Header<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let raise = |refusal: Refusal| refusal.raise_of(py, Some(file.path()), Some(file.refused()));
    let read = if compat { model_file::ReadOptions::COMPAT } else { model_file::ReadOptions::STRICT };
    let options = OpenOptions::new().with_read_options(read);
    let kind = FileKind::Model(ModelFormat::Gguf);
    let open = || ModelFile::from_shared(file.source(), kind, file.path(), file.shards_beside(), &options);
    let opened = py.detach(open).map_err(|error| raise(error.into()))?;
    match opened.contents() {
        Contents::Gguf(gguf) => then(&gguf.header().map_err(|error| raise(error.into()))?),
        _ => Err(raise(gguf_core::Error::from(gguf_core::ErrorKind::Magic { found: [0; 4] }).into())),
    }
}

/// Elements of a block of this type, and its bytes. Raises ValueError for a type that is not known.
#[pyfunction]
#[pyo3(name = "block_size")]
pub fn block_size(r#type: &str) -> PyResult<(usize, usize)> {
    let format = format_of(r#type)?;
    Ok((format.block_len(), format.block_bytes()))
}

/// Turns bytes into as many float32 as `out` has, which must be all of them. Raises AprError, ValueError.
#[pyfunction]
pub fn dequantize(
    py: Python<'_>,
    r#type: &str,
    blocks: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let format = format_of(r#type)?;
    let blocks = Buffer::of(blocks, Wanted::Bytes)?;
    let mut out = Buffer::of(out, Wanted::WritableBytes)?;
    py.detach(|| {
        let numbers = bytemuck::try_cast_slice_mut(out.bytes_mut()).map_err(|_| misaligned())?;
        Ok(dequantize_parallel(format, blocks.bytes(), numbers)?)
    })
    .map_err(|error: Refusal| error.raise(py, None))
}

/// Turns float32 into the bytes of a type, row by row, with the bits of ggml's reference. Raises AprError, ValueError.
#[pyfunction]
pub fn quantize_rows(
    py: Python<'_>,
    r#type: &str,
    numbers: &Bound<'_, PyAny>,
    row_len: usize,
    out: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let format = format_of(r#type)?;
    let numbers = Buffer::of(numbers, Wanted::Bytes)?;
    let mut out = Buffer::of(out, Wanted::WritableBytes)?;
    py.detach(|| {
        let numbers: &[f32] = bytemuck::try_cast_slice(numbers.bytes()).map_err(|_| misaligned())?;
        Ok(Quantizer::new(format)?.quantize_parallel(numbers, row_len, out.bytes_mut())?)
    })
    .map_err(|error: Refusal| error.raise(py, None))
}

/// Writes a GGUF file of version 3, replacing an old one in one step. metadata: (key, name of the type, value) of each key;
/// tensors: (name, type, shape) of each; bytes_of: the bytes of a tensor by its place in the list, asked for when its turn
/// comes. Raises AprError, OSError, ValueError, TypeError, and what `bytes_of` raises; the old file stays then.
#[pyfunction]
pub fn gguf_save(
    py: Python<'_>,
    path: PathBuf,
    metadata: Vec<(String, String, Bound<'_, PyAny>)>,
    tensors: Vec<(String, String, Vec<u64>)>,
    bytes_of: Py<PyAny>,
    fsync: bool,
) -> PyResult<()> {
    let raise = |error: gguf_core::Error| Refusal::from(error).raise(py, Some(&path));
    let mut builder = GgufBuilder::new();
    for (key, kind, value) in &metadata {
        entries::put(&mut builder, key, kind, value)?.map_err(raise)?;
    }
    for (name, kind, shape) in &tensors {
        builder.add_tensor(name, format_of(kind)?, shape).map_err(raise)?;
    }
    let layout = builder.layout().map_err(raise)?;
    // What Python raised while the file was written.
    let mut raised = None;
    let written = py.detach(|| {
        let mut file = Replacement::create(&path)?;
        let streamed = layout.write_streamed(&mut file, |planned, sink| {
            let bytes =
                Python::attach(|py| Buffer::of(&bytes_of.bind(py).call1((planned.idx,))?, Wanted::Bytes));
            match bytes {
                Ok(bytes) => sink.write_all(bytes.bytes()),
                Err(error) => {
                    raised = Some(error);
                    Err(io::ErrorKind::Interrupted.into())
                }
            }
        });
        streamed.map_err(|error| match error.downcast::<gguf_core::Error>() {
            Ok(error) => Refusal::from(error),
            Err(error) => file.write_error(error).into(),
        })?;
        Ok(if fsync { file.commit() } else { file.commit_unsynced() }?)
    });
    match raised {
        Some(error) => Err(error),
        None => written.map_err(|refusal: Refusal| refusal.raise(py, Some(&path))),
    }
}

fn format_of(name: &str) -> PyResult<Dtype> {
    let known = Dtype::from_name_ignore_case(name).filter(|format| format.ggml_type().is_some());
    known.ok_or_else(|| {
        let names: Vec<_> = Dtype::ALL.iter().filter(|format| format.ggml_type().is_some()).collect();
        let names = names.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
        PyValueError::new_err(format!("no type is called {name:?}: {names}"))
    })
}

/// Of memory that holds no whole number of `f32`, or not where the processor wants them.
fn misaligned() -> Refusal {
    let text = "the memory is no whole number of float32, each at a multiple of its size".into();
    Refusal::Said { code: "q-values-length", text }
}
