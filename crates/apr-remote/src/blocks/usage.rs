//! What is on disk: how much, of what, and what goes first.

use core::time::Duration;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::disk::{self, TEMPORARY, Use};
use super::{BlockCache, record};
use crate::error::{Error, ErrorKind};
use crate::pin::is_hex;

/// Bytes of a page on disk.
const PAGE: u64 = 4096;
/// What is being written is left alone for so long.
const WRITING: Duration = Duration::from_secs(3600);

/// What the block cache has of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedObject {
    /// Its URL without a query, of the hub without a revision; `None` if it cannot be read.
    pub url: Option<String>,
    /// Blocks, of all versions.
    pub blocks: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// When it was last used, to the hour.
    pub used: SystemTime,
}

/// What was removed from the block cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Blocks.
    pub blocks: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Files that could not be removed.
    pub remaining: u64,
}

/// A file of the cache.
struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Block,
    Record,
    Temporary,
}

impl What {
    /// `None` of what the cache has not written.
    fn of(name: &str) -> Option<Self> {
        let hex = |text: Option<&str>, len| text.is_some_and(|text| is_hex(text, len));
        let mut parts = name.split('-');
        let is_block = hex(parts.next(), 16) && hex(parts.next(), 12) && hex(parts.next(), 6);
        match name {
            _ if is_block && parts.next().is_none() => Some(Self::Block),
            "pin" => Some(Self::Record),
            _ if hex(name.strip_prefix("pin-"), 40) => Some(Self::Record),
            _ if name.starts_with(TEMPORARY) => Some(Self::Temporary),
            _ => None,
        }
    }
}

/// What so many bytes take on disk.
pub(super) const fn on_disk(len: u64) -> u64 {
    len.div_ceil(PAGE).saturating_mul(PAGE)
}

/// The folders of objects.
fn objects(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let is_object = |name: &str| is_hex(name, 64);
    let paths = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_object));
    Ok(paths.map(|entry| entry.path()).filter(|path| disk::is_own_folder(path)).collect())
}

/// The files of an object.
fn entries(object: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    for entry in fs::read_dir(object).into_iter().flatten().flatten() {
        let what = entry.file_name().to_str().and_then(What::of);
        // Of a link, the link.
        if let Some((what, metadata)) = what.zip(entry.metadata().ok()) {
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            found.push(Entry { path: entry.path(), bytes: on_disk(metadata.len()), used, what });
        }
    }
    found
}

/// Removes what was not used for longest, if there are more than `limit` bytes, until there are `to`; gives how many there are.
pub(super) fn shrink(folder: &Path, limit: u64, to: u64) -> io::Result<u64> {
    let mut all: Vec<Entry> = objects(folder)?.iter().flat_map(|object| entries(object)).collect();
    let now = SystemTime::now();
    all.retain(|entry| {
        let is_left = entry.what == What::Temporary && is_older(entry, now, WRITING);
        if is_left {
            disk::remove(&entry.path);
        }
        !is_left
    });
    let mut used = all.iter().map(|entry| entry.bytes).sum();
    if used <= limit {
        return Ok(used);
    }
    all.sort_by_key(|entry| entry.used);
    for entry in all {
        if used <= to.min(limit) {
            break;
        }
        if remove(&entry) {
            used = used.saturating_sub(entry.bytes);
        }
    }
    Ok(used)
}

fn is_older(entry: &Entry, now: SystemTime, time: Duration) -> bool {
    now.duration_since(entry.used).is_ok_and(|since| since >= time)
}

/// Removes a file, and the folder of its object if it is empty. Whether the file is gone.
fn remove(entry: &Entry) -> bool {
    let is_removed = disk::remove(&entry.path);
    if let Some(object) = entry.path.parent() {
        let _ = fs::remove_dir(object);
    }
    is_removed
}

impl BlockCache {
    /// The objects of which blocks are there, those that were used last at the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::BlockCache`], [`ErrorKind::BlockCacheRead`].
    pub fn list(&self) -> Result<Vec<CachedObject>, Error> {
        let mut listed = Vec::new();
        for object in self.objects()? {
            let entries = entries(&object);
            let urls = entries.iter().filter(|entry| entry.what == What::Record).find_map(|entry| {
                let bytes = disk::read(&entry.path, record::LEN_MAX, Use::Unmarked).ok()?;
                record::url_of(&bytes).map(str::to_owned)
            });
            listed.extend(entries.iter().map(|entry| entry.used).max().map(|used| CachedObject {
                url: urls,
                blocks: entries.iter().filter(|entry| entry.what == What::Block).count() as u64,
                bytes: entries.iter().map(|entry| entry.bytes).sum(),
                used,
            }));
        }
        listed.sort_by_key(|object| object.used);
        Ok(listed)
    }

    /// Removes what was not used for a time, or all of it. Files that are not of this cache stay.
    ///
    /// # Errors
    ///
    /// Those of [`list`](Self::list).
    pub fn clear(&self, unused_for: Duration) -> Result<Removed, Error> {
        let now = SystemTime::now();
        let mut removed = Removed::default();
        for object in self.objects()? {
            for entry in entries(&object) {
                if !unused_for.is_zero() && !is_older(&entry, now, unused_for) {
                    continue;
                }
                if remove(&entry) {
                    removed.blocks += u64::from(entry.what == What::Block);
                    removed.bytes += entry.bytes;
                } else {
                    removed.remaining += 1;
                }
            }
        }
        Ok(removed)
    }

    fn objects(&self) -> Result<Vec<PathBuf>, Error> {
        disk::check_folder(&self.folder)?;
        objects(&self.folder).map_err(|error| Error::caused(ErrorKind::BlockCacheRead, error))
    }
}
