//! A global allocator that counts.
//!
//! Resident memory misses pages that were asked for and never touched; requests do not.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::alloc::System;

/// The system's allocator, counting what goes through it. Install it with `#[global_allocator]`.
#[derive(Debug)]
pub struct CountingAllocator {
    all_threads: Counts,
}

/// What happened on the heap while a function ran.
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
        Self { all_threads: Counts::new() }
    }

    /// Runs `work` and reports what it used, and what other threads used meanwhile. The result is dropped after the count, by the caller.
    pub fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Usage) {
        self.all_threads.measure(work)
    }

    /// The same of the current thread alone, for tests that run beside each other.
    pub fn measure_thread<T>(&self, work: impl FnOnce() -> T) -> (T, Usage) {
        THIS_THREAD.with(|counts| counts.measure(work))
    }

    fn add(&self, len: usize) {
        self.all_threads.add(len);
        // Not counted: what a thread frees while it ends.
        let _ = THIS_THREAD.try_with(|counts| counts.add(len));
    }

    fn sub(&self, len: usize) {
        self.all_threads.sub(len);
        let _ = THIS_THREAD.try_with(|counts| counts.sub(len));
    }
}

impl Default for CountingAllocator {
    fn default() -> Self {
        Self::new()
    }
}

thread_local! {
    static THIS_THREAD: Counts = const { Counts::new() };
}

#[derive(Debug)]
struct Counts {
    /// Below zero in a thread that frees what another one requested.
    current: AtomicIsize,
    peak: AtomicIsize,
    largest: AtomicUsize,
    requests: AtomicUsize,
}

impl Counts {
    const fn new() -> Self {
        Self {
            current: AtomicIsize::new(0),
            peak: AtomicIsize::new(0),
            largest: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
        }
    }

    fn measure<T>(&self, work: impl FnOnce() -> T) -> (T, Usage) {
        let before = self.current.load(Relaxed);
        self.peak.store(before, Relaxed);
        self.largest.store(0, Relaxed);
        self.requests.store(0, Relaxed);
        let out = work();
        let usage = Usage {
            peak: usize::try_from(self.peak.load(Relaxed) - before).unwrap_or(0),
            largest: self.largest.load(Relaxed),
            requests: self.requests.load(Relaxed),
        };
        (out, usage)
    }

    // A request has at most `isize::MAX` bytes.
    fn add(&self, len: usize) {
        let current = self.current.fetch_add(len.cast_signed(), Relaxed) + len.cast_signed();
        self.peak.fetch_max(current, Relaxed);
        self.largest.fetch_max(len, Relaxed);
        self.requests.fetch_add(1, Relaxed);
    }

    fn sub(&self, len: usize) {
        self.current.fetch_sub(len.cast_signed(), Relaxed);
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
