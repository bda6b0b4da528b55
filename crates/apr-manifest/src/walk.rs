//! The files in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;

/// Most names of skipped entries that are remembered.
const MAX_SKIPPED: usize = 1000;

/// A file that is there.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
}

/// What was found: sorted by name.
pub(crate) struct Walk {
    pub(crate) files: Vec<Found>,
    /// Entries that were not read.
    pub(crate) skipped: Vec<String>,
}

/// The file at `root`, called `.`, or every file below it, except what `is_ignored`.
///
/// Symbolic links are not followed: each is an error, except that `root` itself may be one, because the caller named it.
pub(crate) fn walk(root: &Path, is_ignored: impl Fn(&str) -> bool, limits: &Limits) -> Result<Walk, Error> {
    let top = fs::metadata(root).map_err(|error| failed("read", error).in_file(root))?;
    if top.is_file() {
        let file = Found { name: ".".into(), path: root.to_path_buf(), len: top.len() };
        return Ok(Walk { files: vec![file], skipped: Vec::new() });
    }
    if !top.is_dir() {
        return Err(Error::from(ErrorKind::NotRegular).in_file(root));
    }
    let (mut files, mut skipped, mut n_seen) = (Vec::new(), Vec::new(), 0_usize);
    let mut folders = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|error| failed("list", error).in_file(&folder))?;
        for entry in entries {
            let entry = entry.map_err(|error| failed("list", error).in_file(&folder))?;
            n_seen += 1;
            if n_seen > limits.files {
                let (found, limit) = (n_seen as u64, limits.files as u64);
                return Err(
                    Error::from(ErrorKind::Limit { what: "files and folders", found, limit }).in_file(root)
                );
            }
            let path = entry.path();
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| Error::from(ErrorKind::NotUtf8).in_file(&path))?;
            let name = prefix.clone() + &name;
            if is_ignored(&name) {
                if skipped.len() < MAX_SKIPPED {
                    skipped.push(name);
                }
                continue;
            }
            let refused = |kind: ErrorKind| Error::from(kind).of_name(&name).in_file(root);
            let kind = entry.file_type().map_err(|error| failed("read", error).in_file(&path))?;
            if kind.is_symlink() {
                return Err(refused(ErrorKind::Symlink));
            } else if kind.is_dir() {
                folders.push((path, name + "/"));
            } else if kind.is_file() {
                let len = entry.metadata().map_err(|error| failed("read", error).in_file(&path))?.len();
                files.push(Found { name, path, len });
            } else {
                return Err(refused(ErrorKind::NotRegular));
            }
        }
    }
    files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    skipped.sort_unstable();
    Ok(Walk { files, skipped })
}

/// The name that `file` has below `root`, if it is there. The file itself need not exist yet.
pub(crate) fn name_below(root: &Path, file: &Path) -> Option<String> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let path = folder.canonicalize().ok()?.join(file.file_name()?);
    let below = path.strip_prefix(root.canonicalize().ok()?).ok()?;
    let parts: Option<Vec<&str>> = below.components().map(|part| part.as_os_str().to_str()).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.join("/"))
}

pub(crate) fn failed(operation: &'static str, error: std::io::Error) -> Error {
    ErrorKind::Io { operation, error }.into()
}
