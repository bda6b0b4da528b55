//! Arrays between opcodes.

use pickle_core::joblib::{Content, Order, pass, raw_array};
use pickle_core::{EventKind, Limits, Machine, Value};

/// Offset and length of the elements, and the shape.
type Array = (u64, u64, Vec<u64>);

/// All arrays, and the error.
fn arrays(stream: &[u8]) -> (Vec<Array>, Option<&'static str>) {
    let mut machine = Machine::new(stream, &Limits::DEFAULT);
    let mut found = Vec::new();
    let mut read = || loop {
        match machine.next_event()?.kind {
            EventKind::Stop { .. } => {
                assert_eq!(machine.rest(), 0, "the whole stream");
                return Ok::<_, pickle_core::Error>(());
            }
            EventKind::Build { target, .. } => {
                let Some(array) = raw_array(&machine, target)? else { continue };
                assert!(matches!(machine.tree().value(array.dtype), Value::Object(_)));
                if array.content == Content::Pickle {
                    let mut inner = Machine::at(*machine.source(), machine.position(), &Limits::DEFAULT);
                    inner.finish()?;
                    let len = inner.position() - machine.position();
                    machine.skip(len)?;
                    continue;
                }
                let range = pass(&mut machine, &array)?;
                found.push((range.start, range.end - range.start, array.shape));
            }
            _ => {}
        }
    };
    let error = read().err().map(|error| error.code());
    (found, error)
}

#[test]
fn files_of_joblib_are_read_to_the_end() {
    for (name, count) in [("dict_plain", 7), ("sk_logreg", 4), ("sk_forest", 13), ("sk_pipeline", 8)] {
        let (found, error) = arrays(&super::vector(&format!("joblib/{name}.joblib")));
        assert_eq!(error, None, "{name}: {found:?}");
        assert!(found.len() >= count.min(1), "{name}: {found:?}");
        assert!(found.iter().all(|(start, ..)| start % 16 == 0), "{name}: {found:?}");
    }
}

#[test]
fn opcodes_after_an_array_are_seen() {
    let stream = super::vector("hostile/numpy/after_array.joblib");
    let mut machine = Machine::new(stream.as_slice(), &Limits::DEFAULT);
    let mut names = Vec::new();
    while let Ok(event) = machine.next_event() {
        match event.kind {
            EventKind::Build { target, .. } => {
                if let Some(array) = raw_array(&machine, target).expect("an array") {
                    assert!(matches!(array.content, Content::PaddedBytes(_)) && array.order == Order::C);
                    pass(&mut machine, &array).expect("its bytes");
                }
            }
            EventKind::Global { value } => match machine.tree().value(value) {
                Value::Global(global) => names.push((event.offset, global.to_string())),
                other => panic!("{other:?}"),
            },
            _ => {}
        }
    }
    assert!(names.contains(&(509, "builtins.exec".to_owned())), "{names:?}");
}

/// A wrapper with the given shape and type, and what follows its `BUILD`.
fn wrapper(shape: &[u8], dtype: &[u8], after: &[u8]) -> Vec<u8> {
    [
        b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(\x8c\x05shape".as_slice(),
        shape,
        b"\x8c\x05order\x8c\x01C\x8c\x05dtypecnumpy\ndtype\n",
        dtype,
        b"ub",
        after,
    ]
    .concat()
}

const F4: &[u8] = b"\x8c\x02f4\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb";

#[test]
fn lengths_are_computed_or_refused() {
    assert_eq!(arrays(&wrapper(b"K\x02\x85", F4, b"12345678.")).1, None);
    assert_eq!(arrays(&wrapper(b")", F4, b"1234.")).1, None);
    assert_eq!(arrays(&wrapper(b"K\0\x85", F4, b".")).1, None);
    assert_eq!(arrays(&wrapper(b"K\x02\x85", F4, b"1234.")).1, Some("pk-truncated"));
    let refused = [
        wrapper(b"J\xff\xff\xff\xff\x85", F4, b"."),
        wrapper(b"N", F4, b"."),
        wrapper(b"\x8a\x08\0\0\0\0\0\0\0\x40K\x04\x86", F4, b"."),
        wrapper(b"K\x01\x85", &F4.to_vec().replacen(b"f4", b"f9"), b"123456789."),
        wrapper(b"K\x01\x85", &F4.to_vec().replacen(b"f4", b"V4"), b"1234."),
        wrapper(b"K\x01\x85", b"\x8c\x02f4\x85R", b"1234."),
    ];
    for (number, stream) in refused.iter().enumerate() {
        let expected = if number == 3 { None } else { Some("pk-array") };
        assert_eq!(arrays(stream).1, expected, "{number}");
    }
}

/// What is stored for an array of two elements of a type, if it is understood.
fn content(dtype: &[u8]) -> Option<Content> {
    stored(&wrapper(b"K\x02\x85", dtype, b".")).map(|(content, _)| content)
}

/// The same for the last `BUILD` of a stream.
fn stored(stream: &[u8]) -> Option<(Content, Order)> {
    let mut machine = Machine::new(stream, &Limits::DEFAULT);
    let mut found = None;
    while let Ok(event) = machine.next_event() {
        if let EventKind::Build { target, .. } = event.kind {
            found = raw_array(&machine, target).ok().flatten().map(|array| (array.content, array.order));
        }
    }
    found
}

/// `dtype(code)` with subarray, names, fields and a size of 6.
fn dtype(code: &str, layout: [&[u8]; 3], flags: u8) -> Vec<u8> {
    sized(code, layout, 6, flags)
}

fn sized(code: &str, layout: [&[u8]; 3], size: u8, flags: u8) -> Vec<u8> {
    let code = [&[0x8c, code.len() as u8], code.as_bytes()].concat();
    [
        &code,
        b"\x89\x88\x87R(K\x03\x8c\x01|".as_slice(),
        &layout.concat(),
        &[b'K', size, b'K', 1, b'K', flags],
        b"tb",
    ]
    .concat()
}

/// A structure of one field.
fn structure(field: &[u8], flags: u8) -> Vec<u8> {
    fields(&[(field, 0)], flags)
}

/// A structure of fields at these offsets, in 20 bytes.
fn fields(of: &[(&[u8], u8)], flags: u8) -> Vec<u8> {
    let mut fields = b"}(".to_vec();
    for (name, (field, offset)) in (b'a'..).zip(of) {
        fields.extend(
            [&[0x8c, 1, name], b"cnumpy\ndtype\n".as_slice(), field, &[b'K', *offset, 0x86]].concat(),
        );
    }
    fields.push(b'u');
    sized("V20", [b"N", b"\x8c\x01a\x85", &fields], 20, flags)
}

const F4_TYPE: &[u8] = b"cnumpy\ndtype\n";

#[test]
fn types_are_elements_or_objects_or_not_understood() {
    const NONE: [&[u8]; 3] = [b"N"; 3];
    let objects = dtype("O8", NONE, 0x3f);
    for (number, (dtype, expected)) in [
        (objects.clone(), Some(Content::Pickle)),
        (dtype("V6", NONE, 0), Some(Content::Bytes(12))),
        (dtype("|S6", NONE, 0), Some(Content::Bytes(12))),
        (dtype("S6", NONE, 1), None),
        (dtype("S6", [b"K\x01", b"N", b"N"], 0), None),
        (dtype("f32", NONE, 0), Some(Content::Bytes(64))),
        (dtype("f33", NONE, 0), None),
        (dtype("f0", NONE, 0), None),
        (structure(F4, 0), Some(Content::Bytes(40))),
        (fields(&[(F4, 0), (F4, 16)], 0), Some(Content::Bytes(40))),
        (fields(&[(F4, 0), (F4, 17)], 0), None),
        (fields(&[(F4, 0), (F4, 2)], 0), Some(Content::Bytes(40))),
        (fields(&[(&objects, 0), (F4, 8)], 0x1b), Some(Content::Pickle)),
        (fields(&[(&objects, 0), (F4, 4)], 0x1b), None),
        (fields(&[(&objects, 13)], 0x1b), None),
        // A title names the same field again, but by the same type: here are two.
        (fields(&[(&objects, 0), (&objects, 0)], 0x1b), None),
        (structure(F4, 1), None),
        (structure(&objects, 0x1b), Some(Content::Pickle)),
        (structure(&objects, 1), None),
        (structure(&objects, 0), None),
        // Flags of objects on numbers and texts, and objects without them.
        (dtype("f8", NONE, 0x3f), None),
        (dtype("f8", NONE, 1), None),
        (dtype("U6", NONE, 2), None),
        (dtype("U6", NONE, 8), Some(Content::Bytes(12))),
        (dtype("f8", NONE, 0x40), Some(Content::Bytes(16))),
        (dtype("O8", NONE, 0), None),
        (dtype("O8", NONE, 1), None),
        // Rows of one type.
        (dtype("V6", [&[F4_TYPE, F4, b"K\x01\x85\x86"].concat(), b"N", b"N"], 0), Some(Content::Bytes(12))),
        (dtype("V6", [&[F4_TYPE, &objects, b"K\x02\x85\x86"].concat(), b"N", b"N"], 0), None),
        (dtype("V6", [&[F4_TYPE, F4, b"K\x03\x85\x86"].concat(), b"N", b"N"], 0), None),
        (structure(&dtype("x1", NONE, 0), 0), None),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(content(&dtype), expected, "{number}");
    }
    // Structures of structures.
    let nested = |depth: usize| (0..depth).fold(F4.to_vec(), |field, _| structure(&field, 0));
    assert_eq!((content(&nested(7)), content(&nested(8))), (Some(Content::Bytes(40)), None));
    let other = wrapper(b"K\x02\x85", F4, b".").replacen(b"cnumpy\ndtype", b"cnumpy\nDtype");
    assert_eq!(stored(&other), None);
}

#[test]
fn attributes_of_arrays_are_few_and_known() {
    let bytes = Content::Bytes(8);
    let with = |from: &[u8], to: &[u8]| stored(&wrapper(b"K\x02\x85", F4, b".").replacen(from, to));
    let order = b"\x8c\x05order\x8c\x01C".as_slice();
    assert_eq!(with(order, order), Some((bytes, Order::C)));
    assert_eq!(with(order, b"\x8c\x05order\x8c\x01F"), Some((bytes, Order::Fortran)));
    assert_eq!(with(order, b"\x8c\x05order\x8c\x01A"), None);
    // Other keys are none of joblib: one may hide a method, or be any when it is computed.
    assert_eq!(with(order, b"\x8c\x04readN"), None);
    assert_eq!(with(order, b"cbuiltins\nstr\n\x8c\x05dtype\x85RN"), None);
    let entries = |count: usize| with(order, &b"\x8c\x0aallow_mmapN".repeat(count));
    assert_eq!((entries(62), entries(63)), (Some((bytes, Order::C)), None));
    let states =
        |count: usize| stored(&wrapper(b"K\x02\x85", F4, &[&b"}b".repeat(count), b".".as_slice()].concat()));
    assert_eq!((states(3), states(4)), (Some((bytes, Order::C)), None));
}

#[test]
fn bytes_inside_a_frame_are_refused() {
    let inner = &wrapper(b"K\x01\x85", F4, b"")[2..];
    let stream = |extra: usize| {
        let len = (inner.len() + extra) as u64;
        [b"\x80\x04\x95".as_slice(), &len.to_le_bytes(), inner, b"1234."].concat()
    };
    assert_eq!(arrays(&stream(0)).1, None);
    assert_eq!(arrays(&stream(2)).1, Some("pk-raw-in-frame"));
}

/// `replace` for bytes.
trait Replace {
    fn replacen(&self, from: &[u8], to: &[u8]) -> Vec<u8>;
}

impl Replace for Vec<u8> {
    fn replacen(&self, from: &[u8], to: &[u8]) -> Vec<u8> {
        let at = self.windows(from.len()).position(|window| window == from).expect("it is there");
        [&self[..at], to, &self[at + from.len()..]].concat()
    }
}
