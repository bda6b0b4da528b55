//! An open file, and the conversion of its bytes to a framework's tensors.

use std::path::PathBuf;

use pyo3::exceptions::{PyModuleNotFoundError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyMemoryView, PySlice};
use st_core::{Bounds, Dtype, ReadOptions, SlicePlan, TensorInfo};
use st_mmap::SafeTensorsFile;

use crate::buffer::{Buffer, Wanted};
use crate::error::{of_file, of_format, refused};
use crate::index::Indices;
use crate::numpy::{MappedFile, Numpy};
use crate::options::{Backend, Device, Framework};
use crate::packed::{is_packed, unpack};

/// The error of an invalid header, with the message of the official package.
const HEADER: &str = "Error while deserializing header";
const READING: &str = "Error while reading";

/// An open safetensors file.
pub(crate) struct Opened {
    file: SafeTensorsFile,
    framework: Framework,
    memory: Memory,
    /// Makes a tensor of bytes; none for numpy, whose arrays are made here.
    converter: Option<Py<PyAny>>,
}

/// Where tensors' bytes are.
enum Memory {
    /// In an array of bytes, with the first tensor at `start`.
    Array { bytes: Py<PyAny>, start: u64 },
    /// In the file alone.
    File,
}

impl Opened {
    pub(crate) fn new(
        py: Python<'_>,
        path: PathBuf,
        framework: Framework,
        device: &Device,
        backend: Backend,
        writable: bool,
    ) -> PyResult<Self> {
        let file = py
            .detach(|| SafeTensorsFile::open_with(path, &ReadOptions::COMPAT))
            .map_err(|error| of_file(py, HEADER, &error))?;
        let converter = match framework {
            Framework::Numpy => None,
            _ => {
                let module = py.import("apr.safetensors._frameworks")?;
                let device = match device {
                    Device::Named(name) => name.into_pyobject(py)?.into_any(),
                    Device::Number(number) => number.into_pyobject(py)?.into_any(),
                };
                Some(module.getattr("converter")?.call1((framework.to_string(), device))?.unbind())
            }
        };
        let memory = match backend {
            Backend::Pread => Memory::File,
            _ => match Numpy::get(py) {
                Ok(numpy) => Memory::of(py, numpy, &file, backend, writable || framework.wants_to_write())?,
                // torch does without numpy, and so do we.
                Err(error) if converter.is_some() && error.is_instance_of::<PyModuleNotFoundError>(py) => {
                    Memory::File
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self { file, framework, memory, converter })
    }

    pub(crate) fn header(&self) -> &st_core::Header {
        self.file.header()
    }

    /// The tensor with this name.
    pub(crate) fn info(&self, name: &str) -> PyResult<TensorInfo<'_>> {
        self.header().tensor(name).ok_or_else(|| refused(format!("File does not contain tensor {name}")))
    }

    /// The whole tensor.
    pub(crate) fn tensor<'py>(&self, py: Python<'py>, info: &TensorInfo<'_>) -> PyResult<Bound<'py, PyAny>> {
        if let (Memory::Array { bytes, start }, None, false) =
            (&self.memory, &self.converter, is_packed(info.dtype()))
        {
            let offset = start + info.data_offsets().0;
            return Numpy::get(py)?.view(info.dtype(), info.shape(), bytes.bind(py), offset);
        }
        let bytes = self.bytes(py, info)?;
        self.made(py, info.dtype(), info.shape(), &bytes)
    }

    /// The bytes of a tensor as the file has them: a buffer.
    pub(crate) fn bytes<'py>(&self, py: Python<'py>, info: &TensorInfo<'_>) -> PyResult<Bound<'py, PyAny>> {
        match &self.memory {
            Memory::Array { bytes, start } => {
                let offset = start + info.data_offsets().0;
                part(bytes.bind(py), offset, offset + info.byte_len())
            }
            Memory::File => {
                let (file, name) = (&self.file, info.name());
                self.filled(py, info.byte_len(), |out| file.read_tensor(name, out))
            }
        }
    }

    /// Part of a tensor.
    pub(crate) fn part<'py>(
        &self,
        py: Python<'py>,
        info: &TensorInfo<'_>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let indices = Indices::new(key, info.shape())?;
        if self.converter.is_none()
            && (matches!(self.memory, Memory::Array { .. }) || is_packed(info.dtype()))
        {
            return self.tensor(py, info)?.get_item(indices.to_python(py)?);
        }
        let (forward, reversed) = indices.forward(info.shape());
        if let (Some(dim), Some(_)) = (reversed.first(), &self.converter) {
            return Err(refused(format!(
                "Slice step must be a positive integer for {}: dimension {dim} goes backward",
                self.framework
            )));
        }
        let plan = SlicePlan::new(info.dtype(), info.shape(), &forward, Bounds::Clamp).map_err(|error| {
            let prefix = format!("Error during slicing {indices} with shape {:?}", info.shape());
            of_format(py, &prefix, &error)
        })?;
        let mut ranges = plan.ranges();
        let bytes = match (&self.memory, ranges.next(), ranges.next()) {
            (Memory::Array { bytes, start }, Some(only), None) => {
                let offset = start + info.data_offsets().0;
                part(bytes.bind(py), offset + only.start, offset + only.end)?
            }
            _ => {
                let (file, name, plan) = (&self.file, info.name(), &plan);
                self.filled(py, plan.byte_len(), |out| file.read_slice(name, plan, out))?
            }
        };
        let tensor = self.made(py, info.dtype(), plan.shape(), &bytes)?;
        if reversed.is_empty() {
            return Ok(tensor);
        }
        py.import("numpy")?.getattr("flip")?.call1((tensor, reversed))
    }

    /// New memory with what `read` writes to it, while other threads run.
    fn filled<'py>(
        &self,
        py: Python<'py>,
        len: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), st_mmap::Error> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = match &self.converter {
            None => Numpy::get(py)?.empty(py, len)?,
            Some(_) => PyByteArray::new_with(py, usize::try_from(len)?, |_| Ok(()))?.into_any(),
        };
        let mut buffer = Buffer::of(&array, Wanted::WritableBytes)?;
        py.detach(|| read(buffer.bytes_mut())).map_err(|error| of_file(py, READING, &error))?;
        Ok(array)
    }

    /// A tensor on bytes.
    fn made<'py>(
        &self,
        py: Python<'py>,
        dtype: Dtype,
        shape: &[usize],
        bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.converter {
            Some(converter) => converter.bind(py).call1((bytes, dtype.name(), shape)),
            None if is_packed(dtype) => unpacked(py, dtype, shape, Buffer::of(bytes, Wanted::Bytes)?.bytes()),
            None => Numpy::get(py)?.view(dtype, shape, bytes, 0),
        }
    }
}

impl Memory {
    fn of(
        py: Python<'_>,
        numpy: &Numpy,
        file: &SafeTensorsFile,
        backend: Backend,
        writable: bool,
    ) -> PyResult<Self> {
        if backend == Backend::Read {
            let bytes = numpy.empty(py, file.header().data_len())?;
            let mut buffer = Buffer::of(&bytes, Wanted::WritableBytes)?;
            py.detach(|| file.read_data(buffer.bytes_mut())).map_err(|error| of_file(py, READING, &error))?;
            drop(buffer);
            if !writable {
                bytes.call_method1(intern!(py, "setflags"), (false,))?;
            }
            return Ok(Self::Array { bytes: bytes.unbind(), start: 0 });
        }
        let mapped = if writable {
            file.map_private().map(MappedFile::private)
        } else {
            file.map().map(MappedFile::shared)
        };
        let mapped = Bound::new(py, mapped.map_err(|error| of_file(py, READING, &error))?)?;
        let bytes = numpy.bytes_of(mapped.as_any())?.unbind();
        Ok(Self::Array { bytes, start: file.header().data_start() })
    }
}

/// Bytes from `start` to `end` of an array, as a buffer that keeps it alive.
fn part<'py>(array: &Bound<'py, PyAny>, start: u64, end: u64) -> PyResult<Bound<'py, PyAny>> {
    let place =
        |offset: u64| isize::try_from(offset).map_err(|_| PyValueError::new_err("offset beyond memory"));
    let range = PySlice::new(array.py(), place(start)?, place(end)?, 1);
    PyMemoryView::from(array)?.get_item(range)
}

/// An array with a byte for each element of a packed type.
pub(crate) fn unpacked<'py>(
    py: Python<'py>,
    dtype: Dtype,
    shape: &[usize],
    packed: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = Numpy::get(py)?;
    let count = packed.len() as u64 * 8 / u64::from(dtype.bits());
    let codes = numpy.empty(py, count)?;
    unpack(dtype, packed, Buffer::of(&codes, Wanted::WritableBytes)?.bytes_mut());
    numpy.view(dtype, shape, &codes, 0)
}
