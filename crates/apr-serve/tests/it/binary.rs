//! Bodies and answers as Arrow IPC and MessagePack: `tests/data/README.md`.

use core::time::Duration;
use std::path::Path;

use apr_models::{Accepts, AnyModel, CountVectorizer, CountVectorizerOptions, Labels};
use apr_serve::{Model, Options};
use apr_table::{Accepted, Table};
use serde_json::{Value, json};

use crate::client::{Response, Running, line, options, start, start_with, with_length};
use crate::models::classes;

const ARROW: &str = "application/vnd.apache.arrow.stream";
const MESSAGE_PACK: &str = "application/msgpack";

fn body(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

fn media_type(name: &str) -> &'static str {
    if name.ends_with(".msgpack") { MESSAGE_PACK } else { ARROW }
}

fn send(server: &Running, media_type: &str, fields: &str, body: &[u8]) -> Response {
    server.ask(&format!("POST /predict HTTP/1.1\r\ncontent-type: {media_type}\r\n{fields}"), body)
}

fn send_file(server: &Running, name: &str) -> Response {
    send(server, media_type(name), "", &body(name))
}

/// y = 1 + 2 age + 0.5 size.
fn named() -> Model {
    Model::new(line()).unwrap().with_features(vec!["age".to_owned(), "size".to_owned()])
}

fn refused(server: &Running, name: &str, code: &str, place: &Value, message: &str) {
    let response = send_file(server, name);
    let error = &response.json()["error"];
    assert_eq!((response.code().as_str(), &error["where"]), (code, place), "{name} {error}");
    assert!(error["message"].as_str().unwrap().contains(message), "{name} {error}");
}

#[test]
fn bodies_of_pyarrow_and_msgpack_are_rows() {
    let server = start_with(named(), options());
    let expected = server.predict("[[1,2],[-2,0.5],[3,0],[4,1000000]]").predictions();
    for name in [
        "rows.arrows",
        "zstd.arrows",
        "lz4.arrows",
        "rows.msgpack",
        "list.msgpack",
        "named.msgpack",
        "narrow.msgpack",
    ] {
        assert_eq!(send_file(&server, name).predictions(), expected, "{name}");
    }
    let of = |name| send_file(&server, name).predictions();
    assert_eq!(of("dictionary.arrows"), json!([4.0, 1.25, 3.0, 500_003.0]));
    assert_eq!(of("one.msgpack"), json!([4.0]));
    assert_eq!(of("file.arrow"), json!([4.0]));
    assert_eq!(of("empty.arrows"), json!([]));
    assert_eq!(of("many.msgpack").as_array().unwrap().len(), 300);
    // Other names of the media type.
    for media_type in ["application/x-msgpack", "Application/vnd.msgpack; x=y"] {
        assert_eq!(send(&server, media_type, "", &body("one.msgpack")).predictions(), json!([4.0]));
    }
    // Without names, columns come in their order.
    let server = start(line());
    assert_eq!(send_file(&server, "other_names.arrows").predictions(), json!([3.5]));
    // Models of 64 bits, and missing values.
    let labels = || Labels::Texts(vec!["no".to_owned(), "yes".to_owned()]);
    let server = start(classes(labels(), Accepts::Missing));
    assert_eq!(send_file(&server, "list.msgpack").predictions(), json!(["yes", "no", "yes", "yes"]));
    for name in ["nulls.arrows", "nulls.msgpack"] {
        assert_eq!(send_file(&server, name).predictions().as_array().unwrap().len(), 2, "{name}");
    }
}

#[test]
fn texts_are_read() {
    let counts = CountVectorizer::fit(&["alpha beta", "beta"], &CountVectorizerOptions::default());
    let server = start(AnyModel::from(counts.unwrap()));
    let expected = server.predict("[\"alpha beta\",\"\",\"\u{e9}\"]").predictions();
    for name in ["texts.arrows", "texts.msgpack"] {
        assert_eq!(send_file(&server, name).predictions(), expected, "{name}");
    }
    let packed = send(&server, MESSAGE_PACK, "accept: application/msgpack\r\n", &body("texts.msgpack"));
    assert_eq!(rmp_serde::from_slice::<Value>(&packed.body).unwrap()["predictions"], expected);
    refused(&server, "null_text.arrows", "sv-arrow", &json!("row 1"), "missing");
    refused(&server, "rows.arrows", "sv-columns", &json!(null), "expected 1");
    refused(&server, "list.msgpack", "sv-msgpack", &json!("byte 1"), "expected a string, found an array");
    let response = send(&server, ARROW, &format!("accept: {ARROW}\r\n"), &body("texts.arrows"));
    assert_eq!((response.status, response.code().as_str()), (406, "sv-accept"));
    // A row of three, for a model of numbers.
    assert_eq!(send_file(&start(line()), "texts.msgpack").code(), "sv-columns");
    assert_eq!(send_file(&server, "dictionary_of_texts.arrows").predictions().as_array().unwrap().len(), 4);
    // A dictionary does not make texts longer than a body may be.
    refused(&server, "long_texts.arrows", "sv-body-size", &json!(null), "too long");
}

#[test]
fn what_a_model_does_not_take_is_refused_with_its_place() {
    let server = start_with(named(), options());
    for (name, code, place, message) in [
        ("nulls.arrows", "sv-number", json!("row 1, column 0"), "a missing value"),
        ("nulls.msgpack", "sv-number", json!("byte 13, row 1, column 0"), "a missing value"),
        ("words.arrows", "sv-number", json!("row 0, column 0"), "the text `1` is not a number"),
        ("dates.arrows", "sv-arrow", json!(null), "column \"age\""),
        ("other_names.arrows", "sv-feature", json!(null), "`sizes` is not a feature"),
        ("all_nulls.arrows", "sv-rows", json!(null), "more than 1000 rows"),
        ("zeros.arrows", "sv-body-size", json!(null), "too long"),
        ("booleans.msgpack", "sv-msgpack", json!("byte 2"), "expected a number, found a boolean"),
        ("words.msgpack", "sv-msgpack", json!("byte 2"), "expected a number, found a string"),
        ("bytes.msgpack", "sv-msgpack", json!("byte 2"), "expected a number, found bytes"),
        ("time.msgpack", "sv-msgpack", json!("byte 2"), "expected a number, found an extension"),
    ] {
        refused(&server, name, code, &place, message);
    }
    let response = server.ask("POST /predict HTTP/1.1\r\ncontent-type: application/xml\r\n", b"");
    assert_eq!(response.status, 415);
    assert!(response.header("accept").unwrap().contains(ARROW));
}

#[test]
fn broken_bodies_are_refused() {
    let model = named();
    let ask = |name: &str, body: &[u8]| {
        model.answer_as(body, media_type(name), "", Default::default(), &Options::default())
    };
    let mut n_accepted = 0;
    for name in ["rows.arrows", "zstd.arrows", "lz4.arrows", "dictionary.arrows", "named.msgpack"] {
        let whole = body(name);
        assert!(ask(name, &whole).is_ok(), "{name}");
        for len in 0..whole.len() {
            match ask(name, &whole[..len]) {
                Err((status, _)) => assert_eq!(status, 400, "{name} {len}"),
                // A stream may end between two messages.
                Ok(_) => assert!(media_type(name) == ARROW, "{name} {len}"),
            }
        }
        for at in 0..whole.len() {
            for bit in [0, 3, 7] {
                let mut changed = whole.clone();
                changed[at] ^= 1 << bit;
                match ask(name, &changed) {
                    Ok(_) => n_accepted += 1,
                    Err((status, _)) => assert!([400, 413].contains(&status), "{name} {at} {status}"),
                }
            }
        }
    }
    assert!(n_accepted > 100);
    for body in
        [&[0x91; 60_000][..], b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"]
    {
        assert_eq!(ask("x.msgpack", body).unwrap_err().0, 400);
    }
    for body in [&b""[..], b"ARROW1\0\0", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\0\0\0\0"] {
        assert!([400, 413].contains(&ask("x.arrows", body).unwrap_err().0));
    }
}

#[test]
fn answers_have_the_form_that_is_asked_for() {
    let server = start_with(named(), options());
    let ask = |accept: &str| {
        let fields = format!("accept: {accept}\r\n");
        send(&server, "application/json", &fields, b"[[1,2],[-2,0.5]]")
    };
    for (accept, expected) in [
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/json", "application/json"),
        ("application/msgpack", MESSAGE_PACK),
        ("application/msgpack;q=0.5, application/json", "application/json"),
        ("text/html, application/x-msgpack;q=0.2, */*;q=0.1", MESSAGE_PACK),
        (ARROW, ARROW),
        ("application/msgpack;q=0, */*", "application/json"),
    ] {
        assert_eq!(ask(accept).header("content-type"), Some(expected), "{accept}");
    }
    let json = ask("application/json").json();
    assert_eq!(rmp_serde::from_slice::<Value>(&ask(MESSAGE_PACK).body).unwrap(), json);
    let response = ask(ARROW);
    assert_eq!(response.header("apr-model"), json["model"].as_str());
    let mut table = Table::arrow(response.body.as_slice()).unwrap();
    assert_eq!(table.names(), ["prediction"]);
    let mut values = Vec::new();
    table.next_batch().unwrap().unwrap().append_rows::<f64>(&[0], Accepted::FINITE, &mut values).unwrap();
    assert_eq!(json!(values), json["predictions"]);
    // Errors are JSON.
    assert_eq!(send(&server, MESSAGE_PACK, &format!("accept: {ARROW}\r\n"), b"\xc1").code(), "sv-msgpack");
}

#[test]
fn classes_and_probabilities_are_answered_in_each_form() {
    for labels in [
        Labels::Texts(vec!["no".to_owned(), "y".repeat(40)]),
        Labels::Integers(vec![-7, 1 << 40]),
        Labels::Booleans(vec![false, true]),
        Labels::Numbers(vec![0.5, 2.0]),
    ] {
        let server = start(classes(labels, Accepts::Finite));
        for query in ["", "?proba=true"] {
            let ask = |accept: &str| {
                let head = format!("POST /predict{query} HTTP/1.1\r\naccept: {accept}\r\n");
                server.ask(&head, b"[[1,2],[-2,0.5]]")
            };
            let json = ask("*/*").json();
            assert_eq!(rmp_serde::from_slice::<Value>(&ask(MESSAGE_PACK).body).unwrap(), json);
            let answer = ask(ARROW);
            let mut table = Table::arrow(answer.body.as_slice()).unwrap();
            assert_eq!(table.names().len(), if query.is_empty() { 1 } else { 3 });
            let batch = table.next_batch().unwrap().unwrap();
            let label = |row: usize| match &json["predictions"][row] {
                Value::Object(object) => object["class"].clone(),
                label => label.clone(),
            };
            for row in 0..2 {
                let found = batch.text(row, 0).unwrap().unwrap().into_owned();
                let expected = label(row);
                let expected = expected.as_str().map_or_else(|| expected.to_string(), str::to_owned);
                assert!(found == expected || found.parse::<f64>() == expected.parse::<f64>(), "{found}");
            }
        }
        // No rows: columns all the same.
        let head = format!("POST /predict HTTP/1.1\r\naccept: {ARROW}\r\n");
        let answer = server.ask(&head, b"[]");
        let mut table = Table::arrow(answer.body.as_slice()).unwrap();
        assert!(table.names() == ["prediction"] && table.next_batch().unwrap().is_none());
    }
}

#[test]
fn memory_is_reserved_before_a_body_is_decoded() {
    let server = start_with(named(), Options { max_memory: 1000, ..options() });
    // What is wrong with a body is not known yet.
    for name in ["rows.arrows", "zstd.arrows", "dates.arrows", "zeros.arrows", "all_nulls.arrows"] {
        let refused = send_file(&server, name);
        assert_eq!((refused.status, refused.code().as_str()), (413, "sv-body-size"), "{name}");
    }
    assert_eq!(send_file(&server, "rows.msgpack").status, 200);
    assert_eq!(server.metric("apr_serve_buffered_bytes"), 0.0);
    let server = start_with(named(), options());
    for name in ["rows.arrows", "dates.arrows", "zeros.arrows"] {
        send_file(&server, name);
        assert_eq!(server.metric("apr_serve_buffered_bytes"), 0.0, "{name}");
    }
}

#[test]
fn an_answer_is_counted_until_the_client_has_it() {
    const WIDTH: usize = 20_000;
    let same = apr_models::StandardScaler::from_parts(vec![0.0; WIDTH], vec![1.0; WIDTH]).unwrap();
    let model = Model::new(AnyModel::from(same)).unwrap();
    let server = start_with(
        model,
        Options {
            max_body: 3 << 20,
            max_memory: 16 << 20,
            request_time: Duration::from_secs(60),
            ..options()
        },
    );
    // Two million numbers of one byte; in JSON, each takes four.
    let row = [&b"\xdd\0\0\x4e\x20"[..], &[0; WIDTH]].concat();
    let body = [&b"\x91"[..], &row].concat();
    assert_eq!(send(&server, MESSAGE_PACK, "", &body).status, 200);
    let long = [&b"\xdc\0\x64"[..], &row.repeat(100)].concat();
    let head = format!("POST /predict HTTP/1.1\r\ncontent-type: {MESSAGE_PACK}\r\n");
    let mut slow = server.connect();
    slow.send(&with_length(&head, &long));
    // More than the operating system takes from the server.
    while server.metric("apr_serve_answer_bytes_total") < 8e6 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.metric("apr_serve_buffered_bytes") >= 8e6);
    let busy = send(&server, MESSAGE_PACK, "", &long);
    assert_eq!((busy.status, busy.code().as_str()), (503, "sv-busy"));
    assert_eq!(busy.header("retry-after"), Some("1"));
    assert!(slow.response().body.len() > 8_000_000);
    while server.metric("apr_serve_buffered_bytes") > 0.0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(send(&server, MESSAGE_PACK, "", &body).status, 200);
}
