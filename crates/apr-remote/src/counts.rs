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
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) retries: AtomicU64,
    hits: AtomicU64,
    cached: AtomicU64,
}

impl Counters {
    pub(crate) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn cached(&self) {
        self.cached.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Self { requests, bytes, retries, hits, cached } = self;
        Counts {
            requests: of(requests),
            bytes: of(bytes),
            retries: of(retries),
            hits: of(hits),
            cached: of(cached),
        }
    }
}
