//! What a repository of the hub has.

use alloc::sync::Arc;
use std::path::{Path, PathBuf};

use apr_remote::{CachedFile, Client, Error, ErrorKind, HubPath, Place, RemoteFile};
use read_at::ReadAt as _;
use serde::Deserialize;

use super::{is_url, place};
use crate::error::{CODE_NOT_CARRIED, Failure};

/// Longest answer about a repository, and longest index.
const LISTING_MAX: u64 = 64 << 20;

/// The files of a repository at one commit, or those at a path in it.
#[derive(Debug)]
pub(crate) struct Repository {
    client: Arc<Client>,
    /// The path that was asked for, at the commit.
    pub(crate) at: HubPath,
    pub(crate) files: Vec<Listed>,
}

/// A file of it.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The path in the repository, as the hub says it.
    pub(crate) path: String,
    pub(crate) len: Option<u64>,
    /// Of large files, in lower-case hexadecimal digits.
    pub(crate) sha256: Option<String>,
}

/// What the hub says about a revision.
#[derive(Deserialize)]
struct Listing {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<LargeFile>,
}

#[derive(Deserialize)]
struct LargeFile {
    sha256: String,
    size: u64,
}

impl Repository {
    /// Asks the hub; without the network, the list is that of its cache.
    ///
    /// # Errors
    ///
    /// If it does not answer, or with something that is no list of files; if the cache cannot be read.
    pub(crate) fn list(client: &Arc<Client>, hub: &HubPath) -> Result<Self, Failure> {
        if let Some((at, files)) = client.cached_files(hub)? {
            let listed = |CachedFile { path, len, sha256 }| Listed { path, len: Some(len), sha256 };
            let files = files.into_iter().filter(|file| is_at(&file.path, hub)).map(listed).collect();
            return Ok(Self { client: Arc::clone(client), at, files });
        }
        let listing = hub.listing(client.hub().endpoint())?;
        let shown = listing.to_string();
        let named = |failure: Failure| failure.in_file(Path::new(&shown));
        let file = client.open(&Place::Url(listing)).map_err(|error| named(error.into()))?;
        let wrong = |problem| named(Error::from(ErrorKind::Listing { problem }).into());
        let text = whole(&file).map_err(named)?;
        let listing: Listing = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if listing.sha.len() != 40 || !is_hex(&listing.sha) {
            return Err(wrong("`sha` is not a commit".to_owned()));
        }
        let mut files = Vec::new();
        for Sibling { rfilename, size, lfs } in listing.siblings {
            if !is_at(&rfilename, hub) {
                continue;
            }
            let sha256 = lfs.as_ref().map(|lfs| lfs.sha256.clone());
            if sha256.as_ref().is_some_and(|digits| digits.len() != 64 || !is_hex(digits)) {
                return Err(wrong(format!("`lfs.sha256` of `{rfilename}` is not a digest")));
            }
            let len = lfs.map(|lfs| lfs.size).or(size);
            files.push(Listed { path: rfilename, len, sha256 });
        }
        Ok(Self { client: Arc::clone(client), at: hub.at_commit(&listing.sha), files })
    }

    /// The folder that a URL names, if it is one of the hub.
    ///
    /// # Errors
    ///
    /// Those of [`list`](Self::list).
    pub(crate) fn at(path: &Path) -> Result<Option<Self>, Failure> {
        if !is_url(path) {
            return Ok(None);
        }
        let (client, place) = place(path)?;
        match &place {
            // Files have endings.
            Place::Hub(hub) if !hub.path().rsplit('/').next().is_some_and(|name| name.contains('.')) => {
                Self::list(&client, hub).map(Some).map_err(|failure| failure.in_file(path))
            }
            _ => Ok(None),
        }
    }

    /// Its name: that of the repository, or of the folder in it.
    pub(crate) fn name(&self) -> &str {
        let path = if self.at.path().is_empty() { self.at.repository() } else { self.at.path() };
        path.rsplit('/').next().unwrap_or_default()
    }

    /// The URL of a file below the path that was asked for.
    pub(crate) fn url(&self, name: &str) -> PathBuf {
        self.inner(name).to_string().into()
    }

    /// The commit and the path, as a URL.
    pub(crate) fn shown(&self) -> String {
        self.at.to_string()
    }

    pub(crate) fn commit(&self) -> &str {
        self.at.revision()
    }

    /// Paths of the files below that path, from there.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let at = self.at.path();
        self.files.iter().filter_map(move |file| {
            let path = file.path.strip_prefix(at)?;
            if at.is_empty() { Some(path) } else { path.strip_prefix('/') }
        })
    }

    /// Bytes of a file, and the SHA-256 that the hub declares, as far as they are known.
    pub(crate) fn declared(&self, name: &str) -> (Option<u64>, Option<&str>) {
        let inner = self.inner(name);
        let file = self.files.iter().find(|file| file.path == inner.path());
        file.map_or((None, None), |file| (file.len, file.sha256.as_deref()))
    }

    /// Reads a file below that path.
    ///
    /// # Errors
    ///
    /// If it is longer than `max_len` or cannot be read.
    pub(crate) fn read(&self, name: &str, max_len: u64) -> Result<Vec<u8>, Failure> {
        let url = self.url(name);
        let read = || {
            let file = self.client.open(&Place::Hub(self.inner(name)))?;
            if file.total_len() > max_len {
                let what =
                    format!("the file has {} bytes, more than the {max_len} that are read", file.total_len());
                return Err(Failure::new(CODE_NOT_CARRIED, what));
            }
            all(&file)
        };
        read().map_err(|failure| failure.in_file(&url))
    }

    fn inner(&self, name: &str) -> HubPath {
        let at = self.at.path();
        let path = if at.is_empty() { name.to_owned() } else { format!("{at}/{name}") };
        self.at.with_path(&path)
    }
}

/// Whether a file of a repository is the one at a path, or below it.
fn is_at(path: &str, hub: &HubPath) -> bool {
    let rest = path.strip_prefix(hub.path());
    hub.path().is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// All bytes of a short file.
///
/// # Errors
///
/// If it is too long or cannot be read.
pub(crate) fn whole(file: &RemoteFile) -> Result<Vec<u8>, Failure> {
    let len = file.total_len();
    if len > LISTING_MAX {
        let problem = format!("it has {len} bytes, more than {LISTING_MAX}");
        return Err(Error::from(ErrorKind::Listing { problem }).into());
    }
    all(file)
}

fn all(file: &RemoteFile) -> Result<Vec<u8>, Failure> {
    let mut text = vec![0; file.total_len() as usize];
    file.read_exact_at(0, &mut text).map_err(|error| Failure::of_remote(error, Path::new(&file.shown())))?;
    Ok(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
