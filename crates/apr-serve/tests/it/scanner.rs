//! Bodies of many kinds, beside serde_json.

use proptest::prelude::*;
use serde_json::Value;

use crate::client::{Client, Running, line, row, start, with_length};

/// What the server should say, by a reader that builds a tree.
fn expected(body: &[u8]) -> Option<Vec<f64>> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let rows = match value {
        Value::Object(mut fields) if fields.len() == 1 => fields.remove("rows")?,
        other => other,
    };
    let rows = rows.as_array()?.clone();
    let is_row = rows.first().is_some_and(Value::is_number);
    let rows = if is_row { vec![Value::Array(rows)] } else { rows };
    rows.iter()
        .map(|row| {
            let [a, b] = row.as_array()?.as_slice() else { return None };
            // The same rounding: from the digits to 32 bits.
            let [a, b] =
                [a, b].map(|value| value.to_string().parse::<f32>().ok().filter(|value| value.is_finite()));
            Some(f64::from(a? * 2.0 + b? * 0.5 + 1.0))
        })
        .collect()
}

fn check(client: &mut Client, body: &[u8]) {
    client.send(&with_length("POST /predict HTTP/1.1\r\n", body));
    let response = client.response();
    match expected(body) {
        Some(values) => {
            let found = response.predictions();
            let found: Vec<f64> =
                found.as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect();
            assert_eq!(found.len(), values.len());
            for (found, value) in found.iter().zip(values) {
                let close = (found - value).abs() <= 1e-5 * value.abs().max(1.0);
                assert!(close || value.is_infinite(), "{found} {value} of {}", String::from_utf8_lossy(body));
            }
        }
        None => assert_eq!(response.status, 400, "{}: {}", String::from_utf8_lossy(body), response.text()),
    }
    client.send(&row("[1,2]"));
    assert_eq!(client.response().predictions(), serde_json::json!([4.0]));
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        (-1e6_f64..1e6).prop_map(|value| value.to_string()),
        any::<i32>().prop_map(|value| value.to_string()),
        any::<f32>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
        "-?[0-9]{0,3}(\\.[0-9]{0,3})?([eE][+-]?[0-9]{0,2})?",
        Just("null".to_owned()),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let space = || prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t")];
    let row = (prop::collection::vec(number(), 1..4), space())
        .prop_map(|(numbers, space)| format!("[{space}{}]", numbers.join(&format!(",{space}"))))
        .boxed();
    let rows = (prop::collection::vec(row.clone(), 0..5), space())
        .prop_map(|(rows, space)| format!("[{}{space}]", rows.join(",")))
        .boxed();
    let fields = rows.clone().prop_map(|rows| format!("{{\"rows\": {rows}}}"));
    let sound = prop_oneof![row, rows, fields].boxed();
    let damaged = (sound.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(text, at, byte)| {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        bytes
    });
    let cut = (sound.clone(), any::<prop::sample::Index>())
        .prop_map(|(text, at)| text.as_bytes()[..at.index(text.len())].to_vec());
    prop_oneof![
        3 => sound.prop_map(String::into_bytes),
        2 => damaged,
        1 => cut,
        1 => prop::collection::vec(any::<u8>(), 0..50),
        1 => prop::collection::vec(prop::sample::select(b"[]{},:\"\\-+.eE019 nulrows".to_vec()), 0..40),
    ]
}

#[test]
fn any_body_has_an_answer_and_the_next_one_too() {
    let server: Running = start(line());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let client = core::cell::RefCell::new(server.connect());
    runner
        .run(&body(), |body| {
            check(&mut client.borrow_mut(), &body);
            Ok(())
        })
        .unwrap();
}

#[test]
fn what_json_forbids_is_refused() {
    let server = start(line());
    for body in [
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1,2",
        "[1,2,]",
        "[,1]",
        "[[1,2],]",
        "[[1,2]]]",
        "[1,2] x",
        "{}",
        "{\"rows\"}",
        "{\"rows\":}",
        "{\"rows\":[1,2],}",
        "{\"rows\":[1,2],\"rows\":[1,2]}",
        "{\"row\":[1,2]}",
        "{\"rows\":{}}",
        "[{}]",
        "[01,2]",
        "[1.,2]",
        "[.5,2]",
        "[+1,2]",
        "[1e,2]",
        "[0x1,2]",
        "[NaN,2]",
        "[Infinity,2]",
        "[1 2]",
        "[1;2]",
        "[true,2]",
        "[\"1\",2]",
        "[[[1,2]]]",
        "[[1,2],3]",
        "[1,[2]]",
        "\"a\"",
        "[\"a\"]",
        "null",
        "1",
        "[1_0,2]",
        "[--1,2]",
        "[-,2]",
        "[1,2]\u{0}",
        "\u{feff}[1,2]",
        "[1,2]//",
        "[\u{a0}1,2]",
    ] {
        let response = server.predict(body);
        assert_eq!(response.status, 400, "{body}: {}", response.text());
        assert!(
            ["sv-json", "sv-number", "sv-columns", "sv-feature"].contains(&response.code().as_str()),
            "{body}"
        );
    }
    let deep = "[".repeat(60_000);
    assert_eq!(server.predict(&deep).code(), "sv-json");
    assert_eq!(server.ask("POST /predict HTTP/1.1\r\n", b"[1,\xff]").code(), "sv-json");
}

#[test]
fn numbers_are_rounded_once() {
    let server = start(
        apr_models::LinearRegression::from_parts(apr_models::Vector::from_vec(vec![1.0]), 0.0)
            .unwrap()
            .into(),
    );
    // Halfway between two floats of 32 bits, and a little more, which 64 bits do not see.
    for (text, value) in [
        ("1.00000005960464477539062500000000001", 1.000_000_1_f32),
        ("1.000000059604644775390625", 1.0),
        ("3.4028235677973366e38", f32::MAX),
        ("1e-46", 0.0),
        ("-0", -0.0),
        ("0.1", 0.1),
        ("123456789", 123_456_789.0),
    ] {
        let response = server.predict(&format!("[{text}]"));
        let found = response.text();
        let found = found.split(['[', ']']).nth(1).unwrap().parse::<f32>().unwrap();
        assert_eq!(found, value, "{text}");
    }
    assert_eq!(server.predict("[3.4028235677973367e38]").code(), "sv-number");
}
