//! Tensors to bytes and files.

use alloc::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use st_core::{Dtype, Layout, Order, Planned, ReadOptions, WriteOptions};
use st_mmap::{SafeTensorsFile, Survives};

use crate::buffer::{Buffer, Wanted, new_bytes};
use crate::dtypes::{SUPPORTED, from_format, from_python_name};
use crate::error::{of_file, of_format, refused};
use crate::numpy::Numpy;
use crate::packed::{is_packed, pack};
use crate::tensor_spec::TensorSpec;

/// What failed, in the words of the official package.
const PREFIX: &str = "Error while serializing";

/// Less than this is written before another thread could make use of the interpreter.
const WORTH_RELEASING: u64 = 1 << 18;

type Metadata = Option<BTreeMap<String, String>>;

/// serialize(tensor_dict, metadata=None)
/// --
///
/// The bytes of a safetensors file with these tensors.
///
/// tensor_dict: names and TensorSpecs, whose memory has to stay alive and unchanged until this returns.
/// metadata: names and texts for the header.
///
/// Returns bytes: equal input gives equal bytes. Raises SafetensorError.
#[pyfunction]
#[pyo3(signature = (tensor_dict, metadata=None))]
pub(crate) fn serialize<'py>(
    py: Python<'py>,
    tensor_dict: BTreeMap<String, Py<TensorSpec>>,
    metadata: Metadata,
) -> PyResult<Bound<'py, PyBytes>> {
    Tensors::described(&tensor_dict)?.to_bytes(py, metadata)
}

/// serialize_file(tensor_dict, filename, metadata=None, *, fsync=False)
/// --
///
/// Writes a safetensors file with these tensors, replacing an old one in one step: whatever happens, the name leads to the old
/// file or to the new one.
///
/// tensor_dict, metadata: as for serialize.
/// filename: str or os.PathLike; symbolic links are followed. A new file gets the rights that the umask leaves, an old one
/// keeps its own.
/// fsync: wait until the medium has it, so that it survives a power cut.
///
/// Raises SafetensorError, OSError.
#[pyfunction]
#[pyo3(signature = (tensor_dict, filename, metadata=None, *, fsync=false))]
pub(crate) fn serialize_file(
    py: Python<'_>,
    tensor_dict: BTreeMap<String, Py<TensorSpec>>,
    filename: PathBuf,
    metadata: Metadata,
    fsync: bool,
) -> PyResult<()> {
    Tensors::described(&tensor_dict)?.to_file(py, filename, metadata, fsync)
}

/// save_arrays(tensor_dict, metadata=None)
/// --
///
/// The bytes of a safetensors file with these arrays: numpy's, or anything else with the buffer protocol. Strides and byte order
/// do not matter, the values count.
#[pyfunction]
#[pyo3(signature = (tensor_dict, metadata=None))]
pub(crate) fn save_arrays<'py>(
    py: Python<'py>,
    tensor_dict: &Bound<'py, PyAny>,
    metadata: Metadata,
) -> PyResult<Bound<'py, PyBytes>> {
    let arrays = arrays_of(tensor_dict)?;
    Tensors::of_arrays(&arrays)?.to_bytes(py, metadata)
}

/// save_arrays_file(tensor_dict, filename, metadata=None, *, fsync=False)
/// --
///
/// Writes a safetensors file with these arrays, replacing an old one in one step. As save_arrays and serialize_file.
#[pyfunction]
#[pyo3(signature = (tensor_dict, filename, metadata=None, *, fsync=false))]
pub(crate) fn save_arrays_file(
    py: Python<'_>,
    tensor_dict: &Bound<'_, PyAny>,
    filename: PathBuf,
    metadata: Metadata,
    fsync: bool,
) -> PyResult<()> {
    let arrays = arrays_of(tensor_dict)?;
    Tensors::of_arrays(&arrays)?.to_file(py, filename, metadata, fsync)
}

/// set_metadata(filename, metadata)
/// --
///
/// Replaces the metadata of a safetensors file; None removes it. Only the header is written where the new text fits into the
/// old one's place, otherwise the file is copied and replaced in one step.
///
/// Raises SafetensorError, OSError.
#[pyfunction]
#[pyo3(signature = (filename, metadata))]
pub(crate) fn set_metadata(py: Python<'_>, filename: PathBuf, metadata: Metadata) -> PyResult<()> {
    py.detach(|| match st_mmap::set_metadata(&filename, metadata.as_ref()) {
        Err(error) if error.code() == "st-no-header-room" => copy_with(&filename, metadata),
        done => done,
    })
    .map_err(|error| of_file(py, "Error while writing metadata", &error))
}

/// Writes the tensors of a file under new metadata in its place.
fn copy_with(path: &std::path::Path, metadata: Metadata) -> Result<(), st_mmap::Error> {
    const PIECE: u64 = 1 << 20;
    let file = SafeTensorsFile::open_with(path, &ReadOptions::STRICT)?;
    let infos: Vec<_> = file.header().iter().collect();
    let specs = infos.iter().map(|info| st_core::TensorSpec {
        name: info.name(),
        dtype: info.dtype(),
        shape: info.shape(),
    });
    let options = WriteOptions { metadata, order: Order::AsGiven, ..WriteOptions::default() };
    let layout = Layout::new(specs, &options)?;
    let mut piece = Vec::new();
    st_mmap::save_layout(path, &layout, |planned, out| {
        let mut start = 0;
        while start < planned.byte_len {
            let end = planned.byte_len.min(start + PIECE);
            piece.resize((end - start) as usize, 0);
            file.read_range(infos[planned.input_idx].name(), start..end, &mut piece)
                .map_err(io::Error::other)?;
            out.write_all(&piece)?;
            start = end;
        }
        Ok(())
    })
}

/// Names and arrays of any mapping.
fn arrays_of<'py>(tensor_dict: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let py = tensor_dict.py();
    let dict = match tensor_dict.cast::<PyDict>() {
        Ok(dict) => dict.clone(),
        Err(_) => {
            let made = PyDict::new(py);
            made.call_method1(intern!(py, "update"), (tensor_dict,))?;
            made
        }
    };
    dict.iter().map(|(name, array)| Ok((name.extract()?, array))).collect()
}

/// Where a tensor's bytes are.
enum Source<'a> {
    /// Memory that a caller promised.
    Promised(&'a [u8]),
    /// Memory of an array, in the order of files.
    Held(Buffer),
    /// An array in another order, put in order when its turn comes.
    Scattered(Py<PyAny>),
    /// Packed here.
    Made(Vec<u8>),
}

struct Tensor<'a> {
    name: &'a str,
    dtype: Dtype,
    shape: Vec<usize>,
    source: Source<'a>,
}

struct Tensors<'a>(Vec<Tensor<'a>>);

impl<'a> Tensors<'a> {
    fn described(specs: &'a BTreeMap<String, Py<TensorSpec>>) -> PyResult<Self> {
        let tensors = specs.iter().map(|(name, spec)| {
            let spec = spec.get();
            Ok(Tensor {
                name,
                dtype: spec.element_type(),
                shape: spec.dims().to_vec(),
                source: Source::Promised(spec.bytes()?),
            })
        });
        Ok(Self(tensors.collect::<PyResult<_>>()?))
    }

    fn of_arrays(arrays: &'a [(String, Bound<'_, PyAny>)]) -> PyResult<Self> {
        Ok(Self(arrays.iter().map(|(name, array)| Tensor::of_array(name, array)).collect::<PyResult<_>>()?))
    }

    fn layout(&self, py: Python<'_>, metadata: Metadata) -> PyResult<Layout> {
        let specs = self.0.iter().map(|tensor| st_core::TensorSpec {
            name: tensor.name,
            dtype: tensor.dtype,
            shape: &tensor.shape,
        });
        let options = WriteOptions { metadata, ..WriteOptions::default() };
        Layout::new(specs, &options).map_err(|error| of_format(py, PREFIX, &error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>, metadata: Metadata) -> PyResult<Bound<'py, PyBytes>> {
        let layout = self.layout(py, metadata)?;
        let mut failed = None;
        let made = new_bytes(py, layout.file_len(), |out| {
            let mut write = || layout.write_streamed(out, |planned, sink| self.write(planned, sink));
            let written = if layout.file_len() < WORTH_RELEASING { write() } else { py.detach(write) };
            written.map_err(|error| match error.downcast::<st_core::Error>() {
                Ok(error) => {
                    failed = Some(error);
                    io::ErrorKind::InvalidInput.into()
                }
                Err(error) => error,
            })
        });
        match failed {
            Some(error) => Err(of_format(py, PREFIX, &error)),
            None => made,
        }
    }

    fn to_file(&self, py: Python<'_>, path: PathBuf, metadata: Metadata, fsync: bool) -> PyResult<()> {
        let layout = self.layout(py, metadata)?;
        let survives = if fsync { Survives::PowerCut } else { Survives::Process };
        py.detach(|| {
            st_mmap::save_layout_surviving(path, &layout, survives, |planned, out| self.write(planned, out))
        })
        .map_err(|error| of_file(py, PREFIX, &error))
    }

    fn write(&self, planned: &Planned, out: &mut dyn Write) -> io::Result<()> {
        let tensor = &self.0[planned.input_idx];
        match &tensor.source {
            Source::Promised(bytes) => out.write_all(bytes),
            Source::Held(buffer) => out.write_all(buffer.bytes()),
            Source::Made(bytes) => out.write_all(bytes),
            Source::Scattered(array) => {
                let in_order = Python::attach(|py| -> PyResult<Buffer> {
                    let array = Numpy::get(py)?.in_order(tensor.dtype, array.bind(py))?;
                    Buffer::of(&array, Wanted::Bytes)
                })?;
                out.write_all(in_order.bytes())
            }
        }
    }
}

impl<'a> Tensor<'a> {
    fn of_array(name: &'a str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(buffer) = Buffer::of(array, Wanted::Elements) {
            let known = buffer.format().and_then(|format| from_format(format, buffer.item_len()));
            let Some((dtype, is_in_byte_order)) = known else {
                let called = match type_name(array) {
                    Ok(called) => called,
                    Err(_) => buffer.format().unwrap_or("without a name").to_owned(),
                };
                return Err(unknown(name, &called));
            };
            let shape = buffer.shape().collect();
            let source = if is_in_byte_order && buffer.is_contiguous() {
                Source::Held(buffer)
            } else {
                Source::Scattered(array.clone().unbind())
            };
            return Ok(Self { name, dtype, shape, source });
        }
        let called = type_name(array)?;
        let dtype = from_python_name(&called).ok_or_else(|| unknown(name, &called))?;
        let numpy = Numpy::get(array.py())?;
        let integers = numpy.as_integers(dtype, array)?;
        let mut tensor = Self::of_array(name, &integers)?;
        tensor.dtype = dtype;
        if is_packed(dtype) {
            let codes = numpy.in_order(Dtype::U8, &integers)?;
            tensor.source = Source::Made(pack(dtype, Buffer::of(&codes, Wanted::Bytes)?.bytes()));
        } else if let Source::Scattered(_) = tensor.source {
            // In order now: as what it is, it has no buffer.
            let in_order = numpy.in_order(crate::numpy::carrier(dtype), &integers)?;
            tensor.source = Source::Held(Buffer::of(&in_order, Wanted::Bytes)?);
        }
        Ok(tensor)
    }
}

fn type_name(array: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = array.py();
    array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "name"))?.extract()
}

fn unknown(name: &str, dtype: &str) -> PyErr {
    refused(format!("Unknown dtype {dtype:?}. Supported dtypes: {SUPPORTED} (tensor `{name}`)"))
}
