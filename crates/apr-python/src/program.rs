//! The program `apr`, in Python's process.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs `apr` with these arguments, the first of which is its name; returns its exit code.
///
/// It speaks on the process's standard streams, past `sys.stdout`, and lets other threads run.
#[pyfunction]
pub fn run_cli(py: Python<'_>, argv: Vec<OsString>) -> u8 {
    py.detach(|| apr_tools::run(argv))
}

/// Runs a command of `apr` and returns its exit code and the JSON it answers with, errors included.
#[pyfunction]
pub fn run_json(py: Python<'_>, args: Vec<OsString>) -> (u8, String) {
    py.detach(|| apr_tools::run_json(args))
}
