//! Memory is bounded by the length of the stream, whatever it claims.

use pickle_core::{Limits, Machine};
use test_meter::CountingAllocator;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// The largest amount of memory in use while a stream is read, above what was in use before.
fn peak(stream: &[u8]) -> usize {
    let ((), usage) = HEAP.measure_thread(|| {
        let mut machine = Machine::new(stream, &Limits::DEFAULT);
        while machine.next_event().is_ok() {}
    });
    usage.peak
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
        let allowed = (8 << 20) + 24 * stream.len();
        assert!(peak <= allowed, "{name}: {peak} bytes for {}", stream.len());
    }
    // A sparse memo: four bytes of index each.
    let mut sparse = b"N".to_vec();
    (0..len as u32 / 5)
        .for_each(|index| sparse.extend([b"r".as_slice(), &(index * 997 + 500).to_le_bytes()].concat()));
    assert!(peak(&sparse) <= (8 << 20) + 24 * sparse.len());
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
