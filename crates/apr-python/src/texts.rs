//! Texts that Python gives: names of tensors, metadata of safetensors files.

use alloc::collections::BTreeMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Names and texts for the header of a file.
pub(crate) struct Texts(pub(crate) BTreeMap<String, String>);

impl<'a, 'py> FromPyObject<'a, 'py> for Texts {
    type Error = PyErr;

    /// Raises a TypeError that names the key if a key or value is not a `str`.
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let mut texts = BTreeMap::new();
        for (key, value) in object.cast::<PyDict>()?.iter() {
            let name = text(&key, "the key")?;
            let value = text(&value, &format!("the value of {name:?}"))?;
            texts.insert(name, value);
        }
        Ok(Self(texts))
    }
}

/// The text of a `str`; a TypeError says what `role` was given instead.
pub(crate) fn text(object: &Bound<'_, PyAny>, role: &str) -> PyResult<String> {
    object.extract().or_else(|error: PyErr| {
        if !error.is_instance_of::<PyTypeError>(object.py()) {
            return Err(error);
        }
        let (class, shown) = (object.get_type().name()?, object.repr()?);
        Err(PyTypeError::new_err(format!(
            "{role} is not a str: {shown}, of class {class}; convert it with str or json.dumps"
        )))
    })
}
