//! Sets of files with an index.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use st_core::{ReadOptions, ShardProblem};
use st_mmap::ShardedSafeTensors;

use crate::error::{of_file, refused};

pub(crate) const PREFIX: &str = "Error while opening shards";

/// The files of a model: by the path of its index, of its folder or of its only file.
///
/// check: open every shard and compare it with the index: missing shards, tensors that are not where the index says, tensors it
/// does not list. A wrong total size is accepted.
///
/// Returns (path, names): the index or only file, and the path of the file of each tensor in the order of the index; None
/// instead of names for an only file. Raises SafetensorError, OSError.
#[pyfunction]
#[pyo3(signature = (path, *, check=true))]
pub(crate) fn shards<'py>(
    py: Python<'py>,
    path: PathBuf,
    check: bool,
) -> PyResult<(PathBuf, Option<Bound<'py, PyDict>>)> {
    let set = py
        .detach(|| {
            let set = ShardedSafeTensors::open_with(&path, &ReadOptions::STRICT)?;
            let problems = if check { set.check()? } else { Vec::new() };
            Ok((set, problems))
        })
        .map_err(|error| of_file(py, PREFIX, &error))?;
    let (set, problems) = set;
    check_whole(&set, &problems)?;
    let Some(index) = set.index() else { return Ok((set.path().to_path_buf(), None)) };
    let folder = set.path().parent().map(PathBuf::from).unwrap_or_default();
    let files = PyDict::new(py);
    for (tensor, shard) in index.weight_map() {
        files.set_item(tensor, folder.join(shard))?;
    }
    Ok((set.path().to_path_buf(), Some(files)))
}

/// Refuses a set that is not what its index says.
pub(crate) fn check_whole(set: &ShardedSafeTensors, problems: &[ShardProblem]) -> PyResult<()> {
    let list: Vec<String> =
        problems.iter().filter(|problem| !problem.is_harmless()).map(ToString::to_string).collect();
    if list.is_empty() {
        return Ok(());
    }
    let list = list.join("; ");
    Err(refused(format!("{PREFIX}: {} and its shards disagree: {list}", set.path().display())))
}
