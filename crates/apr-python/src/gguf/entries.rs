//! Keys of GGUF files as Python values, with their types in files.

use gguf_core::{Error, GgufBuilder, Header, Number, Text, Value, ValueType};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::apr_files::inspect::gguf_value;

/// Values and names of types by key.
pub(super) fn read<'py>(
    py: Python<'py>,
    header: &Header<'_>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let (values, types) = (PyDict::new(py), PyDict::new(py));
    for entry in header.entries() {
        let (key, value) = (entry.key().to_str_lossy(), entry.value());
        values.set_item(&*key, gguf_value(py, value)?)?;
        match value.as_array() {
            Some(array) => types.set_item(&*key, format!("array[{}]", array.element_type()))?,
            None => types.set_item(&*key, value.value_type().name())?,
        }
    }
    Ok((values, types))
}

/// Sets a key to a value of a type: `u32`, `string`, `array[f32]`. Python's error if it is none.
pub(super) fn put(
    builder: &mut GgufBuilder,
    key: &str,
    kind: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Result<(), Error>> {
    let element = kind.strip_prefix("array[").and_then(|rest| rest.strip_suffix(']'));
    let known = ALL.iter().find(|known| known.name() == element.unwrap_or(kind)).copied();
    let unknown = || {
        let names = ALL.map(ValueType::name).join(", ");
        PyValueError::new_err(format!(
            "key {key:?}: no type of values is called {kind:?}: {names}, or array[...] of one"
        ))
    };
    let known = known.ok_or_else(unknown)?;
    let to = Place { builder, key, kind, value, is_array: element.is_some() };
    match known {
        ValueType::U8 => to.number::<u8>(),
        ValueType::I8 => to.number::<i8>(),
        ValueType::U16 => to.number::<u16>(),
        ValueType::I16 => to.number::<i16>(),
        ValueType::U32 => to.number::<u32>(),
        ValueType::I32 => to.number::<i32>(),
        ValueType::U64 => to.number::<u64>(),
        ValueType::I64 => to.number::<i64>(),
        ValueType::F32 => to.floats(),
        ValueType::F64 => to.number::<f64>(),
        ValueType::Bool => to.number::<bool>(),
        ValueType::Text => to.text(),
        _ => Err(unknown()),
    }
}

/// The types of values and elements.
const ALL: [ValueType; 12] = [
    ValueType::U8,
    ValueType::I8,
    ValueType::U16,
    ValueType::I16,
    ValueType::U32,
    ValueType::I32,
    ValueType::U64,
    ValueType::I64,
    ValueType::F32,
    ValueType::F64,
    ValueType::Bool,
    ValueType::Text,
];

/// A value on its way to its key.
struct Place<'a, 'py> {
    builder: &'a mut GgufBuilder,
    key: &'a str,
    kind: &'a str,
    value: &'a Bound<'py, PyAny>,
    is_array: bool,
}

impl<'py> Place<'_, 'py> {
    fn number<T>(self) -> PyResult<Result<(), Error>>
    where
        T: Number + FromPyObjectOwned<'py>,
    {
        if self.is_array {
            let numbers: Vec<T> = self.each(|value| self.one(value))?;
            return Ok(self.builder.set_numbers(self.key, &numbers));
        }
        let number: T = self.one(self.value)?;
        Ok(self.builder.set(self.key, number.value()))
    }

    /// Numbers of 32 bits; finite ones that would become infinite are refused.
    fn floats(self) -> PyResult<Result<(), Error>> {
        let float = |value: &Bound<'py, PyAny>| {
            let wide: f64 = self.one(value)?;
            let narrow = wide as f32;
            if narrow.is_infinite() && wide.is_finite() {
                let cause =
                    PyOverflowError::new_err(format!("{wide:e} is beyond the range of 32-bit floats"));
                return Err(self.refused(value, cause));
            }
            Ok(narrow)
        };
        if self.is_array {
            let numbers = self.each(float)?;
            return Ok(self.builder.set_numbers(self.key, &numbers));
        }
        let number = float(self.value)?;
        Ok(self.builder.set(self.key, number.value()))
    }

    fn text(self) -> PyResult<Result<(), Error>> {
        if self.is_array {
            let texts: Vec<String> = self.each(|value| self.one(value))?;
            return Ok(self.builder.set_texts(self.key, texts.iter().map(String::as_str)));
        }
        let text: String = self.one(self.value)?;
        Ok(self.builder.set(self.key, Value::Text(Text::from(text.as_str()))))
    }

    fn each<T>(&self, one: impl Fn(&Bound<'py, PyAny>) -> PyResult<T>) -> PyResult<Vec<T>> {
        if self.value.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(format!("key {:?}: a str is no {}", self.key, self.kind)));
        }
        let elements = self.value.try_iter().map_err(|error| self.refused(self.value, error))?;
        elements.map(|element| one(&element?)).collect()
    }

    fn one<T: FromPyObjectOwned<'py>>(&self, value: &Bound<'py, PyAny>) -> PyResult<T> {
        value.extract().map_err(|error: T::Error| self.refused(value, error.into()))
    }

    /// Of a value that the type cannot hold, with Python's reason as cause.
    fn refused(&self, value: &Bound<'py, PyAny>, cause: PyErr) -> PyErr {
        let py = value.py();
        let kind = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
        let text = format!(
            "key {:?}: a value of type {kind} does not fit {}: {}",
            self.key,
            self.kind,
            cause.value(py)
        );
        let error = PyValueError::new_err(text);
        error.set_cause(py, Some(cause));
        error
    }
}
