//! Training checkpoints: a folder for each step, complete or absent, verified when read.

use alloc::collections::BTreeMap;
use core::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};
use st_core::TensorView;
use st_mmap::{CheckpointData, Checkpoints, LoadOptions, OptimizerData, PartData, Retention, Verification};

use crate::buffer::{Buffer, Wanted};
use crate::error::{of_file, of_format};
use crate::maker::unpacked;
use crate::numpy::Numpy;
use crate::packed::is_packed;
use crate::tensor::{Tensor, arrays_of};
use crate::tensor_spec::TensorSpec;
use crate::texts::Texts;

const READING: &str = "Error while reading a checkpoint";
const SAVING: &str = "Error while saving a checkpoint";
const REMOVING: &str = "Error while removing checkpoints";

/// The native part of apr.Checkpoints.
#[pyclass(frozen, module = "apr._native")]
pub struct CheckpointFolder {
    inner: Checkpoints,
}

/// A tensor file to be written: its tensors, arrays or TensorSpecs, and its metadata.
#[derive(FromPyObject)]
struct File<'py>(Bound<'py, PyAny>, Option<Texts>);

impl File<'_> {
    fn metadata(&self) -> Option<BTreeMap<String, String>> {
        self.1.as_ref().map(|texts| texts.0.clone())
    }
}

/// A checkpoint to be written, as apr.checkpoints puts it together.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Given<'py> {
    model: File<'py>,
    optimizer: Option<File<'py>>,
    optimizer_json: String,
    parts: BTreeMap<String, File<'py>>,
    metrics: BTreeMap<String, f64>,
    model_class: String,
    optimizer_class: String,
    framework: String,
}

/// Rules for keeping checkpoints.
#[derive(FromPyObject)]
struct Rules(usize, Vec<String>, u64);

#[pymethods]
impl CheckpointFolder {
    #[new]
    fn new(folder: PathBuf) -> Self {
        Self { inner: Checkpoints::new(folder) }
    }

    /// Saves a step and returns its folder.
    #[pyo3(signature = (step, given))]
    fn save(&self, py: Python<'_>, step: u64, given: Given<'_>) -> PyResult<PathBuf> {
        let model = arrays_of(&given.model.0)?;
        let optimizer = given.optimizer.as_ref().map(|file| arrays_of(&file.0)).transpose()?;
        let parts = given.parts.values().map(|file| arrays_of(&file.0)).collect::<PyResult<Vec<_>>>()?;
        let (mut model, mut optimizer) = (tensors(&model)?, optimizer.as_deref().map(tensors).transpose()?);
        let mut parts = parts.iter().map(|arrays| tensors(arrays)).collect::<PyResult<Vec<_>>>()?;
        let model = views(py, &mut model)?;
        let optimizer = optimizer.as_mut().map(|tensors| views(py, tensors)).transpose()?;
        let parts = parts.iter_mut().map(|tensors| views(py, tensors)).collect::<PyResult<Vec<_>>>()?;
        let parts = given.parts.iter().zip(&parts);
        let parts: Vec<_> = parts
            .map(|((name, file), tensors)| PartData { name, tensors, metadata: file.metadata() })
            .collect();
        let metadata = given.optimizer.as_ref().and_then(File::metadata);
        let optimizer = optimizer.as_ref();
        let data = CheckpointData {
            step,
            model: &model,
            model_metadata: given.model.metadata(),
            optimizer: optimizer.map(|tensors| OptimizerData {
                tensors,
                metadata,
                json: &given.optimizer_json,
            }),
            parts: &parts,
            metrics: given.metrics.clone(),
            model_class: &given.model_class,
            optimizer_class: &given.optimizer_class,
            framework: &given.framework,
        };
        py.detach(|| self.inner.save(&data)).map_err(|error| of_file(py, SAVING, &error))
    }

    /// A step whose files have the digests of its manifest. Tensor files are (metadata, bytes, name to (dtype, shape, start, end)).
    #[pyo3(signature = (step, require_manifest))]
    fn load<'py>(&self, py: Python<'py>, step: u64, require_manifest: bool) -> PyResult<Bound<'py, PyDict>> {
        let verification =
            if require_manifest { Verification::Required } else { Verification::ManifestOptional };
        let options = LoadOptions { verification, ..LoadOptions::default() };
        let failed = |error: st_mmap::Error| of_file(py, READING, &error);
        let opened = py.detach(|| self.inner.open(step, &options)).map_err(failed)?;
        let files = PyDict::new(py);
        for (name, len) in opened.tensor_files() {
            let bytes = PyByteArray::new_with(py, usize::try_from(len)?, |_| Ok(()))?.into_any();
            let mut buffer = Buffer::of(&bytes, Wanted::WritableBytes)?;
            let header = py.detach(|| opened.read_file(name, buffer.bytes_mut())).map_err(failed)?;
            let table = PyDict::new(py);
            for info in header.iter() {
                let range = info.file_range();
                table.set_item(info.name(), (info.dtype().name(), info.shape(), range.start, range.end))?;
            }
            let metadata: Option<BTreeMap<&str, &str>> =
                header.metadata().map(|metadata| metadata.iter().collect());
            files.set_item(name.strip_suffix(".safetensors").unwrap_or(name), (metadata, bytes, table))?;
        }
        let dict = PyDict::new(py);
        dict.set_item(intern!(py, "path"), opened.path())?;
        dict.set_item(intern!(py, "verified"), opened.has_manifest())?;
        dict.set_item(intern!(py, "meta"), opened.meta().json())?;
        dict.set_item(intern!(py, "optimizer_json"), opened.optimizer_json())?;
        dict.set_item(intern!(py, "files"), files)?;
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
        py.detach(|| self.inner.keep_last(keep)).map_err(|error| of_file(py, REMOVING, &error))
    }

    /// Removes what no rule keeps, unless it is only to be said, and returns the steps.
    #[pyo3(signature = (rules, dry_run))]
    fn prune(&self, py: Python<'_>, rules: Rules, dry_run: bool) -> PyResult<Vec<u64>> {
        let best = rules.1.iter().map(|rule| rule.parse()).collect::<Result<_, st_mmap::Error>>();
        let best = best.map_err(|error| of_file(py, REMOVING, &error))?;
        let retention = Retention { last: NonZeroUsize::new(rules.0), best, every: NonZeroU64::new(rules.2) };
        let pruned = py.detach(|| {
            let plan = self.inner.plan(&retention, None)?;
            if !dry_run {
                self.inner.prune(&plan)?;
            }
            Ok(plan.removed)
        });
        pruned.map_err(|error: st_mmap::Error| of_file(py, REMOVING, &error))
    }
}

/// A numpy array on the bytes of a tensor file, from `start` to `end`, which it holds; packed types are unpacked into one of its own.
#[pyfunction]
#[pyo3(signature = (data, dtype, shape, start, end))]
pub(crate) fn array_in<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    dtype: &str,
    shape: Vec<usize>,
    start: u64,
    end: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let unknown = || PyValueError::new_err(format!("no element type {dtype}"));
    let dtype = st_core::Dtype::from_name(dtype).ok_or_else(unknown)?;
    if !is_packed(dtype) {
        let numpy = Numpy::get(py)?;
        return numpy.view(dtype, &shape, &numpy.held(data)?, start);
    }
    let buffer = Buffer::of(data, Wanted::Bytes)?;
    let range = usize::try_from(start)?..usize::try_from(end)?;
    let bytes = buffer.bytes().get(range).unwrap_or_default();
    TensorView::new(dtype, &shape, bytes).map_err(|error| of_format(py, READING, &error))?;
    unpacked(py, dtype, &shape, bytes)
}

fn tensors<'a>(arrays: &'a [(String, Bound<'_, PyAny>)]) -> PyResult<Vec<Tensor<'a>>> {
    let tensor = |(name, array): &'a (String, Bound<'_, PyAny>)| match array.cast::<TensorSpec>() {
        Ok(spec) => Tensor::of_spec(name, spec.get()),
        Err(_) => Tensor::of_array(name, array),
    };
    arrays.iter().map(tensor).collect()
}

fn views<'a>(py: Python<'_>, tensors: &'a mut [Tensor<'_>]) -> PyResult<Vec<(&'a str, TensorView<'a>)>> {
    tensors.iter_mut().map(|tensor| Ok((tensor.name, tensor.view(py)?))).collect()
}
