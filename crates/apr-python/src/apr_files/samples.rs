//! Samples from Python, and arrays for Python.

use core::ops::Range;

use apr_models::{Matrix, SparseRows};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict as _, PyList, PyString};
use st_core::Dtype;

use crate::buffer::{Buffer, Wanted};
use crate::dtypes::from_format;
use crate::numpy::Numpy;

/// Rows of values, one after the other, in the memory of a Python object.
pub(crate) struct SampleBuffer {
    buffer: Buffer,
    is_single: bool,
    n_rows: usize,
    n_cols: usize,
}

/// Values of some rows.
pub(crate) enum Values {
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl SampleBuffer {
    /// The rows of a table of numbers as float32: used where they are if they are that in row-major order, converted
    /// otherwise.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::as_one_of(object, &[Dtype::F32])
    }

    /// The rows as float64, or as float32 if they are that.
    pub(crate) fn wide(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::as_one_of(object, &[Dtype::F64, Dtype::F32])
    }

    /// The rows in one of these types as they are, in the first of them otherwise.
    fn as_one_of(object: &Bound<'_, PyAny>, dtypes: &[Dtype]) -> PyResult<Self> {
        if let Ok(buffer) = Buffer::of(object, Wanted::Elements)
            && let Some((dtype, true)) =
                buffer.format().and_then(|format| from_format(format, buffer.item_len()))
            && dtypes.contains(&dtype)
            && buffer.is_contiguous()
        {
            return Self::in_memory(buffer, dtype);
        }
        let py = object.py();
        let array = py.import("numpy")?.getattr("asarray")?.call1((object,))?;
        let dtype = array.getattr(intern!(py, "dtype"))?;
        let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
        // The letter V has the floats of ml_dtypes.
        if !matches!(kind.as_str(), "b" | "i" | "u" | "f" | "V") {
            return Err(PyTypeError::new_err(format!("samples are numbers, these are {dtype}")));
        }
        let wanted = dtypes.first().copied().unwrap_or(Dtype::F64);
        let ordered = Numpy::get(py)?.in_order(wanted, &array)?;
        Self::in_memory(Buffer::of(&ordered, Wanted::Elements)?, wanted)
    }

    fn in_memory(buffer: Buffer, dtype: Dtype) -> PyResult<Self> {
        let shape: Vec<usize> = buffer.shape().collect();
        match shape[..] {
            [n_rows, n_cols] => Ok(Self { buffer, is_single: dtype == Dtype::F32, n_rows, n_cols }),
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

    /// Rows and columns.
    pub(crate) const fn shape(&self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    pub(crate) fn matrix(&self) -> Result<Matrix, apr_models::Error> {
        let (values, _) = self.buffer.bytes().as_chunks();
        Matrix::from_vec(self.n_rows, self.n_cols, values.iter().copied().map(f32::from_le_bytes).collect())
    }

    /// The values of some of the rows.
    pub(crate) fn values(&self, rows: Range<usize>) -> Values {
        let (start, end) = (rows.start * self.n_cols, rows.end * self.n_cols);
        let bytes = self.buffer.bytes();
        if self.is_single {
            let (values, _) = bytes.as_chunks();
            let values = values.get(start..end).unwrap_or_default();
            return Values::F32(values.iter().copied().map(f32::from_le_bytes).collect());
        }
        let (values, _) = bytes.as_chunks();
        let values = values.get(start..end).unwrap_or_default();
        Values::F64(values.iter().copied().map(f64::from_le_bytes).collect())
    }
}

/// The texts of a list or another iterable; a text alone is none.
pub(crate) fn texts(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("texts are a list of str, this is one str: [text]"));
    }
    let text_of = |(idx, text): (usize, PyResult<Bound<'_, PyAny>>)| {
        let text = text?;
        text.extract().map_err(|error| {
            // A str that is not Unicode.
            if text.is_instance_of::<PyString>() {
                return error;
            }
            let kind = text.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyTypeError::new_err(format!(
                "texts are str, number {idx} is of type {kind}: leave it out, or give it as str"
            ))
        })
    };
    object.try_iter()?.enumerate().map(text_of).collect()
}

/// What was computed, with its shape.
pub(crate) enum Numbers {
    F32(Vec<f32>, Vec<usize>),
    F64(Vec<f64>, Vec<usize>),
    I64(Vec<i64>, Vec<usize>),
    Bools(Vec<bool>, Vec<usize>),
    /// A text for each place.
    Texts {
        texts: Vec<String>,
        places: Vec<i64>,
    },
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

    /// Appends the rows of others, which were computed in the same way.
    pub(crate) fn append(&mut self, other: Self) {
        fn join<T>(values: &mut Vec<T>, shape: &mut [usize], others: Vec<T>, other: &[usize]) {
            values.extend(others);
            if let (Some(n_rows), Some(more)) = (shape.first_mut(), other.first()) {
                *n_rows += more;
            }
        }
        match (self, other) {
            (Self::F32(values, shape), Self::F32(others, other)) => join(values, shape, others, &other),
            (Self::F64(values, shape), Self::F64(others, other)) => join(values, shape, others, &other),
            (Self::I64(values, shape), Self::I64(others, other)) => join(values, shape, others, &other),
            (Self::Bools(values, shape), Self::Bools(others, other)) => join(values, shape, others, &other),
            (Self::Texts { places, .. }, Self::Texts { places: others, .. }) => places.extend(others),
            _ => {}
        }
    }

    /// As a new numpy array.
    pub(crate) fn to_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::F32(values, shape) => array(py, Dtype::F32, shape, values, f32::to_le_bytes),
            Self::F64(values, shape) => array(py, Dtype::F64, shape, values, f64::to_le_bytes),
            Self::I64(values, shape) => array(py, Dtype::I64, shape, values, i64::to_le_bytes),
            Self::Bools(values, shape) => array(py, Dtype::Bool, shape, values, |value| [u8::from(value)]),
            Self::Texts { texts, places } => {
                // numpy's own texts end before their last zero characters.
                let are_objects = texts.iter().any(|text| text.ends_with('\0'));
                let dtype = [("dtype", if are_objects { "O" } else { "U" })].into_py_dict(py)?;
                let labels =
                    py.import("numpy")?.getattr("array")?.call((PyList::new(py, texts)?,), Some(&dtype))?;
                let places = Self::labels(places.iter().copied()).to_array(py)?;
                labels.call_method1("take", (places,))
            }
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
    let array = numpy.empty(py, (values.len() * N) as u64)?;
    let mut buffer = Buffer::of(&array, Wanted::WritableBytes)?;
    let (places, _) = buffer.bytes_mut().as_chunks_mut::<N>();
    for (place, &value) in places.iter_mut().zip(values) {
        *place = bytes(value);
    }
    drop(buffer);
    numpy.view(dtype, shape, &array, 0)
}

/// Values, their columns, and where each row begins: what `scipy.sparse.csr_array` takes.
pub(crate) type Sparse<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

pub(crate) fn sparse<'py>(py: Python<'py>, rows: &SparseRows) -> PyResult<Sparse<'py>> {
    lists(py, &Numbers::row(rows.values().to_vec()), rows.columns(), rows.row_starts())
}

pub(crate) fn sparse_wide<'py>(py: Python<'py>, rows: &SparseRows<f64>) -> PyResult<Sparse<'py>> {
    let values = Numbers::F64(rows.values().to_vec(), vec![rows.values().len()]);
    lists(py, &values, rows.columns(), rows.row_starts())
}

fn lists<'py>(py: Python<'py>, values: &Numbers, columns: &[u32], starts: &[usize]) -> PyResult<Sparse<'py>> {
    let columns = Numbers::labels(columns.iter().copied().map(i64::from)).to_array(py)?;
    let starts = Numbers::labels(starts.iter().map(|&start| start as i64)).to_array(py)?;
    Ok((values.to_array(py)?, columns, starts))
}
