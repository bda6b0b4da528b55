//! Rows that name their features, comma-separated values, and the log of requests.

use std::sync::mpsc::channel;

use apr_serve::Model;
use serde_json::json;

use crate::client::{Running, line, options, run, start, start_with};

/// y = 1 + 2 age + 0.5 size.
fn named() -> Model {
    Model::new(line()).unwrap().with_features(vec!["age".to_owned(), "the \"size\"".to_owned()])
}

#[test]
fn rows_may_name_their_features() {
    let server = start_with(named(), options());
    for (body, expected) in [
        (r#"{"rows": [{"age": 1, "the \"size\"": 2}]}"#, json!([4.0])),
        (
            r#"[{"the \u0022size\u0022": 2, "age": 1}, [0, 0], {"age":0,"the \"size\"":0}]"#,
            json!([4.0, 1.0, 1.0]),
        ),
        (r#"{"rows": {"age": 1, "the \"size\"": 2}}"#, json!([4.0])),
        ("{\"rows\":[ { \"age\" : 1 ,\n\"the \\\"size\\\"\" : 2 } ] }", json!([4.0])),
        ("[[1,2]]", json!([4.0])),
    ] {
        assert_eq!(server.predict(body).predictions(), expected, "{body}");
    }
    assert_eq!(server.get("/model").json()["features"], json!(["age", "the \"size\""]));
}

#[test]
fn other_names_are_refused_with_their_place() {
    let server = start_with(named(), options());
    for (body, code, place, message) in [
        (r#"[{"age": 1}]"#, "sv-feature", "row 0", "the feature `the \"size\"` is missing"),
        ("[[1,2],{}]", "sv-feature", "row 1", "the feature `age` is missing"),
        (r#"[{"age": 1, "age": 2}]"#, "sv-feature", "byte 12, row 0", "the feature `age` is given twice"),
        (r#"[{"Age": 1}]"#, "sv-feature", "byte 2, row 0", "`Age` is not a feature of the model"),
        (
            r#"[{"age": null}]"#,
            "sv-number",
            "byte 9, row 0, column 0",
            "a missing value, and the model takes none",
        ),
        (r#"[{"age": "1"}]"#, "sv-json", "byte 9", "expected a number, found `\"`"),
        (r#"[{"age": [1]}]"#, "sv-json", "byte 9", "expected a number, found `[`"),
        (r#"[{"age" 1}]"#, "sv-json", "byte 8", "expected `:`, found `1`"),
        (
            r#"[{"age": 1,}]"#,
            "sv-json",
            "byte 11",
            "expected the name of a feature, in double quotes, found `}`",
        ),
        (r#"[{"age": 1 "x"}]"#, "sv-json", "byte 11", "expected `,` or `}`, found `\"`"),
        (r#"[{age: 1}]"#, "sv-json", "byte 2", "expected the name of a feature, in double quotes, found `a`"),
        (r#"{"age": 1}"#, "sv-json", "byte 1", "expected the field \"rows\", found `\"`"),
        (
            r#"{"rows": {"age": 1, "the \"size\"": 2}, "x": 1}"#,
            "sv-json",
            "byte 38",
            "expected `}`: there is no field but \"rows\", found `,`",
        ),
        (r#"[{"age": 1"#, "sv-json", "byte 10", "expected `,` or `}`, found the end of the body"),
    ] {
        let response = server.predict(body);
        assert_eq!((response.status, response.code().as_str()), (400, code), "{body}");
        let error = &response.json()["error"];
        assert_eq!((&error["where"], &error["message"]), (&json!(place), &json!(message)), "{body}");
    }
    let long = format!("[{{\"{}\": 1}}]", "x".repeat(5000));
    assert!(server.predict(&long).text().len() < 400);

    // A model without names, and one whose names do not fit.
    let unfit = |names: &[&str]| {
        Model::new(line()).unwrap().with_features(names.iter().map(|&n| n.to_owned()).collect())
    };
    for server in
        [start(line()), start_with(unfit(&["a"]), options()), start_with(unfit(&["a", "a"]), options())]
    {
        assert_eq!(server.predict(r#"[{"a": 1}]"#).code(), "sv-feature");
        assert_eq!(server.get("/model").json()["features"], json!(null));
    }
}

fn csv(server: &Running, parameters: &str, body: &str) -> crate::client::Response {
    server.ask(&format!("POST /predict HTTP/1.1\r\ncontent-type: text/csv{parameters}\r\n"), body.as_bytes())
}

#[test]
fn comma_separated_values_are_rows() {
    let server = start_with(named(), options());
    for (parameters, body, expected) in [
        ("", "1,2\n0,0\n", json!([4.0, 1.0])),
        ("; charset=utf-8", "1,2\r\n0,0", json!([4.0, 1.0])),
        ("", "age,\"the \"\"size\"\"\"\n1,2\n", json!([4.0])),
        (";header=present", "\"the \"\"size\"\"\",age\n2,1\n", json!([4.0])),
        ("; header=absent", "1,2\n", json!([4.0])),
        ("", "", json!([])),
    ] {
        assert_eq!(csv(&server, parameters, body).predictions(), expected, "{body}");
    }
    for (parameters, body, code, place) in [
        ("", "age,size\n1,2\n", "sv-feature", "line 1"),
        ("; header=absent", "age,x\n", "sv-number", "line 1, column 1"),
        ("", "1,2\n3\n", "sv-columns", "line 2"),
        ("", "1,2\n,4\n", "sv-number", "line 2, column 1"),
        ("", "1,\"2\n", "sv-csv", "line 1"),
    ] {
        let response = csv(&server, parameters, body);
        assert_eq!((response.status, response.code().as_str()), (400, code), "{body}");
        assert_eq!(response.json()["error"]["where"], place, "{body}");
    }
    assert_eq!(
        server.ask("POST /predict HTTP/1.1\r\ncontent-type: text/csv\r\n", b"1,\xff").code(),
        "sv-csv"
    );
    let many = "1,2\n".repeat(1001);
    assert_eq!(csv(&server, "", &many).code(), "sv-rows");
    // Memory for names does not grow with the line.
    let wide = csv(&server, "", &",".repeat(1000));
    assert_eq!(
        (wide.code(), wide.json()["error"]["where"].as_str()),
        ("sv-columns".into(), Some("line 1")),
        "{}",
        wide.json()
    );
}

#[test]
fn each_answer_is_logged_once() {
    let (sender, lines) = channel();
    let server = run(options(), move |server| {
        let log = move |logged: apr_serve::Logged<'_>| {
            let _ = sender.send((
                logged.method.to_owned(),
                logged.target.to_owned(),
                logged.status,
                logged.n_rows,
            ));
        };
        server.with_log(log).serve(named()).unwrap();
    });
    server.predict("[[1,2],[3,4]]");
    server.ask("POST /predict?proba=x HTTP/1.1\r\n", b"[1,2]");
    server.ask("GET /nowhere?a=b HTTP/1.1\r\n", b"");
    server.ask("G(T / HTTP/1.1\r\n", b"");
    for expected in [
        ("POST", "/predict", 200, 2),
        ("POST", "/predict?proba=x", 400, 0),
        ("GET", "/nowhere?a=b", 404, 0),
        ("-", "-", 400, 0),
    ] {
        let (method, target, status, n_rows) = lines.recv().unwrap();
        assert_eq!((method.as_str(), target.as_str(), status, n_rows), expected);
    }
}
