//! The blocks of one version of an object.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::disk::{self, Unread, Use};
use super::{Key, Known, MAGIC, Store};

/// No block reaches over a multiple of this many bytes.
const CELL: u64 = 1 << 20;
/// Bytes before the data of a block.
const HEADER_LEN: usize = 56;

/// The blocks of one version of an object. Threads can share it.
#[derive(Debug)]
pub(crate) struct Blocks {
    store: Arc<Store>,
    folder: PathBuf,
    record: PathBuf,
    /// ID of the version.
    id: [u8; 32],
    /// Beginning of the names of its blocks.
    name: String,
    /// Where blocks begin, and where they end, as far as it is known.
    index: Mutex<BTreeMap<u64, u64>>,
}

impl Blocks {
    /// Finds what is there of a version of an object; `None` if nothing tells it from others.
    pub(crate) fn open(store: &Arc<Store>, key: &Key, known: &Known) -> Option<Self> {
        let id = key.version(&known.validator()?, known.pin.len);
        let name = version_name(&id);
        let folder = store.folder_of(key);
        let mut index = BTreeMap::new();
        if disk::is_own_folder(&folder) {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if let Some(block) = entry.file_name().to_str().and_then(|found| parsed(found, &name)) {
                    let end = index.entry(block.start).or_insert(block.end);
                    *end = block.end.max(*end);
                }
            }
        }
        let record = folder.join(key.record());
        Some(Self { store: Arc::clone(store), folder, record, id, name, index: Mutex::new(index) })
    }

    /// Copies what is there of the beginning and of the end of a range, and says what of `out` is missing between.
    pub(crate) fn copy(&self, offset: u64, out: &mut [u8]) -> Range<usize> {
        let (mut start, mut end) = (0, out.len());
        while start < end {
            let at = offset + start as u64;
            let Some(block) = self.find(at, |block| block.end) else { break };
            let Some(bytes) = self.read(&block) else { continue };
            start += copied(&bytes, block.start, at, out.get_mut(start..end).unwrap_or_default());
        }
        while start < end {
            let last = offset + end as u64 - 1;
            let Some(block) = self.find(last, |block| u64::MAX - block.start) else { break };
            let Some(bytes) = self.read(&block) else { continue };
            let from = block.start.saturating_sub(offset).max(start as u64) as usize;
            copied(&bytes, block.start, offset + from as u64, out.get_mut(from..end).unwrap_or_default());
            end = from;
        }
        start..end
    }

    /// Keeps bytes that were requested.
    pub(crate) fn keep(&self, offset: u64, bytes: &[u8]) {
        // Names of files have twelve digits for the place.
        if offset.saturating_add(bytes.len() as u64) > 1 << 48 {
            return;
        }
        let mut rest = bytes;
        let mut at = offset;
        while !rest.is_empty() {
            let to_next = usize::try_from(CELL - at % CELL).unwrap_or(rest.len());
            let (data, after) = rest.split_at(to_next.min(rest.len()));
            let range = at..at + data.len() as u64;
            if !self.write(&range, data) {
                return;
            }
            (at, rest) = (range.end, after);
        }
    }

    /// Forgets what is known of the version: the server contradicts it.
    pub(crate) fn forget(&self) {
        disk::remove(&self.record);
    }

    fn index(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of the blocks with the byte at `at`, the one for which `by` is largest.
    fn find(&self, at: u64, by: impl Fn(&Range<u64>) -> u64) -> Option<Range<u64>> {
        let index = self.index();
        let blocks = index.range(at / CELL * CELL..=at).map(|(start, end)| *start..*end);
        blocks.filter(|block| block.contains(&at)).max_by_key(by)
    }

    /// A block with its header; `None`, and it is no longer in the index, if it is not there as it was written.
    fn read(&self, block: &Range<u64>) -> Option<Vec<u8>> {
        let path = self.folder.join(self.name_of(block));
        let len = block.end - block.start;
        let read = disk::read(&path, HEADER_LEN as u64 + len, Use::Marked).and_then(|bytes| {
            let header = header(&self.id, block, bytes.get(HEADER_LEN..).unwrap_or_default());
            let is_right = bytes.len() as u64 == HEADER_LEN as u64 + len && bytes.starts_with(&header);
            if is_right { Ok(bytes) } else { Err(Unread::Foreign) }
        });
        match read {
            Ok(bytes) => {
                self.store.count_read();
                Some(bytes)
            }
            Err(why) => {
                self.index().remove(&block.start);
                if why == Unread::Foreign {
                    self.store.discard(&path);
                }
                None
            }
        }
    }

    /// Writes a block, and removes those in it.
    fn write(&self, block: &Range<u64>, data: &[u8]) -> bool {
        if self.find(block.start, |known| known.end).is_some_and(|known| known.end >= block.end) {
            return true;
        }
        let header = header(&self.id, block, data);
        if !self.store.write(&self.folder, &self.name_of(block), &[&header, data]) {
            return false;
        }
        self.store.count_written();
        let mut index = self.index();
        let inner: Vec<_> = index.range(block.clone()).map(|(start, end)| *start..*end).collect();
        let inner: Vec<_> = inner.into_iter().filter(|inner| inner.end <= block.end).collect();
        for inner in &inner {
            index.remove(&inner.start);
        }
        index.insert(block.start, block.end);
        drop(index);
        for inner in &inner {
            disk::remove(&self.folder.join(self.name_of(inner)));
        }
        true
    }

    fn name_of(&self, block: &Range<u64>) -> String {
        format!("{}-{:012x}-{:06x}", self.name, block.start, block.end - block.start)
    }
}

fn version_name(id: &[u8; 32]) -> String {
    id.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The range that a name says, if it is one of a block of this version.
fn parsed(name: &str, version: &str) -> Option<Range<u64>> {
    let (offset, len) = name.strip_prefix(version)?.strip_prefix('-')?.split_once('-')?;
    let start = u64::from_str_radix(offset, 16).ok()?;
    let len = u64::from_str_radix(len, 16).ok()?;
    let end = start.checked_add(len)?;
    let is_block = len > 0 && start / CELL == (end - 1) / CELL;
    (is_block && name == format!("{version}-{start:012x}-{len:06x}")).then_some(start..end)
}

fn header(id: &[u8; 32], block: &Range<u64>, data: &[u8]) -> [u8; HEADER_LEN] {
    let (start, len) = (block.start.to_le_bytes(), (block.end - block.start).to_le_bytes());
    let mut hash = blake3::Hasher::new_derive_key("apr block cache 1: block");
    hash.update(id).update(&start).update(&len).update(data);
    let hash = hash.finalize();
    let mut header = [0; HEADER_LEN];
    let parts: [&[u8]; 4] = [MAGIC, &start, &len, hash.as_bytes()];
    for (to, from) in header.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    header
}

/// Copies what a block, which begins at `start`, has from `at` on, and says how much.
fn copied(block: &[u8], start: u64, at: u64, out: &mut [u8]) -> usize {
    let skip = usize::try_from(at - start).unwrap_or(usize::MAX);
    let data = block.get(skip.saturating_add(HEADER_LEN)..).unwrap_or_default();
    let len = data.len().min(out.len());
    for (to, from) in out.get_mut(..len).into_iter().zip(data.get(..len)) {
        to.copy_from_slice(from);
    }
    len
}
