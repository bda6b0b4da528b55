//! The little JSON that checkpoints need around `serde_json`.

use alloc::borrow::Cow;
use core::fmt::Write as _;

use serde_json::Value;

/// Words that JSON does not have and Python's `json` module writes, with the strings that stand for them here.
const NON_FINITE: [(&str, &str); 3] =
    [("-Infinity", "\"-Infinity\""), ("Infinity", "\"Infinity\""), ("NaN", "\"NaN\"")];

/// Parses JSON text, which may hold Python's `NaN`, `Infinity` and `-Infinity`; they become strings.
pub(super) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&quote_non_finite(text))
}

fn quote_non_finite(text: &str) -> Cow<'_, str> {
    if !NON_FINITE.iter().any(|(word, _)| text.contains(word)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for (piece, quoted) in pieces(text) {
        if quoted {
            out.push_str(piece);
            continue;
        }
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            if let Some((word, string)) = NON_FINITE.iter().find(|(word, _)| rest.starts_with(word)) {
                out.push_str(string);
                rest = &rest[word.len()..];
            } else {
                out.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Cow::Owned(out)
}

/// Number of members in all objects of a valid text: its colons outside strings. A parser that keeps the last
/// of two equal names has fewer.
pub(super) fn count_members(text: &str) -> usize {
    pieces(text).filter(|(_, quoted)| !quoted).map(|(piece, _)| piece.matches(':').count()).sum()
}

/// Cuts a text into strings, quotes included, and what is between them.
fn pieces(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let quoted = rest.starts_with('"');
        let len = if quoted { string_len(rest) } else { rest.find('"').unwrap_or(rest.len()) };
        let (piece, tail) = rest.split_at(len);
        rest = tail;
        Some((piece, quoted))
    })
}

/// Length of the string that `text` begins with; all of it if the string does not end.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Appends `text` as a JSON string.
pub(super) fn push_string(out: &mut String, text: &str) {
    // `Value` prints without escaping anything that JSON does not require to be escaped.
    let _ = write!(out, "{}", Value::from(text));
}

/// Appends a number; one that is not finite as the string that stands for it.
pub(super) fn push_number(out: &mut String, number: f64) {
    let text = if number.is_nan() {
        "\"NaN\""
    } else if number == f64::INFINITY {
        "\"Infinity\""
    } else if number == f64::NEG_INFINITY {
        "\"-Infinity\""
    } else {
        let _ = write!(out, "{}", Value::from(number));
        return;
    };
    out.push_str(text);
}

/// The number that a value stands for.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_words_become_strings_outside_strings_only() {
        let text = r#"{"NaN": NaN, "x": [Infinity,-Infinity], "say \"NaN\" é": "-Infinity", "n": -1}"#;
        let value = parse(text).unwrap();
        assert!(number(&value["NaN"]).unwrap().is_nan());
        assert_eq!(number(&value["x"][0]), Some(f64::INFINITY));
        assert_eq!(number(&value["x"][1]), Some(f64::NEG_INFINITY));
        assert_eq!(value["say \"NaN\" é"], "-Infinity");
        assert_eq!(number(&value["n"]), Some(-1.0));
        for text in ["nan", "{\"a\": NaNNaN}", "\"open NaN", "NaN\\", "+Infinity", "{\"a\": \"\\"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_survive() {
        for number in
            [0.0, -0.0, 1.0, 0.1, 1e300, -5e-324, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]
        {
            let mut text = String::new();
            push_number(&mut text, number);
            let back = super::number(&parse(&text).unwrap()).unwrap();
            assert_eq!(back.to_bits(), number.to_bits(), "{text}");
        }
    }

    #[test]
    fn strings_are_escaped_and_members_counted() {
        let mut text = String::new();
        push_string(&mut text, "a\"\\\n\u{1}é:");
        assert_eq!(text, "\"a\\\"\\\\\\n\\u0001é:\"");
        assert_eq!(count_members(r#"{"a:b": "c:d", "e": {"f": 1}}"#), 3);
        assert_eq!(count_members(r#"{"a": 1, "a": 2}"#), 2);
    }
}
