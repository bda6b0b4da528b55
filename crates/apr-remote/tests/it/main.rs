//! Files from a server on loopback.

#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init, reason = "tests")]

extern crate alloc;

mod blocks;
mod cache;
mod exchange;
mod server;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Mutex;
use std::time::Instant;

use apr_remote::{
    Client, Counts, ErrorKind, Network, OnRetry, Options, Place, PlainHttp, RemoteFile, Retry, Tries,
    remote_error,
};
use read_at::ReadAt as _;

use crate::server::{Reply, Seen, Server};

fn content(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

fn options(hub: Option<&Server>) -> Options {
    let endpoint = hub.map(|hub| hub.url(""));
    let mut options = Options::from_environment(|name| match name {
        "HF_TOKEN" => Some("token-of-the-user".into()),
        "HF_ENDPOINT" => endpoint.as_ref().map(Into::into),
        _ => None,
    })
    .unwrap();
    options.tries = Tries { count: 3, time: Duration::from_secs(5), ..Tries::default() };
    options
}

fn open(options: Options, url: &str) -> Result<(Arc<Client>, RemoteFile), apr_remote::Error> {
    let client = Client::new(options)?;
    let file = client.open(&Place::parse(url).unwrap()?)?;
    Ok((client, file))
}

fn read(file: &RemoteFile, offset: u64, len: usize) -> Result<Vec<u8>, String> {
    let mut out = vec![0; len];
    match file.read_exact_at(offset, &mut out) {
        Ok(()) => Ok(out),
        Err(error) => {
            Err(remote_error(&error).map_or_else(|| error.to_string(), |error| error.code().to_owned()))
        }
    }
}

#[test]
fn one_request_gives_length_and_beginning() {
    let bytes = content(300_000);
    let expected = bytes.clone();
    let server = Server::new(move |_, seen| Reply::range(seen, &bytes, "etag: \"v1\"\r\n"));
    let (client, file) = open(options(None), &server.url("/m.safetensors?signature=secret")).unwrap();
    assert_eq!(file.total_len(), 300_000);
    assert_eq!(read(&file, 0, 65_536).unwrap(), &expected[..65_536]);
    assert_eq!(client.counts(), Counts { requests: 1, bytes: 65_536, hits: 1, ..Counts::default() });
    assert_eq!(read(&file, 65_000, 10_000).unwrap(), &expected[65_000..75_000]);
    assert_eq!(read(&file, 299_990, 10).unwrap(), &expected[299_990..]);
    assert_eq!(
        read(&file, 299_991, 10).unwrap_err(),
        "10 bytes at byte offset 299991 are out of range: the source has 300000"
    );
    let seen = server.seen();
    assert_eq!(seen[0].header("range"), Some("bytes=0-65535"));
    assert_eq!((seen[0].header("accept-encoding"), seen[0].header("if-match")), (Some("identity"), None));
    assert!(
        seen.iter()
            .all(|seen| seen.header("authorization").is_none() && seen.path.ends_with("signature=secret"))
    );
    assert!(seen[1..].iter().all(|seen| seen.header("if-match") == Some("\"v1\"")));
    assert!(!format!("{file:?}").contains("secret"));
}

#[test]
fn short_and_empty_files_are_read() {
    for len in [0, 1, 65_535, 65_536, 65_537] {
        let bytes = content(len);
        let expected = bytes.clone();
        let server = Server::new(move |_, seen| Reply::range(seen, &bytes, ""));
        let (_, file) = open(options(None), &server.url("/m")).unwrap();
        assert_eq!(file.total_len(), len as u64);
        assert_eq!(read(&file, 0, len).unwrap(), expected);
    }
}

#[test]
fn broken_bodies_go_on_where_they_broke() {
    let bytes = content(3 << 20);
    let expected = bytes.clone();
    let server = Server::new(move |number, seen| {
        let reply = Reply::range(seen, &bytes, "etag: \"v1\"\r\n");
        if number % 2 == 1 { reply.cut(700_000) } else { reply }
    });
    let (client, file) = open(options(None), &server.url("/m")).unwrap();
    assert_eq!(read(&file, 100_000, 2_900_000).unwrap(), &expected[100_000..3_000_000]);
    let starts: Vec<_> = server.seen().iter().filter_map(Seen::range).map(|(from, _)| from).collect();
    assert_eq!(starts, [0, 100_000, 800_000]);
    assert_eq!(client.counts().retries, 1);
    assert_eq!(client.counts().bytes, 65_536 + 2_900_000, "no byte twice");
}

#[test]
fn busy_servers_are_asked_again_and_changes_are_refused() {
    let bytes = content(1 << 20);
    let server = Server::new(move |number, seen| match number {
        0 => Reply::status("503 Service Unavailable", ""),
        1 => Reply::status("429 Too Many Requests", "retry-after: 0\r\n"),
        2 => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
        3 => Reply::range(seen, &bytes, "etag: \"v2\"\r\n"),
        4 => Reply::status("412 Precondition Failed", ""),
        5 => Reply::range(seen, &bytes[1..], "etag: \"v1\"\r\n"),
        6 => Reply::status("429 Too Many Requests", "retry-after: 3600\r\n"),
        7 => Reply::status("404 Not Found", ""),
        8 => Reply::status("403 Forbidden", ""),
        9 => Reply::status("418 I'm a teapot", ""),
        10 => Reply::range(seen, &bytes, "etag: \"v1\"\r\ncontent-encoding: gzip\r\n"),
        11 => Reply::whole(&bytes, "etag: \"v1\"\r\n"),
        12 => Reply { head: "what is this?\r\n".to_owned(), closes: true, ..Reply::default() },
        _ => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
    });
    let (_, file) = open(options(None), &server.url("/m")).unwrap();
    for code in [
        "rm-changed",
        "rm-changed",
        "rm-changed",
        "rm-pause",
        "rm-not-found",
        "rm-denied",
        "rm-status",
        "rm-encoding",
        "rm-range",
        "rm-range",
    ] {
        assert_eq!(read(&file, 500_000, 10).unwrap_err(), code);
    }
    assert_eq!(read(&file, 500_000, 10).unwrap(), &content(1 << 20)[500_000..500_010]);
}

#[test]
fn servers_that_ignore_ranges_are_read_as_a_whole() {
    let bytes = content(200_000);
    let expected = bytes.clone();
    let server = Server::new(move |_, _| Reply::whole(&bytes, ""));
    let (client, file) = open(options(None), &server.url("/m")).unwrap();
    assert_eq!(read(&file, 100_000, 100_000).unwrap(), &expected[100_000..]);
    assert_eq!(client.counts().requests, 1);
    let server = Server::new(|_, _| Reply {
        head: "HTTP/1.1 200 OK\r\ncontent-length: 67108865\r\n".to_owned(),
        closes: true,
        ..Reply::default()
    });
    let error = open(options(None), &server.url("/m")).unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::NoRanges { limit: 64 << 20 });
}

#[test]
fn the_hub_is_asked_with_the_token_and_its_store_without() {
    let bytes = content(500_000);
    let expected = bytes.clone();
    let expired = Arc::new(AtomicUsize::new(0));
    let state = Arc::clone(&expired);
    let store = Server::new(move |_, seen| match state.load(Ordering::Relaxed) {
        1 if seen.path.contains("signature=0") => Reply::status("403 Forbidden", ""),
        _ => Reply::range(seen, &bytes, "etag: \"blob\"\r\n"),
    });
    let base = store.url("/blob");
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let digest = "ab".repeat(32);
    let linked = digest.clone();
    let hub = Server::new(move |number, seen| match seen.path.as_str() {
        "/o/gated/resolve/main/m" => Reply::status("403 Forbidden", "x-error-code: GatedRepo\r\n"),
        "/o/private/resolve/main/m" => Reply::status("401 Unauthorized", "x-error-code: RepoNotFound\r\n"),
        _ => Reply::status(
            "302 Found",
            &format!(
                "location: {base}?signature={number}\r\nx-repo-commit: {commit}\r\nx-linked-etag: \"{linked}\"\r\nx-linked-size: 500000\r\n"
            ),
        ),
    });
    let (client, file) = open(options(Some(&hub)), "hf://o/n/m.safetensors").unwrap();
    assert_eq!((file.commit(), file.sha256_declared()), (Some(commit), Some(digest.as_str())));
    assert_eq!(read(&file, 200_000, 100).unwrap(), &expected[200_000..200_100]);
    assert_eq!(client.counts().requests, 3, "the store is asked again without the hub");
    expired.store(1, Ordering::Relaxed);
    assert_eq!(read(&file, 400_000, 100).unwrap(), &expected[400_000..400_100]);
    let asked: Vec<_> = hub.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(
        asked,
        ["/o/n/resolve/main/m.safetensors".to_owned(), format!("/o/n/resolve/{commit}/m.safetensors")]
    );
    assert!(hub.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer token-of-the-user")));
    assert!(store.seen().iter().all(|seen| seen.header("authorization").is_none()));

    assert_eq!(open(options(Some(&hub)), "hf://o/gated/m").unwrap_err().code(), "rm-gated");
    assert_eq!(open(options(Some(&hub)), "hf://o/private/m").unwrap_err().code(), "rm-not-found");
}

#[test]
fn other_servers_do_not_lead_the_token_to_the_hub() {
    let hub = Server::new(|_, seen| {
        Reply::range(seen, &content(100), &format!("x-linked-etag: \"{}\"\r\n", "ab".repeat(32)))
    });
    let location = format!("location: {}\r\n", hub.url("/o/n/resolve/main/m"));
    let other = Server::new(move |_, _| Reply::status("302 Found", &location));
    let (_, file) = open(options(Some(&hub)), &other.url("/m")).unwrap();
    assert_eq!((hub.seen().len(), hub.seen()[0].header("authorization")), (1, None));
    assert_eq!(file.sha256_declared(), None);
}

#[test]
fn a_length_that_is_not_the_declared_one_is_refused() {
    type Answer = fn(&Seen, usize) -> Reply;
    const LINKED: &str = "x-linked-size: 101\r\n";
    let ranged = |seen: &_, len| Reply::range(seen, &content(len), LINKED);
    let whole = |_: &_, len| Reply::whole(&content(len), LINKED);
    let empty = |_: &_, _| {
        Reply::status("416 Range Not Satisfiable", &format!("content-range: bytes */0\r\n{LINKED}"))
    };
    let cases: [(Answer, usize); 5] = [(ranged, 100), (ranged, 102), (whole, 100), (whole, 0), (empty, 0)];
    for (reply, len) in cases {
        let hub = Server::new(move |_, seen| reply(seen, len));
        assert_eq!(open(options(Some(&hub)), "hf://o/n/m").unwrap_err().code(), "rm-range", "{len}");
    }
}

#[test]
fn redirects_are_bounded() {
    let server =
        Server::new(|number, _| Reply::status("307 Temporary Redirect", &format!("location: /{number}\r\n")));
    assert_eq!(open(options(None), &server.url("/m")).unwrap_err().code(), "rm-redirect");
    assert_eq!(server.seen().len(), 6);
    for location in ["location: ftp://127.0.0.1/\r\n", "location: m\r\n", ""] {
        let server = Server::new(move |_, _| Reply::status("302 Found", location));
        assert_eq!(open(options(None), &server.url("/m")).unwrap_err().code(), "rm-redirect", "{location}");
    }
    // To another host over plain HTTP.
    let server = Server::new(|_, _| Reply::status("302 Found", "location: http://198.51.100.1/\r\n"));
    assert_eq!(open(options(None), &server.url("/m")).unwrap_err().code(), "rm-http");
}

#[test]
fn what_is_not_allowed_is_not_sent() {
    assert_eq!(open(options(None), "http://198.51.100.1/m").unwrap_err().code(), "rm-http");
    let mut off = options(None);
    (off.network, off.plain_http) = (Network::Off, PlainHttp::Anywhere);
    assert_eq!(open(off, "http://127.0.0.1:1/m").unwrap_err().code(), "rm-offline");
    let mut certificates = options(None);
    certificates.certificates = Some("no-such-file.pem".into());
    assert_eq!(open(certificates, "http://127.0.0.1:1/m").unwrap_err().code(), "rm-certificates");
}

#[test]
fn nobody_listening_is_asked_once_and_nobody_answering_is_given_up() {
    let (told, mut watched) = (Arc::new(Mutex::new(Vec::new())), options(None));
    let list = Arc::clone(&told);
    watched.on_retry = Some(OnRetry::new(move |retry| {
        let Retry { host, next, limit, cause, .. } = retry;
        list.lock().unwrap().push(format!("{host} {next} of {limit}: {cause}"));
    }));
    let begun = Instant::now();
    let refused = open(watched.clone(), "http://127.0.0.1:1/m").unwrap_err();
    assert_eq!(refused.kind(), &ErrorKind::Refused { host: "127.0.0.1".to_owned() });
    let cause = core::error::Error::source(&refused).expect("the connection's own error");
    assert!(!cause.is::<apr_remote::Error>(), "{cause}");
    assert!(begun.elapsed() < Duration::from_secs(1) && told.lock().unwrap().is_empty());
    // Each further try is told.
    let server = Server::new(|_, _| Reply::status("503 Service Unavailable", ""));
    let gave_up = open(watched, &server.url("/m")).unwrap_err();
    assert_eq!(gave_up.kind(), &ErrorKind::GaveUp { host: "127.0.0.1".to_owned(), tries: 3 });
    let expected = |next| format!("127.0.0.1 {next} of 3: 127.0.0.1 answered with status 503");
    assert_eq!(*told.lock().unwrap(), [expected(2), expected(3)]);
    // The connection is closed without an answer.
    let server = Server::new(|_, _| Reply { closes: true, ..Reply::default() });
    assert!(open(options(None), &server.url("/m")).is_err());
}

#[test]
fn the_time_of_all_requests_is_limited() {
    let bytes = content(1 << 20);
    // 10 kB/s: enough for the floor.
    let server = Server::new(move |_, seen| Reply {
        pause: Duration::from_millis(100),
        ..Reply::range(seen, &bytes, "etag: \"v1\"\r\n")
    });
    let mut limited = options(None);
    limited.time_limit = Some(Duration::from_secs(1));
    let begun = Instant::now();
    let (_, file) = open(limited, &server.url("/m")).unwrap();
    assert_eq!(read(&file, 500_000, 100_000).unwrap_err(), "rm-time-limit");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn slow_bodies_arrive() {
    let bytes = content(20_000);
    let expected = bytes.clone();
    let server = Server::new(move |_, seen| Reply {
        pause: Duration::from_millis(2),
        ..Reply::range(seen, &bytes, "")
    });
    let (_, file) = open(options(None), &server.url("/m")).unwrap();
    assert_eq!(read(&file, 0, 20_000).unwrap(), expected);
}

#[test]
fn an_index_is_fetched_once() {
    let mut bytes = content(200_000);
    bytes[0] = b'{';
    let expected = bytes.clone();
    let server = Server::new(move |_, seen| Reply::range(seen, &bytes, "etag: \"v1\"\r\n"));
    let (client, file) = open(options(None), &server.url("/model.safetensors.index.json")).unwrap();
    for _ in 0..3 {
        assert!(read(&file, 0, 200_000).unwrap() == expected);
    }
    assert_eq!((client.counts().requests, client.counts().bytes), (2, 200_000));
}

#[test]
fn growing_beginnings_of_gguf_take_three_requests() {
    let mut bytes = content(20 << 20);
    bytes[..4].copy_from_slice(b"GGUF");
    let expected = bytes.clone();
    let server = Server::new(move |_, seen| Reply::range(seen, &bytes, "etag: \"v1\"\r\n"));
    let (client, file) = open(options(None), &server.url("/M.gguf")).unwrap();
    let mut at = 0;
    for end in [128 << 10, 512 << 10, 2 << 20, 8 << 20] {
        assert_eq!(read(&file, at, (end - at) as usize).unwrap(), &expected[at as usize..end as usize]);
        at = end;
    }
    assert_eq!(client.counts().requests, 3);
}
