//! Tensors that are read on indexing.

use alloc::sync::Arc;

use pyo3::prelude::*;
use st_core::TensorInfo;

use crate::error::refused;
use crate::opened::Opened;

/// A tensor that is read when it is indexed: `s[2:, ::-1]` reads what it gives and no more. Integers, slices and an ellipsis, with
/// numpy's rules for negative and too large bounds.
#[pyclass(frozen, name = "PySafeSlice", module = "apr._native")]
pub struct SafeSlice {
    opened: Arc<Opened>,
    idx: usize,
}

impl SafeSlice {
    pub(crate) fn new(opened: Arc<Opened>, idx: usize) -> Self {
        Self { opened, idx }
    }

    fn info(&self) -> PyResult<TensorInfo<'_>> {
        self.opened.header().get(self.idx).ok_or_else(|| refused("the tensor is gone"))
    }
}

#[pymethods]
impl SafeSlice {
    /// Dimensions of the whole tensor.
    fn get_shape(&self) -> PyResult<Vec<usize>> {
        Ok(self.info()?.shape().to_vec())
    }

    /// Name of the element type in the format, for example "F32".
    fn get_dtype(&self) -> PyResult<&'static str> {
        Ok(self.info()?.dtype().name())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.opened.part(py, &self.info()?, key)
    }
}
