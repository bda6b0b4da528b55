//! What no unpickler accepts, with the kind and the offset of the opcode.

use super::told;

#[test]
fn each_refusal_names_its_kind_and_its_opcode() {
    for (pickle, expected) in [
        (b"".as_slice(), "0 pk-truncated"),
        (b"N", "1 pk-truncated"),
        (b"\x80", "0 pk-truncated"),
        (b"NX\x05\0\0\0ab", "1 pk-truncated"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", "0 pk-truncated"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\xff.", "0 pk-length"),
        (b"\x8b\xff\xff\xff\xff.", "0 pk-length"),
        (b"\x8b\xff\xff\xff\x7f.", "0 pk-truncated"),
        (b"T\xff\xff\xff\xffa", "0 pk-truncated"),
        (b"I1", "0 pk-truncated"),
        (b"N\xff.", "1 pk-opcode"),
        (b"N\x00.", "1 pk-opcode"),
        (b"\x80\x06N.", "0 pk-protocol"),
        (b".", "0 pk-stack"),
        (b"N(.", "2 pk-stack"),
        (b"N(\x85.", "2 pk-stack"),
        (b"R", "0 pk-stack"),
        (b"NR", "1 pk-stack"),
        (b"Na", "1 pk-stack"),
        (b"Nb", "1 pk-stack"),
        (b"(Ne", "2 pk-stack"),
        (b"](Na.", "3 pk-stack"),
        (b"C\x01a", "3 pk-truncated"),
        (b"\x8c\x01a", "3 pk-truncated"),
        (b"\x96\x01\0\0\0\0\0\0\0a(N\x90.", "12 pk-operand"),
        (b"(o", "1 pk-stack"),
        (b"0", "0 pk-stack"),
        (b"2", "0 pk-stack"),
        (b"q\0", "0 pk-stack"),
        (b"\x94", "0 pk-stack"),
        (b"\x98", "0 pk-stack"),
        (b"Nt.", "1 pk-mark"),
        (b"N1", "1 pk-mark"),
        (b"Ne", "1 pk-mark"),
        (b"h\x00.", "0 pk-memo"),
        (b"Nq\0g1\n", "3 pk-memo"),
        (b"Np-1\n.", "1 pk-memo-index"),
        (b"Npx\n.", "1 pk-memo-index"),
        (b"I\n.", "0 pk-text"),
        (b"Ix\n.", "0 pk-text"),
        (b"F\n.", "0 pk-text"),
        (b"Sab\n.", "0 pk-text"),
        (b"S'\n.", "0 pk-text"),
        (b"S'\\x4'\n.", "0 pk-text"),
        (b"V\\u12\n.", "0 pk-text"),
        (b"\x8c\x01\xff.", "0 pk-text"),
        (b"\x8c\x02\xed\xa0.", "0 pk-text"),
        (b"c\xff\na\n.", "0 pk-text"),
        ("(ié\na\n.".as_bytes(), "1 pk-text"),
        (b"(Nd.", "2 pk-operand"),
        (b"}(Nu.", "3 pk-operand"),
        (b"NNa.", "2 pk-operand"),
        (b"}Na.", "2 pk-operand"),
        (b"\x8fNa.", "2 pk-operand"),
        (b")NNs.", "3 pk-operand"),
        (b"](N\x90.", "3 pk-operand"),
        (b"K\x01K\x02\x93.", "4 pk-operand"),
        (b"C\x02osC\x06system\x93.", "12 pk-operand"),
        (b"\x82\x00.", "0 pk-extension"),
        (b"\x84\xff\xff\xff\xff.", "0 pk-extension"),
    ] {
        assert_eq!(told(pickle).last().map(String::as_str), Some(expected), "{}", pickle.escape_ascii());
    }
}

#[test]
fn each_limit_is_kept() {
    use pickle_core::{ErrorKind, Limits, Machine};

    let exceeded = |pickle: &[u8], change: fn(&mut Limits)| {
        let mut limits = Limits::DEFAULT;
        change(&mut limits);
        match Machine::new(pickle, &limits).finish().expect_err("above a limit").kind() {
            ErrorKind::Limit { limit, allowed } => (*limit, *allowed),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(exceeded(b"NNN.", |limits| limits.opcodes = 3), ("opcodes", 3));
    assert_eq!(exceeded(b"]]].", |limits| limits.values = 6), ("values", 6));
    assert_eq!(exceeded(b"Nq\0q\x01q\x01q\x02.", |limits| limits.memo = 2), ("memo", 2));
    assert_eq!(exceeded(b"(((", |limits| limits.marks = 2), ("marks", 2));
    assert_eq!(exceeded(b"L123\n.", |limits| limits.integer_bytes = 2), ("integer_bytes", 2));
    assert_eq!(exceeded(b"\x8a\x03abc.", |limits| limits.integer_bytes = 2), ("integer_bytes", 2));
    assert_eq!(exceeded(b"cabc\nd\n.", |limits| limits.name_bytes = 2), ("name_bytes", 2));
    assert_eq!(exceeded(b"\x8c\x03abc2\x93.", |limits| limits.name_bytes = 2), ("name_bytes", 2));
    assert_eq!(exceeded(b"S'\\'\\'\\''\n.", |limits| limits.decoded_bytes = 2), ("decoded_bytes", 2));
}

#[test]
fn what_reaches_a_limit_exactly_is_read() {
    use pickle_core::{Limits, Machine};

    let read = |pickle: &[u8], change: fn(&mut Limits)| {
        let mut limits = Limits::DEFAULT;
        change(&mut limits);
        Machine::new(pickle, &limits).finish().map(drop)
    };
    for (pickle, change) in [
        (b"NNN.".as_slice(), (|limits| limits.opcodes = 4) as fn(&mut Limits)),
        (b"Nq\0q\x01q\x01q\x02.", |limits| limits.memo = 3),
        (b"((N.", |limits| limits.marks = 2),
        (b"L123\n.", |limits| limits.integer_bytes = 3),
        (b"\x8a\x03abc.", |limits| limits.integer_bytes = 3),
        (b"cabc\nd\n.", |limits| limits.name_bytes = 3),
        (b"\x8c\x03abc2\x93.", |limits| limits.name_bytes = 3),
        // With its quotes as it is; decoded, three of two bytes.
        (b"S'\\'\\''\nS'\\'\\''\nS'\\'\\''\n.", |limits| limits.decoded_bytes = 6),
    ] {
        assert!(read(pickle, change).is_ok(), "{}", pickle.escape_ascii());
    }
}

#[test]
fn a_machine_says_where_it_is() {
    use pickle_core::{Limits, Machine};

    let mut machine = Machine::new(b"\x80\x04NN.rest".as_slice(), &Limits::DEFAULT);
    machine.finish().expect("a pickle");
    assert_eq!((machine.position(), machine.rest()), (5, 4));
    assert_eq!((machine.protocol(), machine.opcodes()), (4, 4));
}
