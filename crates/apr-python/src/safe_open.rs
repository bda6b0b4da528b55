//! Open files that read tensors on access.

use alloc::sync::Arc;
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyMemoryView};
use st_core::TensorInfo;

use crate::error::refused;
use crate::filling::Stop;
use crate::opened::Opened;
use crate::options::{Backend, Device, Framework};
use crate::range_file::{Filename, Location};
use crate::slice::SafeSlice;

/// Opens a safetensors file; its tensors are read when they are asked for. A context manager, and a mapping from names to
/// tensors.
///
/// filename: str or os.PathLike, or a URL: "https://HOST/PATH", "hf://ORG/NAME/PATH", of a revision "hf://ORG/NAME@REVISION/PATH".
/// framework: "np" ("numpy"), "pt" ("torch", "pytorch"), "tf" ("tensorflow"), "flax" ("jax"), "mlx", "paddle".
/// device: where tensors are put, a name, a number or a torch.device; other than "cpu" for torch and paddle only. Of "cuda", large tensors and
/// `get_tensors` go through pinned memory.
/// backend: "mmap" gives views of the file's own pages; if another program shortens the file, touching what was lost ends the
/// process. "pread" reads each tensor when it is asked for, "read" everything at once: both give errors instead.
/// writable: numpy arrays can be written to, and the file never changes: with "mmap", the system copies each page of the file
/// when it is first written to.
/// fs: a file system of fsspec or a store of obstore, of which filename is a path.
/// allow_http: read http:// URLs of other hosts than this machine.
///
/// Of URLs and of `fs`, the header is read now and a tensor when it is asked for, into memory of its own; "mmap" is the same as
/// "pread" there.
///
/// Raises SafetensorError, FileNotFoundError, OSError; AprError for what goes wrong at a URL, and what `fs` raises.
#[pyclass(frozen, name = "safe_open", module = "apr._native")]
pub struct SafeOpen {
    /// Empty once it was closed. In a lock, because threads may use one object.
    opened: std::sync::RwLock<Option<Arc<Opened>>>,
}

/// Name, element type, shape, first byte and end of a tensor in what a file is read from.
type Place = (String, &'static str, Vec<usize>, u64, u64);

impl SafeOpen {
    /// The whole tensor, through pinned memory if it is large and its device an accelerator.
    fn tensor<'py>(
        slf: &Bound<'py, Self>,
        opened: &Opened,
        info: &TensorInfo<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match opened.maker().loaded_tensor(slf, info.name(), info.byte_len())? {
            Some(tensor) => Ok(tensor),
            None => opened.tensor(slf.py(), info),
        }
    }

    fn opened(&self) -> PyResult<Arc<Opened>> {
        let opened = self.opened.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        opened.clone().ok_or_else(|| refused("File is closed"))
    }
}

#[pymethods]
impl SafeOpen {
    #[new]
    #[pyo3(
        signature = (filename, framework, device=None, *, backend="mmap", writable=false, fs=None, allow_http=false),
        text_signature = "(filename, framework, device='cpu', *, backend='mmap', writable=False, fs=None, allow_http=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new<'py>(
        py: Python<'py>,
        filename: Filename<'py>,
        framework: &str,
        device: Option<&Bound<'py, PyAny>>,
        backend: &str,
        writable: bool,
        fs: Option<&Bound<'py, PyAny>>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let framework = Framework::from_name(framework)?;
        let device = Device::from_object(device, framework)?;
        let backend = Backend::from_name(backend)?;
        let location = Location::of(py, filename, fs, allow_http)?;
        let opened = Opened::new(py, location, framework, &device, backend, writable)?;
        Ok(Self { opened: std::sync::RwLock::new(Some(Arc::new(opened))) })
    }

    /// The texts of the header as a dict; None if it has none.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let opened = self.opened()?;
        let Some(metadata) = opened.header().metadata() else { return Ok(None) };
        let dict = PyDict::new(py);
        metadata.iter().try_for_each(|(key, value)| dict.set_item(key, value))?;
        Ok(Some(dict))
    }

    /// The names of all tensors, sorted.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let opened = self.opened()?;
        let mut names: Vec<&str> = opened.header().iter().map(|info| info.name()).collect();
        names.sort_unstable();
        PyList::new(py, names)
    }

    /// The names of all tensors in file order.
    fn offset_keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let opened = self.opened()?;
        let names: Vec<&str> = opened.header().iter().map(|info| info.name()).collect();
        PyList::new(py, names)
    }

    /// The whole tensor.
    fn get_tensor<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let opened = slf.get().opened()?;
        Self::tensor(slf, &opened, &opened.info(name)?)
    }

    /// All tensors by name, in file order.
    fn get_tensors<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, opened) = (slf.py(), slf.get().opened()?);
        if let Some(loaded) = opened.maker().loaded(slf)? {
            return Ok(loaded);
        }
        let dict = PyDict::new(py);
        for info in opened.header().iter() {
            dict.set_item(info.name(), opened.tensor(py, &info)?)?;
        }
        Ok(dict)
    }

    /// The bytes of a tensor as the file has them, as a memoryview.
    fn get_bytes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyMemoryView>> {
        let opened = self.opened()?;
        let bytes = opened.bytes(py, &opened.info(name)?)?;
        PyMemoryView::from(&bytes)
    }

    /// A tensor that is read when it is indexed, and only the part that is asked for. It outlives the file.
    fn get_slice(&self, name: &str) -> PyResult<SafeSlice> {
        let opened = self.opened()?;
        let idx = opened.info(name)?.index();
        Ok(SafeSlice::new(opened, idx))
    }

    /// What the header says of a tensor, {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24], "nbytes": 24}, or of all of
    /// them by name. Nothing else of the file is read.
    #[pyo3(signature = (name=None))]
    fn info<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        let opened = self.opened()?;
        if let Some(name) = name {
            return described(py, &opened.info(name)?);
        }
        let dict = PyDict::new(py);
        for info in opened.header().iter() {
            dict.set_item(info.name(), described(py, &info)?)?;
        }
        Ok(dict)
    }

    /// The tensors in file order as (name, dtype, shape, begin, end), whose bytes `_read_at` reads.
    fn _places(&self) -> PyResult<Vec<Place>> {
        let opened = self.opened()?;
        let place = |info: TensorInfo<'_>| {
            let (begin, end) = info.data_offsets();
            (info.name().to_owned(), info.dtype().name(), info.shape().to_vec(), begin, end)
        };
        Ok(opened.header().iter().map(place).collect())
    }

    /// Fills a writable buffer, which no other thread uses, with the bytes from `offset` on.
    #[pyo3(signature = (offset, buffer, stop=None))]
    fn _read_at(&self, offset: u64, buffer: &Bound<'_, PyAny>, stop: Option<&Stop>) -> PyResult<()> {
        self.opened()?.fill(offset, buffer, stop)
    }

    /// Says what will be read, from its beginning to its end.
    fn _will_read(&self, begin: u64, end: u64) -> PyResult<()> {
        self.opened()?.will_read(begin..end);
        Ok(())
    }

    /// Whether several threads can read at once.
    #[getter]
    fn _is_local(&self) -> PyResult<bool> {
        Ok(self.opened()?.is_local())
    }

    /// Ends the use of this object; tensors and slices that it gave stay.
    fn close(&self) {
        *self.opened.write().unwrap_or_else(std::sync::PoisonError::into_inner) = None;
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _type: Py<PyAny>, _value: Py<PyAny>, _traceback: Py<PyAny>) {
        self.close();
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.opened()?.header().len())
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let opened = self.opened()?;
        Ok(name.extract().is_ok_and(|name: &str| opened.header().tensor(name).is_some()))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.offset_keys(py)?.try_iter()
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let opened = slf.get().opened()?;
        let info = opened.header().tensor(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Self::tensor(slf, &opened, &info)
    }

    /// The whole tensor, or `default` if there is none of this name.
    #[pyo3(signature = (name, default=None, /))]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let opened = slf.get().opened()?;
        opened.header().tensor(name).map_or(Ok(default), |info| Self::tensor(slf, &opened, &info).map(Some))
    }

    /// Names and tensors in file order.
    fn items<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::get_tensors(slf)?.call_method0(intern!(slf.py(), "items"))
    }

    /// All tensors in file order.
    fn values<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::get_tensors(slf)?.call_method0(intern!(slf.py(), "values"))
    }
}

fn described<'py>(py: Python<'py>, info: &TensorInfo<'_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let (begin, end) = info.data_offsets();
    dict.set_item(intern!(py, "dtype"), info.dtype().name())?;
    dict.set_item(intern!(py, "shape"), info.shape())?;
    dict.set_item(intern!(py, "data_offsets"), [begin, end])?;
    dict.set_item(intern!(py, "nbytes"), info.byte_len())?;
    Ok(dict)
}

/// As safe_open, for an open file with a name.
#[pyfunction(name = "_safe_open_handle")]
#[pyo3(
    signature = (f, framework, device=None, *, backend="mmap", writable=false),
    text_signature = "(f, framework, device='cpu', *, backend='mmap', writable=False)"
)]
pub(crate) fn safe_open_handle(
    py: Python<'_>,
    f: &Bound<'_, PyAny>,
    framework: &str,
    device: Option<&Bound<'_, PyAny>>,
    backend: &str,
    writable: bool,
) -> PyResult<SafeOpen> {
    f.getattr(intern!(py, "fileno"))?;
    let path = Filename::Path(f.getattr(intern!(py, "name"))?.extract()?);
    SafeOpen::new(py, path, framework, device, backend, writable, None, false)
}
