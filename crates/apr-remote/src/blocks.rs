//! Blocks of remote files that are kept on disk between processes.
//!
//! `FOLDER/KEY/{pin, pin-COMMIT, VERSION-OFFSET-LENGTH}`, see `docs/remote.md`.

mod disk;
mod key;
mod object;
mod record;
mod usage;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

pub(crate) use self::key::Key;
pub(crate) use self::object::Blocks;
pub(crate) use self::record::Known;
pub use self::usage::{CachedObject, Removed};
use crate::client::is_on;
use crate::counts::Counters;
use crate::error::{Error, ErrorKind};
use crate::hub;

/// What a block begins with.
const MAGIC: &[u8; 8] = b"APRBLK1\n";

/// Where blocks of remote files are kept, and how many bytes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCache {
    folder: PathBuf,
    limit: u64,
}

impl BlockCache {
    /// Bytes on disk, if nothing else is said.
    pub const LIMIT: u64 = 10 << 30;

    /// The cache in a folder, which is made when it is first used, of at most `limit` bytes.
    #[must_use]
    pub const fn new(folder: PathBuf, limit: u64) -> Self {
        Self { folder, limit }
    }

    /// The cache that the environment names: in the folder APR_BLOCK_CACHE, else in `apr/blocks` of the user's folder of caches, with
    /// APR_BLOCK_CACHE_SIZE bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BlockCache`] if there is no such folder, or the size is none.
    pub fn from_environment(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        let wrong = |problem| Error::from(ErrorKind::BlockCache { problem });
        let given = |name| variable(name).filter(|value| !value.is_empty());
        let named = given("APR_BLOCK_CACHE").filter(|value| is_on(value).is_none()).map(PathBuf::from);
        if named.as_ref().is_some_and(|folder| folder.is_relative()) {
            return Err(wrong("APR_BLOCK_CACHE is neither 1, 0 nor a path from the root on"));
        }
        let by_default = || Some(hub::user_caches(given)?.join("apr").join("blocks"));
        let folder = named.or_else(by_default).ok_or_else(|| wrong("the user has no folder for caches"))?;
        let limit = match given("APR_BLOCK_CACHE_SIZE") {
            Some(text) => {
                size(&text.to_string_lossy()).ok_or_else(|| wrong("APR_BLOCK_CACHE_SIZE is not a size"))?
            }
            None => Self::LIMIT,
        };
        Ok(Self { folder, limit })
    }

    /// The same, if the environment asks for it: APR_BLOCK_CACHE is neither empty nor a word for no.
    pub(crate) fn if_asked_for(variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, Error> {
        let value = variable("APR_BLOCK_CACHE").filter(|value| !value.is_empty());
        let is_wanted = value.is_some_and(|value| is_on(&value) != Some(false));
        is_wanted.then(|| Self::from_environment(variable)).transpose()
    }

    /// With another limit in bytes.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes on disk at most.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        self.limit
    }
}

/// Bytes, with `KiB`, `MiB`, `GiB` or `TiB` behind the number or without.
fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale = match unit.trim() {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale).filter(|size| *size > 0)
}

/// A cache in use. Whatever the disk refuses ends nothing: it is remembered, and no more is written.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    limit: u64,
    counters: Arc<Counters>,
    space: Arc<Mutex<Space>>,
    problem: OnceLock<io::Error>,
}

/// What the clients of this process know together of their folders: looking at one takes a while.
static SPACES: Mutex<BTreeMap<PathBuf, Arc<Mutex<Space>>>> = Mutex::new(BTreeMap::new());

/// What is known of the bytes on disk.
#[derive(Debug, Default)]
struct Space {
    /// As of the last look at the folder, and what was written since then.
    used: Option<u64>,
    since: u64,
}

impl Store {
    /// Makes the folder, if it is not there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BlockCache`] if others can write into it.
    pub(crate) fn open(cache: &BlockCache, counters: Arc<Counters>) -> Result<Self, Error> {
        let BlockCache { folder, limit } = cache.clone();
        let problem = OnceLock::new();
        if let Err(error) = disk::make_folder(&folder) {
            let _ = problem.set(error);
        }
        disk::check_folder(&folder)?;
        let mut spaces = SPACES.lock().unwrap_or_else(PoisonError::into_inner);
        let space = Arc::clone(spaces.entry(folder.clone()).or_default());
        drop(spaces);
        Ok(Self { folder, limit, counters, space, problem })
    }

    /// Why no more is written.
    pub(crate) fn problem(&self) -> Option<&io::Error> {
        self.problem.get()
    }

    fn folder_of(&self, key: &Key) -> PathBuf {
        self.folder.join(key.name())
    }

    /// Writes a file of an object, and says whether it is there.
    fn write(&self, folder: &Path, name: &str, parts: &[&[u8]]) -> bool {
        if self.problem.get().is_some() {
            return false;
        }
        let len = usage::on_disk(parts.iter().map(|part| part.len() as u64).sum());
        let written = self.make_space(len).and_then(|has_space| match has_space {
            true => disk::write(folder, name, parts).map(|()| true),
            false => Ok(false),
        });
        written.unwrap_or_else(|error| {
            // Another process may remove the folder of an object that is empty.
            if error.kind() != io::ErrorKind::NotFound {
                let _ = self.problem.set(error);
            }
            false
        })
    }

    /// Removes what was not used for longest, if `len` more bytes would be too many; whether there is space for them.
    fn make_space(&self, len: u64) -> io::Result<bool> {
        if len > self.limit / 2 {
            return Ok(false);
        }
        let mut space = self.space.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = space.since > self.limit / 16;
        let used = match space.used.filter(|_| !is_old) {
            Some(used) if used.saturating_add(len) <= self.limit => used,
            // Others write too.
            _ => {
                let left = usage::shrink(&self.folder, self.limit.saturating_sub(len), self.limit / 10 * 9)?;
                space.since = 0;
                left
            }
        };
        space.used = Some(used.saturating_add(len));
        space.since = space.since.saturating_add(len);
        Ok(true)
    }

    fn count_read(&self) {
        self.counters.blocks_read.fetch_add(1, Ordering::Relaxed);
    }

    fn count_written(&self) {
        self.counters.blocks_written.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a file that is none of this cache.
    fn discard(&self, path: &Path) {
        self.counters.blocks_discarded.fetch_add(1, Ordering::Relaxed);
        disk::remove(path);
    }
}

#[cfg(test)]
pub(crate) mod tests;
