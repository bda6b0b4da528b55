//! One request to a service and its answer.

use apr_remote::{Client, Network, Url};

use crate::options;
use crate::server::{Reply, Server};

#[test]
fn an_answer_comes_whole_with_whatever_status() {
    let server = Server::new(|_, seen| match seen.path.as_str() {
        "/ok" => Reply::whole(b"12345", ""),
        "/coded" => Reply::whole(b"12345", "content-encoding: gzip\r\n"),
        _ => Reply::status("307 Temporary Redirect", "location: /ok\r\n"),
    });
    let client = Client::new(options(None)).unwrap();
    let get = |path: &str, max_len| client.exchange(&Url::parse(&server.url(path)).unwrap(), None, max_len);
    let answer = get("/ok", 5).unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (200, b"12345".as_slice()));
    assert_eq!(get("/ok", 4).unwrap_err().code(), "rm-too-long");
    assert_eq!(get("/coded", 5).unwrap_err().code(), "rm-encoding");
    // Not followed, and without the credential of the hub.
    assert_eq!(get("/other", 5).unwrap().status, 307);
    assert!(server.seen().iter().all(|seen| seen.header("authorization").is_none()));
    assert_eq!(server.seen().len(), 4);
    let post =
        client.exchange(&Url::parse(&server.url("/ok")).unwrap(), Some(("text/plain", b"")), 5).unwrap();
    assert_eq!(post.status, 200);
    assert_eq!(server.seen()[4].header("content-type"), Some("text/plain"));
}

#[test]
fn no_request_is_sent_where_none_may_be() {
    let mut off = options(None);
    off.network = Network::Off;
    let client = Client::new(off).unwrap();
    let url = Url::parse("http://127.0.0.1:9/private").unwrap();
    assert_eq!(client.exchange(&url, None, 5).unwrap_err().code(), "rm-offline");
    let client = Client::new(options(None)).unwrap();
    assert_eq!(client.exchange(&url, None, 5).unwrap_err().code(), "rm-refused");
    let outside = Url::parse("http://model.example/private").unwrap();
    assert_eq!(client.exchange(&outside, None, 5).unwrap_err().code(), "rm-http");
}
