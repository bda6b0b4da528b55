//! Each endpoint, each method, each format.

use serde_json::json;

use crate::client::{line, options, row, start, start_with};

#[test]
fn rows_come_in_three_forms() {
    let server = start(line());
    for (body, expected) in [
        (r#"{"rows": [[1, 2], [0.5, -1e1]]}"#, json!([4.0, -3.0])),
        ("[[1,2],[0,0]]", json!([4.0, 1.0])),
        (" [ 1 , 2 ] ", json!([4.0])),
        ("[]", json!([])),
        (r#"{"rows":[]}"#, json!([])),
        (r#"{ "rows" : [ 1, 2 ] }"#, json!([4.0])),
    ] {
        let response = server.predict(body);
        assert_eq!(response.predictions(), expected, "{body}");
        assert_eq!(response.json()["model"], "generation-1");
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert!(response.header("date").is_some());
    }
}

#[test]
fn raw_rows_give_raw_numbers() {
    let server = start(line());
    let bytes: Vec<u8> = [1.0_f32, 2.0, 0.0, 0.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    for media_type in ["application/octet-stream", "application/vnd.apr.f32"] {
        let head = format!("POST /predict HTTP/1.1\r\ncontent-type: {media_type}\r\n");
        let response = server.ask(&head, &bytes);
        assert_eq!(response.status, 200);
        assert_eq!(response.header("content-type"), Some("application/vnd.apr.f32"));
        assert_eq!(response.header("apr-columns"), Some("1"));
        assert_eq!(response.body, [4.0_f32.to_le_bytes(), 1.0_f32.to_le_bytes()].concat());
    }
    let raw = |options: &str, body: &[u8]| {
        let head = format!("POST /predict{options} HTTP/1.1\r\ncontent-type: application/octet-stream\r\n");
        server.ask(&head, body)
    };
    for len in [1, 3, 4, 7, 12, 13] {
        assert_eq!(raw("", &vec![0; len]).code(), "sv-raw", "{len} bytes");
    }
    assert_eq!(raw("", b"").body, b"");
    assert_eq!(raw("?columns=2", &bytes).status, 200);
    assert_eq!(raw("?columns=4", &bytes).code(), "sv-columns");
    assert_eq!(raw("?columns=0", &bytes).code(), "sv-query");
    assert_eq!(raw("", &[f32::NAN.to_le_bytes(), [0; 4]].concat()).code(), "sv-number");
    let declared = "POST /predict HTTP/1.1\r\ncontent-type: application/octet-stream\r\napr-columns: 3\r\n";
    assert_eq!(server.ask(declared, &bytes).code(), "sv-columns");
}

#[test]
fn the_server_says_how_it_is() {
    let server = start(line());
    let health = server.get("/health");
    assert_eq!((health.status, health.json()), (200, json!({"status": "ready"})));
    let model = server.get("/model").json();
    assert_eq!(model["schema"], "apr.serve.model/1");
    assert_eq!(model["name"], "LinearRegression");
    assert_eq!((&model["inputs"], &model["takes"]), (&json!(2), &json!("numbers")));
    assert_eq!((&model["generation"], &model["file"]), (&json!(1), &json!(null)));
    assert!(model["loaded_at"].as_u64().unwrap() > 0);
    let metrics = server.get("/metrics");
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
}

#[test]
fn metrics_add_up() {
    let server = start(line());
    for _ in 0..3 {
        server.predict("[[1,2],[3,4]]");
    }
    server.predict("[[1]]");
    server.predict("nonsense");
    server.get("/nothing");
    server.get("/health");
    let text = server.get("/metrics").text();
    for line in [
        r#"apr_serve_requests_total{endpoint="predict",status="2xx"} 3"#,
        r#"apr_serve_requests_total{endpoint="predict",status="4xx"} 2"#,
        r#"apr_serve_requests_total{endpoint="health",status="2xx"} 1"#,
        r#"apr_serve_requests_total{endpoint="other",status="4xx"} 1"#,
        r#"apr_serve_errors_total{code="sv-columns"} 1"#,
        r#"apr_serve_errors_total{code="sv-json"} 1"#,
        r#"apr_serve_errors_total{code="sv-path"} 1"#,
        "apr_serve_predictions_total 6",
        "apr_serve_body_bytes_total 52",
        "apr_serve_predict_seconds_count 3",
        r#"apr_serve_predict_seconds_bucket{le="+Inf"} 3"#,
        "apr_serve_connections_total 8",
        "apr_serve_model_generation 1",
        r#"apr_serve_reloads_total{result="ok"} 0"#,
        "apr_serve_ready 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    // Every line is a comment, or a name with labels and a number.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("apr_serve_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn what_is_wrong_has_a_status_and_a_code() {
    let server = start(line());
    let post = |headers: &str, body: &[u8]| server.ask(&format!("POST /predict HTTP/1.1\r\n{headers}"), body);
    for (response, status, code) in [
        (server.get("/"), 404, "sv-path"),
        (server.get("/predict/"), 404, "sv-path"),
        (server.get("/predict"), 405, "sv-method"),
        (server.ask("PUT /predict HTTP/1.1\r\n", b""), 405, "sv-method"),
        (server.ask("POST /health HTTP/1.1\r\n", b""), 405, "sv-method"),
        (server.ask("DELETE /model HTTP/1.1\r\n", b""), 405, "sv-method"),
        (post("content-type: text/plain\r\n", b"1,2"), 415, "sv-media-type"),
        (post("content-encoding: gzip\r\n", b"[1,2]"), 415, "sv-media-type"),
        (server.ask("POST /predict?prob=1 HTTP/1.1\r\n", b"[1,2]"), 400, "sv-query"),
        (server.ask("POST /predict?proba=maybe HTTP/1.1\r\n", b"[1,2]"), 400, "sv-query"),
        (server.ask("POST /predict?proba=1&proba=1 HTTP/1.1\r\n", b"[1,2]"), 400, "sv-query"),
        (server.ask("POST /predict?proba=true HTTP/1.1\r\n", b"[1,2]"), 400, "am-no-such-output"),
        (post("", b"[[1,2],[3]]"), 400, "sv-columns"),
        (post("", b"[1e99,2]"), 400, "sv-number"),
        (post("", b"[null,2]"), 400, "sv-number"),
        (post("", b"[\"inf\",2]"), 400, "sv-number"),
        (post("", b""), 400, "sv-json"),
    ] {
        assert_eq!((response.status, response.code().as_str()), (status, code), "{}", response.text());
        match status {
            405 => assert!(response.header("allow").is_some()),
            415 => assert!(response.header("accept").is_some()),
            _ => {}
        }
    }
}

#[test]
fn the_place_of_a_mistake_is_told() {
    let server = start(line());
    let place = |body: &str| server.predict(body).json()["error"]["where"].as_str().unwrap().to_owned();
    assert_eq!(place("[[1,2],[3,x]]"), "byte 10");
    assert_eq!(place("[[1,2],[3,1e99]]"), "byte 10, row 1, column 1");
    assert_eq!(place("[[1,2],[3]]"), "row 1");
}

#[test]
fn methods_without_a_body_are_answered() {
    let server = start(line());
    let options = server.ask("OPTIONS /predict HTTP/1.1\r\n", b"");
    assert_eq!((options.status, options.header("allow")), (204, Some("POST, OPTIONS")));
    assert_eq!(server.ask("OPTIONS /health HTTP/1.1\r\n", b"").header("allow"), Some("GET, HEAD, OPTIONS"));
    let mut client = server.connect();
    client.send(b"HEAD /health HTTP/1.1\r\nhost: localhost\r\n\r\nGET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut client.stream, &mut text).unwrap();
    // The head promises what GET gives, and nothing but the head comes.
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2);
    assert_eq!(text.matches("content-length: 19").count(), 2);
    assert_eq!(text.matches("{\"status\":\"ready\"}\n").count(), 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = start(line());
    let mut client = server.connect();
    let requests: Vec<u8> = (0..500).flat_map(|number| row(&format!("[{number},0]"))).collect();
    client.send(&requests);
    for number in 0..500 {
        assert_eq!(client.response().predictions()[0], 1.0 + 2.0 * f64::from(number));
    }
}

#[test]
fn packets_may_be_cut_anywhere() {
    let server = start(line());
    let request = row("{\"rows\": [[1,2],[3,4]]}");
    let mut client = server.connect();
    for cut in 1..request.len() {
        client.send(&request[..cut]);
        std::thread::yield_now();
        client.send(&request[cut..]);
        assert_eq!(client.response().predictions(), serde_json::json!([4.0, 9.0]), "cut at {cut}");
    }
    // One answer does not wait for the rest of the next request.
    let two = [request.clone(), request.clone()].concat();
    client.send(&two[..two.len() - 5]);
    assert_eq!(client.response().status, 200);
    client.send(&two[two.len() - 5..]);
    assert_eq!(client.response().status, 200);
}

#[test]
fn chunked_bodies_are_bodies() {
    let server = start(line());
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[[1\r\n4;x=y\r\n,2]]\r\n0\r\ntrailer: t\r\n\r\n");
    assert_eq!(client.response().predictions(), json!([4.0]));
    client.send(&row("[1,2]"));
    assert_eq!(client.response().predictions(), json!([4.0]));
}

#[test]
fn a_client_that_asks_first_is_told_to_go_on() {
    let server = start(line());
    let mut client = server.connect();
    client.send(
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n",
    );
    assert_eq!(client.response().status, 100);
    client.send(b"[1,2]");
    assert_eq!(client.response().predictions(), json!([4.0]));
}

#[test]
fn a_long_batch_is_answered_in_pieces_and_short_requests_pass() {
    let server = start_with(
        apr_serve::Model::new(line()).unwrap(),
        apr_serve::Options { threads: 1, max_rows: 100_000, max_body: 4 << 20, ..options() },
    );
    let rows: Vec<String> = (0..100_000).map(|number| format!("[{number},1]")).collect();
    let body = format!("[{}]", rows.join(","));
    let (mut long, mut short) = (server.connect(), server.connect());
    long.send(&row(&body));
    short.send(&row("[1,2]"));
    assert_eq!(short.response().predictions(), json!([4.0]));
    let predictions = long.response().predictions();
    let predictions = predictions.as_array().unwrap();
    assert_eq!(predictions.len(), 100_000);
    assert!(predictions.iter().enumerate().all(|(number, found)| *found == 1.5 + 2.0 * number as f64));
}
