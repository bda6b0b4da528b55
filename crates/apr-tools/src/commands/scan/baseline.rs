//! Files of an earlier report.

use std::path::Path;

use model_scan::SCHEMA;
use serde::Deserialize;

use crate::error::{CODE_USAGE, Failure};

/// Largest report that is read.
const MAX_LEN: u64 = 1 << 28;

/// Files by path and SHA-256.
#[derive(Deserialize)]
pub(super) struct Baseline {
    schema: String,
    files: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    path: String,
    sha256: Option<String>,
}

impl Baseline {
    /// Reads a report of `apr scan --json`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is another file.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let text = durable_file::read(path, MAX_LEN)?;
        let other = |why: String| {
            Failure::new(CODE_USAGE, "this is no report of `apr scan --json`").in_file(path).because(why)
        };
        let baseline: Self = serde_json::from_slice(&text).map_err(|error| other(error.to_string()))?;
        if baseline.schema == SCHEMA { Ok(baseline) } else { Err(other(baseline.schema)) }
    }

    /// Whether the report has the file with these bytes.
    pub(super) fn has(&self, path: &Path, sha256: &str) -> bool {
        let path = path.to_string_lossy();
        self.files.iter().any(|known| known.path == path && known.sha256.as_deref() == Some(sha256))
    }
}
