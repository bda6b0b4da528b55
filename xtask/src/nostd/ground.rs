#![no_std]

extern crate alloc;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

/// The least an allocator can do. The library is linked, never run.
struct NoMemory;

// SAFETY: an allocator returns a null pointer if there is no memory; nothing is ever allocated, so nothing is freed.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: NoMemory = NoMemory;

#[panic_handler]
fn stop(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// The symbol a C program would call: it keeps `call`, and what `call` uses, in the library.
#[unsafe(no_mangle)]
pub extern "C" fn nostd_probe(bytes: *const u8, len: usize) -> usize {
    // SAFETY: the library is linked, never run.
    call(unsafe { core::slice::from_raw_parts(bytes, len) })
}
