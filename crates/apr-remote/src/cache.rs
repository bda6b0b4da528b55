//! Files that the hub's own programs have downloaded. Their cache is only read.
//!
//! `models--ORG--NAME/{refs/REVISION, blobs/NAME, snapshots/COMMIT/PATH}`: what is in `snapshots` are links to `blobs`, on Windows copies. A
//! blob of a large file is called by its SHA-256.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use read_at::{FileSource, ReadAt};

use crate::error::{Error, ErrorKind};
use crate::hub::{HubPath, home};
use crate::pin::is_hex;

/// Ending of a download that is not complete.
const INCOMPLETE: &str = "incomplete";
/// Length of a commit in hexadecimal digits.
pub(crate) const COMMIT_LEN: usize = 40;
/// Folders in each other.
const DEPTH_MAX: usize = 32;

/// The folder in which the hub's own programs keep what they download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubCache {
    folder: PathBuf,
}

/// What the cache has of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedFile {
    /// The path in the repository.
    pub path: String,
    /// Bytes.
    pub len: u64,
    /// SHA-256 of the content as its name says it, in lower case.
    pub sha256: Option<String>,
}

/// A file of the cache.
#[derive(Debug)]
pub(crate) struct Cached {
    pub(crate) source: FileSource,
    /// Its name among the blobs.
    pub(crate) blob: Option<String>,
}

impl Cached {
    /// SHA-256 of the content by the name of the file, in lower case.
    pub(crate) fn sha256_by_name(&self) -> Option<&str> {
        self.blob.as_deref().filter(|name| is_hex(name, 64))
    }
}

impl ReadAt for Cached {
    fn total_len(&self) -> u64 {
        self.source.total_len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), read_at::Error> {
        let read = self.source.read_exact_at(offset, out);
        read.map_err(|error| Error::caused(ErrorKind::CacheRead, error).into())
    }
}

impl HubCache {
    /// The cache in a folder.
    #[must_use]
    pub const fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder that other programs use: HF_HUB_CACHE, else `hub` in HF_HOME. None with APR_NO_HUB_CACHE.
    pub(crate) fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Option<Self> {
        let given = |name| variable(name).filter(|value| !value.is_empty());
        if given("APR_NO_HUB_CACHE").is_some_and(|value| value != "0") {
            return None;
        }
        let in_home = || Some(home(given)?.join("hub"));
        given("HF_HUB_CACHE").map(PathBuf::from).or_else(in_home).map(Self::new)
    }

    /// The commit that a branch or tag was at when it was last asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cache`], [`ErrorKind::CacheRead`].
    pub(crate) fn commit(&self, hub: &HubPath) -> Result<Option<String>, Error> {
        let Some(repository) = self.repository(hub) else { return Ok(None) };
        let name = hub.revision();
        if !is_plain(name) {
            return Ok(None);
        }
        let Some(path) = within(&repository, &repository.join("refs").join(name))? else { return Ok(None) };
        let mut text = String::new();
        let file = File::open(path).map_err(unreadable)?;
        let wrong = || Error::from(ErrorKind::Cache { problem: "the commit of a revision is not readable" });
        file.take(COMMIT_LEN as u64 + 2).read_to_string(&mut text).map_err(|_| wrong())?;
        let commit = text.trim_end();
        if is_hex(commit, COMMIT_LEN) { Ok(Some(commit.to_owned())) } else { Err(wrong()) }
    }

    /// The file of a commit, if it is there.
    ///
    /// # Errors
    ///
    /// Those of [`commit`](Self::commit).
    pub(crate) fn open(&self, hub: &HubPath, commit: &str) -> Result<Option<Cached>, Error> {
        let Some(repository) = self.repository(hub) else { return Ok(None) };
        if !is_plain(hub.path()) || !is_hex(commit, COMMIT_LEN) {
            return Ok(None);
        }
        let path = repository.join("snapshots").join(commit).join(hub.path());
        let Some(path) = within(&repository, &path)? else { return Ok(None) };
        if path.extension().is_some_and(|ending| ending == INCOMPLETE) {
            return Ok(None);
        }
        let source = FileSource::new(File::open(&path).map_err(unreadable)?).map_err(unreadable)?;
        let is_blob = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "blobs");
        let blob = path.file_name().and_then(|name| name.to_str()).filter(|_| is_blob).map(str::to_owned);
        Ok(Some(Cached { source, blob }))
    }

    /// Paths of the files of a commit, sorted; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CacheRead`].
    pub(crate) fn list(&self, hub: &HubPath, commit: &str) -> Result<Option<Vec<String>>, Error> {
        let Some(repository) = self.repository(hub) else { return Ok(None) };
        let (mut files, mut folders) = (Vec::new(), vec![(String::new(), 0)]);
        let snapshot = repository.join("snapshots").join(commit);
        while let Some((folder, depth)) = folders.pop() {
            let entries = match fs::read_dir(snapshot.join(&folder)) {
                Err(error) if depth == 0 && is_missing(&error) => return Ok(None),
                entries => entries.map_err(unreadable)?,
            };
            for entry in entries {
                let entry = entry.map_err(unreadable)?;
                // No file of the hub has a name that is not Unicode.
                let Ok(name) = entry.file_name().into_string() else { continue };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match entry.file_type().map_err(unreadable)?.is_dir() {
                    true if depth < DEPTH_MAX => folders.push((path, depth + 1)),
                    true => return Err(ErrorKind::Cache { problem: "folders are nested too deeply" }.into()),
                    false => files.push(path),
                }
            }
        }
        files.sort_unstable();
        Ok(Some(files))
    }

    /// The folder of a repository; `None` if its name could be that of another one.
    fn repository(&self, hub: &HubPath) -> Option<PathBuf> {
        let kind = if hub.is_dataset() { "datasets" } else { "models" };
        let (org, name) = hub.repository().split_once('/')?;
        let is_ambiguous = [org, name].iter().any(|part| part.contains("--"));
        (!is_ambiguous).then(|| self.folder.join(format!("{kind}--{org}--{name}")))
    }
}

/// Whether a relative path has names alone, on every system.
fn is_plain(path: &str) -> bool {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    !path.contains(['\\', ':', '\0']) && path.split('/').all(is_name)
}

/// The regular file that a path below a repository leads to; `None` if there is none, or a folder.
///
/// # Errors
///
/// [`ErrorKind::Cache`] if it is not a regular file of this repository.
fn within(repository: &Path, path: &Path) -> Result<Option<PathBuf>, Error> {
    let found = |path: &Path| match path.canonicalize() {
        Err(error) if is_missing(&error) => Ok(None),
        found => found.map(Some).map_err(unreadable),
    };
    let Some((repository, path)) = found(repository)?.zip(found(path)?) else { return Ok(None) };
    let wrong = |problem| Err(ErrorKind::Cache { problem }.into());
    if !path.starts_with(&repository) {
        return wrong("a link leads out of the folder of its repository");
    }
    let metadata = match path.metadata() {
        Err(error) if is_missing(&error) => return Ok(None),
        metadata => metadata.map_err(unreadable)?,
    };
    if metadata.is_dir() {
        return Ok(None);
    }
    // Before it is opened: that of a pipe would wait.
    if metadata.is_file() { Ok(Some(path)) } else { wrong("it is not a regular file") }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn unreadable(error: impl Into<Box<dyn core::error::Error + Send + Sync>>) -> Error {
    Error::caused(ErrorKind::CacheRead, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Option<HubCache> {
        HubCache::from_environment(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_folder_is_that_of_other_programs() {
        let cache = |path: &str| Some(HubCache::new(path.into()));
        assert_eq!(of(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/h"), ("HOME", "/u")]), cache("/c"));
        assert_eq!(of(&[("HF_HOME", "/h"), ("HOME", "/u")]), cache("/h/hub"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/u")]), cache("/x/huggingface/hub"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/u")]), cache("/u/.cache/huggingface/hub"));
        assert_eq!(of(&[("HOME", "/u"), ("HF_HUB_CACHE", "")]), cache("/u/.cache/huggingface/hub"));
        assert_eq!(of(&[("HOME", "/u"), ("APR_NO_HUB_CACHE", "0")]), cache("/u/.cache/huggingface/hub"));
        assert_eq!(of(&[("HF_HUB_CACHE", "/c"), ("APR_NO_HUB_CACHE", "1")]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn paths_have_names_alone() {
        for (path, expected) in [
            ("a/b.c", true),
            ("", false),
            ("/a", false),
            ("a//b", false),
            ("../a", false),
            ("a/..", false),
            ("a\\b", false),
            ("c:a", false),
            ("a\0", false),
        ] {
            assert_eq!(is_plain(path), expected, "{path:?}");
        }
    }

    #[test]
    fn names_that_could_be_those_of_others_have_no_folder() {
        let folder = |text| HubCache::new("/c".into()).repository(&HubPath::parse(text).unwrap());
        assert_eq!(folder("o/n"), Some("/c/models--o--n".into()));
        assert_eq!(folder("datasets/o/n"), Some("/c/datasets--o--n".into()));
        assert_eq!((folder("o--n/x"), folder("o/n--x")), (None, None));
    }
}
