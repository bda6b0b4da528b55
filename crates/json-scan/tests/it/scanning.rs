//! What is JSON, and where a text stops being JSON.

use json_scan::{Check, Error, ErrorKind, Scanner, unescape, value};
use proptest::prelude::*;
use serde_json::value::RawValue;

/// Compares the verdict with that of `serde_json`, which skips a `RawValue` and keeps a `Value`.
fn agrees(text: &str) {
    let raw = serde_json::from_str::<&RawValue>(text).ok().map(RawValue::get);
    assert_eq!(value(text, Check::Syntax).ok().map(|(value, _)| value), raw, "{text:?}");
    let tree = serde_json::from_str::<serde_json::Value>(text);
    if !tree.as_ref().is_err_and(|error| error.to_string().contains("recursion")) {
        assert_eq!(value(text, Check::Values).is_ok(), tree.is_ok(), "{text:?}: {tree:?}");
    }
}

#[test]
fn offsets_are_where_the_text_stops_being_json() {
    for (text, offset) in [
        ("", 0),
        (" \n", 2),
        ("{", 1),
        ("[1,", 3),
        ("{\"a\":1,\n\"b\":}", 12),
        ("[1,]", 3),
        ("{\"a\":1,}", 7),
        ("{} {}", 3),
        ("[1}", 2),
        ("01", 1),
        ("-", 1),
        ("1.", 2),
        ("1e+", 3),
        ("nul", 3),
        ("tru1", 3),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 5),
        ("\"a\nb\"", 2),
        ("\"a", 2),
    ] {
        assert_eq!(value(text, Check::Syntax).map_err(|error| error.offset()), Err(offset), "{text:?}");
        agrees(text);
    }
}

#[test]
fn starts_are_those_of_the_wrong_token() {
    for (text, start, kind) in [
        (" nul", 1, ErrorKind::UnexpectedByte { found: b'n', expected: "a JSON value" }),
        ("[-01]", 1, ErrorKind::InvalidNumber),
        ("[1e999]", 1, ErrorKind::NumberOutOfRange),
        ("\"a\\u12g4\"", 2, ErrorKind::InvalidEscape),
        ("\"a\\ud800\\n\"", 2, ErrorKind::LoneSurrogate),
        ("\"a\\", 2, ErrorKind::InvalidEscape),
        ("\"a\u{1}", 2, ErrorKind::ControlCharacter { found: 1 }),
        ("\"a", 2, ErrorKind::UnexpectedEnd { expected: "a closing quote" }),
        ("1 2", 2, ErrorKind::TrailingBytes { found: b'2' }),
    ] {
        let error = value(text, Check::Values).unwrap_err();
        assert_eq!((error.start(), error.kind()), (start, kind), "{text:?}");
    }
}

#[test]
fn nesting_has_a_limit_if_wanted() {
    for count in [1, 31, 32, 33, 64, 65, 128, 129, 1000] {
        let open = "[{\"a\":".repeat(count);
        let close = "}]".repeat(count);
        assert_eq!(value(&[&open, "1", &close].concat(), Check::Values).unwrap().1, 2 * count);
        let error = value(&[&open, "1]", &close].concat(), Check::Values).unwrap_err();
        assert_eq!(error.offset(), open.len() + 1, "{count}");
    }
    let mut scanner = Scanner::new("[[[1]]]", Check::Syntax);
    let error = scanner.skip_value(2).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::TooDeep, 2));
    assert_eq!(Scanner::new("[[{}, \"[[[\"]]", Check::Syntax).skip_value(3), Ok(3));
}

#[test]
fn integers_have_no_fraction_and_no_leading_zero() {
    let read = |text| Scanner::new(text, Check::Syntax).integer().map_err(|error| error.kind());
    assert_eq!(read("18446744073709551615 ,"), Ok(u64::MAX));
    assert_eq!(read("0"), Ok(0));
    for text in ["18446744073709551616", "-1", "1.0", "1e3", "\"1\"", ""] {
        assert_eq!(read(text), Err(ErrorKind::NotAnInteger), "{text}");
    }
    assert_eq!(read("007"), Err(ErrorKind::InvalidNumber));
}

#[test]
fn members_and_items_are_visited_in_order() {
    let text = "{ \"a\" : 1 ,\n\"b\\\"{\":\"}]\\\\\", \"\\u0063\":[\"]\",{} ] }";
    let (mut scanner, mut found) = (Scanner::new(text, Check::Values), Vec::new());
    scanner
        .members(|scanner, key, at| {
            let start = scanner.pos();
            scanner.skip_value(8)?;
            found.push((key.unescape().into_owned(), scanner.text_from(start), at));
            scanner.skip_white_space();
            Ok::<_, Error>(())
        })
        .unwrap();
    scanner.finish().unwrap();
    let expected = [("a", "1", 2), ("b\"{", "\"}]\\\\\"", 12), ("c", "[\"]\",{} ]", 27)]
        .map(|(k, v, at)| (k.to_owned(), v, at));
    assert_eq!(found, expected);

    let mut sum = 0;
    let mut scanner = Scanner::new("[1, 2 ,3]", Check::Values);
    let done = scanner.items(|scanner, _| {
        sum += scanner.integer()?;
        Ok::<_, Error>(())
    });
    assert_eq!((done, sum), (Ok(()), 6));
    let kind = |text| {
        Scanner::new(text, Check::Values).items(|_, _| Ok::<_, Error>(())).map_err(|error| error.kind())
    };
    assert_eq!(kind("{}"), Err(ErrorKind::NotAnArray));
    assert_eq!(kind("[ ]"), Ok(()));
}

#[test]
fn literals_are_unescaped_or_refused() {
    for literal in [r#""""#, r#""a\"\\\/\b\f\n\r\t""#, r#""\u00e9\ud83d\ude00z""#, r#""\u0000""#] {
        let expected: String = serde_json::from_str(literal).unwrap();
        assert_eq!(unescape(literal).as_deref(), Some(&*expected), "{literal}");
    }
    for literal in [r#""\ud800""#, r#""\ud800\n""#, r#""\ud800\u0041""#, r#""\udc00""#, "1", "\"a\" ", "\"a"]
    {
        assert_eq!(unescape(literal), None, "{literal}");
    }
    let mut scanner = Scanner::new(r#""\ud800\ud83d\ude00\udc00""#, Check::Syntax);
    assert_eq!(scanner.string().unwrap().unescape(), "\u{fffd}\u{1f600}\u{fffd}");
}

/// Pieces that make JSON, or nearly.
fn pieces() -> impl Strategy<Value = String> {
    const PIECES: [&str; 36] = [
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "\\", "\\u00e9", "\\ud800", "\\udc00", "\\n",
        "0", "1", "-", ".", "e", "E5", "+", "1.5e-3", "9e307", "null", "true", "false", "nul", " ", "\n",
        "\t", "\u{1}", "\u{7f}", "é", "[]", "{}", "[1,2]",
    ];
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..12).prop_map(|pieces| pieces.concat())
}

/// Numbers about the ends of the range of a double.
fn numbers() -> impl Strategy<Value = String> {
    ("-?(0|[1-9][0-9]{0,30})", "(\\.[0-9]{1,30})?", prop_oneof![-400..400_i32, 270..320_i32])
        .prop_map(|(integer, fraction, exponent)| format!("{integer}{fraction}e{exponent}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn pieces_are_read_as_by_serde_json(text in pieces()) {
        agrees(&text);
    }

    #[test]
    fn any_text_is_read_as_by_serde_json(text in ".*") {
        agrees(&text);
    }

    #[test]
    fn numbers_are_in_range_where_serde_json_reads_them(text in numbers()) {
        agrees(&text);
    }
}
