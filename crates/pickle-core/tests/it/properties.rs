//! Any bytes.

use pickle_core::{EventKind, Limits, Machine, Value, ValueId};
use proptest::prelude::*;

/// Opcodes more often than other bytes.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"(",
        b")",
        b".",
        b"0",
        b"1",
        b"2",
        b"N",
        b"]",
        b"}",
        b"\x8f",
        b"a",
        b"b",
        b"d",
        b"e",
        b"l",
        b"o",
        b"s",
        b"t",
        b"u",
        b"R",
        b"Q",
        b"\x81",
        b"\x85",
        b"\x86",
        b"\x87",
        b"\x90",
        b"\x91",
        b"\x92",
        b"\x93",
        b"\x94",
        b"\x97",
        b"\x98",
        b"h\0",
        b"q\0",
        b"K\x01",
        b"\x8c\x02os",
        b"\x8c\x01a",
        b"cos\nsystem\n",
        b"iposix\nx\n",
        b"S'a'\n",
        b"I1\n",
        b"p1\n",
        b"g1\n",
        b"\x82\x01",
        b"\x95\x05\0\0\0\0\0\0\0",
        b"\x80\x04",
        b"C\x01a",
        b"Pa\n",
    ];
    let piece = prop_oneof![
        8 => proptest::sample::select(pieces).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 1..6),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_stream_ends_in_a_root_or_an_error_inside_it(stream in streams()) {
        let mut machine = Machine::new(stream.as_slice(), &Limits::DEFAULT);
        let (events, error) = super::events(&mut machine);
        prop_assert!(events.is_sorted_by_key(|event| event.offset));
        match error {
            None => prop_assert!(matches!(events.last(), Some(event) if stream[event.offset as usize] == b'.')),
            Some((_, offset)) => prop_assert!(offset.is_some_and(|offset| offset <= stream.len() as u64)),
        }
        for event in &events {
            prop_assert!(stream[event.offset as usize] == event.opcode.0);
        }
        let mut ids: Vec<ValueId> = events.iter().filter_map(|event| match event.kind {
            EventKind::Call { object: id } | EventKind::Stop { root: id } | EventKind::Global { value: id } => Some(id),
            _ => None,
        }).collect();
        // Every value that can be reached is a value of the tree: cycles are visited once.
        let mut seen = vec![false; machine.tree().len()];
        while let Some(id) = ids.pop() {
            if core::mem::replace(&mut seen[id.index()], true) {
                continue;
            }
            match machine.tree().value(id) {
                Value::List(items) | Value::Set(items) => ids.extend(items),
                Value::Tuple(items) | Value::FrozenSet(items) => ids.extend(items),
                Value::Dict(entries) => ids.extend(entries.flat_map(|(key, value)| [key, value])),
                Value::Object(object) => ids.extend([object.callable, object.args]),
                Value::Persistent(id) => ids.push(id),
                Value::Computed { module, name } => ids.extend([module, name]),
                Value::Str(span) | Value::Str2(span) | Value::Bytes(span) | Value::BigInt(span) => {
                    prop_assert!(machine.tree().bytes(stream.as_slice(), span, 1 << 20).is_ok());
                }
                _ => {}
            }
        }
    }

    /// A prefix of a stream reports a prefix of its events.
    #[test]
    fn what_was_reported_before_a_break_stays_reported(stream in streams(), cut in 0_usize..400) {
        let whole = super::told(&stream);
        let part = super::told(&stream[..cut.min(stream.len())]);
        let complete = &part[..part.len().saturating_sub(1)];
        // The last line of a truncated name is cut by a byte, as the Python unpickler does; a frame may be longer than the prefix.
        let kept = complete.iter().filter(|event| !event.ends_with("frame mismatch"));
        for event in kept {
            let offset = event.split(' ').next();
            prop_assert!(whole.iter().any(|other| other.split(' ').next() == offset), "{event} {whole:?}");
        }
    }
}
