//! Sources that are not in memory: the same events, and strings and bytes are not read.

use core::cell::Cell;

use pickle_core::{Limits, Machine, Value};
use read_at::{Error, ReadAt};

/// Bytes that count how many of them are read.
struct Counting<'a> {
    bytes: &'a [u8],
    read: Cell<u64>,
}

impl ReadAt for Counting<'_> {
    fn total_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        self.read.set(self.read.get() + out.len() as u64);
        self.bytes.read_exact_at(offset, out)
    }
}

#[test]
fn a_reader_sees_what_memory_sees() {
    let long =
        [b"\x80\x04(".as_slice(), &b"X\x03\0\0\0abc\x94".repeat(20_000), &b"cm\nn\n".repeat(9_000), b"t."]
            .concat();
    let mut surrogates = b"\x80\x04X\xff\xff\x03\0".to_vec();
    surrogates.extend("ab\u{1f600}".repeat(50_000).as_bytes());
    for pickle in [
        long.as_slice(),
        &surrogates,
        // An opcode begins wherever a window ends.
        &[b"(".as_slice(), &b"N".repeat(200_000), b"t."].concat(),
        &super::vector("joblib/sk_forest.pkl"),
        &super::vector("pickle/dict_proto0.pkl"),
    ] {
        let mut memory = Machine::new(pickle, &Limits::DEFAULT);
        let mut reader = Machine::new(Counting { bytes: pickle, read: Cell::new(0) }, &Limits::DEFAULT);
        assert_eq!(super::events(&mut memory), super::events(&mut reader));
        assert_eq!((memory.position(), memory.opcodes()), (reader.position(), reader.opcodes()));
    }
}

#[test]
fn arrays_are_passed_over() {
    let array = vec![7; 100 << 20];
    let len = (array.len() as u32).to_le_bytes();
    let pickle = [b"\x80\x03]B".as_slice(), &len, &array, b"a."].concat();
    let mut machine = Machine::new(Counting { bytes: &pickle, read: Cell::new(0) }, &Limits::DEFAULT);
    let root = machine.finish().expect("a list");
    assert!(machine.source().read.get() < 200 << 10, "{}", machine.source().read.get());
    let Value::List(mut items) = machine.tree().value(root) else { panic!("a list") };
    let Some(Value::Bytes(span)) = items.next().map(|id| machine.tree().value(id)) else { panic!("bytes") };
    assert_eq!(span.range(), Some(8..8 + array.len() as u64));
    let error = machine.tree().bytes(machine.source(), span, 1024).expect_err("above the limit");
    assert_eq!(error.code(), "pk-limit");
}
