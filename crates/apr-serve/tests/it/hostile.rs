//! Requests that are too long, too slow, cut off, or no requests.

use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::thread::sleep;

use apr_serve::{Model, Options};
use serde_json::json;

use crate::client::{line, options, row, start, start_with, with_length};

#[test]
fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let server = start(line());
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n[[");
    let response = client.response();
    assert_eq!((response.status, response.code().as_str()), (413, "sv-body-size"));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(client.is_closed());
    // One who sends all of it first gets the answer as well.
    let response = server.ask("POST /predict HTTP/1.1\r\n", &vec![b' '; 1 << 20]);
    assert_eq!((response.status, response.code().as_str()), (413, "sv-body-size"));
    // The longest one that is not.
    let mut body = vec![b' '; options().max_body - 5];
    body.extend_from_slice(b"[1,2]");
    assert_eq!(server.ask("POST /predict HTTP/1.1\r\n", &body).predictions(), json!([4.0]));
}

#[test]
fn a_chunked_body_that_is_too_long_is_refused_when_it_is() {
    let server = start(line());
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
    for _ in 0..65 {
        let _ = client.stream.write_all(b"400\r\n");
        let _ = client.stream.write_all(&[b' '; 1024]);
        let _ = client.stream.write_all(b"\r\n");
    }
    let response = client.response();
    assert_eq!((response.status, response.code().as_str()), (413, "sv-body-size"));
    assert!(client.is_closed());
}

#[test]
fn rows_answers_and_memory_have_an_end() {
    let many = format!("[{}]", vec!["[1,2]"; 20].join(","));
    let with = |options: Options| start_with(Model::new(line()).unwrap(), options).predict(&many);
    let rows = with(Options { max_rows: 19, ..options() });
    assert_eq!((rows.status, rows.code().as_str()), (413, "sv-rows"));
    assert_eq!(with(Options { max_rows: 20, ..options() }).status, 200);
    let answer = with(Options { max_answer: 30, ..options() });
    assert_eq!((answer.status, answer.code().as_str()), (413, "sv-answer-size"));
    // It would be in vain to try again.
    let server = start_with(Model::new(line()).unwrap(), Options { max_memory: 1000, ..options() });
    let long = format!("[1,{}2]", " ".repeat(40_000));
    let refused = server.predict(&long);
    assert_eq!((refused.status, refused.code().as_str()), (413, "sv-body-size"));
    assert_eq!(refused.header("retry-after"), None);
    assert_eq!(server.predict("[1,2]").predictions(), json!([4.0]));
    assert_eq!(server.metric("apr_serve_buffered_bytes"), 0.0);
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    let server = start(line());
    let mut client = server.connect();
    // A good request first: the clock starts with each one.
    client.send(&row("[1,2]"));
    assert_eq!(client.response().status, 200);
    for byte in b"GET /health HT" {
        if client.stream.write_all(&[*byte]).is_err() {
            break;
        }
        sleep(Duration::from_millis(40));
    }
    let response = client.response();
    assert_eq!((response.status, response.code().as_str()), (408, "sv-timeout"));
    assert!(client.is_closed());
    assert_eq!(server.metric(r#"apr_serve_errors_total{code="sv-timeout"}"#), 1.0);
}

#[test]
fn many_slow_heads_do_not_keep_others_out() {
    let server = start(line());
    let mut slow: Vec<_> = (0..100).map(|_| server.connect()).collect();
    slow.iter_mut().for_each(|client| client.send(b"POST /predict HTTP/1.1\r\nx-"));
    for _ in 0..20 {
        assert_eq!(server.predict("[1,2]").status, 200);
    }
    for client in &mut slow {
        assert_eq!(client.response().status, 408);
    }
}

#[test]
fn a_body_that_never_ends_is_given_up() {
    let options = Options { request_time: Duration::from_millis(300), ..options() };
    let server = start_with(Model::new(line()).unwrap(), options);
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 50\r\n\r\n[[1,");
    let response = client.response();
    assert_eq!((response.status, response.code().as_str()), (408, "sv-timeout"));
    assert!(client.is_closed());
}

#[test]
fn an_idle_connection_is_closed_without_a_word() {
    let server = start_with(
        Model::new(line()).unwrap(),
        Options { idle_time: Duration::from_millis(200), ..options() },
    );
    let mut client = server.connect();
    client.send(&row("[1,2]"));
    assert_eq!(client.response().status, 200);
    assert!(client.is_closed());
    assert!(server.connect().is_closed());
}

#[test]
fn an_answer_that_nobody_takes_is_given_up() {
    let options = Options { request_time: Duration::from_millis(500), ..options() };
    let server = start_with(Model::new(line()).unwrap(), options);
    let mut client = server.connect();
    client.stream.set_nonblocking(true).unwrap();
    let request = row(&format!("[{}]", vec!["[1,2]"; 900].join(",")));
    // Until neither side takes anything more.
    let (mut stuck, mut sent) = (0, 0);
    while stuck < 5 {
        match client.stream.write(&request[sent..]) {
            Ok(len) => {
                stuck = 0;
                sent = (sent + len) % request.len();
            }
            Err(_) => {
                stuck += 1;
                sleep(Duration::from_millis(20));
            }
        }
    }
    while server.metric("apr_serve_connections") > 1.0 {
        sleep(Duration::from_millis(20));
    }
    assert_eq!(server.predict("[1,2]").status, 200);
}

#[test]
fn what_is_no_http_is_answered_and_closed() {
    let server = start(line());
    let many = format!("GET /health HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(100));
    let long = format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let address = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "y".repeat(100_000));
    for garbage in [
        "\u{0}\u{1}\u{2}\r\n\r\n",
        "hello\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\u{1}\u{fc}",
        "POST /predict HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        "POST /predict HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n[1,2]",
        "POST /predict HTTP/1.1\r\ncontent-length: -5\r\n\r\n[1,2]",
        many.as_str(),
        long.as_str(),
        address.as_str(),
    ] {
        let mut client = server.connect();
        let _ = client.stream.write_all(garbage.as_bytes());
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = client.stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 4"), "{garbage:.60}: {answer}");
    }
    assert_eq!(server.predict("[1,2]").predictions(), json!([4.0]));
    assert!(server.metric(r#"apr_serve_errors_total{code="sv-request"}"#) >= 6.0);
}

#[test]
fn a_length_and_chunks_at_once_smuggle_nothing() {
    let server = start(line());
    let mut client = server.connect();
    client.send(
        b"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: 60\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /model HTTP/1.1\r\nhost: localhost\r\n\r\n",
    );
    // Refused as a whole, or read as chunks with the connection closed or the next request answered as such: never as a body.
    let first = client.response();
    assert_eq!(first.status, 400);
}

#[test]
fn bodies_that_break_off_harm_nobody() {
    let server = start(line());
    for cut in 0..40 {
        let mut client = server.connect();
        let request = row("{\"rows\": [[1,2],[3,4]]}");
        client.send(&request[..request.len() - 1 - cut.min(request.len() - 2)]);
        drop(client);
    }
    let mut client = server.connect();
    client.send(b"POST /predict HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n");
    let mut answer = Vec::new();
    let _ = client.stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"));
    assert_eq!(server.predict("[1,2]").status, 200);
}

#[test]
fn a_refused_request_leaves_its_connection_in_order() {
    let server = start(line());
    let mut client = server.connect();
    for _ in 0..10 {
        client.send(&with_length("POST /nowhere HTTP/1.1\r\n", &[b'x'; 5000]));
        assert_eq!(client.response().status, 404);
        let Ok(()) = client.stream.write_all(&row("[1,2]")) else { break };
        match client.try_response() {
            Ok(Some(response)) => assert_eq!(response.predictions(), json!([4.0])),
            // The server may close the connection instead of reading the body.
            _ => client = server.connect(),
        }
    }
}
