//! Files that the hub's own programs have downloaded.

use std::fs;

use serde_json::{Value, json};

use crate::get::{COMMIT, Files, digest, hub};
use crate::sandbox::{Ran, Sandbox};
use crate::server::Server;

/// Puts files into the cache as those programs do: large ones under their SHA-256.
fn fill(sandbox: &Sandbox, files: &Files) {
    let repository = sandbox.path("../hub/hub/models--org--name");
    fs::create_dir_all(repository.join("refs")).unwrap();
    fs::create_dir_all(repository.join("blobs")).unwrap();
    fs::write(repository.join("refs/main"), COMMIT).unwrap();
    for (number, (path, bytes, is_large)) in files.iter().enumerate() {
        let name = if *is_large { digest(bytes) } else { format!("{number:040x}") };
        fs::write(repository.join("blobs").join(&name), bytes).unwrap();
        let path = repository.join("snapshots").join(COMMIT).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(repository.canonicalize().unwrap().join("blobs").join(name), path)
            .unwrap();
        #[cfg(not(unix))]
        fs::copy(repository.join("blobs").join(name), path).unwrap();
    }
}

/// Changes a byte of a file in the cache.
fn damage(sandbox: &Sandbox, path: &str) {
    let path = sandbox.path("../hub/hub/models--org--name/snapshots").join(COMMIT).join(path);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
}

fn run(sandbox: &Sandbox, hub: &Server, args: &[&str]) -> Ran {
    let mut command = sandbox.command(args);
    command.env("HF_ENDPOINT", hub.url("")).env("HF_TOKEN", "token").output().unwrap().into()
}

#[test]
fn commands_need_no_network_for_what_is_in_the_cache() {
    let sandbox = Sandbox::with_models();
    let read = |name: &str| sandbox.read(name);
    let shards: Vec<String> = fs::read_dir(sandbox.path("sharded"))
        .unwrap()
        .map(|entry| format!("sharded/{}", entry.unwrap().file_name().to_str().unwrap()))
        .collect();
    let mut files: Files =
        vec![("model.safetensors", read("model.safetensors"), true), ("model.apr", read("model.apr"), true)];
    files.extend(shards.iter().map(|path| (&*path.clone().leak(), read(path), true)));
    fill(&sandbox, &files);
    let server = hub(Files::new(), |_, reply| reply);
    let cases: [&[&str]; 10] = [
        &["inspect", "model.safetensors"],
        &["inspect", "sharded/model.safetensors.index.json"],
        &["tensors", "sharded/model.safetensors.index.json", "--digest"],
        &["check", "model.safetensors"],
        &["check", "sharded/model.safetensors.index.json"],
        &["scan", "model.safetensors"],
        &["diff", "model.safetensors", "sharded/model.safetensors.index.json"],
        &["predict", "model.apr", "-i", "rows.csv"],
        &["convert", "model.safetensors", "OUT.safetensors", "--force"],
        &[
            "quantize",
            "model.safetensors",
            "-o",
            "OUT.gguf",
            "--type",
            "q8_0",
            "--exclude",
            "mask",
            "--force",
        ],
    ];
    for (args, revision) in cases.iter().zip([COMMIT, "main"].into_iter().cycle()) {
        let local = sandbox.run(args);
        let output = args.iter().find(|arg| arg.starts_with("OUT"));
        let bytes = output.map(|name| read(name));
        let url = |path: &str| format!("hf://org/name@{revision}/{path}");
        let remote: Vec<String> = args
            .iter()
            .map(|arg| match files.iter().any(|(path, ..)| path == arg) {
                true => url(arg),
                false => (*arg).to_owned(),
            })
            .collect();
        let remote: Vec<&str> = remote.iter().map(String::as_str).chain(["--offline"]).collect();
        let ran = run(&sandbox, &server, &remote);
        assert_eq!(
            (ran.exit, ran.stdout.is_empty()),
            (local.exit, local.stdout.is_empty()),
            "{}",
            ran.stderr
        );
        // The name of an index is the address of its commit.
        let address = server.url(&format!("/org/name/resolve/{COMMIT}/"));
        let named = |text: &str| text.replace(&address, "").replace(&url(""), "");
        assert_eq!(named(&ran.stdout), local.stdout, "{args:?}");
        assert!(output.map(|name| read(name)) == bytes, "{args:?}");
    }
    assert!(server.seen().is_empty());
    let stats = run(&sandbox, &server, &["inspect", "hf://org/name", "--offline", "--stats"]);
    assert!(stats.stderr.contains("0 requests, ") && stats.stderr.contains(" 1 file of the hub's cache"));
    let refused = run(&sandbox, &server, &["inspect", "hf://org/name", "--offline", "--no-hub-cache"]);
    assert!(refused.exit == 2 && refused.stderr.contains("rm-offline"), "{}", refused.stderr);
    let mut command = sandbox.command(&["inspect", "hf://org/name", "--offline"]);
    let refused: Ran = command.env("APR_NO_HUB_CACHE", "1").output().unwrap().into();
    assert!(refused.exit == 2 && refused.stderr.contains("rm-offline"), "{}", refused.stderr);
}

#[test]
fn a_damaged_file_in_the_cache_is_found_by_check() {
    let sandbox = Sandbox::with_models();
    let bytes = sandbox.read("model.safetensors");
    fill(&sandbox, &vec![("model.safetensors", bytes.clone(), true)]);
    let sha256 = digest(&bytes);
    let served = bytes.clone();
    let server = Server::new(move |_, seen| {
        crate::server::Reply::range(seen, &served, &format!("etag: \"v\"\r\nx-linked-etag: \"{sha256}\"\r\n"))
    });
    let url = format!("hf://org/name@{COMMIT}/model.safetensors");
    for (args, exit) in [(&[][..], 0), (&["--offline"], 0)] {
        assert_eq!(run(&sandbox, &server, &[&["check", &url], args].concat()).exit, exit);
    }
    // The hub was asked for the digest, and for nothing else.
    assert_eq!(server.seen().len(), 1);
    damage(&sandbox, "model.safetensors");
    let cases: [(&[&str], i32); 3] =
        [(&[], 4), (&["--offline"], if cfg!(unix) { 4 } else { 0 }), (&["--no-hub-cache"], 0)];
    for (args, exit) in cases {
        let ran = run(&sandbox, &server, &[&["check", &url], args].concat());
        let text = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!((ran.exit, text.contains("rm-digest")), (exit, exit == 4), "{args:?}\n{text}");
        assert!(exit == 0 || text.contains("--no-hub-cache"), "{text}");
    }
}

#[test]
fn copies_come_from_the_cache_and_are_verified() {
    let sandbox = Sandbox::empty();
    let large: Vec<u8> =
        (0..2_500_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let files: Files =
        vec![("config.json", b"{}".to_vec(), false), ("sub/model.safetensors", large.clone(), true)];
    fill(&sandbox, &files);
    let server = hub(files, |_, reply| reply);
    for (folder, args, requests) in [("offline", &["--offline"][..], 0), ("online", &[], 1)] {
        let before = server.seen().len();
        let ran = run(&sandbox, &server, &[&["get", "hf://org/name", "-o", folder, "--json"], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["commit"], json!(COMMIT));
        for file in report["files"].as_array().unwrap() {
            assert_eq!(file["state"], "cached", "{file}");
        }
        assert!(sandbox.read(&format!("{folder}/sub/model.safetensors")) == large);
        assert_eq!(sandbox.read(&format!("{folder}/config.json")), b"{}");
        assert_eq!(server.seen().len() - before, requests, "{folder}");
    }
    damage(&sandbox, "sub/model.safetensors");
    let ran = run(&sandbox, &server, &["get", "hf://org/name", "-o", "damaged"]);
    assert!(ran.exit == 4 && ran.stderr.contains("rm-digest"), "{} {}", ran.exit, ran.stderr);
    assert!(!sandbox.path("damaged/sub/model.safetensors").exists());
    let ran = run(&sandbox, &server, &["get", "hf://org/name", "-o", "damaged", "--no-hub-cache"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(sandbox.read("damaged/sub/model.safetensors") == large);
}

#[test]
fn a_repository_in_the_cache_is_converted_without_the_network() {
    let sandbox = Sandbox::with_models();
    let files: Files = fs::read_dir(sandbox.path("llama"))
        .unwrap()
        .map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let bytes = sandbox.read(&format!("llama/{name}"));
            let is_large = name.ends_with(".safetensors");
            (&*name.leak(), bytes, is_large)
        })
        .collect();
    fs::rename(sandbox.path("llama"), sandbox.path("name")).unwrap();
    fill(&sandbox, &files);
    let server = hub(files, |_, reply| reply);
    let convert = |from: &str, to: &str, args: &[&str]| {
        let ran = run(&sandbox, &server, &[&["convert", from, to, "--no-provenance"], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        sandbox.read(to)
    };
    let local = convert("name", "local.gguf", &[]);
    assert!(convert("hf://org/name", "offline.gguf", &["--offline"]) == local);
    assert!(server.seen().is_empty());
    assert!(convert("hf://org/name", "online.gguf", &[]) == local);
    assert_eq!(server.seen().len(), 1, "the list");
}
