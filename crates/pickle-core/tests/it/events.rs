//! What is reported, with the offset of its opcode.

use super::told;

#[test]
fn every_way_to_call_is_reported() {
    for (pickle, expected) in [
        (
            b"cos\nsystem\n(S':'\ntR.".as_slice(),
            &["0 GLOBAL os.system", "18 REDUCE os.system()", "19 STOP os.system()"][..],
        ),
        (b"(S':'\nios\nsystem\n.", &["6 INST os.system", "6 INST os.system()", "17 STOP os.system()"]),
        (b"(cos\nsystem\nS':'\no.", &["1 GLOBAL os.system", "17 OBJ os.system()", "18 STOP os.system()"]),
        (b"\x80\x02cm\nc\n)\x81}b.", &["2 GLOBAL m.c", "8 NEWOBJ m.c()", "10 BUILD m.c()", "11 STOP m.c()"]),
        (b"\x80\x04cm\nc\n)}\x92.", &["2 GLOBAL m.c", "9 NEWOBJ_EX m.c()", "10 STOP m.c()"]),
        (b"\x82\x01)R.", &["0 EXT1 extension 1", "3 REDUCE ?", "4 STOP ?"]),
        (b"cm\nf\nNb.", &["0 GLOBAL m.f", "6 BUILD m.f", "7 STOP m.f"]),
        (b"cm\nc\n)RNa.", &["0 GLOBAL m.c", "6 REDUCE m.c()", "8 APPEND m.c()", "9 STOP m.c()"]),
        (b"]K\x00Ns.", &["4 SETITEM List", "5 STOP List"]),
        (
            b"\x96\x01\0\0\0\0\0\0\0aK\x01aK\0K\x01s.",
            &["12 APPEND ByteArray", "17 SETITEM ByteArray", "18 STOP ByteArray"],
        ),
        (b"\x83\x01\x02.", &["0 EXT2 extension 513", "3 STOP extension 513"]),
        (b"\x84\x01\x02\x03\x04.", &["0 EXT4 extension 67305985", "5 STOP extension 67305985"]),
        (b"Pid\n.", &["0 PERSID Persistent", "4 STOP Persistent"]),
        (b"\x97\x98.", &["0 NEXT_BUFFER Buffer", "2 STOP Buffer"]),
        // Reported, although no unpickler gets further.
        (b"ios\nsystem\n", &["0 INST os.system", "0 pk-mark"]),
        (b"cos\nsystemX", &["0 GLOBAL os.system", "0 pk-truncated"]),
        (b"cos\nsystem\n)R", &["0 GLOBAL os.system", "12 REDUCE os.system()", "13 pk-truncated"]),
    ] {
        assert_eq!(told(pickle), expected, "{}", pickle.escape_ascii());
    }
}

#[test]
fn names_are_found_however_they_are_spelled() {
    let strings = [
        b"\x8c\x02os\x8c\x06system".as_slice(),
        b"X\x02\0\0\0osX\x06\0\0\0system",
        b"\x8d\x02\0\0\0\0\0\0\0osVsystem\n",
        b"V\\u006fs\nV\\U00000073ystem\n",
        b"S'o\\163'\nS\"\\x73ystem\"\n",
        b"U\x02osT\x06\0\0\0system",
        // By the memo: MEMOIZE takes the number of distinct entries.
        b"\x8c\x02osq\x05\x8c\x06system\x94h\x05h\x01",
        // Decoys between them.
        b"\x8c\x02os\x8c\x06systemN0(NN1",
    ];
    for operands in strings {
        let pickle = [operands, b"\x93."].concat();
        let told = told(&pickle);
        assert!(told[0].ends_with("STACK_GLOBAL os.system"), "{told:?}");
    }
    let computed = b"\x80\x04cm\nf\n)R\x8c\x06system\x93.";
    assert!(told(computed).iter().any(|event| event == "17 STACK_GLOBAL computed"), "{:?}", told(computed));
}

#[test]
fn frames_are_followed_by_opcodes_and_compared() {
    let frame = |len: u8| [b"\x80\x04\x95", [len].as_slice(), b"\0\0\0\0\0\0\0"].concat();
    for (len, rest, mismatch) in [
        (3, b"]N.".as_slice(), false),
        (2, b"]N.", false),
        (0, b"]N.", false),
        (4, b"]N.", true),
        (2, b"\x8c\x01a.", false),
        (3, b"\x8c\x02ab.", true),
        (9, b"]\x95\x01\0\0\0\0\0\0\0.", true),
        (2, b"].N", false),
        (3, b"].N", true),
        (12, b"]\x95\x01\0\0\0\0\0\0\0N.", true),
        // The bytes of a bytes object: after the frame, partly in it, in it.
        (2, b"C\x02ab.", false),
        (3, b"C\x02ab.", true),
        (4, b"C\x02ab.", false),
    ] {
        let told = told(&[&frame(len), rest].concat());
        assert_eq!(told.iter().any(|event| event.ends_with("frame mismatch")), mismatch, "{len} {told:?}");
        assert!(told.last().is_some_and(|last| last.contains("STOP")), "{told:?}");
    }
}

#[test]
fn a_frame_of_a_file_is_there_as_a_whole() {
    use pickle_core::{Framing, Limits, Machine};

    for (len, error) in [(1, None), (2, None), (3, Some(("pk-truncated", Some(2))))] {
        let pickle = [b"\x80\x04\x95".as_slice(), &[len, 0, 0, 0, 0, 0, 0, 0], b"N."].concat();
        let machine = Machine::new(pickle.as_slice(), &Limits::DEFAULT);
        assert_eq!(super::events(&mut machine.with_framing(Framing::File)).1, error, "{len}");
    }
}

#[test]
fn several_pickles_follow_each_other() {
    use pickle_core::{EventKind, Limits, Machine, Value};

    // The first five bytes of PyTorch's format before 1.6, and what is after them.
    let stream = super::vector("torch/legacy_sd.pth");
    let mut machine = Machine::new(stream.as_slice(), &Limits::DEFAULT);
    let mut roots = Vec::new();
    while roots.len() < 5 {
        if let EventKind::Stop { root } = machine.next_event().expect("a pickle").kind {
            roots.push(root);
            machine.next_pickle().expect("it has ended");
        }
    }
    assert!(matches!(machine.tree().value(roots[0]), Value::BigInt(span) if span.len() == 10));
    assert!(matches!(machine.tree().value(roots[1]), Value::Int(1001)));
    assert!(matches!(machine.tree().value(roots[4]), Value::List(keys) if !keys.is_empty()));
    assert!(machine.next_pickle().is_err(), "it has not ended");
    // Nor is its frame.
    let framed = b"\x80\x04\x95\x20\0\0\0\0\0\0\0N.\x80\x04\x95\x02\0\0\0\0\0\0\0N.";
    let mut machine = Machine::new(framed.as_slice(), &Limits::DEFAULT);
    machine.finish().expect("a pickle");
    machine.next_pickle().expect("it has ended");
    assert_eq!(super::events(&mut machine).0.len(), 1, "no mismatch");
    // The memo of one is not that of the next.
    let mut machine = Machine::new(b"Nq\0.h\0.".as_slice(), &Limits::DEFAULT);
    machine.finish().expect("a pickle");
    assert!(machine.next_event().is_err());
    machine.next_pickle().expect("it has ended");
    assert_eq!(machine.next_event().expect_err("no entry").code(), "pk-memo");
}
