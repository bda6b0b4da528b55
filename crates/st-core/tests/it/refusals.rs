//! What is refused, with kind and byte offset.

use st_core::{ErrorKind, Header, Limits, ReadOptions, Subject, find};

use crate::file;

const WRONG_TYPE: &str = "st-entry-type";

/// `(header, code, offset in the header)`; refused in both levels.
const HEADERS: &[(&str, &str, usize)] = &[
    // The frame of the JSON text.
    ("", WRONG_TYPE, 0),
    (" ", WRONG_TYPE, 1),
    ("[]", WRONG_TYPE, 0),
    ("null", WRONG_TYPE, 0),
    ("{", "st-json-end", 1),
    ("{ ", "st-json-end", 2),
    ("{}x", "st-json-trailing", 2),
    ("{} {}", "st-json-trailing", 3),
    ("{}\0", "st-json-trailing", 2),
    ("{,}", "st-json-syntax", 1),
    ("{a:1}", "st-json-syntax", 1),
    (r#"{"a"}"#, "st-json-syntax", 4),
    (r#"{"a" 1}"#, "st-json-syntax", 5),
    (r#"{"__metadata__"}"#, "st-json-syntax", 15),
    // Strings.
    ("{\"a", "st-json-end", 3),
    ("{\"abcdefgh", "st-json-end", 10),
    ("{\"a\n\":1}", "st-json-control", 3),
    ("{\"a\u{1f}\":1}", "st-json-control", 3),
    ("{\"\0\":1}", "st-json-control", 2),
    (r#"{"\x":1}"#, "st-json-escape", 2),
    (r#"{"abc\"#, "st-json-escape", 5),
    (r#"{"\u12g4":1}"#, "st-json-escape", 2),
    (r#"{"\u123"#, "st-json-escape", 2),
    (r#"{"\ud800":1}"#, "st-json-surrogate", 2),
    (r#"{"\udc00":1}"#, "st-json-surrogate", 2),
    (r#"{"\ud800\ud800":1}"#, "st-json-surrogate", 2),
    (r#"{"\ud800\n0000":1}"#, "st-json-surrogate", 2),
    (r#"{"\ud800xudc00":1}"#, "st-json-surrogate", 2),
    (r#"{"\udfff\udc00":1}"#, "st-json-surrogate", 2),
    // Metadata.
    (r#"{"__metadata__":1}"#, WRONG_TYPE, 16),
    (r#"{"__metadata__":[]}"#, WRONG_TYPE, 16),
    (r#"{"__metadata__":nul}"#, WRONG_TYPE, 16),
    (r#"{"__metadata__":{"a":1}}"#, WRONG_TYPE, 21),
    (r#"{"__metadata__":{"a":null}}"#, WRONG_TYPE, 21),
    (r#"{"__metadata__":{"a":"b",}}"#, "st-json-syntax", 25),
    (r#"{"__metadata__":{"a":"b"]}"#, "st-json-syntax", 24),
    (r#"{"__metadata__":{"a":"b""#, "st-json-end", 24),
    (r#"{"__metadata__":{},"__metadata__":{}}"#, "st-metadata-duplicate", 19),
    (r#"{"__metadata__":null,"__metadata__":null}"#, "st-metadata-duplicate", 21),
    (r#"{"__metadata__":{},"\u005f_metadata__":{}}"#, "st-metadata-duplicate", 19),
    // Entries.
    (r#"{"a":null}"#, WRONG_TYPE, 5),
    (r#"{"a":"x"}"#, WRONG_TYPE, 5),
    (r#"{"a":1}"#, WRONG_TYPE, 5),
    (r#"{"a":{}}"#, "st-entry-missing", 5),
    (r#"{"a":{"dtype":"U8","shape":[]}}"#, "st-entry-missing", 5),
    (r#"{"a":{"dtype":"U8","data_offsets":[0,1]}}"#, "st-entry-missing", 5),
    (r#"{"a":{"shape":[],"data_offsets":[0,1]}}"#, "st-entry-missing", 5),
    (r#"{"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}}"#, "st-entry-duplicate", 19),
    (r#"{"a":{"shape":[],"shape":[]}}"#, "st-entry-duplicate", 17),
    (r#"{"a":{"data_offsets":[0,1],"data_offsets":[0,1]}}"#, "st-entry-duplicate", 27),
    (r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},}"#, "st-json-syntax", 52),
    (r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],}}"#, "st-json-syntax", 51),
    (r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]]}"#, "st-json-syntax", 50),
    (r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}"#, "st-json-end", 51),
    (r#"{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}]"#, "st-json-syntax", 51),
    (r#"{"a":{"dtype""#, "st-json-end", 13),
    // Types of elements.
    (r#"{"a":{"dtype":"u8","shape":[],"data_offsets":[0,1]}}"#, "st-dtype", 14),
    (r#"{"a":{"dtype":"U8 ","shape":[],"data_offsets":[0,1]}}"#, "st-dtype", 14),
    (r#"{"a":{"dtype":"","shape":[],"data_offsets":[0,1]}}"#, "st-dtype", 14),
    (r#"{"a":{"dtype":8}}"#, WRONG_TYPE, 14),
    (r#"{"a":{"dtype":null}}"#, WRONG_TYPE, 14),
    (r#"{"a":{"dtype":["U8"]}}"#, WRONG_TYPE, 14),
    ("{\"a\":{\"dtype\":\"U8\0\",\"shape\":[],\"data_offsets\":[0,1]}}", "st-json-control", 17),
    // Shapes.
    (r#"{"a":{"shape":1}}"#, WRONG_TYPE, 14),
    (r#"{"a":{"shape":{}}}"#, WRONG_TYPE, 14),
    (r#"{"a":{"shape":[1.0]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":[1e0]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":[1E0]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":[-1]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":["1"]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":[18446744073709551616]}}"#, WRONG_TYPE, 15),
    (r#"{"a":{"shape":[1,]}}"#, WRONG_TYPE, 17),
    (r#"{"a":{"shape":[01]}}"#, "st-json-number", 15),
    (r#"{"a":{"shape":[00]}}"#, "st-json-number", 15),
    (r#"{"a":{"shape":[1 2]}}"#, WRONG_TYPE, 17),
    // Offsets.
    (r#"{"a":{"data_offsets":0}}"#, WRONG_TYPE, 21),
    (r#"{"a":{"data_offsets":[]}}"#, WRONG_TYPE, 22),
    (r#"{"a":{"data_offsets":[0]}}"#, WRONG_TYPE, 23),
    (r#"{"a":{"data_offsets":[0,1,2]}}"#, WRONG_TYPE, 25),
    (r#"{"a":{"data_offsets":[0,1}}"#, WRONG_TYPE, 25),
    // Unknown fields.
    (r#"{"a":{"x":nul}}"#, "st-json-syntax", 10),
    (r#"{"a":{"x":NaN}}"#, "st-json-syntax", 10),
    (r#"{"a":{"x":}}"#, "st-json-syntax", 10),
    (r#"{"a":{"x":[1,]}}"#, "st-json-syntax", 13),
    (r#"{"a":{"x":[1}}"#, "st-json-syntax", 12),
    (r#"{"a":{"x":{"y"}}}"#, "st-json-syntax", 14),
    (r#"{"a":{"x":{"y":1]}}"#, "st-json-syntax", 16),
    (r#"{"a":{"x":{"y":1,}}}"#, "st-json-syntax", 17),
    (r#"{"a":{"x":{"y":1,2}}}"#, "st-json-syntax", 17),
    (r#"{"a":{"x":[[1]"#, "st-json-end", 14),
    (r#"{"a":{"x":"\ud800"}}"#, "st-json-surrogate", 11),
    (r#"{"a":{"x":-}}"#, "st-json-number", 10),
    (r#"{"a":{"x":01}}"#, "st-json-number", 10),
    (r#"{"a":{"x":-00}}"#, "st-json-number", 10),
    (r#"{"a":{"x":1.}}"#, "st-json-number", 10),
    (r#"{"a":{"x":.5}}"#, "st-json-syntax", 10),
    (r#"{"a":{"x":1e}}"#, "st-json-number", 10),
    (r#"{"a":{"x":1e+}}"#, "st-json-number", 10),
    (r#"{"a":{"x":+1}}"#, "st-json-syntax", 10),
    (r#"{"a":{"x":1e309}}"#, "st-json-range", 10),
    (r#"{"a":{"x":-1e309}}"#, "st-json-range", 10),
    (r#"{"a":{"x":18e307}}"#, "st-json-range", 10),
    (r#"{"a":{"x":0.1e310}}"#, "st-json-range", 10),
    (r#"{"a":{"x":1e99999999999}}"#, "st-json-range", 10),
    (r#"{"a":{"x":1e2147483648}}"#, "st-json-range", 10),
    (r#"{"a":{"x":18446744073709551616e289}}"#, "st-json-range", 10),
];

#[test]
fn headers_are_refused_with_kind_and_offset() {
    for &(header, code, offset) in HEADERS {
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            if header.starts_with(' ') && options == ReadOptions::STRICT {
                continue;
            }
            let file = file(header, b"");
            let error = Header::from_bytes(&file, &options).expect_err(header);
            assert_eq!((error.code(), error.offset()), (code, Some(8 + offset as u64)), "{header}: {error}");
        }
    }
}

/// A field of any form that numbers may take, beside a valid entry.
#[test]
fn numbers_of_unknown_fields_may_have_any_form() {
    for number in [
        "0",
        "-0",
        "-1",
        "0.5",
        "-0.0e-0",
        "1E+2",
        "17e307",
        "1e308",
        "0e99999999999",
        "0.0e2147483648",
        "1e-99999999999",
        "123456789012345678901234567890",
        "1844674407370955161600000.1e283",
        "0.12345678901234567890123456789e308",
    ] {
        let header = format!(r#"{{"a":{{"x":{number},"dtype":"U8","shape":[],"data_offsets":[0,1]}}}}"#);
        Header::from_bytes(&file(&header, b"x"), &ReadOptions::STRICT).expect(number);
    }
}

/// `(header, data length, kind, offset in the header, tensor)`
#[test]
fn tables_that_do_not_fit_the_file_are_refused() {
    let entry = |name: &str, dtype: &str, shape: &str, begin: u64, end: u64| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
    };
    let max = u64::MAX;
    let offsets = |begin, end, expected| ErrorKind::InvalidOffsets { begin, end, expected };
    let size = |declared, computed| ErrorKind::SizeMismatch { declared, computed };
    let cases = [
        (vec![entry("a", "U8", "[1]", 1, 2)], 2, offsets(1, 2, 0), 0),
        (vec![entry("a", "U8", "[1]", 1, 0)], 0, offsets(1, 0, 0), 0),
        (vec![entry("a", "U8", "[0]", 0, 0), entry("b", "U8", "[1]", 1, 0)], 1, offsets(1, 0, 0), 1),
        (vec![entry("a", "U8", "[1]", 0, 1), entry("b", "U8", "[1]", 0, 1)], 1, offsets(0, 1, 1), 1),
        (vec![entry("b", "U8", "[1]", 2, 3), entry("a", "U8", "[1]", 0, 1)], 3, offsets(2, 3, 1), 0),
        (vec![entry("a", "U8", "[4294967296,4294967296]", 0, 0)], 0, ErrorKind::SizeOverflow, 0),
        (vec![entry("a", "I64", "[288230376151711744]", 0, 0)], 0, ErrorKind::SizeOverflow, 0),
        (vec![entry("a", "F4", "[3]", 0, 1)], 1, ErrorKind::PartialByte { bits: 12 }, 0),
        (vec![entry("a", "F32", "[2]", 0, 4)], 4, size(4, 8), 0),
        (vec![entry("a", "F32", "[]", 0, 0)], 0, size(0, 4), 0),
        (vec![entry("a", "U8", "[2]", 0, max)], 2, size(max, 2), 0),
        (vec![entry("a", "U8", "[3]", 0, 3), entry("b", "F32", "[2]", 3, 7)], 7, size(4, 8), 1),
    ];
    for (entries, data_len, kind, culprit) in cases {
        let header = format!("{{{}}}", entries.join(","));
        let at = header.find(&entries[culprit]).unwrap() as u64 + 8;
        let name = &entries[culprit][1..2];
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let error = Header::from_bytes(&file(&header, &vec![0; data_len]), &options).expect_err(&header);
            assert_eq!(
                (*error.kind(), error.offset(), error.subject().map(Subject::name)),
                (kind, Some(at), Some(name)),
                "{header}"
            );
        }
    }
}

#[test]
fn file_length_has_to_match() {
    let header = r#"{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
    let len = 8 + header.len() as u64;
    for data in [&b"abc"[..], b"abcde", b""] {
        let error = Header::from_bytes(&file(header, data), &ReadOptions::STRICT).unwrap_err();
        let actual = len + data.len() as u64;
        assert_eq!(*error.kind(), ErrorKind::IncompleteFile { expected: len + 4, actual });
    }
    // Sizes that add up to more than 64 bits.
    let half = (1u64 << 61) - 1;
    let entries: Vec<_> = (0..8)
        .map(|i| {
            format!(
                r#""{i}":{{"dtype":"U8","shape":[{half}],"data_offsets":[{},{}]}}"#,
                i * half,
                (i + 1) * half
            )
        })
        .collect();
    let header = format!("{{{}}}", entries.join(","));
    let error = Header::from_bytes(&file(&header, b""), &ReadOptions::COMPAT).unwrap_err();
    assert_eq!(
        *error.kind(),
        ErrorKind::IncompleteFile { expected: u64::MAX, actual: 8 + header.len() as u64 }
    );
}

#[test]
fn length_field_is_checked_first() {
    let kind = |file: &[u8]| *Header::from_bytes(file, &ReadOptions::COMPAT).unwrap_err().kind();
    assert_eq!(kind(b""), ErrorKind::HeaderTooSmall { available: 0 });
    assert_eq!(kind(&[2, 0, 0, 0, 0, 0, 0]), ErrorKind::HeaderTooSmall { available: 7 });
    assert_eq!(
        kind(&[2, 0, 0, 0, 0, 0, 0, 0, b'{']),
        ErrorKind::InvalidHeaderLength { len: 2, available: 1 }
    );
    let limit = 100_000_000;
    assert_eq!(kind(&u64::MAX.to_le_bytes()), ErrorKind::HeaderTooLarge { len: u64::MAX, limit });
    assert_eq!(kind(&(limit + 1).to_le_bytes()), ErrorKind::HeaderTooLarge { len: limit + 1, limit });
    assert_eq!(kind(&limit.to_le_bytes()), ErrorKind::InvalidHeaderLength { len: limit, available: 0 });
    let error = Header::from_bytes(&file("{}", b""), &limited(|limits| limits.header_bytes = 1)).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::HeaderTooLarge { len: 2, limit: 1 });
    assert_eq!(error.offset(), Some(0));
    // A prefix that ends before the header does.
    let error = Header::from_prefix(&file("{}", b"")[..9], 10, &ReadOptions::STRICT).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::InvalidHeaderLength { len: 2, available: 1 });
    let error = Header::declared_len([0; 8], 7, &ReadOptions::STRICT).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::HeaderTooSmall { available: 7 });
    let error = Header::from_prefix(b"abc", 10, &ReadOptions::STRICT).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::HeaderTooSmall { available: 3 });
}

#[test]
fn utf8_is_checked_before_json() {
    let mut bytes = file("{\"a?\":[", b"");
    bytes[11] = 0xff;
    let error = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap_err();
    assert_eq!((*error.kind(), error.offset()), (ErrorKind::InvalidUtf8, Some(11)));
    let error = find(&bytes, "a").unwrap_err();
    assert_eq!((*error.kind(), error.offset()), (ErrorKind::InvalidUtf8, Some(11)));
}

fn limited(change: impl FnOnce(&mut Limits)) -> ReadOptions {
    let mut options = ReadOptions::STRICT;
    change(&mut options.limits);
    options
}

#[test]
fn limits_hold_to_the_last_unit() {
    let header = r#"{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"name":{"dtype":"U8","shape":[1,1,1],"data_offsets":[1,2]},"__metadata__":{"ab":"cde"}}"#;
    let pretty = header.replace("{\"dtype\"", "{ \"dtype\"");
    type Change = fn(&mut Limits, usize);
    let changes: [(Change, usize, &str); 4] = [
        (|limits, max| limits.tensors = max, 2, "number of tensors"),
        (|limits, max| limits.rank = max, 3, "dimensions of a tensor"),
        (|limits, max| limits.name_bytes = max, 4, "bytes of a tensor name"),
        (|limits, max| limits.metadata_bytes = max, 5, "bytes of metadata"),
    ];
    for text in [header, &pretty] {
        for (change, needed, limit) in changes {
            let read = |max| Header::from_bytes(&file(text, b"xy"), &limited(|limits| change(limits, max)));
            assert!(read(needed).is_ok(), "{limit}");
            let error = read(needed - 1).unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::LimitExceeded { limit, max: needed as u64 - 1 });
            assert!(error.offset().is_some_and(|offset| offset > 8));
        }
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("[", "]"), (r#"{"x":"#, "}")] {
        for (depth, accepted) in [(125, true), (126, false), (20_000, false)] {
            let nested = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            let header = format!(r#"{{"a":{{"x":{nested},"dtype":"U8","shape":[],"data_offsets":[0,1]}}}}"#);
            let result = Header::from_bytes(&file(&header, b"x"), &ReadOptions::COMPAT);
            assert_eq!(result.is_ok(), accepted, "{depth} of {open}");
            if let Err(error) = result {
                assert_eq!(*error.kind(), ErrorKind::NestingTooDeep { limit: 127 });
                assert_eq!(error.offset(), Some(8 + 10 + 125 * open.len() as u64));
            }
        }
    }
}

#[test]
fn what_only_strict_refuses() {
    let entry = r#"{"dtype":"U8","shape":[1],"data_offsets":[0,1]}"#;
    let other = r#"{"dtype":"I8","shape":[1],"data_offsets":[0,1]}"#;
    let quirks = [
        (format!("\n{{\"a\":{entry}}}"), ErrorKind::LeadingWhitespace, 0, None),
        (r#"{"a":["U8",[1],[0,1]]}"#.to_owned(), ErrorKind::EntryAsArray, 5, None),
        (
            r#"{"a":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}"#.to_owned(),
            ErrorKind::DtypeAsMap,
            14,
            None,
        ),
        (format!(r#"{{"a":{entry},"\u0061":{other}}}"#), ErrorKind::DuplicateTensor, 53, Some("a")),
        (
            format!(r#"{{"__metadata__":{{"k":"1","l":"2","\u006b":"3"}},"a":{entry}}}"#),
            ErrorKind::DuplicateMetadataKey,
            33,
            None,
        ),
    ];
    for (header, kind, offset, tensor) in quirks {
        let bytes = file(&header, b"x");
        let error = Header::from_bytes(&bytes, &ReadOptions::STRICT).expect_err(&header);
        assert_eq!(
            (*error.kind(), error.offset(), error.subject().map(Subject::name)),
            (kind, Some(8 + offset), tensor),
            "{header}"
        );
        let compat = Header::from_bytes(&bytes, &ReadOptions::COMPAT).expect(&header);
        assert_eq!(compat.len(), 1);
        assert!(compat.tensor("a").is_some());
    }
}

#[test]
fn array_entries_have_three_parts() {
    for (entry, accepted) in [
        (r#"[ "U8" , [ 1 ] , [ 0 , 1 ] ]"#, true),
        (r#"[{ "U8" : null },[1],[0,1]]"#, true),
        (r#"[{"U8":null,"I8":null},[1],[0,1]]"#, false),
        (r#"[{"U8":{}},[1],[0,1]]"#, false),
        (r#"[{},[1],[0,1]]"#, false),
        (r#"["U8",[1]]"#, false),
        (r#"["U8",[1],[0,1],0]"#, false),
        (r#"["U8",[1],[0,1]"#, false),
        (r#"["U8" [1],[0,1]]"#, false),
        ("[]", false),
    ] {
        let bytes = file(&format!(r#"{{"a":{entry}}}"#), b"x");
        assert_eq!(Header::from_bytes(&bytes, &ReadOptions::COMPAT).is_ok(), accepted, "{entry}");
    }
}

#[test]
fn of_equal_names_the_last_counts_in_compat() {
    // The first `a` would not fit: only a reader that drops it accepts the file.
    let header = r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[7,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"I8","shape":[1],"data_offsets":[3,4]},"c":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}"#;
    let compat = Header::from_bytes(&file(header, b"xyz"), &ReadOptions::COMPAT).unwrap();
    let names: Vec<_> = compat.iter().map(|info| (info.name(), info.dtype().name())).collect();
    assert_eq!(names, [("a", "BOOL"), ("b", "U8"), ("c", "U8")]);
    assert_eq!(compat.tensor("a").unwrap().dtype().name(), "BOOL");

    let header = r#"{"__metadata__":{"k":"1","j":"2","k":"3","a":"4","j":"5"}}"#;
    let compat = Header::from_bytes(&file(header, b""), &ReadOptions::COMPAT).unwrap();
    let metadata = compat.metadata().unwrap();
    assert_eq!(metadata.iter().collect::<Vec<_>>(), [("k", "3"), ("a", "4"), ("j", "5")]);
    assert_eq!(metadata.get("j"), Some("5"));
}

#[test]
fn find_refuses_what_it_can_see() {
    let entry = |begin: u64, end: u64, len: &str| {
        format!(r#"{{"dtype":"U8","shape":{len},"data_offsets":[{begin},{end}]}}"#)
    };
    let cases = [
        (format!(r#"{{"a":{},"a":{}}}"#, entry(0, 1, "[1]"), entry(1, 2, "[1]")), "st-duplicate-tensor"),
        (format!(r#"{{"a":{}}}"#, entry(0, 2, "[1]")), "st-size"),
        (format!(r#"{{"a":{}}}"#, entry(2, 1, "[1]")), "st-offsets"),
        (format!(r#"{{"a":{}}}"#, entry(0, 1, "[1]")), "st-file-length"),
        (format!(r#"{{"a":{}}}"#, entry(0, 2, "[4294967296,4294967296]")), "st-size-overflow"),
        (format!(r#"{{"a":{}}}"#, entry(1, 3, "[2]")), "st-offsets"),
        (format!(r#" {{"a":{}}}"#, entry(0, 2, "[2]")), "st-strict-whitespace"),
        (format!(r#"{{"b":{},"c":{}}}"#, entry(1, 2, "[1]"), entry(2, 2, "[1]")), "st-size"),
        (r#"{"a":{"dtype":"F4","shape":[1],"data_offsets":[0,0]}}"#.to_owned(), "st-partial-byte"),
    ];
    for (header, code) in cases {
        let error = find(&file(&header, b"xy"), "a").expect_err(&header);
        assert_eq!(error.code(), code, "{header}");
        assert_eq!(error.subject().map(Subject::name), None);
    }
    let kind = |header: &str| {
        let error = find(&file(header, b"xy"), "b").unwrap_err();
        (*error.kind(), error.offset())
    };
    let a = format!(r#"{{"a":{},"#, entry(0, 1, "[1]"));
    let at = Some(8 + a.len() as u64);
    let mismatch = ErrorKind::SizeMismatch { declared: 2, computed: 24 };
    assert_eq!(kind(&format!(r#"{a}"b":{}}}"#, entry(1, 3, "[2,12]"))), (mismatch, at));
    let partial = format!(r#"{a}"b":{{"dtype":"F6_E2M3","shape":[1],"data_offsets":[1,2]}}}}"#);
    assert_eq!(kind(&partial), (ErrorKind::PartialByte { bits: 6 }, at));
    let reversed = ErrorKind::InvalidOffsets { begin: 2, end: 1, expected: 1 };
    assert_eq!(kind(&format!(r#"{a}"b":{}}}"#, entry(2, 1, "[1]"))), (reversed, at));
    let outside = ErrorKind::InvalidOffsets { begin: 2, end: 3, expected: 0 };
    assert_eq!(kind(&format!(r#"{a}"b":{}}}"#, entry(2, 3, "[1]"))), (outside, at));
    let short = format!(r#"{a}"b":{}}}"#, entry(1, 4, "[3]"));
    let expected = 8 + short.len() as u64 + 4;
    assert_eq!(kind(&short), (ErrorKind::IncompleteFile { expected, actual: expected - 2 }, None));
    assert_eq!(find(b"1234567", "a").unwrap_err().code(), "st-header-too-small");
    assert_eq!(find(&[9; 8], "a").unwrap_err().code(), "st-header-too-large");
}
