//! Samples from Python, and numbers back.

use apr_models::{Labels, Matrix, SparseRows};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use st_core::Dtype;

use crate::buffer::{Buffer, Wanted};
use crate::dtypes::from_format;
use crate::numpy::Numpy;

/// Rows of float32 values, one after the other, in the memory of a Python object.
pub(crate) struct Samples {
    buffer: Buffer,
    n_rows: usize,
    n_cols: usize,
}

impl Samples {
    /// The rows of a table of numbers: used where they are if they are float32 in row-major order, converted otherwise.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(buffer) = Buffer::of(object, Wanted::Elements)
            && let Some((Dtype::F32, true)) =
                buffer.format().and_then(|format| from_format(format, buffer.item_len()))
            && buffer.is_contiguous()
        {
            return Self::in_memory(buffer);
        }
        let py = object.py();
        let array = py.import("numpy")?.getattr("asarray")?.call1((object,))?;
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
        // The letter V has the floats of ml_dtypes.
        if !matches!(kind.as_str(), "b" | "i" | "u" | "f" | "V") {
            return Err(PyTypeError::new_err(format!("samples are numbers, these are {dtype}")));
        }
        let ordered = Numpy::get(py)?.in_order(Dtype::F32, &array)?;
        Self::in_memory(Buffer::of(&ordered, Wanted::Elements)?)
    }

    fn in_memory(buffer: Buffer) -> PyResult<Self> {
        let shape: Vec<usize> = buffer.shape().collect();
        match shape[..] {
            [n_rows, n_cols] => Ok(Self { buffer, n_rows, n_cols }),
            [len] => Err(PyValueError::new_err(format!(
                "samples are a table with a row for each, this has 1 dimension of {len}: X.reshape(1, -1) is one sample, \
                 X.reshape(-1, 1) are {len} of one feature"
            ))),
            _ => Err(PyValueError::new_err(format!(
                "samples are a table with a row for each, this has {} dimensions",
                shape.len()
            ))),
        }
    }

    pub(crate) fn matrix(&self) -> Result<Matrix, apr_models::Error> {
        let (values, _) = self.buffer.bytes().as_chunks::<4>();
        let values = values.iter().map(|&value| f32::from_le_bytes(value)).collect();
        Matrix::from_vec(self.n_rows, self.n_cols, values)
    }
}

/// The texts of a list or another iterable; a text alone is none.
pub(crate) fn texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("texts are a list of str, this is one str: [text]"));
    }
    object.try_iter()?.map(|text| text?.extract()).collect()
}

/// Numbers that were computed, with their shape, or labels that are none: one for each sample.
pub(crate) enum Numbers {
    F32(Vec<f32>, Vec<usize>),
    F64(Vec<f64>, Vec<usize>),
    I64(Vec<i64>, Vec<usize>),
    Booleans(Vec<bool>),
    Texts(Vec<String>),
}

impl Numbers {
    pub(crate) fn row(values: Vec<f32>) -> Self {
        let shape = vec![values.len()];
        Self::F32(values, shape)
    }

    pub(crate) fn table(values: Matrix) -> Self {
        let (n_rows, n_cols) = values.shape();
        Self::F32(values.into_vec(), vec![n_rows, n_cols])
    }

    pub(crate) fn labels(labels: impl IntoIterator<Item = i64>) -> Self {
        let labels: Vec<i64> = labels.into_iter().collect();
        let shape = vec![labels.len()];
        Self::I64(labels, shape)
    }

    /// Labels in the type they have.
    pub(crate) fn named(labels: Labels) -> Option<Self> {
        Some(match labels {
            Labels::Integers(labels) => Self::labels(labels),
            Labels::Texts(labels) => Self::Texts(labels),
            Labels::Booleans(labels) => Self::Booleans(labels),
            Labels::Numbers(labels) => {
                let shape = vec![labels.len()];
                Self::F64(labels, shape)
            }
            _ => return None,
        })
    }

    /// As a new numpy array.
    pub(crate) fn to_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::F32(values, shape) => array(py, Dtype::F32, shape, values, f32::to_le_bytes),
            Self::F64(values, shape) => array(py, Dtype::F64, shape, values, f64::to_le_bytes),
            Self::I64(values, shape) => array(py, Dtype::I64, shape, values, i64::to_le_bytes),
            Self::Booleans(values) => {
                array(py, Dtype::Bool, &[values.len()], values, |value| [u8::from(value)])
            }
            Self::Texts(values) => py.import("numpy")?.call_method1("array", (values, "U")),
        }
    }
}

fn array<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    dtype: Dtype,
    shape: &[usize],
    values: &[T],
    bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyAny>> {
    let numpy = Numpy::get(py)?;
    let room = numpy.room(py, (values.len() * N) as u64)?;
    let mut buffer = Buffer::of(&room, Wanted::WritableBytes)?;
    let (places, _) = buffer.bytes_mut().as_chunks_mut::<N>();
    for (place, &value) in places.iter_mut().zip(values) {
        *place = bytes(value);
    }
    drop(buffer);
    numpy.view(dtype, shape, &room, 0)
}

/// Values, their columns, and where each row begins: what `scipy.sparse.csr_array` takes.
pub(crate) fn sparse<'py>(
    py: Python<'py>,
    rows: &SparseRows,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let values = Numbers::row(rows.values().to_vec()).to_array(py)?;
    let columns = Numbers::labels(rows.columns().iter().copied().map(i64::from)).to_array(py)?;
    let starts = Numbers::labels(rows.row_starts().iter().map(|&start| start as i64)).to_array(py)?;
    Ok((values, columns, starts))
}
