//! Strings and values that are written.

use json_scan::{Escape, JsonStr, Writer, is_hazard, push_string, push_string_bytes, unescape};
use proptest::prelude::*;

const HOSTILE: &str = "q\" b\\ \u{8}\u{c}\n\r\t\u{0}\u{1b}\u{7f}\u{9b}\u{ad}\u{202e}\u{2028}\u{e0041}é漢😀/";

#[test]
fn escapes_are_as_documented() {
    let literal = |escape| JsonStr(HOSTILE, escape).to_string();
    assert_eq!(literal(Escape::Minimal), serde_json::to_string(HOSTILE).unwrap());
    assert_eq!(
        literal(Escape::Ascii),
        r#""q\" b\\ \b\f\n\r\t\u0000\u001b\u007f\u009b\u00ad\u202e\u2028\udb40\udc41\u00e9\u6f22\ud83d\ude00/""#
    );
    let shown = literal(Escape::Hazards);
    assert!(!shown.chars().any(is_hazard) && shown.ends_with("é漢😀/\""), "{shown}");
}

#[test]
fn values_are_compact_or_indented() {
    let write = |mut json: Writer| {
        json.begin_object();
        json.key("a").begin_array();
        json.plain(1).string("x\n");
        json.begin_object();
        json.end_object();
        json.end_array();
        json.key("b").null();
        json.key("c").begin_array();
        json.end_array();
        json.end_object();
        json.finish()
    };
    let compact = write(Writer::compact(Escape::Minimal));
    assert_eq!(compact, r#"{"a":[1,"x\n",{}],"b":null,"c":[]}"#);
    let value: serde_json::Value = serde_json::from_str(&compact).unwrap();
    let indented = write(Writer::indented(Escape::Minimal));
    assert_eq!(indented, serde_json::to_string_pretty(&value).unwrap());
}

proptest! {
    #[test]
    fn strings_are_read_back(text in any::<String>()) {
        for escape in [Escape::Minimal, Escape::Ascii, Escape::Hazards] {
            let (mut out, mut bytes) = (String::new(), Vec::new());
            push_string(&mut out, &text, escape);
            push_string_bytes(&mut bytes, &text, escape);
            prop_assert_eq!(out.as_bytes(), &bytes);
            prop_assert_eq!(&serde_json::from_str::<String>(&out).unwrap(), &text);
            prop_assert_eq!(unescape(&out), Some(text.as_str().into()));
        }
        prop_assert_eq!(JsonStr(&text, Escape::Minimal).to_string(), serde_json::to_string(&text).unwrap());
    }

    #[test]
    fn code_units_are_resolved_as_serde_json_does(units in prop::collection::vec(
        prop_oneof![any::<u16>(), 0xD800_u16..0xE000], 0..5,
    )) {
        let literal = format!("\"{}\"", units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>());
        let expected: Option<String> = serde_json::from_str(&literal).ok();
        prop_assert_eq!(unescape(&literal).map(alloc::borrow::Cow::into_owned), expected);
    }
}
