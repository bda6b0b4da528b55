//! Random streams: what either of CPython's unpicklers accepts is accepted, with the same value, and every name that either resolves is
//! reported, also of streams that both refuse. `make_unpicklers.py` beside the vectors wrote what they do.

use core::fmt::Write;

use pickle_core::{EventKind, Framing, Limits, Machine, Value, ValueId};

#[test]
fn what_an_unpickler_does_is_done() {
    let text = String::from_utf8(super::vector("../pickle/unpicklers.txt")).expect("text");
    let mut failures = Vec::new();
    for (number, row) in text.lines().enumerate() {
        let columns: Vec<_> = row.split('\t').collect();
        let [stream, results @ ..] = columns.as_slice() else { panic!("a stream") };
        let stream = from_hex(stream);
        for (column, result) in results.iter().enumerate() {
            let framing = if column == 1 { Framing::File } else { Framing::Memory };
            let mut machine = Machine::new(stream.as_slice(), &Limits::DEFAULT).with_framing(framing);
            let (events, error) = super::events(&mut machine);
            let names: Vec<_> = events
                .iter()
                .filter_map(|event| match event.kind {
                    EventKind::Global { value } => Some(match machine.tree().value(value) {
                        Value::Global(global) => format!("{}\0{}", global.module, global.name),
                        _ => "computed".to_owned(),
                    }),
                    _ => None,
                })
                .collect();
            let root = events.iter().find_map(|event| match event.kind {
                EventKind::Stop { root } => Some(dump(&machine, root)),
                _ => None,
            });
            let mut words = result.split(' ');
            let value = words.next().expect("a value");
            let resolved: Vec<_> =
                words.map(|name| String::from_utf8_lossy(&from_hex(name)).into_owned()).collect();
            // The encoding of a string of Python 2 is the loader's choice.
            let same =
                |(ours, theirs): (&String, &String)| ours == theirs || ours == "computed" || !ours.is_ascii();
            let reported = resolved.len() <= names.len() && names.iter().zip(&resolved).all(same);
            // The tree does not contain what was done to a list by SETITEM: the event says so.
            let updated = events.iter().any(|event| matches!(event.kind, EventKind::Update { .. }));
            let accepted = value == "!"
                || (root.is_some() && updated)
                || root.as_ref().is_some_and(|root| equal(root, value));
            if !(reported && accepted) {
                failures.push(format!(
                    "{number} {column} {}: {root:?} {error:?} {names:?}\n  {result}",
                    stream.escape_ascii()
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.iter().take(20).cloned().collect::<Vec<_>>().join("\n")
    );
}

/// Objects are whatever was resolved: a string in one case, see the generator.
fn equal(ours: &str, theirs: &str) -> bool {
    let is_view = ours == "a" && theirs.starts_with('b');
    is_view || ours == theirs || ours.replace('X', "s737472696e67") == theirs.replace('X', "s737472696e67")
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn dump(machine: &Machine<&[u8]>, root: ValueId) -> String {
    let mut out = String::new();
    dump_into(machine, root, 0, &mut out);
    out
}

fn dump_into(machine: &Machine<&[u8]>, id: ValueId, depth: u32, out: &mut String) {
    if depth > 12 {
        out.push('#');
        return;
    }
    let bytes =
        |span| machine.tree().bytes(*machine.source(), span, 1 << 20).expect("in memory").into_owned();
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut out, byte| {
            write!(out, "{byte:02x}").expect("memory");
            out
        })
    };
    let mut list = |items: &mut dyn Iterator<Item = ValueId>, opening: char, closing: char| {
        out.push(opening);
        for (number, item) in items.take(20).enumerate() {
            if number > 0 {
                out.push(',');
            }
            dump_into(machine, item, depth + 1, out);
        }
        out.push(closing);
    };
    let text = match machine.tree().value(id) {
        Value::List(items) => return list(&mut { items }, '[', ']'),
        Value::Tuple(items) => return list(&mut items.iter().copied(), '(', ')'),
        Value::None => "N".to_owned(),
        Value::Bool(value) => if value { "T" } else { "F" }.to_owned(),
        Value::Int(value) if value < 0 => format!("i-{:x}", value.unsigned_abs()),
        Value::Int(value) => format!("i{value:x}"),
        Value::BigInt(span) => format!("i{}", big(&bytes(span))),
        Value::Float(value) => format!("f{:016x}", value.to_bits()),
        Value::Str(span) => format!("s{}", hex(&bytes(span))),
        Value::Str2(span) => {
            format!(
                "s{}",
                hex(bytes(span).iter().map(|byte| char::from(*byte)).collect::<String>().as_bytes())
            )
        }
        Value::Bytes(span) => format!("b{}", hex(&bytes(span))),
        Value::Buffer(_) => "b78".to_owned(),
        // A view of one is dumped as bytes.
        Value::ByteArray(_) => "a".to_owned(),
        Value::Dict(_) => "D".to_owned(),
        Value::Set(_) | Value::FrozenSet(_) => "S".to_owned(),
        _ => "X".to_owned(),
    };
    out.push_str(&text);
}

fn big(bytes: &[u8]) -> String {
    let negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
    let mut fill = [if negative { 0xff } else { 0 }; 16];
    assert!(bytes.len() <= 16 || bytes[16..].iter().all(|byte| *byte == fill[0]), "the vectors' largest");
    fill.iter_mut().zip(bytes).for_each(|(out, byte)| *out = *byte);
    let value = i128::from_le_bytes(fill);
    format!("{}{:x}", if value < 0 { "-" } else { "" }, value.unsigned_abs())
}
