//! Several pickles in a stream, and what is between and after them.

use model_scan::{Options, Origin, Verdict, scan};

use crate::rules::codes;

fn found(stream: &[u8]) -> Vec<&'static str> {
    codes(stream, Origin::File).1
}

#[test]
fn pickles_that_follow_are_read_up_to_a_number() {
    assert_eq!(found(&b"N.".repeat(64)), ["sc-several-pickles"]);
    assert_eq!(found(&b"N.".repeat(65)), ["sc-several-pickles", "sc-trailing-bytes"]);
    // What does something is a pickle even if it breaks off.
    assert_eq!(found(b"N.cos\nsystem\n\xff"), ["sc-dangerous-name", "sc-several-pickles", "sc-malformed"]);
    assert_eq!(found(b"N.(((\xff"), ["sc-trailing-bytes"]);
}

#[test]
fn what_is_beyond_the_limit_is_counted() {
    let mut options = Options::DEFAULT;
    options.kept = 2;
    let report = scan(b"cos\nsystem\n".repeat(5).as_slice(), Origin::File, &options).expect("a report");
    assert_eq!((report.names.len(), report.findings.len(), report.verdict()), (2, 2, Verdict::Dangerous));
    // Three names, three findings of them, and one of the end.
    assert_eq!((report.dropped, report.opcodes, report.calls), (7, 5, 0));
}

/// A stream of PyTorch before 1.6: number, version, system, an object with one storage, its key.
fn torch(class: &str) -> Vec<u8> {
    let object = format!("(S'storage'\nctorch\n{class}\nS'0'\nS'cpu'\nI1\nNtQ.");
    [b"L119547037146038801333356L\n.M\xe9\x03.}.", object.as_bytes(), b"(lS'0'\na."].concat()
}

#[test]
fn storages_of_pytorch_streams_are_passed() {
    for (class, width) in [
        ("ComplexDoubleStorage", 16),
        ("LongStorage", 8),
        ("IntStorage", 4),
        ("BFloat16Storage", 2),
        ("UntypedStorage", 1),
    ] {
        let stream =
            |bytes: usize| [torch(class), [2, 0, 0, 0, 0, 0, 0, 0].into(), vec![b'.'; bytes]].concat();
        let codes = |bytes: usize| codes(&stream(bytes), Origin::File).1;
        let expected = if class == "UntypedStorage" { &["sc-unknown-name"][..] } else { &[] };
        assert_eq!(codes(2 * width), expected, "{class}");
        assert_eq!(codes(2 * width - 1).last(), Some(&"sc-malformed"), "{class}");
        assert_eq!(codes(2 * width + 1).last(), Some(&"sc-trailing-bytes"), "{class}");
    }
    assert_eq!(found(&[torch("IntStorage"), vec![0; 8]].concat()), [""; 0]);
    for len in [0, 7] {
        assert_eq!(found(&[torch("IntStorage"), vec![0; len]].concat()), ["sc-malformed"]);
    }
}

#[test]
fn the_number_of_pytorch_is_the_first_pickle() {
    let number = b"L119547037146038801333356L\n.N.";
    assert_eq!(found(number), ["sc-malformed"], "three pickles are missing");
    assert_eq!(found(b"L119547037146038801333357L\n.N."), ["sc-several-pickles"]);
    // After few other opcodes.
    assert_eq!(found(&[b"N0N0N".as_slice(), number].concat()), ["sc-malformed"]);
    assert_eq!(found(&[b"N0N0NN".as_slice(), number].concat()), ["sc-several-pickles"]);
}

/// An array of objects as joblib writes it: its bytes are a pickle.
#[test]
fn pickles_in_arrays_of_joblib_are_judged() {
    let start = b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(\x8c\x05shapeK\x01\x85\x8c\x05order\x8c\x01C\
        \x8c\x05dtypecnumpy\ndtype\n\x8c\x02O8\x89\x88\x87R(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tbub";
    let stream = |inner: &[u8]| [start.as_slice(), inner, b"."].concat();
    let judged = |inner: &[u8], depth: u32| {
        let mut options = Options::DEFAULT;
        options.depth = depth;
        scan(stream(inner).as_slice(), Origin::File, &options).expect("a report")
    };
    let codes = |inner: &[u8], depth: u32| -> Vec<_> {
        let report = judged(inner, depth);
        report.findings.iter().map(|finding| (finding.depth, finding.problem.code())).collect()
    };
    assert_eq!(codes(b"\x80\x04N.", 1), []);
    // Each opcode twice: as an array, and as opcodes of the whole.
    assert_eq!(judged(b"NN.", 1).opcodes, judged(b"N.", 1).opcodes + 2);
    assert_eq!(codes(b"cos\nsystem\n.", 1)[0], (1, "sc-dangerous-name"));
    assert_eq!(codes(b"N.", 0)[0], (0, "sc-nested"));
    // Frames that disagree: `pickle.load` sees another program.
    let string = |text: &[u8]| [b"X".as_slice(), &(text.len() as u32).to_le_bytes(), text].concat();
    let strings = [string(&[b'a'; 20]), string(b"cos\nsystem\n(S':'\ntR."), b".".to_vec()].concat();
    let framed = [b"\x80\x04\x95\x0a\0\0\0\0\0\0\0".as_slice(), &strings].concat();
    let found = codes(&framed, 1);
    assert!(found.contains(&(1, "sc-frame")) && found.contains(&(1, "sc-dangerous-name")), "{found:?}");
}
