//! numpy: arrays as views of memory, and memory of arrays.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict as _, PyDict, PyTuple};
use st_core::Dtype;

use crate::buffer::{Buffer, Wanted};
use crate::dtypes::{is_native, python_name};
use crate::error::refused;

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

/// The functions that are called for each tensor, looked up once.
pub(crate) struct Numpy {
    ndarray: Py<PyAny>,
    array: Py<PyAny>,
    asarray: Py<PyAny>,
    frombuffer: Py<PyAny>,
    empty: Py<PyAny>,
    /// By the number of the variant; `ml_dtypes` is imported for the first tensor that needs it.
    dtypes: [PyOnceLock<Py<PyAny>>; Dtype::ALL.len()],
}

impl Numpy {
    /// Imports numpy, the first time.
    pub(crate) fn get(py: Python<'_>) -> PyResult<&'static Self> {
        NUMPY.get_or_try_init(py, || {
            let module = py.import("numpy")?;
            let function = |name: &str| module.getattr(name).map(Bound::unbind);
            Ok(Self {
                ndarray: function("ndarray")?,
                array: function("array")?,
                asarray: function("asarray")?,
                frombuffer: function("frombuffer")?,
                empty: function("empty")?,
                dtypes: [const { PyOnceLock::new() }; Dtype::ALL.len()],
            })
        })
    }

    /// The element type as numpy's, little-endian.
    pub(crate) fn dtype<'py>(&self, py: Python<'py>, dtype: Dtype) -> PyResult<&Bound<'py, PyAny>> {
        let found = self.dtypes[dtype as usize].get_or_try_init(py, || {
            let name = python_name(dtype);
            let scalar = if is_native(dtype) {
                name.into_pyobject(py)?.into_any()
            } else {
                let found = py.import("ml_dtypes").and_then(|module| module.getattr(name));
                found.map_err(|cause| {
                    let error = refused(format!(
                        "numpy has no type for {dtype}: install the package ml_dtypes, in a version with {name}, or read the \
                         tensor's bytes with a framework that has it"
                    ));
                    error.set_cause(py, Some(cause));
                    error
                })?
            };
            let made = py.import("numpy")?.getattr("dtype")?.call1((scalar,))?;
            let ordered = if cfg!(target_endian = "big") && is_native(dtype) {
                made.call_method1("newbyteorder", ("<",))?
            } else {
                made
            };
            PyResult::Ok(ordered.unbind())
        })?;
        Ok(found.bind(py))
    }

    /// The bytes of an object that is not ours alone, as an array. While there are views of it, the object can neither free nor
    /// resize them: numpy keeps what `ndarray` is given alive, but gives its buffer back at once, so that a view of the object
    /// itself would outlive `bytearray.clear` or `mmap.close`.
    pub(crate) fn held<'py>(&self, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = owner.py();
        self.frombuffer.bind(py).call1((owner, self.dtype(py, Dtype::U8)?))
    }

    /// An array of this type and shape on the memory of `buffer`, from byte `offset`; it keeps `buffer` alive. A buffer of the
    /// caller's is to be [held](Self::held) first.
    pub(crate) fn view<'py>(
        &self,
        dtype: Dtype,
        shape: &[usize],
        buffer: &Bound<'py, PyAny>,
        offset: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = buffer.py();
        let shape = PyTuple::new(py, shape)?;
        self.ndarray.bind(py).call1((shape, self.dtype(py, dtype)?, buffer, offset))
    }

    /// An uninitialized array of bytes.
    pub(crate) fn empty<'py>(&self, py: Python<'py>, len: u64) -> PyResult<Bound<'py, PyAny>> {
        self.empty.bind(py).call1((len, self.dtype(py, Dtype::U8)?))
    }

    /// An array of its own with these bytes.
    pub(crate) fn copied<'py>(
        &self,
        py: Python<'py>,
        dtype: Dtype,
        shape: &[usize],
        bytes: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.empty(py, bytes.len() as u64)?;
        Buffer::of(&array, Wanted::WritableBytes)?.bytes_mut().copy_from_slice(bytes);
        self.view(dtype, shape, &array, 0)
    }

    /// The bytes at an address that `owner` gives through `__array_interface__`, as an array that keeps it alive.
    pub(crate) fn bytes_of<'py>(&self, owner: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asarray.bind(owner.py()).call1((owner,))
    }

    /// The elements in row-major order and little-endian, in an array of their own.
    pub(crate) fn in_order<'py>(
        &self,
        dtype: Dtype,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = array.py();
        let options = [(intern!(py, "order"), "C")].into_py_dict(py)?;
        self.array.bind(py).call((array, self.dtype(py, dtype)?), Some(&options))
    }

    /// An array whose type has no letter in buffers, as unsigned integers of the same size.
    pub(crate) fn as_integers<'py>(
        &self,
        dtype: Dtype,
        array: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let carrier = self.dtype(array.py(), carrier(dtype))?;
        array.call_method1(intern!(array.py(), "view"), (carrier,))
    }
}

/// Unsigned integers of the size that an element has in `ml_dtypes`.
pub(crate) fn carrier(dtype: Dtype) -> Dtype {
    if dtype.bits() == 16 { Dtype::U16 } else { Dtype::U8 }
}

/// A file in memory, for numpy: it asks for the address by this protocol.
#[pyclass(frozen, module = "apr._native")]
pub struct MappedFile {
    /// Holds the memory.
    _map: Map,
    address: usize,
    len: usize,
    is_read_only: bool,
}

enum Map {
    Shared { _map: st_mmap::MappedSafeTensors },
    Private { _map: st_mmap::PrivateMapping },
}

impl MappedFile {
    pub(crate) fn shared(map: st_mmap::MappedSafeTensors) -> Self {
        let (address, len) = (map.bytes().as_ptr().expose_provenance(), map.bytes().len());
        Self { _map: Map::Shared { _map: map }, address, len, is_read_only: true }
    }

    /// Writes to it stay in this process.
    pub(crate) fn private(mut map: st_mmap::PrivateMapping) -> Self {
        let bytes = map.bytes_mut();
        let (address, len) = (bytes.as_mut_ptr().expose_provenance(), bytes.len());
        Self { _map: Map::Private { _map: map }, address, len, is_read_only: false }
    }
}

#[pymethods]
impl MappedFile {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.len,))?;
        interface.set_item("typestr", "|u1")?;
        interface.set_item("data", (self.address, self.is_read_only))?;
        interface.set_item("version", 3)?;
        Ok(interface)
    }
}
