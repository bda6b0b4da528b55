//! Blocks of URLs that are kept on disk, from a server on loopback.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::sandbox::{Ran, Sandbox};
use crate::server::{Reply, Server};

/// Serves the files of the sandbox; what is known is not sent again.
fn serve(sandbox: &Sandbox) -> Server {
    let folder = sandbox.path("");
    Server::new(move |_, seen| {
        let Ok(bytes) = fs::read(folder.join(seen.path.trim_start_matches('/'))) else {
            return Reply::status("404 Not Found", "");
        };
        let tag = format!("\"{}\"", crate::get::digest(&bytes));
        match seen.header("if-none-match") == Some(&tag) {
            true => {
                Reply { head: format!("HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n"), ..Reply::default() }
            }
            false => Reply::range(seen, &bytes, &format!("etag: {tag}\r\n")),
        }
    })
}

fn blocks(sandbox: &Sandbox) -> Vec<PathBuf> {
    let objects = fs::read_dir(sandbox.path("../caches/apr/blocks")).into_iter().flatten().flatten();
    let files = objects.flat_map(|object| fs::read_dir(object.path()).unwrap());
    files.map(|file| file.unwrap().path()).filter(|path| !path.ends_with("pin")).collect()
}

#[test]
fn the_second_run_of_a_command_needs_no_bytes() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox);
    let cases: [(&[&str], u64); 8] = [
        (&["inspect", "URL/model.safetensors"], 1),
        (&["tensors", "URL/model.safetensors", "--digest"], 1),
        (&["check", "URL/model.gguf", "--values"], 1),
        (&["predict", "URL/model.apr", "-i", "rows.csv"], 1),
        (&["diff", "URL/model.safetensors", "URL/changed.safetensors"], 2),
        (&["dump", "URL/model.gguf", "NAME"], 1),
        (&["scan", "URL/model.safetensors"], 1),
        (&["convert", "URL/model.safetensors", "out.safetensors", "--force"], 1),
    ];
    let (_, listed) = sandbox.json(&["tensors", "model.gguf"]);
    let name = listed["tensors"][0]["name"].as_str().unwrap();
    for (args, files) in cases {
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.replace("URL", &server.url("")).replace("NAME", name))
            .chain(["--stats".to_owned()])
            .collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let with = [&args[..], &["--block-cache"]].concat();
        let (plain, first, second) = (sandbox.run(&args), sandbox.run(&with), sandbox.run(&with));
        for ran in [&first, &second] {
            assert_eq!((ran.exit, &ran.stdout), (plain.exit, &plain.stdout), "{args:?}\n{}", ran.stderr);
        }
        let requests =
            if files == 1 { "1 request, 0 B, ".to_owned() } else { format!("{files} requests, 0 B, ") };
        assert!(second.stderr.contains(&requests), "{args:?}\n{}", second.stderr);
        assert!(
            second.stderr.contains("; block cache: ") && second.stderr.contains(" 0 written, 0 discarded")
        );
        assert!(!plain.stderr.contains("block cache"), "{}", plain.stderr);
    }
    assert!(sandbox.leftovers().is_empty());
}

#[test]
fn nothing_is_kept_unless_it_is_asked_for() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox);
    let url = server.url("/model.safetensors");
    assert_eq!(sandbox.run(&["inspect", &url]).exit, 0);
    assert!(!sandbox.path("../caches").exists());
    let with = |name: &str, value: &str| -> Ran {
        sandbox.command(&["inspect", &url, "--stats"]).env(name, value).output().unwrap().into()
    };
    assert!(!with("APR_BLOCK_CACHE", "0").stderr.contains("block cache"));
    assert!(!sandbox.path("../caches").exists());
    assert!(
        with("APR_BLOCK_CACHE", "1").stderr.contains("block cache: 0 blocks read, 1 written, 0 discarded")
    );
    assert_eq!(blocks(&sandbox).len(), 1);
    let kept = sandbox.path("kept");
    assert!(with("APR_BLOCK_CACHE", kept.to_str().unwrap()).stderr.contains("1 written"));
    for off in ["false", "No", "off"] {
        assert!(!with("APR_BLOCK_CACHE", off).stderr.contains("block cache"), "{off}");
    }
    assert_eq!(with("APR_BLOCK_CACHE", "kept").exit, 2);
    assert!(sandbox.path("kept").is_dir());
    let ran: Ran = sandbox
        .command(&["inspect", &url])
        .env("APR_BLOCK_CACHE", "1")
        .env("APR_BLOCK_CACHE_SIZE", "much")
        .output()
        .unwrap()
        .into();
    assert!(ran.exit == 2 && ran.stderr.contains("rm-block-cache"), "{}", ran.stderr);
    let ran = sandbox.run(&["inspect", &url, "--block-cache", "--block-cache-size", "much"]);
    assert!(ran.exit == 2 && ran.stderr.contains("5GB"), "{}", ran.stderr);
}

#[test]
fn damaged_blocks_are_requested_again_and_a_full_disk_ends_nothing() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox);
    let url = server.url("/model.safetensors");
    let args = ["tensors", &url, "--digest", "--block-cache", "--stats"];
    let first = sandbox.run(&args);
    for path in blocks(&sandbox) {
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(path, bytes).unwrap();
    }
    let second = sandbox.run(&args);
    assert_eq!((second.exit, second.stdout), (0, first.stdout.clone()));
    assert!(second.stderr.contains("0 blocks read, 1 written, 1 discarded"), "{}", second.stderr);
    // A file in the place of the folder of the object: nothing can be written.
    fs::remove_dir_all(sandbox.path("../caches")).unwrap();
    fs::write(sandbox.path("../caches"), "").unwrap();
    let third = sandbox.run(&args);
    assert_eq!((third.exit, third.stdout), (0, first.stdout));
    assert!(third.stderr.contains("0 written, 0 discarded; not written: "), "{}", third.stderr);
}

#[test]
fn the_cache_is_listed_and_cleared() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox);
    let empty = sandbox.run(&["cache", "list"]);
    assert!(
        empty.exit == 0 && empty.stdout.contains("0 objects, 0 blocks, 0 B of at most 10.7 GB"),
        "{}",
        empty.stdout
    );
    let url = server.url("/model.safetensors");
    for _ in 0..2 {
        sandbox.run(&["inspect", &url, "--block-cache"]);
    }
    let (exit, listed) = sandbox.json(&["cache", "list", "--block-cache-size", "5GiB"]);
    assert_eq!((exit, &listed["limit"], &listed["blocks"]), (0, &json!(5_u64 << 30), &json!(1)));
    let object = &listed["objects"][0];
    assert_eq!(
        (&object["url"], &object["blocks"], &object["bytes"]),
        (&json!(url), &json!(1), &listed["bytes"])
    );
    let text = sandbox.run(&["cache", "list"]).stdout;
    assert!(text.contains("1 object, 1 block, ") && text.contains(&url), "{text}");
    let (_, cleared) = sandbox.json(&["cache", "clear", "--older-than", "1"]);
    assert_eq!((&cleared["blocks"], &cleared["bytes"]), (&json!(0), &json!(0)));
    let cleared = sandbox.run(&["cache", "clear"]);
    assert!(cleared.stdout.contains("1 block removed, "), "{}", cleared.stdout);
    assert!(blocks(&sandbox).is_empty());

    // A folder with something in it is not removed as a file.
    let folder = sandbox.path("../caches/apr/blocks").join("ab".repeat(32));
    let block = folder.join(format!("{}-{}-{}", "0".repeat(16), "0".repeat(12), "0".repeat(6)));
    fs::create_dir_all(block.join("full")).unwrap();
    let (exit, cleared) = sandbox.json(&["cache", "clear"]);
    assert_eq!((exit, &cleared["blocks"], &cleared["remaining"]), (5, &json!(0), &json!(1)), "{cleared}");
    let ran = sandbox.run(&["cache", "clear"]);
    assert!(ran.exit == 5 && ran.stdout.contains("0 blocks removed"), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 file could not be removed"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_folder_that_others_can_write_is_refused_and_explained() {
    let sandbox = Sandbox::with_models();
    let server = serve(&sandbox);
    let url = server.url("/model.safetensors");
    fs::create_dir(sandbox.path("kept")).unwrap();
    sandbox.set_mode("kept", 0o777);
    for args in [&["inspect", &url][..], &["cache", "list"], &["cache", "clear"]] {
        let ran: Ran =
            sandbox.command(args).env("APR_BLOCK_CACHE", sandbox.path("kept")).output().unwrap().into();
        assert!(ran.exit == 2 && ran.stderr.contains("rm-block-cache"), "{args:?} {}", ran.stderr);
    }
    assert!(server.seen().is_empty());
    assert!(sandbox.run(&["explain", "rm-block-cache"]).stdout.contains("chmod go-w"));
}

#[test]
fn a_commit_of_the_hub_is_read_offline() {
    let sandbox = Sandbox::with_models();
    let bytes = sandbox.read("model.safetensors");
    let sha256 = crate::get::digest(&bytes);
    let headers = format!(
        "etag: \"v1\"\r\nx-repo-commit: {}\r\nx-linked-etag: \"{sha256}\"\r\nx-linked-size: {}\r\n",
        crate::get::COMMIT,
        bytes.len()
    );
    let hub = Server::new(move |_, seen| Reply::range(seen, &bytes, &headers));
    let run = |args: &[&str]| -> Ran {
        let args = [args, &["--block-cache", "--stats"]].concat();
        sandbox.command(&args).env("HF_ENDPOINT", hub.url("")).output().unwrap().into()
    };
    let url = format!("hf://org/name@{}/model.safetensors", crate::get::COMMIT);
    let offline = run(&["check", &url, "--offline"]);
    assert!(offline.exit == 2 && offline.stderr.contains("rm-offline"), "{}", offline.stderr);
    assert_eq!(run(&["check", &url]).exit, 0);
    for args in [&["check", &url, "--offline"][..], &["inspect", &url], &["tensors", &url, "--digest"]] {
        let ran = run(args);
        assert!(ran.exit == 0 && ran.stderr.contains("0 requests, 0 B"), "{args:?} {}", ran.stderr);
    }
    let main = run(&["check", "hf://org/name/model.safetensors"]);
    assert!(main.exit == 0 && main.stderr.contains("1 request, 0 B"), "{}", main.stderr);
}

#[test]
fn wrong_bytes_that_were_kept_are_refused_like_those_of_the_server() {
    let sandbox = Sandbox::with_models();
    let (_, listed) = sandbox.json(&["tensors", "model.safetensors"]);
    let name = listed["tensors"][0]["name"].as_str().unwrap();
    let (sealed, plain) = (sandbox.read("model.sealed"), sandbox.read("model.safetensors"));
    let sha256 = crate::get::digest(&plain);
    let hub = format!("x-linked-etag: \"{sha256}\"\r\nx-linked-size: {}\r\n", plain.len());
    let is_wrong = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_wrong);
    // The ETag is the same for other bytes.
    let server = Server::new(move |_, seen| {
        let (mut bytes, headers) = match seen.path.ends_with("sealed") {
            true => (sealed.clone(), String::new()),
            false => (plain.clone(), hub.clone()),
        };
        let middle = bytes.len() * 3 / 4;
        bytes[middle] ^= u8::from(state.load(Ordering::Relaxed));
        match seen.header("if-none-match") {
            Some(tag) => {
                Reply { head: format!("HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n"), ..Reply::default() }
            }
            None => Reply::range(seen, &bytes, &format!("etag: \"v1\"\r\n{headers}")),
        }
    });
    let run = |args: &[&str]| -> Ran {
        let mut command = sandbox.command(args);
        command.env("APR_BLOCK_CACHE", "1").env("HF_ENDPOINT", server.url("")).output().unwrap().into()
    };
    let sealed = server.url("/model.sealed");
    let open = ["open", &sealed, "-o", "-", "--tensor", name, "--identity", "buyer.key", "--any-signer"];
    let url = format!("hf://org/name@{}/model.safetensors", crate::get::COMMIT);
    let refused = (run(&open), run(&["check", &url]));
    is_wrong.store(false, Ordering::Relaxed);
    let again = (run(&open), run(&["check", &url]));
    assert_eq!((refused.0.exit, &refused.0.stderr), (again.0.exit, &again.0.stderr));
    assert!(again.0.exit == 4 && again.0.stdout.is_empty(), "{}", again.0.stderr);
    let text = format!("{}{}", again.1.stdout, again.1.stderr);
    assert!(again.1.exit == 4 && text.contains("rm-digest") && text.contains("apr cache clear"), "{text}");
    assert_eq!(run(&["cache", "clear"]).exit, 0);
    assert_eq!((run(&open).exit, run(&["check", &url]).exit), (0, 0));
}
