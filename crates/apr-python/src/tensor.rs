//! Arrays as type, shape and bytes.

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use st_core::{Dtype, TensorView};

use crate::buffer::{Buffer, Wanted};
use crate::dtypes::{SUPPORTED, from_format};
use crate::error::{of_format, refused_tensor};
use crate::numpy::{Numpy, carrier};
use crate::packed::{is_packed, pack};
use crate::serialize::PREFIX;
use crate::tensor_spec::TensorSpec;
use crate::texts::text;

/// A tensor with a name.
pub(crate) struct Tensor<'a> {
    pub(crate) name: &'a str,
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    source: Source<'a>,
}

/// Where its bytes are.
enum Source<'a> {
    /// Memory that a caller promised.
    Promised(&'a [u8]),
    /// Memory of an array, in the order of files.
    Held(Buffer),
    /// An array in another order, put in order when its turn comes.
    Scattered(Py<PyAny>),
    /// Packed here.
    Made(Vec<u8>),
}

/// Names and arrays of any mapping.
pub(crate) fn arrays_of<'py>(tensor_dict: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let py = tensor_dict.py();
    let dict = match tensor_dict.cast::<PyDict>() {
        Ok(dict) => dict.clone(),
        Err(_) => {
            let made = PyDict::new(py);
            made.call_method1(intern!(py, "update"), (tensor_dict,)).map_err(|cause| {
                let class = tensor_dict
                    .get_type()
                    .name()
                    .map_or_else(|_| "object".to_owned(), |name| name.to_string());
                caused(
                    py,
                    PyTypeError::new_err(format!("expected a mapping of names to arrays, found {class}")),
                    cause,
                )
            })?;
            made
        }
    };
    dict.iter().map(|(name, array)| Ok((text(&name, "the name of a tensor")?, array))).collect()
}

impl<'a> Tensor<'a> {
    pub(crate) fn of_spec(name: &'a str, spec: &'a TensorSpec) -> PyResult<Self> {
        let source = Source::Promised(spec.bytes()?);
        Ok(Self { name, dtype: spec.element_type(), shape: spec.dims().to_vec(), source })
    }

    /// Name, type and shape for a layout.
    pub(crate) fn spec(&self) -> st_core::TensorSpec<'_> {
        st_core::TensorSpec { name: self.name, dtype: self.dtype, shape: &self.shape }
    }

    /// Hands over the bytes as a file has them. They exist twice while this runs if the array is in another order.
    pub(crate) fn with_bytes<T>(&self, then: impl FnOnce(&[u8]) -> T) -> PyResult<T> {
        match &self.source {
            Source::Promised(bytes) => Ok(then(bytes)),
            Source::Held(buffer) => Ok(then(buffer.bytes())),
            Source::Made(bytes) => Ok(then(bytes)),
            Source::Scattered(array) => {
                let buffer = Python::attach(|py| in_order(self.dtype, array.bind(py)))?;
                Ok(then(buffer.bytes()))
            }
        }
    }

    /// A view of the tensor, which is put in order for good.
    pub(crate) fn view(&mut self, py: Python<'_>) -> PyResult<TensorView<'_>> {
        if let Source::Scattered(array) = &self.source {
            self.source = Source::Held(in_order(self.dtype, array.bind(py))?);
        }
        let bytes = match &self.source {
            Source::Promised(bytes) => bytes,
            Source::Held(buffer) => buffer.bytes(),
            Source::Made(bytes) => bytes,
            Source::Scattered(_) => &[],
        };
        TensorView::new(self.dtype, &self.shape, bytes).map_err(|error| of_format(py, PREFIX, &error))
    }

    pub(crate) fn of_array(name: &'a str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        if is_masked(array)? {
            let text = format!(
                "`{name}` is a masked array, whose mask no file can hold: save array.filled(), or array.data and array.mask"
            );
            return Err(refused_tensor(None, &text, name));
        }
        if let Ok(buffer) = Buffer::of(array, Wanted::Elements) {
            let known = buffer.format().and_then(|format| from_format(format, buffer.item_len()));
            let Some((dtype, is_in_byte_order)) = known else {
                let called = match type_name(array) {
                    Ok(called) => called,
                    Err(_) => buffer.format().unwrap_or("without a name").to_owned(),
                };
                return Err(unknown(name, &called));
            };
            let shape = buffer.shape().collect();
            let source = if is_in_byte_order && buffer.is_contiguous() {
                Source::Held(buffer)
            } else {
                Source::Scattered(array.clone().unbind())
            };
            return Ok(Self { name, dtype, shape, source });
        }
        let called = type_name(array).map_err(|cause| no_array(name, array, cause))?;
        let dtype = Dtype::from_numpy_name(&called).ok_or_else(|| unknown(name, &called))?;
        let numpy = Numpy::get(array.py())?;
        let integers = numpy.as_integers(dtype, array).map_err(|cause| no_array(name, array, cause))?;
        let mut tensor = Self::of_array(name, &integers)?;
        tensor.dtype = dtype;
        if is_packed(dtype) {
            let codes = numpy.in_order(Dtype::U8, &integers)?;
            tensor.source = Source::Made(pack(dtype, Buffer::of(&codes, Wanted::Bytes)?.bytes()));
        } else if let Source::Scattered(_) = tensor.source {
            // In order now: as what it is, it has no buffer.
            tensor.source = Source::Held(in_order(carrier(dtype), &integers)?);
        }
        Ok(tensor)
    }
}

/// Whether it is an array of which some elements do not count.
fn is_masked(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = array.py();
    // An array of a module that was not imported does not exist.
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let Ok(module) = modules.get_item(intern!(py, "numpy.ma")) else { return Ok(false) };
    array.is_instance(&module.getattr(intern!(py, "MaskedArray"))?)
}

/// The error of an object that lacks an attribute of arrays, with what would be one.
fn no_array(name: &str, object: &Bound<'_, PyAny>, cause: PyErr) -> PyErr {
    let py = object.py();
    match object.get_type().name() {
        Ok(class) if cause.is_instance_of::<PyAttributeError>(py) => {
            let text = format!("`{name}` is of class {class}, not an array: save numpy.asarray of it");
            caused(py, PyAttributeError::new_err(text), cause)
        }
        _ => cause,
    }
}

fn caused(py: Python<'_>, error: PyErr, cause: PyErr) -> PyErr {
    error.set_cause(py, Some(cause));
    error
}

fn type_name(array: &Bound<'_, PyAny>) -> PyResult<String> {
    let py = array.py();
    array.getattr(intern!(py, "dtype"))?.getattr(intern!(py, "name"))?.extract()
}

pub(crate) fn unknown(name: &str, dtype: &str) -> PyErr {
    let text = format!("Unknown dtype {dtype:?}. Supported dtypes: {SUPPORTED} (tensor `{name}`)");
    refused_tensor(Some("st-dtype"), &text, name)
}

fn in_order(dtype: Dtype, array: &Bound<'_, PyAny>) -> PyResult<Buffer> {
    Buffer::of(&Numpy::get(array.py())?.in_order(dtype, array)?, Wanted::Bytes)
}
