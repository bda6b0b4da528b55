//! JSON of checkpoints, with the non-finite numbers that Python writes.

use alloc::borrow::Cow;

use json_scan::{Check, Scanner, Writer};
use serde_json::Value;

/// Words that JSON does not have and Python's `json` module writes, with the strings that represent them here.
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
    let mut scanner = Scanner::new(text, Check::Syntax);
    while let Some(next) = scanner.rest().chars().next() {
        let start = scanner.pos();
        if let Some((_, string)) = NON_FINITE.iter().find(|(word, _)| scanner.strip(word)) {
            out.push_str(string);
            continue;
        }
        if next != '"' {
            scanner.advance(next.len_utf8());
        } else if scanner.bare_string().is_err() {
            // The parser refuses it.
            scanner.advance(scanner.rest().len());
        }
        out.push_str(scanner.text_from(start));
    }
    Cow::Owned(out)
}

/// Writes a number; one that is not finite as the string that represents it.
pub(super) fn push_number(out: &mut Writer, number: f64) {
    if number.is_nan() {
        out.string("NaN");
    } else if number.is_infinite() {
        out.string(if number > 0.0 { "Infinity" } else { "-Infinity" });
    } else {
        out.plain(Value::from(number));
    }
}

/// The number that a value represents.
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
    use json_scan::Escape;

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
            let mut out = Writer::compact(Escape::Minimal);
            push_number(&mut out, number);
            let text = out.finish();
            let back = super::number(&parse(&text).unwrap()).unwrap();
            assert_eq!(back.to_bits(), number.to_bits(), "{text}");
        }
    }
}
