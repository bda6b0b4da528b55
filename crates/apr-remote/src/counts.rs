//! What requests have cost.

use core::sync::atomic::{AtomicU64, Ordering};

/// What requests have cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests, those of redirects and further tries included.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Tries after one that failed.
    pub retries: u64,
    /// Reads that needed no request.
    pub hits: u64,
    /// Files that were opened in the cache of the hub.
    pub cached: u64,
    /// Blocks that were read from the block cache.
    pub blocks_read: u64,
    /// Blocks that were written to it.
    pub blocks_written: u64,
    /// Files in it that were damaged or foreign, and were removed.
    pub blocks_discarded: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) retries: AtomicU64,
    hits: AtomicU64,
    cached: AtomicU64,
    pub(crate) blocks_read: AtomicU64,
    pub(crate) blocks_written: AtomicU64,
    pub(crate) blocks_discarded: AtomicU64,
}

impl Counters {
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn cached(&self) {
        self.cached.fetch_add(1, Ordering::Relaxed);
    }

    /// Bytes of bodies so far.
    pub(crate) fn read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            requests: of(&self.requests),
            bytes: of(&self.bytes),
            retries: of(&self.retries),
            hits: of(&self.hits),
            cached: of(&self.cached),
            blocks_read: of(&self.blocks_read),
            blocks_written: of(&self.blocks_written),
            blocks_discarded: of(&self.blocks_discarded),
        }
    }
}
