//! A heap of a fixed size that counts: blocks of 16 bytes, and a bit for each that is taken.

#![expect(unsafe_code, reason = "an allocator hands out pointers")]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Bytes of a block, and the strictest alignment there is.
const BLOCK: usize = 16;

/// Most blocks of any heap.
const BLOCKS: usize = 4096;

/// A heap of `LEN` bytes.
pub(crate) struct Heap<const LEN: usize> {
    memory: Memory<LEN>,
    /// 1 for a block that is taken. The processor has one core and no interrupt allocates: nothing comes between.
    taken: [AtomicU8; BLOCKS],
    current: AtomicUsize,
    peak: AtomicUsize,
}

#[repr(C, align(16))]
struct Memory<const LEN: usize>(UnsafeCell<[u8; LEN]>);

// SAFETY: the bytes are reached only through pointers that `alloc` hands out, each to bytes that no other pointer reaches until
// `dealloc` takes them back.
unsafe impl<const LEN: usize> Sync for Memory<LEN> {}

impl<const LEN: usize> Heap<LEN> {
    /// An empty heap.
    pub(crate) const fn new() -> Self {
        assert!(LEN.is_multiple_of(BLOCK) && LEN / BLOCK <= BLOCKS);
        Self {
            memory: Memory(UnsafeCell::new([0; LEN])),
            taken: [const { AtomicU8::new(0) }; BLOCKS],
            current: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Bytes in blocks that are taken now.
    pub(crate) fn current(&self) -> usize {
        self.current.load(Relaxed)
    }

    /// Most of them since the last [`restart`](Self::restart).
    pub(crate) fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// Forgets the peak.
    pub(crate) fn restart(&self) {
        self.peak.store(self.current(), Relaxed);
    }

    /// The first of `count` blocks in a row that are free.
    fn find(&self, count: usize) -> Option<usize> {
        let mut free = 0;
        for (at, block) in self.taken.iter().take(LEN / BLOCK).enumerate() {
            free = if block.load(Relaxed) == 0 { free + 1 } else { 0 };
            if free == count {
                return Some(at + 1 - count);
            }
        }
        None
    }

    fn mark(&self, first: usize, count: usize, value: u8) {
        self.taken.iter().skip(first).take(count).for_each(|block| block.store(value, Relaxed));
    }
}

// SAFETY: `alloc` gives `count * BLOCK >= layout.size()` bytes that were free and are marked before anybody else can look;
// they begin at a multiple of 16, and stricter alignments are refused. `dealloc` frees the blocks of the same layout.
unsafe impl<const LEN: usize> GlobalAlloc for Heap<LEN> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let count = layout.size().div_ceil(BLOCK);
        if layout.align() > BLOCK {
            return ptr::null_mut();
        }
        let Some(first) = self.find(count) else { return ptr::null_mut() };
        self.mark(first, count, 1);
        let current = self.current() + count * BLOCK;
        self.current.store(current, Relaxed);
        self.peak.fetch_max(current, Relaxed);
        // SAFETY: the blocks lie inside the memory.
        unsafe { self.memory.0.get().cast::<u8>().add(first * BLOCK) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let first = (ptr.addr() - self.memory.0.get().addr()) / BLOCK;
        let count = layout.size().div_ceil(BLOCK);
        self.mark(first, count, 0);
        self.current.store(self.current() - count * BLOCK, Relaxed);
    }
}
