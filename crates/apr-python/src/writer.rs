//! Writes a file one tensor, or part of a tensor, at a time.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use alloc::collections::BTreeMap;

use durable_file::Replacement;
use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use st_core::{Dtype, Layout, TensorSpec, WriteOptions};

use crate::error::{of_format, of_system, refused, refused_tensor};
use crate::serialize::PREFIX;
use crate::tensor::{Tensor, unknown};
use crate::texts::Texts;

/// Writes a safetensors file a tensor at a time, in any order, so that it may be larger than memory.
///
/// filename: where to; the old file stays until the new one is complete.
/// spec: names with (dtype, shape), or anything with .dtype and .shape. The dtype is a name in Python ("float32",
/// "bfloat16"), a numpy dtype or a name of the format ("F32").
/// metadata: names and texts for the header.
/// fsync: wait until the medium has the file.
///
/// A context manager: leaving it puts the file in place if every tensor is complete, and raises SafetensorError with the name of
/// one that is not; leaving it by an exception drops everything.
#[pyclass(frozen, module = "apr._native")]
pub struct Writer {
    state: Mutex<State>,
    fsync: bool,
}

struct State {
    /// None once it was put in place or dropped.
    replacement: Option<Replacement>,
    slots: BTreeMap<String, Slot>,
}

struct Slot {
    dtype: Dtype,
    shape: Vec<usize>,
    offset: u64,
    len: u64,
    written: u64,
}

impl Writer {
    fn with_state<T>(&self, then: impl FnOnce(&mut State) -> PyResult<T>) -> PyResult<T> {
        then(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (filename, spec, metadata=None, *, fsync=false))]
    fn new(
        py: Python<'_>,
        filename: PathBuf,
        spec: &Bound<'_, PyAny>,
        metadata: Option<Texts>,
        fsync: bool,
    ) -> PyResult<Self> {
        let items = spec.call_method0(intern!(py, "items"))?;
        let specs = items.try_iter()?.map(|item| described(&item?)).collect::<PyResult<Vec<_>>>()?;
        let tensors = specs.iter().map(|(name, dtype, shape)| TensorSpec { name, dtype: *dtype, shape });
        let options = WriteOptions { metadata: metadata.map(|texts| texts.0), ..WriteOptions::default() };
        let layout = Layout::new(tensors, &options).map_err(|error| of_format(py, PREFIX, &error))?;
        let replacement = py
            .detach(|| {
                let mut replacement = Replacement::create(&filename)?;
                let begun = replacement
                    .write_all(layout.header_bytes())
                    .and_then(|()| replacement.file().set_len(layout.file_len()));
                begun.map_err(|error| replacement.write_error(error))?;
                Ok(replacement)
            })
            .map_err(|error| of_replacement(&error))?;
        let planned: BTreeMap<usize, (u64, u64)> =
            layout.tensors().iter().map(|slot| (slot.input_idx, (slot.offset, slot.byte_len))).collect();
        let slots = specs.into_iter().enumerate().map(|(idx, (name, dtype, shape))| {
            let (offset, len) = planned.get(&idx).copied().unwrap_or_default();
            (name, Slot { dtype, shape, offset, len, written: 0 })
        });
        let state = State { replacement: Some(replacement), slots: slots.collect() };
        Ok(Self { state: Mutex::new(state), fsync })
    }

    /// Writes a tensor, or the next rows of one: parts follow each other along the first dimension.
    ///
    /// Raises SafetensorError for a name, type or shape that was not declared, and OSError; after an OSError the file cannot be
    /// completed.
    #[pyo3(signature = (name, array, /))]
    fn write(&self, py: Python<'_>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<()> {
        let tensor = Tensor::of_array(name, array)?;
        // Other threads wait for the file, not for the interpreter that this one gives up.
        py.detach(|| {
            tensor.with_bytes(|bytes| {
                self.with_state(|state| {
                    let replacement =
                        state.replacement.as_mut().ok_or_else(|| refused("Writer is closed"))?;
                    let slot = state.slots.get_mut(name).ok_or_else(|| {
                        of_tensor(name, &format!("tensor `{name}` was not declared to the Writer"))
                    })?;
                    slot.accepts(name, &tensor, bytes.len() as u64)?;
                    let begin = SeekFrom::Start(slot.offset + slot.written);
                    let written = replacement.seek(begin).and_then(|_| replacement.write_all(bytes));
                    written.map_err(|error| of_replacement(&replacement.write_error(error)))?;
                    slot.written += bytes.len() as u64;
                    Ok(())
                })
            })?
        })
    }

    /// Puts the file in place; SafetensorError if a tensor is not complete, and then the old file stays.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.with_state(|state| {
                let Some(replacement) = state.replacement.take() else { return Ok(()) };
                for (name, slot) in &state.slots {
                    if slot.written != slot.len {
                        return Err(of_tensor(
                            name,
                            &format!(
                                "tensor `{name}` is not complete: {} of {} bytes were written",
                                slot.written, slot.len
                            ),
                        ));
                    }
                }
                let placed = if self.fsync { replacement.commit() } else { replacement.commit_unsynced() };
                placed.map_err(|error| of_replacement(&error))
            })
        })
    }

    /// Drops what was written; the old file stays.
    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).replacement = None);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() {
            return self.close(py);
        }
        self.abort(py);
        Ok(())
    }
}

impl Slot {
    fn accepts(&self, name: &str, given: &Tensor<'_>, len: u64) -> PyResult<()> {
        let (dtype, shape) = (given.dtype, &given.shape);
        if dtype != self.dtype {
            return Err(of_tensor(
                name,
                &format!("tensor `{name}` was declared as {}, this is {dtype}", self.dtype),
            ));
        }
        let is_part = shape.len() == self.shape.len()
            && (*shape == self.shape || shape.get(1..) == self.shape.get(1..) && !shape.is_empty());
        if !is_part {
            return Err(of_tensor(
                name,
                &format!(
                    "tensor `{name}` was declared with shape {:?}, this is {shape:?}: parts follow each other along the first \
                 dimension",
                    self.shape
                ),
            ));
        }
        let bits =
            |shape: &[usize]| shape.iter().fold(u64::from(dtype.bits()), |bits, &dim| bits * dim as u64);
        // A part that ends within a byte can only be the last.
        if bits(shape) % 8 != 0 && self.written * 8 + bits(shape) != bits(&self.shape) {
            return Err(of_tensor(
                name,
                &format!(
                    "a part of tensor `{name}` has {} bits, which are no whole bytes: write parts of whole bytes, and the rest at the end",
                    bits(shape)
                ),
            ));
        }
        if self.written + len > self.len {
            return Err(of_tensor(
                name,
                &format!(
                    "tensor `{name}` has {} bytes, {} were written and {len} are too many",
                    self.len, self.written
                ),
            ));
        }
        Ok(())
    }
}

fn of_tensor(name: &str, text: &str) -> PyErr {
    refused_tensor(None, text, name)
}

/// Name, type and shape of one item of a specification.
fn described(item: &Bound<'_, PyAny>) -> PyResult<(String, Dtype, Vec<usize>)> {
    let py = item.py();
    let (name, spec): (String, Bound<'_, PyAny>) = item.extract()?;
    let (dtype, shape) = match spec.extract::<(Bound<'_, PyAny>, Vec<usize>)>() {
        Ok(pair) => pair,
        Err(_) => (spec.getattr(intern!(py, "dtype"))?, spec.getattr(intern!(py, "shape"))?.extract()?),
    };
    let called: String = match dtype.extract() {
        Ok(called) => called,
        // numpy's dtypes have a name, its scalar classes become dtypes.
        Err(_) => match dtype.getattr(intern!(py, "name")) {
            Ok(called) => called.extract()?,
            Err(_) => py
                .import("numpy")?
                .getattr("dtype")?
                .call1((&dtype,))?
                .getattr(intern!(py, "name"))?
                .extract()
                .map_err(|_| {
                    PyTypeError::new_err(format!("tensor `{name}`: no element type is called {dtype}"))
                })?,
        },
    };
    let known = Dtype::element_from_name(&called).or_else(|| Dtype::from_numpy_name(&called));
    let dtype = known.ok_or_else(|| unknown(&name, &called))?;
    Ok((name, dtype, shape))
}

/// An error of the file that is being made.
pub(crate) fn of_replacement(error: &durable_file::Error) -> PyErr {
    let text = format!("{PREFIX}: {error}");
    match error.io_error() {
        Some(cause) => Python::attach(|py| of_system(py, cause, text, Some(error.path()))),
        None => PyOSError::new_err(text),
    }
}
