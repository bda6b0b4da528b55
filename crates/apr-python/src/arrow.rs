//! Tables of other packages, through the Arrow C data interface (PyCapsule protocol): `__arrow_c_stream__` or `__arrow_c_array__`.
//!
//! A capsule owns a structure with a function that releases it. Moving the structure out of the capsule leaves one behind that is marked
//! as released, as the interface asks for: the capsule then frees the structure and not what it described. What was moved is released
//! when the last column that points into it is dropped.

#![allow(unsafe_code)]

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ffi::CStr;

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayReader as _, RecordBatch, RecordBatchIterator, RecordBatchReader, make_array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

/// Batches of rows.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// How a single column without a table is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BareColumn {
    /// No table.
    NoTable,
    /// A table of this column, if it is one of strings, or of nothing but nulls.
    Texts,
}

impl BareColumn {
    /// The schema of the table that an array of this type is.
    fn schema(self, data_type: &DataType) -> Option<Arc<Schema>> {
        let is_text = match data_type {
            DataType::Dictionary(_, values) => values.is_string(),
            other => other.is_string() || *other == DataType::Null,
        };
        let is_table = self == Self::Texts && is_text;
        is_table.then(|| Arc::new(Schema::new(vec![Field::new("", data_type.clone(), true)])))
    }
}

/// The table that an object is; nothing for an object that is none, or that cannot give it as Arrow here.
pub(crate) fn table(object: &Bound<'_, PyAny>, bare: BareColumn) -> PyResult<Option<Reader>> {
    if let Some(capsule) = exported(object, "__arrow_c_stream__")? {
        let capsule = capsule.cast_into::<PyCapsule>()?;
        // SAFETY: the name says what the capsule holds, and the structure is moved out once.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(content(&capsule, c"arrow_array_stream")?) };
        let arrays = ArrayStreamReader::try_new(stream).map_err(invalid)?;
        if let DataType::Struct(fields) = arrays.field().data_type() {
            let schema = Arc::new(Schema::new(fields.clone()));
            return Ok(Some(Box::new(RecordBatchIterator::new(arrays.map(|array| batch(&array?)), schema))));
        }
        let Some(schema) = bare.schema(arrays.field().data_type()) else { return Ok(None) };
        let of_column = Arc::clone(&schema);
        let batches = arrays.map(move |array| RecordBatch::try_new(Arc::clone(&of_column), vec![array?]));
        return Ok(Some(Box::new(RecordBatchIterator::new(batches, schema))));
    }
    let Some(pair) = exported(object, "__arrow_c_array__")? else { return Ok(None) };
    let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.cast_into::<PyTuple>()?.extract()?;
    let (schema, array) = (schema.cast_into::<PyCapsule>()?, array.cast_into::<PyCapsule>()?);
    let (schema, array) = (content(&schema, c"arrow_schema")?, content(&array, c"arrow_array")?);
    // SAFETY: the names say what the capsules hold, and both structures are moved out once.
    let (schema, array) = unsafe { (FFI_ArrowSchema::from_raw(schema), FFI_ArrowArray::from_raw(array)) };
    if schema.release().is_none() || array.is_released() {
        return Err(PyValueError::new_err("the table cannot be read: its capsules were already used"));
    }
    // SAFETY: neither is released, and the exporter promises that the array has the type of the schema.
    let data = unsafe { from_ffi(array, &schema) }.map_err(invalid)?;
    let array = make_array(data);
    let batch = match array.data_type() {
        DataType::Struct(_) => batch(&array),
        other => match bare.schema(other) {
            Some(schema) => RecordBatch::try_new(schema, vec![array]),
            None => return Ok(None),
        },
    };
    let batch = batch.map_err(invalid)?;
    let schema = batch.schema();
    Ok(Some(Box::new(RecordBatchIterator::new([Ok(batch)], schema))))
}

/// The rows of a structure. A batch of rows has no place for rows that are null.
fn batch(array: &dyn Array) -> Result<RecordBatch, ArrowError> {
    let Some(rows) = array.as_struct_opt() else {
        return Err(ArrowError::CDataInterface("a batch of the stream is not a table".into()));
    };
    if let Some(row) = rows.nulls().and_then(|nulls| nulls.iter().position(|is_valid| !is_valid)) {
        return Err(ArrowError::CDataInterface(format!(
            "row {row} of a batch is null as a whole: rows have a value or null in each column"
        )));
    }
    Ok(RecordBatch::from(rows))
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

fn invalid(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table cannot be read: {error}"))
}
