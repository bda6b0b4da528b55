//! `apr get`, from a server on loopback.

use alloc::collections::BTreeMap;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::sandbox::Sandbox;
use crate::server::{Reply, Seen, Server};

/// Names of the commit.
const REVISIONS: [&str; 2] = ["main", "v1.0"];
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

pub(crate) fn digest(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(bytes))
}

/// Files of a repository: path, content, whether it is a large one.
pub(crate) type Files = Vec<(&'static str, Vec<u8>, bool)>;

fn files() -> Files {
    let large = (0..5_000_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    vec![
        ("README.md", b"# A model\n".to_vec(), false),
        ("model.safetensors", large, true),
        ("onnx/model.onnx", vec![7; 300_000], true),
        ("empty.txt", Vec::new(), false),
    ]
}

fn listing(files: &Files) -> Value {
    let siblings = files.iter().map(|(path, bytes, is_large)| match is_large {
        true => json!({"rfilename": path, "size": bytes.len(), "lfs": {"sha256": digest(bytes), "size": bytes.len(), "pointerSize": 134}}),
        false => json!({"rfilename": path, "size": bytes.len(), "blobId": "00"}),
    });
    json!({"id": "org/name", "sha": COMMIT, "siblings": siblings.collect::<Vec<_>>()})
}

/// A hub with these files; each answer of a file goes through `change`.
pub(crate) fn hub(files: Files, change: impl Fn(usize, Reply) -> Reply + Send + Sync + 'static) -> Server {
    let listed = listing(&files).to_string();
    let lists = REVISIONS.map(|name| format!("/api/models/org/name/revision/{name}?blobs=true"));
    let files: BTreeMap<String, Vec<u8>> = files
        .into_iter()
        .map(|(path, bytes, _)| (format!("/org/name/resolve/{COMMIT}/{path}"), bytes))
        .collect();
    Server::new(move |number, seen| {
        if lists.contains(&seen.path) {
            return Reply::whole(listed.as_bytes(), "");
        }
        match files.get(&seen.path) {
            Some(bytes) => change(number, Reply::range(seen, bytes, "etag: \"v1\"\r\n")),
            None => Reply::status("404 Not Found", ""),
        }
    })
}

fn get(sandbox: &Sandbox, hub: &Server, args: &[&str]) -> (i32, String, String) {
    let mut command = sandbox.command(&[&["get"], args].concat());
    let Output { status, stdout, stderr } =
        command.env("HF_ENDPOINT", hub.url("")).env("HF_TOKEN", "token").output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

#[test]
fn a_repository_is_copied_once() {
    let (sandbox, files) = (Sandbox::empty(), files());
    let server = hub(files.clone(), |_, reply| reply);
    let args = ["hf://org/name", "-o", "model", "--json"];
    for state in ["downloaded", "present"] {
        let requests = server.seen().len();
        let (exit, stdout, stderr) = get(&sandbox, &server, &args);
        assert_eq!(exit, 0, "{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(report["written"], state == "downloaded", "{report}");
        assert_eq!(
            (&report["commit"], report["bytes"].as_u64()),
            (&json!(COMMIT), Some(20_300_010)),
            "{report}"
        );
        for file in report["files"].as_array().unwrap() {
            let (path, bytes, is_large) = files.iter().find(|(path, ..)| file["path"] == *path).unwrap();
            assert!(sandbox.read(&format!("model/{path}")) == *bytes, "{path}");
            assert_eq!((&file["sha256"], &file["state"]), (&json!(digest(bytes)), &json!(state)), "{file}");
            assert_eq!(file["declared"], *is_large, "{file}");
        }
        if state == "present" {
            // The list, and the two without a digest.
            assert_eq!(server.seen().len() - requests, 3);
        }
    }
    assert!(!sandbox.path("model/.apr-get").exists());
    assert!(server.seen().iter().all(|seen| seen.header("authorization") == Some("Bearer token")));
}

#[test]
fn a_part_of_a_repository_is_chosen_by_path_or_pattern() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, reply| reply);
    let cases: [(&[&str], &[&str]); 5] = [
        (&["hf://org/name/onnx"], &["onnx/model.onnx"]),
        (&["hf://org/name/README.md"], &["README.md"]),
        (&["hf://org/name", "--include", "*.md", "--include", "*.onnx"], &["README.md", "onnx/model.onnx"]),
        (&["hf://org/name", "--exclude", "*m*"], &[]),
        (&["hf://org/name/onn"], &[]),
    ];
    for (args, expected) in cases {
        let args = [args, &["-o", "none", "--dry-run", "--json"]].concat();
        let (exit, stdout, stderr) = get(&sandbox, &server, &args);
        assert_eq!(exit, if expected.is_empty() { 2 } else { 0 }, "{args:?}\n{stderr}");
        let report: Value = serde_json::from_str(&stdout).unwrap_or_default();
        let found: Vec<&Value> =
            report["files"].as_array().into_iter().flatten().map(|file| &file["path"]).collect();
        assert_eq!(found, expected, "{args:?}");
        assert!(!sandbox.path("none").exists());
    }
}

#[test]
fn what_has_arrived_is_not_read_again() {
    let (sandbox, files) = (Sandbox::empty(), files());
    let large = files[1].1.clone();
    // From the sixth request on the server refuses.
    let server = hub(
        files.clone(),
        |number, reply| if number < 6 { reply } else { Reply::status("403 Forbidden", "") },
    );
    let args = ["hf://org/name", "-o", "model", "--include", "model*", "--connections", "1"];
    let (exit, _, stderr) = get(&sandbox, &server, &args);
    assert!(exit == 5 && stderr.contains("goes on there"), "{exit} {stderr}");
    let part = fs::read_dir(sandbox.path("model/.apr-get")).unwrap().next().unwrap().unwrap().path();
    let arrived = fs::read(&part).unwrap();
    assert!(arrived.len() > 4 << 20 && large.starts_with(&arrived), "{}", arrived.len());
    assert!(!sandbox.path("model/model.safetensors").exists());

    let server = hub(files.clone(), |_, reply| reply);
    let (exit, stdout, stderr) = get(&sandbox, &server, &[&args[..], &["--json"]].concat());
    assert!(exit == 0 && stdout.contains("resumed"), "{stdout} {stderr}");
    assert!(sandbox.read("model/model.safetensors") == large);
    let seen = server.seen();
    let read = seen.iter().filter_map(Seen::range).filter(|range| range.0 > 0);
    assert!(read.into_iter().all(|(from, _)| from >= arrived.len()));

    // Bytes that were lost with the power: all of it is read again.
    fs::remove_file(sandbox.path("model/model.safetensors")).unwrap();
    fs::create_dir_all(sandbox.path("model/.apr-get")).unwrap();
    fs::write(&part, vec![0; 5 << 20]).unwrap();
    let (exit, _, stderr) = get(&sandbox, &server, &args);
    assert_eq!(exit, 0, "{stderr}");
    assert!(sandbox.read("model/model.safetensors") == large && !part.exists());
}

/// A server of two files, which refuses `a.bin` from the second megabyte on until it is told otherwise.
fn two_files(version: &'static str, is_whole: bool) -> Server {
    Server::new(move |_, seen| {
        let content = vec![seen.path.as_bytes()[1]; 70 << 20];
        match (seen.path.as_str(), seen.range()) {
            ("/a.bin", Some((from, _))) if !is_whole && from > 60 << 20 => Reply::status("403 Forbidden", ""),
            ("/a.bin", _) => Reply::range(seen, &content, &format!("etag: \"{version}\"\r\n")),
            _ => Reply::range(seen, &content[..1000], "etag: \"b\"\r\n"),
        }
    })
}

#[test]
fn what_has_arrived_of_other_files_stays() {
    let sandbox = Sandbox::empty();
    let count = || fs::read_dir(sandbox.path("out/.apr-get")).map_or(0, Iterator::count);
    let run = |server: &Server, name: &str| {
        let ran = sandbox.run(&["get", &server.url(name), "-o", "out", "--connections", "1"]);
        (ran.exit, ran.stderr)
    };
    let broken = two_files("1", false);
    let (exit, stderr) = run(&broken, "/a.bin");
    assert!(exit == 5 && stderr.contains("goes on there"), "{stderr}");
    let arrived = fs::read_dir(sandbox.path("out/.apr-get")).unwrap().next().unwrap().unwrap();
    assert!(arrived.metadata().unwrap().len() > 40 << 20);
    assert_eq!(run(&broken, "/b.bin").0, 0);
    assert_eq!((count(), sandbox.read("out/b.bin").len()), (1, 1000));

    // An older version of the same file goes.
    let (exit, stderr) = run(&two_files("2", true), "/a.bin");
    assert_eq!((exit, count()), (0, 0), "{stderr}");
    assert!(!sandbox.path("out/.apr-get").exists());
}

#[test]
fn a_folder_of_parts_that_another_process_removes_is_made_again() {
    let sandbox = Sandbox::empty();
    let folder = sandbox.path("model/.apr-get");
    let server = hub(files(), move |_, reply| {
        let _ = fs::remove_dir(&folder);
        reply
    });
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
    assert_eq!(exit, 0, "{stderr}");
}

#[test]
fn only_parts_are_removed_and_not_through_a_link() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, reply| reply);
    let args = ["hf://org/name/README.md", "-o", "model"];
    let part = "0123456789abcdef0123456789abcdef";
    fs::create_dir_all(sandbox.path("model/.apr-get")).unwrap();
    for name in ["notes.txt", part] {
        sandbox.write(&format!("model/.apr-get/{name}"), b"mine");
    }
    assert_eq!(get(&sandbox, &server, &args).0, 0);
    assert_eq!(fs::read_dir(sandbox.path("model/.apr-get")).unwrap().count(), 2);

    fs::remove_file(sandbox.path("model/README.md")).unwrap();
    fs::rename(sandbox.path("model/.apr-get"), sandbox.path("victim")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../victim", sandbox.path("model/.apr-get")).unwrap();
    #[cfg(not(unix))]
    sandbox.write("model/.apr-get", b"mine");
    for args in [&args[..], &["hf://org/name/README.md", "-o", "model", "--dry-run"]] {
        let (exit, _, stderr) = get(&sandbox, &server, args);
        assert!(exit == 2 && stderr.contains("cli-output-kind") && stderr.contains(".apr-get"), "{stderr}");
    }
    assert_eq!(fs::read_dir(sandbox.path("victim")).unwrap().count(), 2);
    assert_eq!(fs::read_dir(sandbox.path("model")).unwrap().count(), 1);
}

#[test]
fn what_does_not_fit_leaves_nothing_behind() {
    let sandbox = Sandbox::empty();
    let answer = json!({"sha": COMMIT, "siblings": [{"rfilename": "a", "size": 1_u64 << 60}]}).to_string();
    let server = Server::new(move |_, _| Reply::whole(answer.as_bytes(), ""));
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
    assert!(exit == 5 && stderr.contains("cli-no-space"), "{stderr}");
    assert!(!sandbox.path("model").exists());
}

#[test]
fn another_content_is_refused_and_leaves_nothing() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, mut reply| {
        if let Some(last) = reply.body.last_mut().filter(|last| **last == 7) {
            *last = 8;
        }
        reply
    });
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name/onnx", "-o", "model"]);
    assert!(exit == 4 && stderr.contains("rm-digest"), "{stderr}");
    assert_eq!(fs::read_dir(sandbox.path("model")).unwrap().count(), 0);
}

#[test]
fn files_that_are_there_stay() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, reply| reply);
    fs::create_dir_all(sandbox.path("model/onnx")).unwrap();
    for path in ["onnx/model.onnx", "README.md"] {
        let name = format!("model/{path}");
        let url = format!("hf://org/name/{path}");
        for before in [&b"mine"[..], b"# Mine..\n\n"] {
            sandbox.write(&name, before);
            let (exit, _, stderr) = get(&sandbox, &server, &[&url, "-o", "model"]);
            assert!(exit == 2 && stderr.contains("--force"), "{path}: {stderr}");
            assert!(sandbox.read(&name) == before && !sandbox.path("model/.apr-get").exists());
        }
        let (exit, _, stderr) = get(&sandbox, &server, &[&url, "-o", "model", "--force"]);
        assert_eq!(exit, 0, "{stderr}");
    }
}

#[test]
fn the_text_says_what_was_written_and_verified() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, reply| reply);
    let args = ["hf://org/name", "-o", "model", "--exclude", "empty.txt"];
    let (_, _, stderr) = get(&sandbox, &server, &args);
    let line =
        |text: &str, name: &str| text.lines().find(|line| line.contains(name)).unwrap_or_default().to_owned();
    assert!(
        line(&stderr, "README.md").ends_with("not verified: the server declares no checksum)"),
        "{stderr}"
    );
    assert!(line(&stderr, "model.onnx").ends_with("SHA-256 as declared)"), "{stderr}");
    let (_, _, stderr) = get(&sandbox, &server, &args);
    assert!(!stderr.contains("wrote"), "{stderr}");
    assert!(line(&stderr, "README.md").ends_with("was there, with the same bytes: not written"), "{stderr}");
}

#[test]
fn what_servers_send_in_place_of_a_model_is_refused() {
    let sandbox = Sandbox::empty();
    let page = b"<!DOCTYPE html><html><body>log in</body></html>".to_vec();
    let pointer = format!("version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n", digest(b""));
    let served = [
        ("q.safetensors", page.clone()),
        ("q.pt", page.clone()),
        ("p.gguf", pointer.into_bytes()),
        ("e.npy", br#"{"error":"Repository not found"}"#.to_vec()),
        ("index.html", page),
    ];
    let mut served: Vec<(String, Vec<u8>)> = served.map(|(name, bytes)| (name.to_owned(), bytes)).into();
    let models = Sandbox::with_models();
    for name in ["model.safetensors", "model.gguf", "model.apr"] {
        let bytes = models.read(name);
        served.push((format!("cut-{name}"), bytes[..bytes.len() - 64].to_vec()));
        served.push((name.to_owned(), bytes));
    }
    let server = serving(served);
    for (name, exit) in [
        ("q.safetensors", 6),
        ("q.pt", 6),
        ("p.gguf", 6),
        ("e.npy", 6),
        ("index.html", 0),
        ("cut-model.safetensors", 3),
        ("cut-model.gguf", 3),
        ("cut-model.apr", 3),
        ("model.safetensors", 0),
        ("model.gguf", 0),
        ("model.apr", 0),
    ] {
        let ran = sandbox.run(&["get", &server.url(&format!("/{name}")), "-o", "out"]);
        assert_eq!(ran.exit, exit, "{name}: {}", ran.stderr);
        assert_eq!(sandbox.path(&format!("out/{name}")).exists(), exit == 0, "{name}");
    }
    assert!(!sandbox.path("out/.apr-get").exists());
}

#[test]
fn a_signature_of_another_kind_than_the_key_is_named_by_its_url() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["sign", "model.gguf", "--key", "publisher.key"]).exit, 0);
    let names = ["model.gguf", "model.gguf.minisig"];
    let server = serving(names.map(|name| (name.to_owned(), sandbox.read(name))).into());
    let url = server.url("/model.gguf");
    let ran = sandbox.run(&["get", &url, "-o", "out", "--signer", "publisher-p256.pub"]);
    assert_eq!(ran.exit, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("looked for {url}.sig on the server")), "{}", ran.stderr);
    assert!(ran.stderr.contains(".minisig") && !ran.stderr.contains(".apr-get"), "{}", ran.stderr);
}

#[test]
fn a_dry_run_is_refused_as_the_run_is() {
    let sandbox = Sandbox::empty();
    let server = hub(files(), |_, reply| reply);
    let args = ["hf://org/name/onnx", "-o", "model", "--dry-run"];
    fs::create_dir_all(sandbox.path("model/onnx")).unwrap();
    sandbox.write("model/onnx/model.onnx", b"mine");
    let (exit, stdout, stderr) = get(&sandbox, &server, &args);
    assert!(exit == 2 && stderr.contains("cli-output-exists") && stdout.is_empty(), "{stdout}{stderr}");
    assert_eq!(get(&sandbox, &server, &[&args[..], &["--force"]].concat()).0, 0);
    assert_eq!(sandbox.read("model/onnx/model.onnx"), b"mine");

    // No option replaces a folder.
    fs::remove_file(sandbox.path("model/onnx/model.onnx")).unwrap();
    fs::create_dir(sandbox.path("model/onnx/model.onnx")).unwrap();
    let (exit, _, stderr) = get(&sandbox, &server, &args[..3]);
    assert!(exit == 2 && stderr.contains("cli-output-kind") && !stderr.contains("--force"), "{stderr}");
}

#[test]
fn failures_name_what_they_are_about() {
    let sandbox = Sandbox::with_models();
    let folder = sandbox.path("sharded");
    let server = Server::new(move |_, seen| match fs::read(folder.join(seen.path.trim_start_matches('/'))) {
        Ok(bytes) if !seen.path.contains("00002") => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
        _ => Reply::status("404 Not Found", ""),
    });
    let ran = sandbox.run(&["get", &server.url("/model.safetensors.index.json"), "-o", "copy"]);
    assert!(ran.exit == 5 && ran.stderr.contains("file:   http"), "{}", ran.stderr);
    assert!(ran.stderr.contains("/model-00002"), "{}", ran.stderr);

    let missing = json!({"sha": COMMIT, "siblings": [{"rfilename": "a", "size": 1}]}).to_string();
    let server = Server::new(move |number, _| match number {
        0 => Reply::whole(missing.as_bytes(), ""),
        _ => Reply::status("404 Not Found", ""),
    });
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
    let file = format!("file:   hf://org/name@{COMMIT}/a");
    assert!(exit == 5 && stderr.contains(&file), "{stderr}");

    // What cannot be written is found before it is fetched.
    let long = format!("/{}", "x".repeat(300));
    let server = Server::new(|_, seen| Reply::range(seen, b"content", "etag: \"v1\"\r\n"));
    let ran = sandbox.run(&["get", &server.url(&long), "-o", "long"]);
    assert!(ran.exit == 3 && ran.stderr.contains("df-listed-name"), "{}", ran.stderr);
    assert!(!sandbox.path("long").exists());
}

#[test]
fn lists_that_lead_elsewhere_are_refused() {
    let sandbox = Sandbox::empty();
    let with = |path: &str, digest: &str| json!({"sha": COMMIT, "siblings": [{"rfilename": path, "size": 3, "lfs": {"sha256": digest, "size": 3}}]});
    let good = "ab".repeat(32);
    let twice =
        json!({"sha": COMMIT, "siblings": [{"rfilename": "a", "size": 1}, {"rfilename": "a", "size": 1}]});
    for (answer, code) in [
        (with("../evil", &good), "rm-outside"),
        (with("/tmp/evil", &good), "rm-outside"),
        (with("a\\b", &good), "rm-outside"),
        (with(".apr-get/x", &good), "rm-outside"),
        (with("a", "zz"), "rm-listing"),
        (twice, "rm-listing"),
        (json!({"sha": "main", "siblings": []}), "rm-listing"),
        (json!([]), "rm-listing"),
    ] {
        let text = answer.to_string();
        let server = Server::new(move |_, _| Reply::whole(text.as_bytes(), ""));
        let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
        assert!(exit == 3 && stderr.contains(code), "{answer}: {stderr}");
        assert!(!sandbox.path("model").exists());
    }
}

#[test]
fn names_that_other_tools_take_for_theirs_are_refused() {
    let sandbox = Sandbox::empty();
    for paths in [
        &[".git/config", ".git/HEAD"][..],
        &["sub/.GIT /config"],
        &["git~1/config"],
        &[".g\u{200c}it/config"],
        &[".hg/hgrc"],
        &["sub/HEAD", "sub/config", "sub/objects/00", "sub/refs/x"],
        &["a", "a/b"],
        &["x/../y "],
    ] {
        let siblings: Vec<Value> = paths.iter().map(|path| json!({"rfilename": path, "size": 1})).collect();
        let text = json!({"sha": COMMIT, "siblings": siblings}).to_string();
        let server = Server::new(move |_, _| Reply::whole(text.as_bytes(), ""));
        let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
        let code = if paths[0].contains("..") { "rm-outside" } else { "df-listed-name" };
        assert!(exit == 3 && stderr.contains(code) && stderr.contains("--exclude"), "{paths:?} {stderr}");
        assert!(!sandbox.path("model").exists() && server.seen().len() == 1, "{paths:?}");
    }
    // The names of a job become those of its outputs.
    let files: Files = vec![("git~1/model.gguf", vec![1], false)];
    let server = hub(files, |_, reply| reply);
    let batch = ["batch", "--from", "hf://org/name", "--to", "out", "--", "check", "{in}"];
    let ran = sandbox.command(&batch).env("HF_ENDPOINT", server.url("")).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(3) && stderr.contains("df-listed-name"), "{stderr}");

    let files: Files = vec![("README.md", b"x".to_vec(), false), ("sub/.envrc", b"id".to_vec(), false)];
    let server = hub(files, |_, reply| reply);
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model"]);
    assert!(exit == 0 && stderr.contains("sub/.envrc (direnv)"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_a_link() {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.path("model")).unwrap();
    fs::create_dir(sandbox.path("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", sandbox.path("model/onnx")).unwrap();
    let server = hub(files(), |_, reply| reply);
    let (exit, _, stderr) = get(&sandbox, &server, &["hf://org/name", "-o", "model", "--force"]);
    assert!(exit == 2 && stderr.contains("df-not-folder") && stderr.contains("model/onnx"), "{stderr}");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(fs::read_dir(sandbox.path("outside")).unwrap().count(), 0);
}

/// Names and content of files, by URL.
fn serving(files: Vec<(String, Vec<u8>)>) -> Server {
    Server::new(move |_, seen| {
        let found = files.iter().find(|(name, _)| seen.path == format!("/{name}"));
        match found {
            Some((_, bytes)) => Reply::range(seen, bytes, "etag: \"v1\"\r\n"),
            None => Reply::status("404 Not Found", ""),
        }
    })
}

#[test]
fn with_a_signer_files_get_their_names_when_they_are_verified() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["sign", "model.gguf", "--key", "publisher.key"]).exit, 0);
    let (model, signature) = (sandbox.read("model.gguf"), sandbox.read("model.gguf.minisig"));
    let served = |name: &str, bytes: &[u8], signature: &[u8]| {
        serving(vec![(name.to_owned(), bytes.to_vec()), (format!("{name}.minisig"), signature.to_vec())])
    };
    let get = |server: &Server, name: &str, key: &str, to: &str| {
        sandbox.run(&["get", &server.url(&format!("/{name}")), "-o", to, "--signer", key, "--json"])
    };
    let right = served("model.gguf", &model, &signature);
    // Nothing is asked for if there is no key.
    assert_eq!((get(&right, "model.gguf", "none.pub", "out").exit, right.seen().len()), (5, 0));
    let ran = get(&right, "model.gguf", "publisher.pub", "out");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    assert!(report["fingerprint"].is_string(), "{report}");
    assert_eq!(sandbox.read("out/model.gguf"), model);
    assert!(!sandbox.path("out/.apr-get").exists());
    // What is there is verified again.
    assert_eq!(get(&right, "model.gguf", "publisher.pub", "out").exit, 0);

    let mut changed = model.clone();
    changed[model.len() - 1] ^= 1;
    for (server, name, key, code) in [
        (served("model.gguf", &model, &signature), "model.gguf", "other.pub", "cy-signature"),
        (served("model.gguf", &changed, &signature), "model.gguf", "publisher.pub", "cy-signature"),
        (served("other.gguf", &model, &signature), "other.gguf", "publisher.pub", "cli-signed-name"),
        (served("model.gguf", &model, &signature), "model.gguf.minisig", "publisher.pub", "cli-no-signature"),
        (serving(vec![("model.gguf".to_owned(), model)]), "model.gguf", "publisher.pub", "cli-no-signature"),
    ] {
        let ran = get(&server, name, key, "refused");
        assert!(ran.exit == 4 && ran.stdout.contains(code), "{name} {key} {code}: {}", ran.stdout);
        let left = fs::read_dir(sandbox.path("refused")).unwrap().count();
        assert_eq!(left, 0, "{name} {code}");
    }
    // A signature inside.
    let inside = serving(vec![("published.apr".to_owned(), sandbox.read("published.apr"))]);
    assert_eq!(get(&inside, "published.apr", "publisher.pub", "apr").exit, 0);
    assert_eq!(get(&inside, "published.apr", "other.pub", "apr2").exit, 4);
    assert!(!sandbox.path("apr2/published.apr").exists());
}

#[test]
fn with_a_signer_a_repository_is_what_its_signature_lists() {
    let sandbox = Sandbox::with_models();
    let signed = || -> Files {
        ["weights.bin", "config.json", "sub/vocab.txt"]
            .map(|name| (name, sandbox.read(&format!("checkpoint/{name}")), name == "weights.bin"))
            .into()
    };
    let bundle = || ("model.sig", sandbox.read("checkpoint.sig"), false);
    let with = |more: Files| hub([signed(), more].concat(), |_, reply| reply);
    let args = ["hf://org/name", "-o", "model", "--signer", "publisher-p256.pub"];
    for (files, code) in [
        (vec![], "cli-no-signature"),
        (vec![bundle(), ("evil.py", b"import os".to_vec(), false)], "mf-differs"),
        (vec![bundle(), (".gitattributes", b"* filter=x".to_vec(), false)], "cli-not-covered"),
    ] {
        let (exit, _, stderr) = get(&sandbox, &with(files), &args);
        assert!(exit == 4 && stderr.contains(code), "{code} {exit} {stderr}");
        assert_eq!(fs::read_dir(sandbox.path("model")).unwrap().count(), 0, "{code}");
    }
    let server = with(vec![bundle(), (".gitattributes", b"* filter=x".to_vec(), false)]);
    let (exit, _, stderr) = get(&sandbox, &server, &[&args[..], &["--exclude", ".gitattributes"]].concat());
    assert!(exit == 0 && stderr.contains("verified: all files are signed"), "{stderr}");
    assert_eq!(sandbox.read("model/sub/vocab.txt"), b"a b");
    // A part of it is not what was signed.
    let part = [&args[..2], &["part", "--include", "config.json"], &args[3..]].concat();
    let (exit, _, stderr) = get(&sandbox, &server, &part);
    assert!(exit == 4 && stderr.contains("mf-differs"), "{exit} {stderr}");
}

/// A server with the files of a set of shards.
fn shards(sandbox: &Sandbox) -> Server {
    let folder = sandbox.path("sharded");
    Server::new(move |_, seen| match fs::read(folder.join(seen.path.trim_start_matches('/'))) {
        Ok(bytes) => Reply::range(seen, &bytes, "etag: \"v1\"\r\n"),
        Err(_) => Reply::status("404 Not Found", ""),
    })
}

#[test]
fn an_index_brings_its_shards() {
    let sandbox = Sandbox::with_models();
    let server = shards(&sandbox);
    let ran = sandbox.run(&["get", &server.url("/model.safetensors.index.json"), "-o", "copy"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.run(&["diff", "sharded", "copy"]).exit, 0);
    let names = |folder: &str| fs::read_dir(sandbox.path(folder)).unwrap().count();
    assert_eq!(names("sharded"), names("copy"));
}

#[cfg(unix)]
#[test]
fn the_examples_of_its_help_page_run() {
    let sandbox = Sandbox::with_models();
    let mut files = files();
    files.push(("model-q4_k_m.gguf", vec![1; 1000], true));
    let (hub, shards) = (hub(files, |_, reply| reply), shards(&sandbox));
    for name in ["published.safetensors", "published.safetensors.minisig"] {
        fs::copy(sandbox.path(name), sandbox.path("sharded").join(name)).unwrap();
    }
    let examples = crate::examples::examples(&sandbox.run(&["get", "--help"]).stdout);
    assert_eq!(examples.len(), 4, "{examples:?}");
    for example in examples {
        let line = example.replace("https://host.example", &shards.url(""));
        let ran = sandbox.shell(&format!("HF_ENDPOINT={} {line}", hub.url("")));
        assert_eq!(ran.exit, 0, "{line}\n{}{}", ran.stdout, ran.stderr);
    }
    for path in ["model/model.safetensors", "models/model-q4_k_m.gguf", "model/model.safetensors.index.json"]
    {
        assert!(sandbox.path(path).exists(), "{path}");
    }
}
