//! Open model files of every other format than safetensors.

use alloc::sync::Arc;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use model_file::{ErrorKind, FileKind, ModelFile, ModelFormat, OpenOptions, Tensor};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::{PyDict, PyIterator, PyList, PyMemoryView};
use read_at::{AnySource, FileSource};
use tensor_dtype::TensorType;

use crate::apr_files::Refusal;
use crate::apr_files::inspect::metadata;
use crate::error::no_tensor;
use crate::index::Indices;
use crate::maker::Maker;
use crate::options::{Device, Framework};
use crate::packed::is_packed;
use crate::range_file::{Filename, Location};
use crate::slice::SafeSlice;

/// The type that formats of other programs have and safetensors lacks, and arrays have.
const COMPLEX: TensorType = TensorType::Other("C128");

/// The tensors of a model file of any format but safetensors, by name: those of PyTorch, NumPy, ONNX, HDF5, Keras, TensorFlow,
/// Flax and Paddle, `.apr` and GGUF. Nothing in the file is run. A tensor is read when it is asked for, into memory of its own.
///
/// filename: str or os.PathLike, or a URL.
/// framework, device, fs, allow_http: as for `safe_open`.
/// object: the nested object to read, by its keys.
/// exclude: names to leave out, with `*` for any text: for what arrays do not have.
/// void_as_bf16: read two-byte elements without a type as bfloat16.
///
/// Raises AprError, FileNotFoundError, OSError, and what `fs` raises.
#[pyclass(frozen, module = "apr._native")]
pub struct ModelTensors(Arc<OpenModel>);

/// An open file.
pub(crate) struct OpenModel {
    file: Mutex<ModelFile<AnySource>>,
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
    path: PathBuf,
    maker: Maker,
}

/// What the file says of a tensor.
pub(crate) struct Row {
    name: String,
    dtype: TensorType,
    shape: Vec<usize>,
    byte_len: u64,
    alias_of: Option<String>,
    /// Index among the tensors of the file.
    idx: usize,
}

impl Row {
    pub(crate) fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The name that stands for the elements.
    fn first_name(&self) -> &str {
        self.alias_of.as_deref().unwrap_or(&self.name)
    }

    fn described<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "dtype"), self.dtype())?;
        dict.set_item(intern!(py, "shape"), &self.shape)?;
        dict.set_item(intern!(py, "nbytes"), self.byte_len)?;
        if let Some(first) = &self.alias_of {
            dict.set_item(intern!(py, "alias_of"), first)?;
        }
        Ok(dict)
    }
}

type Opened = (ModelFile<AnySource>, Vec<Row>);

impl OpenModel {
    fn rows(file: ModelFile<AnySource>) -> Result<Opened, model_file::Error> {
        let row = |(idx, tensor): (usize, &Tensor<'_>)| Row {
            name: tensor.name().to_owned(),
            dtype: tensor.dtype(),
            shape: tensor.shape().to_vec(),
            byte_len: tensor.byte_len(),
            alias_of: tensor.alias_of().map(str::to_owned),
            idx,
        };
        let rows = file.tensors()?.iter().enumerate().map(row).collect();
        Ok((file, rows))
    }

    fn file(&self) -> MutexGuard<'_, ModelFile<AnySource>> {
        match self.file.try_lock() {
            Ok(file) => file,
            Err(TryLockError::Poisoned(file)) => file.into_inner(),
            // Another thread reads, which may need the interpreter: waiting must not hold it.
            Err(TryLockError::WouldBlock) => {
                Python::attach(|py| self.file.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    fn raise(&self, py: Python<'_>, error: model_file::Error) -> PyErr {
        Refusal::from(error).raise(py, Some(&self.path))
    }

    pub(crate) fn row(&self, name: &str) -> PyResult<&Row> {
        let found = self.by_name.get(name).and_then(|&at| self.rows.get(at));
        found.ok_or_else(|| no_tensor(name))
    }

    /// Passes a tensor of the file to `run`.
    fn with<T>(
        &self,
        row: &Row,
        run: impl FnOnce(&Tensor<'_>) -> Result<T, model_file::Error>,
    ) -> Result<T, model_file::Error> {
        let file = self.file();
        let tensors = file.tensors()?;
        run(tensors.get(row.idx).ok_or(ErrorKind::TensorNotFound)?)
    }

    /// The bytes of a tensor, row-major and little-endian, in memory of their own.
    fn bytes<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        // What has to be decoded is decoded before there is memory for the result: twice its size at most, in all.
        let decoded = py.detach(|| self.with(row, |tensor| read(tensor, 0, &mut [])));
        decoded.map_err(|error| self.raise(py, error))?;
        let read = |out: &mut [u8]| self.with(row, |tensor| read(tensor, 0, out));
        self.maker.filled(py, row.byte_len, read, |error| self.raise(py, error))
    }

    fn tensor<'py>(
        &self,
        py: Python<'py>,
        row: &Row,
        bytes: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match row.dtype.element() {
            Some(dtype) => self.maker.tensor(py, dtype, &row.shape, bytes),
            None => self.maker.complex(py, &row.shape, bytes),
        }
    }

    /// Refuses a tensor that arrays do not have.
    fn check(&self, py: Python<'_>, row: &Row) -> PyResult<()> {
        if row.dtype.element().is_some() || row.dtype == COMPLEX {
            return Ok(());
        }
        // Of blocks no part is read.
        let refusal = self.with(row, |tensor| tensor.check_type().and_then(|()| tensor.slice(&[])));
        refusal.map(drop).map_err(|error| self.raise(py, error))
    }

    fn read<'py>(&self, py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyAny>> {
        self.check(py, row)?;
        self.tensor(py, row, &self.bytes(py, row)?)
    }

    /// Part of a tensor.
    pub(crate) fn part<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let row = self.row(name)?;
        let indices = Indices::new(key, &row.shape)?;
        let Some(dtype) = row.dtype.element().filter(|&dtype| !is_packed(dtype)) else {
            return self.read(py, row)?.get_item(indices.to_python(py)?);
        };
        self.maker.part(py, (dtype, &row.shape), &indices, |plan| {
            let read = |out: &mut [u8]| {
                self.with(row, |tensor| {
                    let mut out = out;
                    for range in plan.ranges() {
                        // The ranges are as long as the plan together.
                        let (now, rest) = out.split_at_mut((range.end - range.start) as usize);
                        read(tensor, range.start, now)?;
                        out = rest;
                    }
                    Ok(())
                })
            };
            self.maker.filled(py, plan.byte_len(), read, |error| self.raise(py, error))
        })
    }
}

fn read(tensor: &Tensor<'_>, offset: u64, out: &mut [u8]) -> Result<(), model_file::Error> {
    tensor.check_order()?;
    tensor.read(offset, out)
}

#[pymethods]
impl ModelTensors {
    #[new]
    #[pyo3(
        signature = (
            filename, framework, device=None, *, object="", exclude=Vec::new(), void_as_bf16=false, fs=None, allow_http=false
        ),
        text_signature =
            "(filename, framework, device='cpu', *, object='', exclude=(), void_as_bf16=False, fs=None, allow_http=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new<'py>(
        py: Python<'py>,
        filename: Filename<'py>,
        framework: &str,
        device: Option<&Bound<'py, PyAny>>,
        object: &str,
        exclude: Vec<String>,
        void_as_bf16: bool,
        fs: Option<&Bound<'py, PyAny>>,
        allow_http: bool,
    ) -> PyResult<Self> {
        let mut options = foreign_tensors::Options::default();
        options.object = object.into();
        options.exclude = exclude;
        options.void_is_bf16 = void_as_bf16;
        let framework = Framework::from_name(framework)?;
        let maker = Maker::new(py, framework, &Device::from_object(device, framework)?)?;
        let options = OpenOptions::new().with_foreign(options);
        let (opened, filename) = match Location::of(py, filename, fs, allow_http)? {
            Location::Path(path) => {
                (py.detach(|| ModelFile::open(&path, &options).and_then(OpenModel::rows)), path)
            }
            Location::Ranges(file) => {
                let file = file.get();
                let (source, name, beside) = (file.source(), file.path(), file.shards_beside());
                let open = || ModelFile::from_shared(source, file.kind(), name, beside, &options);
                (py.detach(|| open().and_then(OpenModel::rows)), name.to_path_buf())
            }
        };
        let (file, rows) = opened.map_err(|error| Refusal::from(error).raise(py, Some(&filename)))?;
        let by_name = rows.iter().enumerate().map(|(at, row)| (row.name.clone(), at)).collect();
        Ok(Self(Arc::new(OpenModel { file: Mutex::new(file), rows, by_name, path: filename, maker })))
    }

    /// The names of all tensors in file order, each followed by its other names.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.0.rows.iter().map(|row| &row.name))
    }

    /// What is no tensor, as `apr.inspect` gives it.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        metadata(py, &*self.0.file())
    }

    /// The whole tensor.
    fn get_tensor<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.0.read(py, self.0.row(name)?)
    }

    /// All tensors by name, in file order, or those with these names. Those with several names are read once, and share their
    /// memory.
    #[pyo3(signature = (names=None))]
    fn get_tensors<'py>(&self, py: Python<'py>, names: Option<Vec<String>>) -> PyResult<Bound<'py, PyDict>> {
        let rows = match names {
            Some(names) => names.iter().map(|name| self.0.row(name)).collect::<PyResult<Vec<_>>>()?,
            None => self.0.rows.iter().collect(),
        };
        // Before anything large is read.
        rows.iter().try_for_each(|row| self.0.check(py, row))?;
        let dict = PyDict::new(py);
        let mut shared = HashMap::new();
        for row in rows {
            let bytes = match shared.get(row.first_name()) {
                Some(bytes) => Bound::clone(bytes),
                None => self.0.bytes(py, row)?,
            };
            dict.set_item(&row.name, self.0.tensor(py, row, &bytes)?)?;
            shared.insert(row.first_name(), bytes);
        }
        Ok(dict)
    }

    /// The bytes of a tensor, row-major and little-endian, as a memoryview; of types of fewer than 8 bits, packed, and of blocks, as
    /// the file has them.
    fn get_bytes<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyMemoryView>> {
        let row = self.0.row(name)?;
        let checked = self.0.with(row, |tensor| match tensor.check_type() {
            Err(error) if matches!(error.kind(), ErrorKind::Foreign(_)) => Err(error),
            _ => Ok(()),
        });
        checked.map_err(|error| self.0.raise(py, error))?;
        PyMemoryView::from(&self.0.bytes(py, row)?)
    }

    /// A tensor that is read when it is indexed. It outlives the file.
    fn get_slice(&self, name: &str) -> PyResult<SafeSlice> {
        self.0.row(name)?;
        Ok(SafeSlice::of_model(Arc::clone(&self.0), name.to_owned()))
    }

    /// What the file says of a tensor, {"dtype": "F32", "shape": [2, 3], "nbytes": 24}, with "alias_of" if that name comes first for
    /// the same elements; or of all of them by name. Nothing else of the file is read.
    #[pyo3(signature = (name=None))]
    fn info<'py>(&self, py: Python<'py>, name: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        if let Some(name) = name {
            return self.0.row(name)?.described(py);
        }
        let dict = PyDict::new(py);
        self.0.rows.iter().try_for_each(|row| dict.set_item(&row.name, row.described(py)?))?;
        Ok(dict)
    }

    fn __len__(&self) -> usize {
        self.0.rows.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.keys(py)?.try_iter()
    }
}

/// The format of a model in one file; none of a sealed file, of an index, and of a folder with safetensors files.
#[pyfunction]
pub fn format_of_file(path: PathBuf) -> Option<&'static str> {
    // As model-file opens folders.
    let inside = || durable_file::open_regular(&ModelFile::foreign_in(&path)?, u64::MAX).ok();
    let regular = durable_file::open_regular(&path, u64::MAX).ok().or_else(inside)?;
    let len = regular.len();
    let kind = FileKind::of_source(&FileSource::with_len(regular.into_file(), len)).ok()?;
    kind.model().filter(|format| *format != ModelFormat::Sealed).map(ModelFormat::name)
}
