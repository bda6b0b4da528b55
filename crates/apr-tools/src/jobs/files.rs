//! Versions of files.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{CODE_INPUT_CHANGED, CODE_USAGE, Failure};
use crate::file_digest::hex_sha256;
use crate::remote::{Remote, is_url};

/// One version of a file, as far as it is known without reading all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pinned {
    pub(super) path: String,
    pub(super) bytes: u64,
    /// Of a file of this machine, the time of its modification, in nanoseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<i64>,
    /// Of a URL, ETag or date; of the hub the commit, which is in the URL too.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// In lower-case hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

/// Longest file of an option whose digest is computed, for each task again.
const MAX_HASHED: u64 = 64 << 20;

/// Whether digests are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digests {
    Compute,
    Leave,
}

impl Pinned {
    /// The file as it is now.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or read for its digest.
    pub(super) fn now(path: &str, digests: Digests) -> Result<Self, Failure> {
        let place = Path::new(path);
        let mut pinned = match Remote::open(place)? {
            Some(remote) => {
                let (bytes, version) = remote.version();
                Self { path: path.to_owned(), bytes, modified: None, version, sha256: None }
            }
            None => {
                let entry = fs::metadata(place)
                    .map_err(|error| Failure::io("get the attributes of the file", place, &error))?;
                let modified = entry.modified().ok().map(nanoseconds);
                Self { path: path.to_owned(), bytes: entry.len(), modified, version: None, sha256: None }
            }
        };
        if digests == Digests::Compute {
            pinned.sha256 = Some(hex_sha256(place, |_| {})?);
        }
        Ok(pinned)
    }

    /// A file that an option names. Other machines have it under the same name, but seldom with the same time: a digest, unless it is large.
    ///
    /// # Errors
    ///
    /// Those of [`now`](Self::now).
    pub(super) fn option(path: &str) -> Result<Self, Failure> {
        let pinned = Self::now(path, Digests::Leave)?;
        if pinned.bytes > MAX_HASHED { Ok(pinned) } else { Self::now(path, Digests::Compute) }
    }

    /// A file of the hub at a commit.
    pub(super) const fn at_commit(path: String, bytes: u64, commit: String) -> Self {
        Self { path, bytes, modified: None, version: Some(commit), sha256: None }
    }

    /// An object as its list has it.
    #[cfg(feature = "remote")]
    pub(super) const fn listed(path: String, bytes: u64, version: Option<String>) -> Self {
        Self { path, bytes, modified: None, version, sha256: None }
    }

    /// Compares it with the file as it is now.
    ///
    /// # Errors
    ///
    /// If it is another one, or cannot be opened.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let changed = |what: &str| Failure::new(CODE_INPUT_CHANGED, what).in_file(Path::new(&self.path));
        let commit = self.version.as_ref().filter(|_| is_url(Path::new(&self.path)));
        if commit.is_some_and(|commit| self.path.contains(&format!("@{commit}"))) {
            return Ok(());
        }
        let is_gone = Path::new(&self.path).symlink_metadata().is_err_and(|error| error.kind() == NotFound);
        if is_gone && !is_url(Path::new(&self.path)) {
            return Err(changed("the file was removed after the job was planned"));
        }
        let digests = if self.sha256.is_some() { Digests::Compute } else { Digests::Leave };
        let now = Self::now(&self.path, digests)?;
        // A digest says more than a time.
        let is_same = now.bytes == self.bytes
            && now.version == self.version
            && now.sha256 == self.sha256
            && (self.sha256.is_some() || now.modified == self.modified);
        if is_same { Ok(()) } else { Err(changed("the file was modified after the job was planned")) }
    }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let nanoseconds = |span: core::time::Duration| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => nanoseconds(since),
        Err(before) => -nanoseconds(before.duration()),
    }
}

/// A path as a plan stores it.
///
/// # Errors
///
/// If it is not Unicode.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(CODE_USAGE, "the path is not Unicode, and a plan is text").in_file(path))
}
