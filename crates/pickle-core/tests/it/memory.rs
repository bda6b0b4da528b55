//! Memory is bounded by the length of the stream, whatever it claims.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use std::alloc::System;

use pickle_core::{Limits, Machine};

struct Counting;

thread_local! {
    static USED: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
}

fn count(change: i64) {
    let _ = USED.try_with(|used| {
        let (now, peak) = used.get();
        used.set((now + change, peak.max(now + change)));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The largest amount of memory in use while a stream is read, above what was in use before.
fn peak(stream: &[u8]) -> i64 {
    let before = USED.with(|used| {
        used.set((used.get().0, used.get().0));
        used.get().0
    });
    let mut machine = Machine::new(stream, &Limits::DEFAULT);
    while machine.next_event().is_ok() {}
    drop(machine);
    USED.with(Cell::get).1 - before
}

#[test]
fn streams_of_one_opcode_take_what_is_documented() {
    let len = 2 << 20;
    let repeated = |start: &[u8], piece: &[u8]| [start, &piece.repeat(len / piece.len())].concat();
    for (name, stream) in [
        ("lists", repeated(b"", b"]")),
        ("nested lists", [vec![b']'; len / 2], vec![b'a'; len / 2 - 1], b".".to_vec()].concat()),
        ("items", repeated(b"]", b"Na")),
        ("lists of one", repeated(b"", b"]Na")),
        ("memoized", repeated(b"N", b"\x94")),
        ("memo by index", repeated(b"N", b"r\x20\0\0\0")),
        ("tuples", repeated(b"N", b"\x85")),
        ("strings", repeated(b"", b"\x8c\0")),
        ("integers", repeated(b"", b"\x8a\0")),
        ("big integers", repeated(b"", b"L99999999999999999999\n")),
        ("floats in text", repeated(b"", b"F1\n")),
        ("calls", repeated(b"cm\nn\n", b"2)R")),
        ("states", repeated(b"cm\nn\n)R", b"Nb")),
        ("globals", repeated(b"", b"cm\nn\n")),
        ("short globals", repeated(b"", b"c\n\n")),
        (
            "names from the memo",
            repeated(&[b"\x8d\0\x10\0\0\0\0\0\0".as_slice(), &[b'a'; 4096], b"\x94"].concat(), b"h\0h\0\x93"),
        ),
        ("marks", vec![b'('; 1 << 20]),
        ("escapes", repeated(b"", b"V\\u0041\n")),
    ] {
        let peak = peak(&stream);
        let allowed = (8 << 20) + 24 * stream.len() as i64;
        assert!(peak <= allowed, "{name}: {peak} bytes for {}", stream.len());
    }
    // A sparse memo: four bytes of index each.
    let mut sparse = b"N".to_vec();
    (0..len as u32 / 5)
        .for_each(|index| sparse.extend([b"r".as_slice(), &(index * 997 + 500).to_le_bytes()].concat()));
    assert!(peak(&sparse) <= (8 << 20) + 24 * sparse.len() as i64);
}

#[test]
fn deep_and_cyclic_trees_are_dropped_without_recursion() {
    let nested = [b"\x80\x02".as_slice(), &b"]".repeat(60_000), &b"a".repeat(59_999), b"."].concat();
    let tuples = [b"\x80\x02)".as_slice(), &b"\x85".repeat(200_000), b"."].concat();
    let marks = [b"\x80\x02".as_slice(), &b"(".repeat(1_000_000), b"."].concat();
    for (stream, ok) in
        [(nested.as_slice(), true), (&tuples, true), (&marks, false), (b"\x80\x02]q\0h\0a.", true)]
    {
        assert_eq!(Machine::new(stream, &Limits::DEFAULT).finish().is_ok(), ok);
    }
}
