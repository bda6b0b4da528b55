//! Parses bytes into tensors.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView};
use st_core::{Header, ReadOptions, SafeTensors};

use crate::buffer::{Buffer, Wanted};
use crate::error::of_content;
use crate::foreign::Refused;
use crate::maker::unpacked;
use crate::numpy::Numpy;
use crate::packed::is_packed;

const PREFIX: &str = "Error while deserializing";

/// The tensors of a safetensors file in memory, copied: a list of (name, {"shape": list, "dtype": str, "data": bytearray}) in
/// file order.
///
/// bytes: anything with contiguous bytes. Raises SafetensorError.
#[pyfunction]
pub(crate) fn deserialize<'py>(py: Python<'py>, bytes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    let buffer = Buffer::of(bytes, Wanted::Bytes)?;
    let file = buffer.bytes();
    let tensors = SafeTensors::from_bytes_with(file, &ReadOptions::COMPAT)
        .map_err(|error| of_content(py, PREFIX, &error, Refused::Memory(file)))?;
    let list = PyList::empty(py);
    for (name, tensor) in tensors.iter() {
        let fields = PyDict::new(py);
        fields.set_item(intern!(py, "shape"), tensor.shape())?;
        fields.set_item(intern!(py, "dtype"), tensor.dtype().name())?;
        fields.set_item(intern!(py, "data"), PyByteArray::new(py, tensor.data()))?;
        list.append((name, fields))?;
    }
    Ok(list)
}

/// The tensors of a safetensors file in memory as numpy arrays, by name and in file order. They are read-only views of `data`
/// and hold it: meanwhile it can be neither resized nor closed; types of less than a byte are unpacked into arrays of their own.
///
/// data: anything with contiguous bytes. writable: views of a copy, which can be written to. Raises SafetensorError.
#[pyfunction]
#[pyo3(signature = (data, *, writable=false))]
pub(crate) fn load_arrays<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    writable: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let numpy = Numpy::get(py)?;
    let mut buffer = Buffer::of(data, Wanted::Bytes)?;
    let copy = writable.then(|| PyByteArray::new(py, buffer.bytes()).into_any());
    let data = copy.as_ref().unwrap_or(data);
    if writable {
        buffer = Buffer::of(data, Wanted::Bytes)?;
    }
    let file = buffer.bytes();
    let header = Header::from_bytes(file, &ReadOptions::COMPAT)
        .map_err(|error| of_content(py, PREFIX, &error, Refused::Memory(file)))?;
    // What cannot change cannot be changed through a view either, and a copy may be.
    let owner = if writable || data.is_exact_instance_of::<PyBytes>() {
        data.clone()
    } else {
        PyMemoryView::from(data)?.call_method0(intern!(py, "toreadonly"))?
    };
    // Of a memoryview, numpy makes arrays in two thirds of the time that it takes of an array.
    let owner = PyMemoryView::from(&numpy.held(&owner)?)?;
    let arrays = PyDict::new(py);
    for info in header.iter() {
        let array = if is_packed(info.dtype()) {
            let range = info.file_range();
            // Inside: the header is proof that all tensors are.
            let packed = file.get(range.start as usize..range.end as usize).unwrap_or_default();
            unpacked(py, info.dtype(), info.shape(), packed)?
        } else {
            numpy.view(info.dtype(), info.shape(), owner.as_any(), info.file_range().start)?
        };
        arrays.set_item(info.name(), array)?;
    }
    Ok(arrays)
}
