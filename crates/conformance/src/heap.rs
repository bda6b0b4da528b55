//! A global allocator that counts, for tests and benches with a bound on memory.
//!
//! Resident memory misses pages that were asked for and never touched; requests do not.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::alloc::System;

/// The system's allocator, counting what goes through it. Install it with `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator {
    current: AtomicUsize,
    peak: AtomicUsize,
    largest: AtomicUsize,
    requests: AtomicUsize,
}

/// What happened on the heap while a function ran, all threads together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Most bytes held at one time, above those held at the start.
    pub peak: usize,
    /// Largest single request in bytes.
    pub largest: usize,
    /// Number of requests.
    pub requests: usize,
}

impl CountingAllocator {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            current: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        }
    }

    /// Runs `work` and reports what it used. The result is dropped after the count, by the caller.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Usage) {
        let before = self.current.load(Relaxed);
        self.peak.store(before, Relaxed);
        self.largest.store(0, Relaxed);
        self.requests.store(0, Relaxed);
        let out = work();
        let usage = Usage {
            peak: self.peak.load(Relaxed).saturating_sub(before),
            largest: self.largest.load(Relaxed),
            requests: self.requests.load(Relaxed),
        };
        (out, usage)
    }

    fn add(&self, len: usize) {
        let current = self.current.fetch_add(len, Relaxed) + len;
        self.peak.fetch_max(current, Relaxed);
        self.largest.fetch_max(len, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    fn sub(&self, len: usize) {
        self.current.fetch_sub(len, Relaxed);
    }
}

impl Default for CountingAllocator {
    fn default() -> Self {
        Self::new()
    }
}

// SAFETY: every call is passed on to `System` with the caller's own arguments and its answer is returned as
// it is, so `System`'s guarantees hold; the counters are atomics and never allocate.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: `layout` comes from our caller, who keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        self.sub(layout.size());
        // SAFETY: `ptr` was returned by `System` through this allocator, for this layout.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // While a block moves, both copies may exist: counted so, the figure is an upper bound.
        self.add(new_size);
        self.sub(layout.size());
        // SAFETY: `ptr`, `layout` and `new_size` come from our caller, who keeps the same contract.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}
