//! What loading files would run. `apr/scanning.py` has the Python function.

use std::ffi::OsString;

use model_file::FileKind;
use model_scan::{FileRow, Options, ScanRow};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::apr_files::Refusal;
use crate::apr_files::source::Source;

/// The report of `apr scan --json`: for a path what the program prints, for the bytes of a file the same.
///
/// Raises ValueError for a name in `allow` without a module.
#[pyfunction]
pub fn scan_json(
    py: Python<'_>,
    file: &Bound<'_, PyAny>,
    allow: Vec<String>,
    max_opcodes: Option<u64>,
    max_depth: Option<u32>,
    max_inflated: Option<u64>,
    max_findings: Option<usize>,
) -> PyResult<String> {
    let trusted = trusted(&allow)?;
    let source = Source::here(file)?;
    let Some(path) = source.path() else {
        let mut options = Options::DEFAULT;
        options.allow = &trusted;
        options.limits.opcodes = max_opcodes.unwrap_or(options.limits.opcodes);
        options.depth = max_depth.unwrap_or(options.depth);
        options.inflated = max_inflated;
        options.kept = max_findings.unwrap_or(options.kept);
        let json = py.detach(|| json_of(source.bytes().unwrap_or_default(), &options));
        return json.map_err(|refusal| refusal.raise(py, None));
    };
    let words = scan_words(allow, max_opcodes, max_depth, max_inflated, max_findings)?;
    let mut words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    words.extend(["--".into(), path.into()]);
    Ok(py.detach(|| apr_tools::run_json(words)).1)
}

/// The command of the program and its options, without the file.
///
/// Raises ValueError for a name in `allow` without a module.
#[pyfunction]
pub fn scan_words(
    allow: Vec<String>,
    max_opcodes: Option<u64>,
    max_depth: Option<u32>,
    max_inflated: Option<u64>,
    max_findings: Option<usize>,
) -> PyResult<Vec<String>> {
    trusted(&allow)?;
    let limits = [
        ("max-opcodes", max_opcodes),
        ("max-depth", max_depth.map(u64::from)),
        ("max-inflated", max_inflated),
        ("max-findings", max_findings.map(|count| count as u64)),
    ];
    let limits = limits.into_iter().filter_map(|(name, limit)| Some(format!("--{name}={}", limit?)));
    let allow = allow.iter().map(|name| format!("--allow={name}"));
    Ok(core::iter::once("scan".to_owned()).chain(allow).chain(limits).collect())
}

/// Modules and the names in them.
fn trusted(allow: &[String]) -> PyResult<Vec<(&str, &str)>> {
    let trusted = allow.iter().map(|name| {
        let pair = name.rsplit_once('.').filter(|(module, name)| !module.is_empty() && !name.is_empty());
        pair.ok_or_else(|| PyValueError::new_err(format!("{name:?} is no name of a module and a name in it")))
    });
    trusted.collect()
}

/// The report of a file in memory.
fn json_of(bytes: &[u8], options: &Options<'_>) -> Result<String, Refusal> {
    let report = model_scan::scan_file(bytes, options)?;
    let len = bytes.len() as u64;
    let kind = FileKind::of_source(&bytes).map_err(model_file::Error::from)?;
    let (format, _) = report.format_of(len, kind.name().map(|name| (name, kind.title())));
    let row = ScanRow::from(FileRow::new("-".into(), format, len, &report));
    serde_json::to_string(&row).map_err(|error| Refusal::Io(error.into()))
}
