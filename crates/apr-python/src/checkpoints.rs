//! Training checkpoints: a folder for each step, complete or absent, verified when read.

use alloc::collections::BTreeMap;
use core::num::NonZeroUsize;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use st_core::TensorView;
use st_mmap::{
    Arena, CheckpointData, Checkpoints, LoadOptions, LoadedSafeTensors, OptimizerData, Verification,
};

use crate::error::of_file;
use crate::maker::unpacked;
use crate::numpy::Numpy;
use crate::packed::is_packed;
use crate::tensor::{Tensor, arrays_of};

const READING: &str = "Error while reading a checkpoint";
const SAVING: &str = "Error while saving a checkpoint";

/// The native part of apr.Checkpoints.
#[pyclass(frozen, module = "apr._native")]
pub struct CheckpointFolder {
    inner: Checkpoints,
}

#[pymethods]
impl CheckpointFolder {
    #[new]
    fn new(folder: PathBuf) -> Self {
        Self { inner: Checkpoints::new(folder) }
    }

    /// Saves a step and returns its folder.
    #[pyo3(signature = (step, model, metrics, model_class, optimizer, optimizer_json, optimizer_class))]
    #[expect(clippy::too_many_arguments, reason = "they are the parts of a checkpoint, named in Python")]
    fn save(
        &self,
        py: Python<'_>,
        step: u64,
        model: &Bound<'_, PyAny>,
        metrics: BTreeMap<String, f64>,
        model_class: &str,
        optimizer: Option<&Bound<'_, PyAny>>,
        optimizer_json: &str,
        optimizer_class: &str,
    ) -> PyResult<PathBuf> {
        let model = arrays_of(model)?;
        let optimizer = optimizer.map(arrays_of).transpose()?;
        let mut model = tensors(&model)?;
        let mut moments = optimizer.as_deref().map(tensors).transpose()?;
        let model = views(py, &mut model)?;
        let moments = moments.as_mut().map(|tensors| views(py, tensors)).transpose()?;
        let optimizer = moments.as_ref().map(|tensors| OptimizerData { tensors, json: optimizer_json });
        let data = CheckpointData { step, model: &model, optimizer, metrics, model_class, optimizer_class };
        py.detach(|| self.inner.save(&data)).map_err(|error| of_file(py, SAVING, &error))
    }

    /// A verified step as a dict; arrays are copies of what was verified.
    #[pyo3(signature = (step, require_manifest))]
    fn load<'py>(&self, py: Python<'py>, step: u64, require_manifest: bool) -> PyResult<Bound<'py, PyDict>> {
        let verification =
            if require_manifest { Verification::Required } else { Verification::ManifestOptional };
        let options = LoadOptions { verification, ..LoadOptions::default() };
        let failed = |error: st_mmap::Error| of_file(py, READING, &error);
        let checkpoint = py.detach(|| self.inner.load_with(step, &options)).map_err(failed)?;
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "path"), checkpoint.path())?;
        dict.set_item(intern!(py, "verified"), checkpoint.is_verified())?;
        dict.set_item(intern!(py, "meta"), checkpoint.meta().json())?;
        dict.set_item(intern!(py, "optimizer_json"), checkpoint.optimizer_json())?;
        let mut arena = Arena::new();
        let model = py.detach(|| checkpoint.load_model(&mut arena)).map_err(failed)?;
        dict.set_item(intern!(py, "model"), arrays(py, &model)?)?;
        let moments = py.detach(|| checkpoint.load_optimizer(&mut arena)).map_err(failed)?;
        let moments = moments.map(|moments| arrays(py, &moments)).transpose()?;
        dict.set_item(intern!(py, "optimizer"), moments)?;
        Ok(dict)
    }

    /// The steps that are there, ascending.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        py.detach(|| self.inner.steps()).map_err(|error| of_file(py, READING, &error))
    }

    /// Removes all but the newest and returns the removed steps.
    fn keep_last(&self, py: Python<'_>, keep: usize) -> PyResult<Vec<u64>> {
        let keep = NonZeroUsize::new(keep).ok_or_else(|| {
            PyValueError::new_err("keep_last keeps at least one checkpoint: give 1 or more")
        })?;
        py.detach(|| self.inner.keep_last(keep))
            .map_err(|error| of_file(py, "Error while removing checkpoints", &error))
    }
}

fn tensors<'a>(arrays: &'a [(String, Bound<'_, PyAny>)]) -> PyResult<Vec<Tensor<'a>>> {
    arrays.iter().map(|(name, array)| Tensor::of_array(name, array)).collect()
}

fn views<'a>(py: Python<'_>, tensors: &'a mut [Tensor<'_>]) -> PyResult<Vec<(&'a str, TensorView<'a>)>> {
    tensors.iter_mut().map(|tensor| Ok((tensor.name, tensor.view(py)?))).collect()
}

/// Arrays of their own for tensors in an arena.
fn arrays<'py>(py: Python<'py>, loaded: &LoadedSafeTensors<'_>) -> PyResult<Bound<'py, PyDict>> {
    let numpy = Numpy::get(py)?;
    let dict = PyDict::new(py);
    for (name, tensor) in loaded.iter() {
        let array = if is_packed(tensor.dtype()) {
            unpacked(py, tensor.dtype(), tensor.shape(), tensor.data())?
        } else {
            numpy.copied(py, tensor.dtype(), tensor.shape(), tensor.data())?
        };
        dict.set_item(name, array)?;
    }
    Ok(dict)
}
