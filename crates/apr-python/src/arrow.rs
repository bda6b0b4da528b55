//! Tables of other packages, through the Arrow C data interface (PyCapsule protocol): `__arrow_c_stream__` or `__arrow_c_array__`.
//!
//! A capsule owns a structure with a function that releases it. Moving the structure out of the capsule leaves one behind that is marked
//! as released, as the interface asks for: the capsule then frees the structure and not what it described. What was moved is released
//! when the last column that points into it is dropped.

#![allow(unsafe_code)]

use alloc::boxed::Box;
use core::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// Batches of rows.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// The table that an object is; nothing for an object that is none, or that cannot give it as Arrow here.
pub(crate) fn table(object: &Bound<'_, PyAny>) -> PyResult<Option<Reader>> {
    if let Some(capsule) = exported(object, "__arrow_c_stream__")? {
        let capsule = capsule.cast_into::<PyCapsule>()?;
        // SAFETY: the name says what the capsule holds, and the structure is moved out once.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(content(&capsule, c"arrow_array_stream")?) };
        let reader = RecordBatchStreamReader::try_new(stream).map_err(invalid)?;
        return Ok(Some(Box::new(reader)));
    }
    let Some(pair) = exported(object, "__arrow_c_array__")? else { return Ok(None) };
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.cast_into::<PyTuple>()?.extract()?;
    let (schema, array) = (schema.cast_into::<PyCapsule>()?, array.cast_into::<PyCapsule>()?);
    let (schema, array) = (content(&schema, c"arrow_schema")?, content(&array, c"arrow_array")?);
    // SAFETY: the names say what the capsules hold, both structures are moved out once, and the exporter promises that the array has
    // the type of the schema.
    let data = unsafe {
        let (schema, array) = (FFI_ArrowSchema::from_raw(schema), FFI_ArrowArray::from_raw(array));
        from_ffi(array, &schema)
    };
    let data = data.map_err(invalid)?;
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
        return Err(PyTypeError::new_err("samples are a table, this is one column of Arrow"));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    let schema = batch.schema();
    Ok(Some(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
}

/// What the method of an object returns. pandas needs pyarrow for it: without, its tables are arrays.
fn exported<'py>(object: &Bound<'py, PyAny>, method: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(method) = object.getattr_opt(method)? else { return Ok(None) };
    match method.call0() {
        Ok(exported) => Ok(Some(exported)),
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyImportError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The structure in a capsule of this name.
fn content<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<*mut T> {
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn invalid(error: arrow_schema::ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table cannot be read: {error}"))
}
