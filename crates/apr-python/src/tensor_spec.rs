//! A tensor given by its address.

use pyo3::prelude::*;
use st_core::Dtype;

use crate::buffer::promised;
use crate::dtypes::{PACKED_F4, SUPPORTED};
use crate::error::refused;

/// A tensor for `serialize` and `serialize_file`, given by the address of its bytes (little-endian, row-major).
///
/// dtype: name in Python, for example "float32"; an unknown one raises SafetensorError.
/// shape: dimensions. For "float4_e2m1fn_x2" the last one counts bytes and is doubled.
/// data_ptr, data_len: the address and the number of bytes. The caller keeps them alive and unchanged until the call that is
/// given this object returns; an address that is not valid can end the process.
#[pyclass(frozen, module = "apr._native")]
#[derive(Debug)]
pub struct TensorSpec {
    dtype: Dtype,
    shape: Vec<usize>,
    data_ptr: u64,
    data_len: usize,
}

impl TensorSpec {
    pub(crate) fn element_type(&self) -> Dtype {
        self.dtype
    }

    pub(crate) fn dims(&self) -> &[usize] {
        &self.shape
    }

    /// The bytes, under the caller's promise.
    pub(crate) fn bytes(&self) -> PyResult<&[u8]> {
        promised(self.data_ptr, self.data_len).ok_or_else(|| {
            refused(format!("no memory can have {} bytes at address {:#x}", self.data_len, self.data_ptr))
        })
    }
}

#[pymethods]
impl TensorSpec {
    #[new]
    #[pyo3(signature = (*, dtype, shape, data_ptr, data_len))]
    fn new(dtype: &str, mut shape: Vec<usize>, data_ptr: u64, data_len: usize) -> PyResult<Self> {
        let known = if dtype == PACKED_F4 {
            if let Some(last) = shape.last_mut() {
                *last = last.checked_mul(2).ok_or_else(|| {
                    refused(format!("F4 last-dim {last} doubled to logical shape overflows usize"))
                })?;
            }
            Some(Dtype::F4)
        } else {
            // Unpacked elements of less than a byte are not what files hold.
            Dtype::from_numpy_name(dtype).filter(|dtype| dtype.bits() >= 8)
        };
        let dtype = known
            .ok_or_else(|| refused(format!("Unknown dtype {dtype:?}. Supported dtypes: {SUPPORTED}")))?;
        Ok(Self { dtype, shape, data_ptr, data_len })
    }

    /// Name of the element type in the format, for example "F32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.dtype.name()
    }

    /// Dimensions in elements.
    #[getter]
    fn shape(&self) -> Vec<usize> {
        self.shape.clone()
    }

    /// Address of the first byte.
    #[getter]
    fn data_ptr(&self) -> u64 {
        self.data_ptr
    }

    /// Number of bytes.
    #[getter]
    fn data_len(&self) -> usize {
        self.data_len
    }

    fn __repr__(&self) -> String {
        format!(
            "TensorSpec(dtype='{}', shape={:?}, data_ptr={}, data_len={})",
            self.dtype.name(),
            self.shape,
            self.data_ptr,
            self.data_len
        )
    }
}
