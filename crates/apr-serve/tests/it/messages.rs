//! Messages on a raw socket, and what RFC 9112 (HTTP/1.1), RFC 9110 (semantics) and Fetch Metadata say of them.

use core::fmt::Write as _;

use apr_serve::{Model, Options};

use crate::client::{Running, line, options, start, start_with};

/// What has to follow an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    /// The connection takes another request.
    Stays,
    /// It is closed.
    Closes,
    /// Either.
    Any,
}
use Then::{Any, Closes, Stays};

fn check(server: &Running, section: &str, message: &str, status: u16, then: Then) {
    let mut client = server.connect();
    client.send(message.as_bytes());
    let response = client.response();
    let shown = message.get(..message.len().min(120)).unwrap_or(message);
    assert_eq!(response.status, status, "{section}: {shown:?}: {}", response.text());
    assert_eq!(response.header("x-content-type-options"), Some("nosniff"), "{section}: {shown:?}");
    if status >= 400 {
        assert!(!response.code().is_empty(), "{section}: {shown:?}");
    }
    match then {
        Stays => {
            client.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n");
            assert_eq!(client.response().status, 200, "{section}: {shown:?} closed the connection");
        }
        Closes => assert!(client.is_closed(), "{section}: {shown:?} left the connection open"),
        Any => {}
    }
}

const HOST: &str = "Host: localhost\r\n";

#[test]
fn requests_are_read_as_rfc_9112_demands() {
    let server = start(line());
    let get = |fields: &str| format!("GET /health HTTP/1.1\r\n{fields}\r\n");
    let line = |line: &str| format!("{line}\r\n{HOST}\r\n");
    let post = |fields: &str, body: &str| format!("POST /predict HTTP/1.1\r\n{HOST}{fields}\r\n{body}");
    let mut many = String::new();
    (0..100).for_each(|number| write!(many, "x-{number}: y\r\n").unwrap());
    for (section, message, status, then) in [
        // The request line.
        ("9112 2.2", format!("\r\n{}", get(HOST)), 200, Stays),
        ("9112 2.2", format!("\r\n\r\n{}", get(HOST)), 200, Stays),
        ("9112 2.2, a bare LF", "GET /health HTTP/1.1\nHost: localhost\n\n".to_owned(), 200, Stays),
        ("9112 2.2, space before a field", format!("GET /health HTTP/1.1\r\n {HOST}\r\n"), 400, Closes),
        ("9112 2.3", line("GET /health HTTP/1.1.1"), 400, Closes),
        ("9112 2.3", line("GET /health HTTP/2.0"), 400, Closes),
        ("9112 2.3", line("GET /health http/1.1"), 400, Closes),
        ("9112 3", line("GET  /health HTTP/1.1"), 400, Closes),
        ("9112 3", line("GET /hea lth HTTP/1.1"), 400, Closes),
        ("9112 3", line("GET /health"), 400, Closes),
        ("9112 3.1", line("G(T /health HTTP/1.1"), 400, Closes),
        ("9112 3.1", line("GET\t/health HTTP/1.1"), 400, Closes),
        ("9112 3", line(&format!("GET /{} HTTP/1.1", "y".repeat(100_000))), 431, Closes),
        ("9113 3.4, its preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 400, Closes),
        // The Host field.
        ("9112 3.2, none", get(""), 400, Closes),
        ("9112 3.2, two", get("Host: localhost\r\nHost: localhost\r\n"), 400, Closes),
        ("9112 3.2, two", get("Host: localhost\r\nhost: evil.example\r\n"), 400, Closes),
        ("9112 3.2, empty", get("Host:\r\n"), 400, Closes),
        ("9112 3.2", get("Host: local host\r\n"), 400, Closes),
        ("9112 3.2", get("Host: user@localhost\r\n"), 400, Closes),
        ("9112 3.2", get("Host: localhost/x\r\n"), 400, Closes),
        ("9112 3.2", get("Host: localhost:port\r\n"), 400, Closes),
        ("9112 3.2", get("Host: localhost:99999\r\n"), 400, Closes),
        ("9112 3.2", get("Host: ::1\r\n"), 400, Closes),
        ("9112 3.2", get("Host: LOCALHOST.:80\r\n"), 200, Stays),
        ("9112 3.2", get("host:127.0.0.1\r\n"), 200, Stays),
        ("9112 3.2", get("Host: [::1]:8080 \t\r\n"), 200, Stays),
        ("9112 3.2, HTTP/1.0 needs none", "GET /health HTTP/1.0\r\n\r\n".to_owned(), 200, Closes),
        (
            "9112 3.2, but may have one",
            "GET /health HTTP/1.0\r\nHost: evil.example\r\n\r\n".to_owned(),
            421,
            Closes,
        ),
        ("9110 7.4", get("Host: evil.example\r\n"), 421, Stays),
        ("9110 7.4", get("Host: localhost.evil.example\r\n"), 421, Stays),
        ("9110 7.4", get("Host: 127.0.0.1.evil.example:80\r\n"), 421, Stays),
        // The request target.
        ("9112 3.2.2", line("GET http://localhost/health HTTP/1.1"), 200, Stays),
        (
            "9112 3.2.2",
            "GET http://localhost/health HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            200,
            Stays,
        ),
        ("9112 3.2.2", line("GET http://evil.example/health HTTP/1.1"), 421, Stays),
        ("9112 3.2.2", "GET http://localhost/health HTTP/1.1\r\n\r\n".to_owned(), 400, Closes),
        ("9110 4.2.4", line("GET http://user@localhost/health HTTP/1.1"), 400, Closes),
        ("9110 7.4, not secured", line("GET https://localhost/health HTTP/1.1"), 421, Stays),
        ("9112 3.2.3", line("CONNECT localhost:80 HTTP/1.1"), 404, Any),
        ("9112 3.2.4", line("OPTIONS * HTTP/1.1"), 204, Stays),
        ("9112 3.2", line("GET health HTTP/1.1"), 400, Closes),
        // Fields.
        ("9112 5.1, space before the colon", get(&format!("{HOST}x : y\r\n")), 400, Closes),
        ("9112 5.1", get(&format!("{HOST}: y\r\n")), 400, Closes),
        ("9112 5.1", get(&format!("{HOST}x\r\n")), 400, Closes),
        ("9112 5.1", get(&format!("{HOST}x(y): z\r\n")), 400, Closes),
        ("9112 5.2, obs-fold", get(&format!("{HOST}x: y\r\n z\r\n")), 400, Closes),
        ("9112 2.2, a bare CR", get(&format!("{HOST}x: y\rz\r\n")), 400, Closes),
        ("9110 5.5, NUL", get(&format!("{HOST}x: y\0z\r\n")), 400, Closes),
        ("9110 5.4, too many", get(&format!("{HOST}{many}")), 431, Closes),
        ("9110 5.4, too long", get(&format!("{HOST}x: {}\r\n", "y".repeat(100_000))), 431, Closes),
        // Bodies.
        ("9112 6.3", post("Content-Length: 5\r\n", "[1,2]"), 200, Stays),
        ("9112 6.3, equal lengths", post("Content-Length: 5\r\nContent-Length: 5\r\n", "[1,2]"), 200, Stays),
        ("9112 6.3", post("Content-Length: 5\r\nContent-Length: 6\r\n", "[1,2]"), 400, Closes),
        ("9112 6.3", post("Content-Length: 5, 6\r\n", "[1,2]"), 400, Closes),
        ("9110 8.6", post("Content-Length: -5\r\n", "[1,2]"), 400, Closes),
        ("9110 8.6", post("Content-Length: +5\r\n", "[1,2]"), 400, Closes),
        ("9110 8.6", post("Content-Length: 0x5\r\n", "[1,2]"), 400, Closes),
        ("9110 8.6", post("Content-Length: 99999999999999999999\r\n", "[1,2]"), 400, Closes),
        ("9112 7.1", post("Transfer-Encoding: Chunked\r\n", "5\r\n[1,2]\r\n0\r\n\r\n"), 200, Stays),
        ("9112 7.1", post("Transfer-Encoding: chunked\r\n", "x\r\n[1,2]\r\n0\r\n\r\n"), 400, Closes),
        ("9112 7.1", post("Transfer-Encoding: chunked\r\n", "5\r\n[1,2]x0\r\n\r\n"), 400, Closes),
        ("9112 7.1", post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n[1,2]\r\n"), 400, Closes),
        ("9112 6.1, not the last coding", post("Transfer-Encoding: chunked, gzip\r\n", ""), 400, Closes),
        ("9112 6.1, unknown", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501, Closes),
        (
            "9112 6.1, twice",
            post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            501,
            Closes,
        ),
        (
            "9112 6.1, in HTTP/1.0",
            "POST /predict HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            400,
            Closes,
        ),
        (
            "9112 6.1, and a length",
            post("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "5\r\n[1,2]\r\n0\r\n\r\n"),
            200,
            Closes,
        ),
        (
            "9112 6.1, and a length",
            post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "5\r\n[1,2]\r\n0\r\n\r\n"),
            200,
            Closes,
        ),
        ("9110 8.4.1", post("Content-Encoding: gzip\r\nContent-Length: 5\r\n", "[1,2]"), 415, Any),
        // The connection.
        ("9112 9.6", get(&format!("{HOST}Connection: close\r\n")), 200, Closes),
        ("9112 9.6", get(&format!("{HOST}Connection: x, Close\r\n")), 200, Closes),
        ("9112 9.3", "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".to_owned(), 200, Stays),
        ("9110 9.1", line("BREW /predict HTTP/1.1"), 405, Stays),
        (
            "9110 7.8, an upgrade is ignored",
            get(&format!("{HOST}Connection: upgrade\r\nUpgrade: h2c\r\n")),
            200,
            Stays,
        ),
    ] {
        check(&server, section, &message, status, then);
    }
    assert_eq!(server.predict("[1,2]").status, 200);
}

/// The answers to what was understood stand before the one that says what was not.
#[test]
fn a_malformed_request_behind_good_ones_has_an_answer_of_its_own() {
    let server = start(line());
    let mut client = server.connect();
    let good = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.send(format!("{good}{good}GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n").as_bytes());
    assert_eq!([client.response().status, client.response().status], [200, 200]);
    let refused = client.response();
    assert_eq!((refused.status, refused.code().as_str()), (400, "sv-request"));
    assert_eq!(refused.header("x-content-type-options"), Some("nosniff"));
    assert!(client.is_closed());
}

#[test]
fn pages_of_other_sites_are_refused_and_links_are_followed() {
    let server = start(line());
    let ask = |request: &str, fields: &str| {
        let body = if request.starts_with("POST") { "[1,2]" } else { "" };
        format!("{request} HTTP/1.1\r\n{HOST}{fields}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let document = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for (request, fields, status) in [
        ("POST /predict", String::new(), 200),
        ("POST /predict", "Sec-Fetch-Site: none\r\n".into(), 200),
        ("POST /predict", "Sec-Fetch-Site: same-origin\r\n".into(), 200),
        ("POST /predict", "Sec-Fetch-Site: cross-site\r\n".into(), 403),
        ("POST /predict", "Sec-Fetch-Site: same-site\r\n".into(), 403),
        ("POST /predict", format!("Sec-Fetch-Site: cross-site\r\n{document}"), 403),
        ("GET /model", "Sec-Fetch-Site: cross-site\r\n".into(), 403),
        ("GET /metrics", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: no-cors\r\n".into(), 403),
        ("OPTIONS /predict", "Sec-Fetch-Site: cross-site\r\nOrigin: http://evil.example\r\n".into(), 403),
        (
            "GET /model",
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n".into(),
            403,
        ),
        ("GET /model", format!("Sec-Fetch-Site: cross-site\r\n{document}"), 200),
    ] {
        check(&server, "Fetch Metadata", &ask(request, &fields), status, Any);
    }
    assert_eq!(server.metric(r#"apr_serve_errors_total{code="sv-cross-site"}"#), 7.0);
}

#[test]
fn a_name_of_its_own_is_allowed_to_a_server() {
    let options = Options { allowed_hosts: vec!["Model.Example".to_owned()], ..options() };
    let server = start_with(Model::new(line()).unwrap(), options);
    for (host, status) in [("model.example.:8080", 200), ("localhost", 200), ("other.example", 421)] {
        check(&server, "9110 7.4", &format!("GET /model HTTP/1.1\r\nHost: {host}\r\n\r\n"), status, Stays);
    }
}
