//! `apr put`, to a server of the S3 protocol on loopback.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::fs;
use std::sync::Mutex;

use crate::sandbox::{Ran, Sandbox};
use crate::server::{Reply, Seen, Server};

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// Does what S3 does with the objects of the bucket `b`.
fn answer(seen: &Seen, objects: &Objects) -> Reply {
    const ETAG: &str = "etag: \"v1\"\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    let mut objects = objects.lock().unwrap();
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    let key = path.strip_prefix("/b").unwrap().trim_start_matches('/');
    match (seen.method.as_str(), objects.get(key)) {
        ("GET", _) if key.is_empty() => {
            let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or_default();
            let prefix = prefix.replace("%2F", "/");
            let listed = objects.iter().filter(|(key, _)| key.starts_with(&prefix)).map(|(key, bytes)| {
                let len = bytes.len();
                format!("<Contents><Key>{key}</Key><Size>{len}</Size><LastModified>1994-11-06T08:49:37.000Z</LastModified><ETag>\"v1\"</ETag></Contents>")
            });
            let listed: String = listed.collect();
            let text = format!(
                "<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
            );
            Reply::whole(text.as_bytes(), "")
        }
        ("HEAD" | "GET", None) => Reply::status("404 Not Found", ""),
        ("HEAD", Some(bytes)) => Reply {
            head: format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n{ETAG}", bytes.len()),
            ..Reply::default()
        },
        ("GET", Some(bytes)) => Reply::range(seen, bytes, ETAG),
        ("PUT", Some(_)) if seen.header("if-none-match").is_some() => {
            Reply::status("412 Precondition Failed", "")
        }
        ("PUT", _) => {
            objects.insert(key.to_owned(), seen.body.clone());
            Reply::status("200 OK", ETAG)
        }
        other => panic!("{other:?}"),
    }
}

/// A bucket with objects; each answer goes through `change`.
fn bucket(
    objects: &[(&str, &[u8])],
    change: impl Fn(usize, &Seen, Reply) -> Reply + Send + Sync + 'static,
) -> (Server, Objects) {
    let objects = objects.iter().map(|(key, bytes)| ((*key).to_owned(), bytes.to_vec()));
    let objects: Objects = Arc::new(Mutex::new(objects.collect()));
    let there = Arc::clone(&objects);
    (Server::new(move |number, seen| change(number, seen, answer(seen, &there))), objects)
}

fn run(sandbox: &Sandbox, server: &Server, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("AWS_")) {
            command.env_remove(name);
        }
    }
    command.env("AWS_ENDPOINT_URL", server.url("")).env("AWS_ACCESS_KEY_ID", "key");
    command.env("AWS_SECRET_ACCESS_KEY", "secret").output().unwrap().into()
}

fn puts(server: &Server) -> usize {
    server.seen().iter().filter(|seen| seen.method == "PUT").count()
}

#[test]
fn a_connection_that_breaks_is_tried_again() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.bin", b"content");
    // The answers to the first two are lost: of the second one the object is there.
    let broken = Mutex::new(0);
    let (server, objects) = bucket(&[], move |_, seen, reply| {
        let mut broken = broken.lock().unwrap();
        if seen.method == "PUT" && *broken < 2 {
            *broken += 1;
            return Reply::nothing();
        }
        reply
    });
    let ran = run(&sandbox, &server, &["put", "a.bin", "s3://b/a.bin"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(objects.lock().unwrap()["a.bin"], b"content");
    assert!(puts(&server) > 1, "{}", puts(&server));
}

#[test]
fn another_object_after_a_lost_answer_is_no_success() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.bin", b"content");
    let (server, objects) = bucket(&[], |_, _, reply| reply);
    let other = Arc::clone(&objects);
    let lost = Server::new(move |_, seen| {
        if seen.method == "PUT" && other.lock().unwrap().is_empty() {
            other.lock().unwrap().insert("a.bin".to_owned(), b"another".to_vec());
            return Reply::nothing();
        }
        answer(seen, &other)
    });
    drop(server);
    let ran = run(&sandbox, &lost, &["put", "a.bin", "s3://b/a.bin"]);
    assert!(ran.exit == 2 && ran.stderr.contains("rm-exists"), "{}", ran.stderr);
    assert!(ran.stderr.contains("may be the object that was sent"), "{}", ran.stderr);
    assert_eq!(objects.lock().unwrap()["a.bin"], b"another");
}

#[cfg(unix)]
#[test]
fn nothing_is_sent_if_a_name_cannot_be_a_key() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("folder/a.bin", b"content");
    for name in ["z\nb", "z\\b", "z:b"] {
        sandbox.write(&format!("folder/{name}"), b"content");
        for args in [&["put", "folder", "s3://b/"][..], &["put", "folder", "s3://b/", "--dry-run"]] {
            let (server, _) = bucket(&[], |_, _, reply| reply);
            let ran = run(&sandbox, &server, args);
            assert!(
                ran.exit == 2 && ran.stderr.contains("cannot be part of a key"),
                "{name:?} {}",
                ran.stderr
            );
            assert!(ran.stderr.contains("file:   folder"), "{}", ran.stderr);
            assert_eq!(server.seen().len(), 0);
        }
        fs::remove_file(sandbox.path(&format!("folder/{name}"))).unwrap();
    }
}

#[test]
fn a_dry_run_is_refused_as_the_run_is() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("folder/a.bin", b"content");
    sandbox.write("folder/b.bin", b"content");
    for args in [&["put", "folder", "s3://b/"][..], &["put", "folder/a.bin", "s3://b/a.bin"]] {
        for (there, exit) in [(b"another", 2), (b"content", 0)] {
            let (server, _) = bucket(&[("a.bin", there)], |_, _, reply| reply);
            let ran = run(&sandbox, &server, &[args, &["-n"]].concat());
            assert_eq!(ran.exit, exit, "{args:?} {}{}", ran.stdout, ran.stderr);
            assert_eq!(ran.stderr.contains("rm-exists"), exit == 2, "{}", ran.stderr);
            assert_eq!(puts(&server), 0);
        }
    }
}

#[test]
fn keys_of_others_do_not_matter() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("folder/a.bin", b"content");
    let (server, objects) = bucket(&[("other//key", b"")], |_, _, reply| reply);
    for state in ["uploaded", "present"] {
        let ran = run(&sandbox, &server, &["put", "folder", "s3://b/", "--json"]);
        assert!(ran.exit == 0 && ran.stdout.contains(state), "{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(objects.lock().unwrap().len(), 2);
}

#[test]
fn patterns_choose_a_single_file_too() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.bin", b"content");
    let (server, _) = bucket(&[], |_, _, reply| reply);
    let ran = run(&sandbox, &server, &["put", "a.bin", "s3://b/", "--exclude", "*"]);
    assert!(ran.exit == 2 && ran.stderr.contains("--exclude"), "{}", ran.stderr);
    assert_eq!(run(&sandbox, &server, &["put", "a.bin", "s3://b/", "--include", "*.bin"]).exit, 0);
    assert_eq!(puts(&server), 1);
}

#[test]
fn settings_that_no_request_can_be_made_of_are_named() {
    let sandbox = Sandbox::empty();
    for (name, value) in
        [("AWS_ENDPOINT_URL", "garbage"), ("AWS_SESSION_TOKEN", "sec\nret"), ("AWS_REGION", "eu west")]
    {
        let mut command = sandbox.command(&["inspect", "s3://b/a.safetensors"]);
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret").env(name, value);
        let ran: Ran = command.output().unwrap().into();
        assert!(
            ran.exit == 2 && ran.stderr.contains("rm-settings") && ran.stderr.contains(name),
            "{}",
            ran.stderr
        );
        assert!(!ran.stderr.contains("sec\nret"), "{}", ran.stderr);
    }
}
