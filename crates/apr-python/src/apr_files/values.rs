//! Converts metadata from and to Python's types.

use apr_container::{Limits, Map, Metadata, Value, v2};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::refusal::Refusal;

/// A value as Python has it. Bytes of an application's own type become (number, bytes).
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Int(value) => value.into_pyobject(py)?.into_any(),
        Value::UInt(value) => value.into_pyobject(py)?.into_any(),
        Value::F32(value) => value.into_pyobject(py)?.into_any(),
        Value::F64(value) => value.into_pyobject(py)?.into_any(),
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Ext(number, bytes) => (*number, PyBytes::new(py, bytes)).into_pyobject(py)?.into_any(),
        Value::Array(values) => {
            let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        Value::Map(entries) => {
            let dict = PyDict::new(py);
            for (key, value) in entries {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
        _ => py.None().into_bound(py),
    })
}

/// The value of what callers write in metadata. `depth` levels more may follow.
fn from_python(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    let Some(deeper) = depth.checked_sub(1) else {
        let limit = Limits::DEFAULT.metadata_depth;
        return Err(PyValueError::new_err(format!("metadata nested deeper than {limit} levels")));
    };
    if object.is_none() {
        return Ok(Value::Nil);
    }
    // Before the integers: in Python, truth values are some.
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Value::Bool(value.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return match object.extract::<i64>() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => object.extract::<u64>().map(Value::UInt).map_err(|_| {
                PyValueError::new_err("metadata have integers of at most 64 bits: give a larger one as str")
            }),
        };
    }
    if let Ok(value) = object.cast::<PyFloat>() {
        return Ok(Value::F64(value.value()));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(dict) = object.cast::<PyDict>() {
        return map_of(dict, deeper).map(Value::Map);
    }
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let values = object.try_iter()?.map(|value| from_python(&value?, deeper));
        return values.collect::<PyResult<Vec<_>>>().map(Value::Array);
    }
    // numpy's scalars have their value as `item`.
    match object.call_method0("item") {
        Ok(value) if !value.get_type().is(object.get_type()) => from_python(&value, deeper),
        _ => {
            let kind = object.get_type().name()?;
            let text =
                format!("metadata hold None, bool, int, float, str, bytes, list, tuple and dict, not {kind}");
            Err(PyTypeError::new_err(text))
        }
    }
}

fn map_of(dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Map<Value>> {
    let entry = |(key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let Ok(key) = key.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "keys of metadata are str, not {}",
                key.get_type().name()?
            )));
        };
        Ok((key.to_str()?.to_owned(), from_python(&value, depth)?))
    };
    dict.iter().map(entry).collect()
}

/// Converts a dict with the fields of the format to metadata; the time and the version are set when the file is written.
pub(crate) fn metadata_of(dict: &Bound<'_, PyDict>) -> PyResult<Metadata> {
    let mut fields = map_of(dict, Limits::DEFAULT.metadata_depth)?;
    // A field without a value is one that is left out.
    fields.retain(|_, value| *value != Value::Nil);
    for filled_in in ["created_at", "aprender_version"] {
        if !fields.contains_key(filled_in) {
            fields.insert(filled_in.to_owned(), Value::from(""));
        }
    }
    Metadata::from_value(&Value::Map(fields)).map_err(|error| Refusal::from(error).raise(dict.py(), None))
}

/// Metadata as a dict of the fields that are there.
pub(crate) fn metadata_to_python<'py>(py: Python<'py>, metadata: &Metadata) -> PyResult<Bound<'py, PyAny>> {
    let value = metadata.to_value().map_err(|error| Refusal::from(error).raise(py, None))?;
    to_python(py, &value)
}

/// The metadata of a file of version 2 in the fields of version 1; what has no field there is among the custom keys.
pub(crate) fn metadata_of_v2(metadata: &v2::Metadata, model_key: &str) -> Metadata {
    let mut custom: Map<Value> = Map::new();
    let texts = [
        ("author", &metadata.author),
        ("license", &metadata.license),
        ("data_source", &metadata.data_source),
        ("data_license", &metadata.data_license),
        ("version", &metadata.version),
        ("source", &metadata.source),
        ("original_format", &metadata.original_format),
        ("architecture", &metadata.architecture),
    ];
    for (key, text) in texts {
        custom.extend(text.as_deref().map(|text| (key.to_owned(), Value::from(text))));
    }
    let others = metadata.other.iter().filter(|(key, json)| *key != model_key && !json.is_null());
    custom.extend(others.map(|(key, json)| (key.clone(), of_json(json))));
    Metadata {
        model_name: metadata.name.clone(),
        description: metadata.description.clone(),
        created_at: metadata.created_at.clone().unwrap_or_default(),
        custom,
        ..Metadata::default()
    }
}

/// Lists and objects stay the text that they are.
fn of_json(json: &v2::Json) -> Value {
    if let Some(text) = json.as_str() {
        return Value::from(text.as_ref());
    }
    // A negative integer is no float: large ones would become other numbers.
    let negative = || json.text().parse::<i64>().ok().map(Value::from);
    json.as_bool()
        .map(Value::from)
        .or_else(|| json.as_u64().map(Value::from))
        .or_else(negative)
        .or_else(|| json.as_f64().map(Value::from))
        .unwrap_or_else(|| Value::from(json.text()))
}
