//! URLs where a FILE is taken, from a server on loopback.

use std::fs;
use std::path::PathBuf;

use sha2::Digest as _;

use crate::sandbox::Sandbox;
use crate::server::{Reply, Server};

/// Serves the files of the sandbox, and none without the signature if there is one.
fn serve(sandbox: &Sandbox, signature: &'static str) -> Server {
    let folder = sandbox.path("");
    Server::new(move |_, seen| {
        let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
        let path: PathBuf = folder.join(path.trim_start_matches('/'));
        match fs::read(path) {
            _ if query != signature => Reply::status("403 Forbidden", ""),
            Ok(bytes) => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
            Err(_) => Reply::status("404 Not Found", ""),
        }
    })
}

#[test]
fn commands_say_of_a_url_what_they_say_of_the_file() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "");
    let url = server.url("/model.safetensors");
    let index = server.url("/sharded/model.safetensors.index.json");
    let cases: [&[&str]; 9] = [
        &["inspect", "model.safetensors"],
        &["inspect", "sharded/model.safetensors.index.json"],
        &["tensors", "model.safetensors", "--digest"],
        &["tensors", "sharded/model.safetensors.index.json", "--digest"],
        &["check", "model.safetensors", "--values"],
        &["check", "sharded/model.safetensors.index.json"],
        &["diff", "model.safetensors", "sharded/model.safetensors.index.json"],
        &["scan", "model.safetensors"],
        &["inspect", "model.safetensors", "--histograms"],
    ];
    for args in cases {
        let local = sandbox.run(args);
        let remote: Vec<&str> = args
            .iter()
            .map(|arg| match *arg {
                "model.safetensors" => url.as_str(),
                "sharded/model.safetensors.index.json" => index.as_str(),
                arg => arg,
            })
            .collect();
        let ran = sandbox.run(&remote);
        let named = |text: &str| text.replace(&server.url("/"), "").replace(&server.url(""), "");
        assert_eq!((ran.exit, named(&ran.stdout)), (local.exit, local.stdout), "{args:?}\n{}", ran.stderr);
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn conversions_of_a_url_give_the_bytes_of_the_file() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "");
    let index = server.url("/sharded/model.safetensors.index.json");
    for (args, input) in [
        (&["convert", "IN", "OUT.safetensors", "--force"][..], "sharded/model.safetensors.index.json"),
        (&["convert", "IN", "OUT.gguf", "--exclude", "mask", "--force"], "model.safetensors"),
        (
            &["export", "IN", "-o", "OUT.safetensors", "--format", "safetensors", "--force"],
            "model.safetensors",
        ),
        (
            &["quantize", "IN", "-o", "OUT.gguf", "--type", "q8_0", "--exclude", "mask", "--force"],
            "model.safetensors",
        ),
    ] {
        let run = |input: &str, name: &str| {
            let args: Vec<String> = args
                .iter()
                .map(|arg| match *arg {
                    "IN" => input.to_owned(),
                    arg => arg.replace("OUT", name),
                })
                .collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran = sandbox.run(&args);
            assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
            sandbox.read(args.iter().find(|arg| arg.starts_with(name)).unwrap())
        };
        let url = if input.ends_with(".json") { index.clone() } else { server.url(&format!("/{input}")) };
        assert!(run(input, "local") == run(&url, "remote"), "{args:?}");
    }
}

#[test]
fn models_predict_and_sealed_tensors_open() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "");
    let (_, listed) = sandbox.json(&["tensors", "model.safetensors"]);
    let name = listed["tensors"][0]["name"].as_str().unwrap();
    let cases: [(&[&str], &str); 2] = [
        (&["predict", "FILE", "-i", "rows.csv"], "model.apr"),
        (
            &["open", "FILE", "-o", "-", "--tensor", name, "--identity", "buyer.key", "--any-signer"],
            "model.sealed",
        ),
    ];
    for (args, file) in cases {
        let run = |file: &str| {
            let args: Vec<&str> = args.iter().map(|arg| if *arg == "FILE" { file } else { arg }).collect();
            sandbox.run(&args)
        };
        let (local, remote) = (run(file), run(&server.url(&format!("/{file}"))));
        assert_eq!((local.exit, remote.exit), (0, 0), "{args:?}\n{}{}", local.stderr, remote.stderr);
        assert!(local.stdout == remote.stdout && !local.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn connections_that_break_cost_no_bytes() {
    let sandbox = Sandbox::with_models();
    sandbox.write_large("large.safetensors", 1_000_000);
    let bytes = sandbox.read("large.safetensors");
    let server = Server::new(move |number, seen| match number % 2 {
        0 => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
        _ => Reply::range(seen, &bytes, "etag: \"v1\"\r\n").cut(70_000),
    });
    let url = server.url("/large.safetensors");
    let local = sandbox.run(&["tensors", "large.safetensors", "--digest"]);
    let ran = sandbox.run(&["tensors", &url, "--digest", "--stats"]);
    assert_eq!((ran.exit, ran.stdout), (0, local.stdout), "{}", ran.stderr);
    assert!(ran.stderr.contains("1.0 MB, 1 retry"), "{}", ran.stderr);
}

#[test]
fn a_header_is_one_request_and_a_set_one_for_each_file() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "");
    let ran = sandbox.run(&["inspect", &server.url("/model.safetensors"), "--stats"]);
    assert!(ran.stderr.contains("1 request, "), "{}", ran.stderr);
    assert_eq!(server.seen().len(), 1);
    let ran = sandbox.run(&["inspect", &server.url("/sharded/model.safetensors.index.json")]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let shards = fs::read_dir(sandbox.path("sharded")).unwrap().count() - 1;
    assert_eq!(server.seen().len(), 1 + 1 + shards);
}

#[test]
fn queries_are_sent_and_never_shown() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "signature=s3cr3t");
    let url = server.url("/model.safetensors?signature=s3cr3t");
    let missing = server.url("/none?signature=s3cr3t");
    let other = server.url("/model.safetensors?signature=s3cr3t2");
    let option = format!("--data={url}");
    let cases: [&[&str]; 10] = [
        &["diff", &url, &other],
        &["train", "linear-regression", &option, "-o", "x.apr", "--target", "y"],
        &["inspect", &url, "-v"],
        &["inspect", &url, "--json"],
        &["check", &url],
        &["diff", &url, &missing],
        &["dump", &url, "no-such-tensor", "--json"],
        &["inspect", &missing, "--json"],
        &["sign", &url, "--key", "buyer.key"],
        &["inspect", &url, "--no-such-option"],
    ];
    for args in cases {
        let ran = sandbox.run(args);
        assert!(
            !format!("{}{}", ran.stdout, ran.stderr).contains("s3cr3t"),
            "{args:?}\n{}{}",
            ran.stdout,
            ran.stderr
        );
    }
    assert_eq!(sandbox.run(&["inspect", &url]).exit, 0);
    let refused = sandbox.run(&["inspect", &server.url("/model.safetensors?signature=other")]);
    assert!(refused.exit == 5 && refused.stderr.contains("rm-denied"), "{}", refused.stderr);
}

#[test]
fn urls_that_differ_in_their_queries_are_different_files() {
    let sandbox = Sandbox::with_models();
    let (small, large) = (sandbox.read("model.safetensors"), sandbox.read("model.gguf"));
    let server = Server::new(move |_, seen| match seen.path.split_once('?').map(|(_, query)| query) {
        None | Some("v=1") => Reply::range(seen, &small, "etag: \"1\"\r\n"),
        _ => Reply::range(seen, &large, "etag: \"2\"\r\n"),
    });
    let url = |query: &str| server.url(&format!("/model{query}"));
    for (a, b, exit) in
        [("?v=1", "?v=2", 1), ("?v=2", "", 1), ("", "?v=2", 1), ("?v=1", "", 0), ("?v=2", "?v=2", 0)]
    {
        let ran = sandbox.run(&["diff", &url(a), &url(b)]);
        assert_eq!(ran.exit, exit, "{a} {b}\n{}{}", ran.stdout, ran.stderr);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("v="), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn what_is_not_read_over_the_network_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox, "");
    let url = server.url("/model.safetensors");
    let cases: [(&[&str], i32, &str); 18] = [
        (&["inspect", &url, "--offline"], 2, "rm-offline"),
        (&["inspect", "https://example.org/model.safetensors", "--offline"], 2, "rm-offline"),
        (&["inspect", "http://198.51.100.1/model.safetensors"], 2, "rm-http"),
        (&["inspect", "https://user:word@example.org/m"], 2, "rm-url"),
        (&["inspect", "ftp://example.org/m"], 2, "the scheme of the URL is not supported"),
        (&["get", "ftp://example.org/m", "-o", "copy"], 2, "cli-remote"),
        (&["get", "model.safetensors", "-o", "copy"], 2, "the scheme is missing"),
        (&["convert", &url, "http://127.0.0.1/out.gguf"], 2, "the output has to be a file of this machine"),
        (&["seal", &url, "-o", "x.sealed", "--password-file", "password.txt"], 2, "cli-remote"),
        (&["train", "linear-regression", "--data", &url, "-o", "x.apr", "--target", "y"], 2, "cli-remote"),
        (&["encrypt", &url, "-o", "x.apr", "--password-file", "password.txt"], 2, "cli-remote"),
        (&["decrypt", &url, "-o", "x.apr", "--password-file", "password.txt"], 2, "cli-remote"),
        (&["rekey", &url, "--identity", "buyer.key", "--remove-others"], 2, "cli-remote"),
        (&["license", "show", &url], 2, "cli-remote"),
        (&["sign", &url, "--inside", "-o", "x.apr", "--key", "maker.key"], 2, "cli-remote"),
        (&["serve", &url, "--port", "0"], 2, "cli-remote"),
        (&["predict", &url, "-i", "rows.csv", "--key", "maker.key.pub"], 2, "cli-remote"),
        (&["verify", &url, "--key", "maker.key.pub", "--signature", "a.sig"], 2, "cli-remote"),
    ];
    sandbox.write("password.txt", b"correct horse\n");
    for (args, exit, code) in cases {
        let ran = sandbox.run(args);
        assert!(ran.exit == exit && ran.stderr.contains(code), "{args:?}: {}\n{}", ran.exit, ran.stderr);
        assert!(!ran.stderr.contains("user:word") && server.seen().is_empty(), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn an_error_page_with_status_200_is_told_as_one() {
    let sandbox = Sandbox::with_models();
    sandbox.write(
        "page.safetensors",
        format!("<!doctype html>\n<html><body>{}", "sign in ".repeat(99)).as_bytes(),
    );
    let server = serve(&sandbox, "");
    let url = server.url("/page.safetensors");
    for args in [&["inspect", &url][..], &["tensors", &url], &["convert", &url, "out.gguf"]] {
        let ran = sandbox.run(args);
        assert!(ran.exit == 6 && ran.stderr.contains("this is a web page"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn a_server_of_another_kind_offers_no_private_inference() {
    let sandbox = Sandbox::with_models();
    let server = Server::new(|_, _| Reply::whole(&[b' '; 100_000], ""));
    let args = ["predict", "--private", &server.url(""), "-i", "rows.csv", "--signer", "maker.key.pub"];
    let ran = sandbox.run(&args);
    assert!(ran.exit == 5 && ran.stderr.contains("error[cli-service]"), "{}", ran.stderr);
}

#[test]
fn passwords_of_urls_are_not_repeated() {
    let sandbox = Sandbox::with_models();
    let url = "https://user:word@example.org/m.safetensors";
    for args in [
        &["inspect", url][..],
        &["check", url],
        &["tensors", url, "--json"],
        &["inspect", "model.safetensors", url],
    ] {
        let ran = sandbox.run(args);
        let shown = ran.stdout + &ran.stderr;
        assert!(
            ran.exit == 2 && shown.contains("***@example.org") && !shown.contains("user:word"),
            "{args:?}: {shown}"
        );
    }
}

#[test]
#[cfg(not(feature = "cloud"))]
fn object_stores_are_refused_with_the_name_of_the_feature() {
    let sandbox = Sandbox::with_models();
    for args in [
        &["inspect", "s3://bucket/model.safetensors"][..],
        &["tensors", "gs://bucket/model.safetensors"],
        &["get", "az://container/models", "-o", "copy"],
        &["put", "model.safetensors", "s3://bucket/"],
        &["convert", "model.safetensors", "s3://bucket/model.gguf"],
        &["quantize", "model.safetensors", "-o", "gs://bucket/model.gguf", "--type", "q8_0"],
        &["plan", "-o", "plan.json", "--from", "s3://bucket/models", "--to", "out", "--", "check", "{in}"],
    ] {
        let ran = sandbox.run(args);
        let is_named = ran.stderr.contains("rm-scheme") && ran.stderr.contains("feature `cloud`");
        assert!(ran.exit == 6 && is_named, "{args:?}: {}\n{}", ran.exit, ran.stderr);
    }
}

/// The commands of the table on the page that read a URL.
fn commands_of_the_page() -> Vec<String> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/remote.md")).unwrap();
    let table = page.split("\n## Commands\n").nth(1).unwrap().split("\n\nA URL of an index").next().unwrap();
    let rows = table.lines().filter(|row| row.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2));
    let mut names: Vec<String> = names.map(|name| name.split(' ').next().unwrap().to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn commands_that_take_a_url_are_those_of_the_page() {
    let sandbox = Sandbox::with_models();
    let url = "https://host.example/model.safetensors";
    let cases: [&[&str]; 27] = [
        &["inspect", url],
        &["tensors", url],
        &["dump", url, "name"],
        &["check", url],
        &["scan", url],
        &["diff", url, "model.safetensors"],
        &["compatible", url, "model.safetensors"],
        &["convert", url, "x.gguf"],
        &["export", url, "-o", "x.safetensors", "--format", "safetensors"],
        &["quantize", url, "-o", "x.gguf", "--type", "q8_0"],
        &["get", url, "-o", "folder"],
        &["shard", url, "-o", "folder", "--max-size", "1MiB"],
        &["predict", url, "-i", "rows.csv"],
        &["open", url, "-o", "x", "--password-file", "password.txt"],
        &["verify", url, "--signer", "maker.key.pub"],
        &["unshard", url, "-o", "x.safetensors"],
        &["train", "linear-regression", "--data", url, "-o", "x.apr", "--target", "y"],
        &["score", url, "--data", "table.csv", "--target", "price"],
        &["serve", url, "--port", "0"],
        &["seal", url, "-o", "x", "--password-file", "password.txt"],
        &["encrypt", url, "-o", "x", "--password-file", "password.txt"],
        &["decrypt", url, "-o", "x", "--password-file", "password.txt"],
        &["rekey", url, "--identity", "buyer.key", "--remove-others"],
        &["license", "show", url],
        &["sign", url, "--key", "maker.key"],
        &["checkpoint", "list", url],
        &["key", "show", url],
    ];
    let mut taken = Vec::new();
    for args in cases {
        let ran = sandbox.run(&[args, &["--offline"]].concat());
        match (ran.stderr.contains("rm-offline"), ran.stderr.contains("cli-remote")) {
            (true, false) => taken.push(args[0].to_owned()),
            (false, true) => {}
            _ => panic!("{args:?}: {}\n{}", ran.exit, ran.stderr),
        }
    }
    taken.sort_unstable();
    assert_eq!(taken, commands_of_the_page());
}

#[test]
fn names_in_an_index_stay_on_its_server() {
    let sandbox = Sandbox::with_models();
    let other = Server::new(|_, _| Reply::status("404 Not Found", ""));
    for name in [other.url("/x.safetensors"), "../x.safetensors".to_owned(), "/x.safetensors".to_owned()] {
        let index = format!(r#"{{"metadata":{{"total_size":4}},"weight_map":{{"w":"{name}"}}}}"#);
        sandbox.write("evil.safetensors.index.json", index.as_bytes());
        let server = serve(&sandbox, "");
        let ran = sandbox.run(&["inspect", &server.url("/evil.safetensors.index.json")]);
        assert!(ran.exit == 3 && ran.stderr.contains("st-shard-path"), "{} {}", ran.exit, ran.stderr);
        let local = sandbox.run(&["inspect", "evil.safetensors.index.json"]);
        assert!(local.exit == 3 && local.stderr.contains("st-shard-path"), "{}", local.stderr);
        assert_eq!(server.seen().len(), 1);
    }
    assert!(other.seen().is_empty());
}

#[test]
fn what_is_refused_is_asked_for_once() {
    let sandbox = Sandbox::with_models();
    for (status, code) in [("404 Not Found", "rm-not-found"), ("401 Unauthorized", "rm-denied")] {
        for command in ["check", "inspect", "scan"] {
            let server = Server::new(move |_, _| Reply::status(status, ""));
            let ran = sandbox.run(&[command, &server.url("/model.safetensors")]);
            let text = ran.stdout + &ran.stderr;
            assert!(ran.exit == 5 && text.contains(code), "{command} {} {text}", ran.exit);
            assert_eq!(server.seen().len(), 1, "{command}");
        }
    }
    // A redirect in a circle is followed in one round.
    let server = Server::new(|_, _| Reply::status("302 Found", "location: /model.safetensors\r\n"));
    assert_eq!(sandbox.run(&["check", &server.url("/model.safetensors")]).exit, 3);
    assert_eq!(server.seen().len(), 6);
}

#[test]
fn servers_that_do_not_answer_or_drip_end_in_time() {
    let sandbox = Sandbox::with_models();
    let begun = std::time::Instant::now();
    let ran = sandbox.run(&["inspect", "http://127.0.0.1:1/model.safetensors"]);
    assert!(ran.exit == 5 && ran.stderr.contains("rm-refused"), "{}", ran.stderr);
    assert!(begun.elapsed() < core::time::Duration::from_secs(3), "{:?}", begun.elapsed());

    let bytes = sandbox.read("model.safetensors").repeat(100);
    let server = Server::new(move |_, seen| Reply {
        pause: core::time::Duration::from_millis(200),
        ..Reply::range(seen, &bytes, "etag: \"v1\"\r\n")
    });
    let begun = std::time::Instant::now();
    let ran = sandbox.run(&["scan", &server.url("/model.safetensors"), "--time-limit", "1"]);
    assert!(ran.exit == 5 && (ran.stdout + &ran.stderr).contains("rm-time-limit"), "{}", ran.exit);
    assert!(begun.elapsed() < core::time::Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn digests_of_the_hub_are_compared() {
    let sandbox = Sandbox::with_models();
    let bytes = sandbox.read("model.safetensors");
    let right = base16ct::lower::encode_string(&sha2::Sha256::digest(&bytes));
    for (digest, exit) in [(right, 0), ("ab".repeat(32), 4)] {
        let served = bytes.clone();
        let hub = Server::new(move |_, seen| match seen.path.contains("index.json") {
            true => Reply::status("404 Not Found", ""),
            false => Reply::range(seen, &served, &format!("etag: \"v1\"\r\nx-linked-etag: \"{digest}\"\r\n")),
        });
        let mut command = sandbox.command(&["check", "hf://org/name"]);
        let ran = command.env("HF_ENDPOINT", hub.url("")).env("HF_TOKEN", "token").output().unwrap();
        let text =
            format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert_eq!(ran.status.code(), Some(exit), "{text}");
        assert_eq!(text.contains("rm-digest"), exit == 4, "{text}");
        assert!(hub.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer token")));
    }
}
