//! Tensors of a framework, made of bytes.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use st_core::{Bounds, Dtype, SlicePlan};

use crate::buffer::{Buffer, Wanted};
use crate::error::{of_format, refused};
use crate::index::Indices;
use crate::numpy::Numpy;
use crate::options::{Device, Framework};
use crate::packed::{is_packed, unpack};

/// Makes tensors of a framework.
pub(crate) struct Maker {
    framework: Framework,
    /// Makes a tensor of bytes; none for numpy, whose arrays are made here.
    converter: Option<Py<PyAny>>,
    /// Loads tensors of a file into an accelerator, several at once; none where they are put there one by one.
    loader: Option<Py<PyAny>>,
}

/// Shortest tensor that is loaded by threads and pinned memory when it is asked for alone: two buffers, of which one is filled while the
/// other is copied.
const LARGE: u64 = 32 << 20;

impl Maker {
    pub(crate) fn new(py: Python<'_>, framework: Framework, device: &Device) -> PyResult<Self> {
        if framework == Framework::Numpy {
            return Ok(Self { framework, converter: None, loader: None });
        }
        let module = py.import("apr._frameworks")?;
        let arguments = (framework.to_string(), device.to_object(py)?);
        let converter = Some(module.getattr("converter")?.call1(&arguments)?.unbind());
        let loader = module.getattr("loader")?.call1(arguments)?.extract()?;
        Ok(Self { framework, converter, loader })
    }

    /// The tensors of an open file by name, in file order, loaded into an accelerator; `None` if they are put there one by one.
    pub(crate) fn loaded<'py>(&self, file: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(loader) = &self.loader else { return Ok(None) };
        Ok(Some(loader.bind(file.py()).call1((file,))?.cast_into()?))
    }

    /// The same of one tensor, if it is large.
    pub(crate) fn loaded_tensor<'py>(
        &self,
        file: &Bound<'py, PyAny>,
        name: &str,
        len: u64,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(loader) = self.loader.as_ref().filter(|_| len >= LARGE) else { return Ok(None) };
        loader.bind(file.py()).call1((file, [name]))?.get_item(name).map(Some)
    }

    /// Whether tensors are arrays of numpy, which are made here.
    pub(crate) fn is_numpy(&self) -> bool {
        self.converter.is_none()
    }

    /// A tensor on bytes in row-major order and little-endian.
    pub(crate) fn tensor<'py>(
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

    /// The same of complex numbers of 128 bits, which only formats of other programs have.
    pub(crate) fn complex<'py>(
        &self,
        py: Python<'py>,
        shape: &[usize],
        bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.converter {
            Some(converter) => converter.bind(py).call1((bytes, "C128", shape)),
            None => py.import("numpy")?.getattr("ndarray")?.call1((shape.to_vec(), "<c16", bytes)),
        }
    }

    /// New memory with what `read` writes to it, while other threads run.
    pub(crate) fn filled<'py, E: Send>(
        &self,
        py: Python<'py>,
        len: u64,
        read: impl FnOnce(&mut [u8]) -> Result<(), E> + Send,
        raise: impl FnOnce(E) -> PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = match &self.converter {
            None => Numpy::get(py)?.empty(py, len)?,
            Some(_) => PyByteArray::new_with(py, usize::try_from(len)?, |_| Ok(()))?.into_any(),
        };
        let mut buffer = Buffer::of(&array, Wanted::WritableBytes)?;
        py.detach(|| read(buffer.bytes_mut())).map_err(raise)?;
        Ok(array)
    }

    /// Part of a tensor: `bytes` gives those of a plan.
    pub(crate) fn part<'py>(
        &self,
        py: Python<'py>,
        (dtype, shape): (Dtype, &[usize]),
        indices: &Indices,
        bytes: impl FnOnce(&SlicePlan) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (forward, reversed) = indices.forward(shape);
        if let (Some(dim), Some(_)) = (reversed.first(), &self.converter) {
            return Err(refused(format!(
                "Slice step must be a positive integer for {}: dimension {dim} goes backward",
                self.framework
            )));
        }
        let plan = SlicePlan::new(dtype, shape, &forward, Bounds::Clamp).map_err(|error| {
            let prefix = format!("Error during slicing {indices} with shape {shape:?}");
            of_format(py, &prefix, &error)
        })?;
        let tensor = self.tensor(py, dtype, plan.shape(), &bytes(&plan)?)?;
        if reversed.is_empty() {
            return Ok(tensor);
        }
        py.import(intern!(py, "numpy"))?.getattr("flip")?.call1((tensor, reversed))
    }
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
