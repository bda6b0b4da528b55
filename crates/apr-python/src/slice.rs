//! Tensors that are read on indexing.

use alloc::sync::Arc;

use pyo3::prelude::*;
use st_core::TensorInfo;

use crate::error::refused;
use crate::model_tensors::OpenModel;
use crate::opened::Opened;

/// A tensor that is read when it is indexed: `s[2:, ::-1]` reads what it gives and no more. Integers, slices and an ellipsis, with
/// numpy's rules for negative and too large bounds.
#[pyclass(frozen, name = "PySafeSlice", module = "apr._native")]
pub struct SafeSlice {
    of: Of,
}

/// The tensor.
enum Of {
    SafeTensors(Arc<Opened>, usize),
    Model(Arc<OpenModel>, String),
}

impl SafeSlice {
    pub(crate) fn new(opened: Arc<Opened>, idx: usize) -> Self {
        Self { of: Of::SafeTensors(opened, idx) }
    }

    pub(crate) fn of_model(opened: Arc<OpenModel>, name: String) -> Self {
        Self { of: Of::Model(opened, name) }
    }
}

fn info(opened: &Opened, idx: usize) -> PyResult<TensorInfo<'_>> {
    opened.header().get(idx).ok_or_else(|| refused("the tensor is gone"))
}

#[pymethods]
impl SafeSlice {
    /// Dimensions of the whole tensor.
    fn get_shape(&self) -> PyResult<Vec<usize>> {
        match &self.of {
            Of::SafeTensors(opened, idx) => Ok(info(opened, *idx)?.shape().to_vec()),
            Of::Model(opened, name) => Ok(opened.row(name)?.shape().to_vec()),
        }
    }

    /// Name of the element type in the format, for example "F32".
    fn get_dtype(&self) -> PyResult<&'static str> {
        match &self.of {
            Of::SafeTensors(opened, idx) => Ok(info(opened, *idx)?.dtype().name()),
            Of::Model(opened, name) => Ok(opened.row(name)?.dtype()),
        }
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match &self.of {
            Of::SafeTensors(opened, idx) => opened.part(py, &info(opened, *idx)?, key),
            Of::Model(opened, name) => opened.part(py, name, key),
        }
    }
}
