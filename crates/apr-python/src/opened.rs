//! An open safetensors file.

use core::ops::Range;

use pyo3::exceptions::{PyModuleNotFoundError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PySlice};
use read_at::AnySource;
use st_core::{ReadOptions, TensorInfo};
use st_mmap::SafeTensorsFile;

use crate::buffer::{Buffer, Wanted};
use crate::error::{no_tensor, of_content, of_file};
use crate::filling::{Stop, fill};
use crate::index::Indices;
use crate::maker::Maker;
use crate::numpy::{MappedFile, Numpy};
use crate::options::{Backend, Device, Framework};
use crate::packed::is_packed;
use crate::range_file::{Location, RangeFile};

/// The error of an invalid header, with the message of the official package.
const HEADER: &str = "Error while deserializing header";
const READING: &str = "Error while reading";

/// An open safetensors file.
pub(crate) struct Opened {
    file: SafeTensorsFile,
    memory: Memory,
    maker: Maker,
}

/// Where tensors' bytes are.
enum Memory {
    /// In an array of bytes, with the first tensor at `start`. Of a memoryview, numpy makes arrays in two thirds of the time that it takes
    /// of an array.
    Array { bytes: Py<PyMemoryView>, start: u64 },
    /// In the file alone.
    File,
}

impl Opened {
    pub(crate) fn new(
        py: Python<'_>,
        location: Location<'_>,
        framework: Framework,
        device: &Device,
        backend: Backend,
        writable: bool,
    ) -> PyResult<Self> {
        // What is elsewhere has no pages that could be mapped.
        let (file, backend) = match location {
            Location::Path(path) => {
                let opened = py.detach(|| SafeTensorsFile::open_with(path, &ReadOptions::COMPAT));
                (opened.map_err(|error| of_file(py, HEADER, &error))?, backend)
            }
            Location::Ranges(file) => {
                let backend = if backend == Backend::Read { backend } else { Backend::Pread };
                (of_ranges(py, file.get())?, backend)
            }
        };
        let maker = Maker::new(py, framework, device)?;
        let memory = match backend {
            Backend::Pread => Memory::File,
            _ => match Numpy::get(py) {
                Ok(numpy) => Memory::of(py, numpy, &file, backend, writable || framework.wants_to_write())?,
                // torch does without numpy, and so do we.
                Err(error) if !maker.is_numpy() && error.is_instance_of::<PyModuleNotFoundError>(py) => {
                    Memory::File
                }
                Err(error) => return Err(error),
            },
        };
        Ok(Self { file, memory, maker })
    }

    pub(crate) fn header(&self) -> &st_core::Header {
        self.file.header()
    }

    /// Makes the tensors.
    pub(crate) const fn maker(&self) -> &Maker {
        &self.maker
    }

    /// Whether it is a file of this machine, of which threads can read several ranges at once.
    pub(crate) fn is_local(&self) -> bool {
        self.file.as_file().is_some()
    }

    /// Fills a buffer with bytes of the data section.
    pub(crate) fn fill(&self, offset: u64, buffer: &Bound<'_, PyAny>, stop: Option<&Stop>) -> PyResult<()> {
        let py = buffer.py();
        let raise = |error| of_file(py, READING, &error);
        match &self.memory {
            // What was read when the file was opened: a map begins with the header.
            Memory::Array { bytes, start: 0 } => {
                let held = Buffer::of(bytes.bind(py).as_any(), Wanted::Bytes)?;
                let begin = usize::try_from(offset)?;
                let copy = |out: &mut [u8]| {
                    let end = begin.checked_add(out.len());
                    let found = end.and_then(|end| held.bytes().get(begin..end)).ok_or(())?;
                    out.copy_from_slice(found);
                    Ok(())
                };
                fill(buffer, stop, copy, |()| PyValueError::new_err("range beyond the data section"))
            }
            _ => fill(buffer, stop, |out| self.file.read_data_at(offset, out), raise),
        }
    }

    /// Tells a file that is elsewhere what will be read of the data section.
    pub(crate) fn will_read(&self, range: Range<u64>) {
        self.file.will_read_data(range);
    }

    /// The tensor with this name.
    pub(crate) fn info(&self, name: &str) -> PyResult<TensorInfo<'_>> {
        self.header().tensor(name).ok_or_else(|| no_tensor(name))
    }

    /// The whole tensor.
    pub(crate) fn tensor<'py>(&self, py: Python<'py>, info: &TensorInfo<'_>) -> PyResult<Bound<'py, PyAny>> {
        if let Memory::Array { bytes, start } = &self.memory
            && self.maker.is_numpy()
            && !is_packed(info.dtype())
        {
            let offset = start + info.data_offsets().0;
            return Numpy::get(py)?.view(info.dtype(), info.shape(), bytes.bind(py).as_any(), offset);
        }
        let bytes = self.bytes(py, info)?;
        self.maker.tensor(py, info.dtype(), info.shape(), &bytes)
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
                let raise = |error| of_file(py, READING, &error);
                self.maker.filled(py, info.byte_len(), |out| file.read_tensor(name, out), raise)
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
        if self.maker.is_numpy() && (matches!(self.memory, Memory::Array { .. }) || is_packed(info.dtype())) {
            return self.tensor(py, info)?.get_item(indices.to_python(py)?);
        }
        self.maker.part(py, (info.dtype(), info.shape()), &indices, |plan| {
            let mut ranges = plan.ranges();
            if let (Memory::Array { bytes, start }, Some(only), None) =
                (&self.memory, ranges.next(), ranges.next())
            {
                let offset = start + info.data_offsets().0;
                return part(bytes.bind(py), offset + only.start, offset + only.end);
            }
            let (file, name) = (&self.file, info.name());
            let raise = |error| of_file(py, READING, &error);
            self.maker.filled(py, plan.byte_len(), |out| file.read_slice(name, plan, out), raise)
        })
    }
}

fn of_ranges(py: Python<'_>, file: &RangeFile) -> PyResult<SafeTensorsFile> {
    let (source, path) = (AnySource::Shared(file.source()), file.path());
    let opened = py.detach(|| SafeTensorsFile::from_source(source, path, &ReadOptions::COMPAT));
    opened.map_err(|error| match error.kind() {
        st_mmap::ErrorKind::Format(format) => of_content(py, HEADER, format, file.refused()),
        _ => of_file(py, HEADER, &error),
    })
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
            return Ok(Self::Array { bytes: PyMemoryView::from(&bytes)?.unbind(), start: 0 });
        }
        let mapped = if writable {
            file.map_private().map(MappedFile::private)
        } else {
            file.map().map(MappedFile::shared)
        };
        let mapped = Bound::new(py, mapped.map_err(|error| of_file(py, READING, &error))?)?;
        let bytes = PyMemoryView::from(&numpy.bytes_of(mapped.as_any())?)?;
        Ok(Self::Array { bytes: bytes.unbind(), start: file.header().data_start() })
    }
}

/// Bytes from `start` to `end`, as a buffer that keeps all alive.
fn part<'py>(bytes: &Bound<'py, PyMemoryView>, start: u64, end: u64) -> PyResult<Bound<'py, PyAny>> {
    let place =
        |offset: u64| isize::try_from(offset).map_err(|_| PyValueError::new_err("offset beyond memory"));
    bytes.get_item(PySlice::new(bytes.py(), place(start)?, place(end)?, 1))
}
