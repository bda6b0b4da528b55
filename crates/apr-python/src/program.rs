//! The program `apr`, in Python's process.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs `apr` with these arguments, the first of which is its name; returns its exit code.
///
/// It uses the process's standard streams, past `sys.stdout`, and lets other threads run. Call it where the process has nothing
/// else to do.
#[pyfunction]
pub(crate) fn run_cli(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| apr_tools::run(argv))
}
