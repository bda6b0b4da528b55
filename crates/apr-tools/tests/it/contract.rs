//! Exit codes, JSON, streams, colour.

use std::io::Read;
use std::process::Stdio;

use apr_container::SaveOptions;

use crate::sandbox::{Sandbox, Tensor, file, linear};

#[test]
fn every_class_has_its_exit_code() {
    let sandbox = Sandbox::with_models();
    for (exit, args) in [
        (0, &["model.safetensors"][..]),
        (0, &["inspect", "sharded/model.safetensors.index.json"]),
        (0, &["check", "quirk.safetensors", "--compat"]),
        (0, &["diff", "model.safetensors", "same.safetensors"]),
        (0, &["diff", "model.safetensors", "sharded"]),
        (0, &["--version"]),
        (0, &["--help"]),
        (0, &["help", "diff"]),
        (0, &["explain"]),
        (0, &["completions", "fish"]),
        (0, &["man"]),
        (0, &["model.apr"]),
        (0, &["inspect", "tensors.apr", "--verify"]),
        (0, &["check", "model.apr", "tensors.apr"]),
        (0, &["tensors", "model.apr", "--digest"]),
        (0, &["diff", "model.apr", "model.apr"]),
        (0, &["predict", "model.apr", "-i", "rows.csv"]),
        (
            0,
            &[
                "predict",
                "sold.apr",
                "-i",
                "rows.csv",
                "--identity",
                "buyer.key",
                "--signer",
                "maker.key.pub",
            ],
        ),
        (0, &["model.gguf"]),
        (0, &["inspect", "model.gguf", "--verify"]),
        (0, &["inspect", "model.apr", "--quantization"]),
        (0, &["check", "model.gguf"]),
        (0, &["tensors", "model.gguf", "--digest"]),
        (0, &["diff", "model.gguf", "model.gguf"]),
        (1, &["diff", "model.gguf", "model.safetensors"]),
        (2, &["convert", "model.gguf", "n.safetensors"]),
        (2, &["convert", "model.gguf", "n.gguf", "--align", "64"]),
        (2, &["inspect", "model.gguf", "--quantization", "--verify"]),
        (2, &["export", "model.gguf", "--output", "n.gguf"]),
        (2, &["predict", "model.gguf", "-i", "rows.csv"]),
        (3, &["check", "cut.gguf"]),
        (4, &["check", "model.gguf", "--signer", "maker.key.pub"]),
        (0, &["shard", "model.gguf", "-o", "gguf-parts"]),
        (0, &["unshard", "gguf-parts", "-o", "joined.gguf"]),
        (0, &["key", "show", "maker.key"]),
        (0, &["model.sealed"]),
        (0, &["inspect", "model.sealed", "--verify"]),
        (0, &["open", "model.sealed", "-o", "o.bin", "--identity", "buyer.key", "--signer", "maker.key.pub"]),
        (2, &["seal", "model.safetensors", "-o", "s.sealed"]),
        (2, &["seal", "model.safetensors", "-o", "model.apr", "--sign", "maker.key"]),
        (2, &["seal", "model.safetensors", "-o", "-", "--sign", "maker.key"]),
        (2, &["rekey", "model.sealed", "--identity", "buyer.key"]),
        (3, &["seal", "model.safetensors", "-o", "s.sealed", "--sign", "buyer.key"]),
        (3, &["seal", "sharded", "-o", "s.sealed", "--sign", "maker.key"]),
        (4, &["open", "model.sealed", "-o", "n.bin", "--identity", "buyer.key"]),
        (5, &["seal", "missing.apr", "-o", "s.sealed", "--sign", "maker.key"]),
        (6, &["open", "model.apr", "-o", "n.bin", "--identity", "buyer.key"]),
        (6, &["open", "model.sealed", "-o", "n.bin", "--any-signer"]),
        (6, &["tensors", "model.sealed"]),
        (0, &["cache", "list"]),
        (2, &["cache", "clear", "--older-than", "0"]),
        (0, &["license", "show", "licensed.apr"]),
        (1, &["license", "show", "model.apr"]),
        (1, &["license", "check", "licensed.apr", "--seats", "11"]),
        (2, &["license", "set", "model.apr", "-o", "n.apr"]),
        (2, &["keygen", "sign", "-o", "maker.key"]),
        (2, &["encrypt", "model.apr", "-o", "n.apr"]),
        (2, &["encrypt", "model.apr", "-o", "model.apr", "--recipient", "buyer.key.pub"]),
        (3, &["encrypt", "model.apr", "-o", "n.apr", "--recipient", "buyer.key"]),
        (3, &["decrypt", "locked.apr", "-o", "n.apr", "--identity", "maker.key"]),
        (3, &["encrypt", "sharded", "-o", "n.apr", "--recipient", "buyer.key.pub"]),
        (4, &["decrypt", "model.apr", "-o", "n.apr", "--identity", "buyer.key"]),
        (4, &["decrypt", "sold.apr", "-o", "n.apr", "--identity", "buyer.key"]),
        (4, &["decrypt", "locked.apr", "-o", "n.apr", "--identity", "buyer.key"]),
        (4, &["check", "model.safetensors", "--signer", "maker.key.pub"]),
        (5, &["encrypt", "missing.apr", "-o", "n.apr", "--recipient", "buyer.key.pub"]),
        (6, &["encrypt", "model.sealed", "-o", "n.apr", "--recipient", "buyer.key.pub"]),
        (6, &["encrypt", "locked.apr", "-o", "n.apr", "--recipient", "buyer.key.pub"]),
        (6, &["decrypt", "tensors.apr", "-o", "n.apr", "--identity", "buyer.key"]),
        (6, &["decrypt", "sold.apr", "-o", "n.apr", "--signer", "maker.key.pub"]),
        (6, &["predict", "locked.apr", "-i", "rows.csv"]),
        (1, &["diff", "model.safetensors", "changed.safetensors"]),
        (1, &["diff", "model.apr", "tensors.apr"]),
        (2, &[]),
        (2, &["nonsense"]),
        (2, &["tensors"]),
        (2, &["tensors", "model.safetensors", "--nonsense"]),
        (2, &["convert", "model.safetensors", "x", "--align", "7"]),
        (2, &["convert", "model.safetensors", "x", "--set", "novalue"]),
        (2, &["convert", "model.safetensors", "same.safetensors"]),
        (2, &["convert", "model.safetensors", "-", "--json"]),
        (2, &["explain", "nonsense"]),
        (2, &["diff", "-", "-"]),
        (2, &["train"]),
        (2, &["train", "nonsense"]),
        (2, &["train", "ridge", "--data", "table.csv", "--target", "price", "-o", "model.apr"]),
        (2, &["train", "ridge", "--alpha", "x", "--data", "table.csv", "--target", "price", "-o", "n.apr"]),
        (2, &["train", "ridge", "--alpha", "-1", "--data", "table.csv", "--target", "price", "-o", "n.apr"]),
        (2, &["train", "logistic-regression", "--data", "table.csv", "--target", "price", "-o", "n.apr"]),
        (2, &["predict", "model.apr"]),
        (2, &["predict", "-", "-i", "-"]),
        (2, &["predict", "model.apr", "-i", "rows.csv", "--proba"]),
        (2, &["predict", "model.apr", "-i", "rows.csv", "--column", "a"]),
        (2, &["predict", "model.apr", "-i", "rows.csv", "-o", "rows.csv"]),
        (2, &["convert", "tensors.apr", "n.safetensors"]),
        (2, &["convert", "model.apr", "n.safetensors", "--compression", "zstd"]),
        (2, &["convert", "model.apr", "n.apr", "--select", "intercept"]),
        (3, &["predict", "model.apr", "-i", "table.csv"]),
        (2, &["predict", "tensors.apr", "-i", "rows.csv"]),
        (3, &["train", "ridge", "--data", "table.csv", "--target", "none", "-o", "n.apr"]),
        (3, &["train", "ridge", "--data", "texts.txt", "--target", "1", "-o", "n.apr"]),
        (3, &["check", "broken.safetensors"]),
        (3, &["inspect", "broken.safetensors"]),
        (3, &["tensors", "quirk.safetensors"]),
        (3, &["check", "table.parquet"]),
        (3, &["tensors", "empty"]),
        (5, &["check", "missing.safetensors"]),
        (5, &["diff", "model.safetensors", "missing.safetensors"]),
        (5, &["convert", "model.safetensors", "no/such/folder/x.safetensors"]),
        (5, &["predict", "model.apr", "-i", "missing.csv"]),
        (5, &["train", "ridge", "--data", "missing.csv", "--target", "price", "-o", "n.apr"]),
        (6, &["shard", "model.apr", "-o", "n"]),
        (6, &["unshard", "tensors.apr", "-o", "n"]),
        (0, &["check", "model.npy"]),
        (0, &["inspect", "model.npy"]),
        (6, &["predict", "model.npy", "-i", "rows.csv"]),
        (6, &["inspect", "table.parquet"]),
        (6, &["tensors", "table.parquet"]),
        (6, &["convert", "table.parquet", "x.safetensors"]),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}{}", ran.stdout, ran.stderr);
        let told = if args.contains(&"--json") { ran.stdout } else { ran.stderr };
        assert!(exit == 0 || exit == 1 || !told.is_empty(), "{args:?} says nothing");
    }
}

#[test]
fn every_command_prints_one_json_object_with_a_schema() {
    let sandbox = Sandbox::with_models();
    for (schema, args) in [
        ("apr.inspect/2", &["model.safetensors"][..]),
        ("apr.inspect/2", &["inspect", "sharded"]),
        ("apr.tensors/1", &["tensors", "model.safetensors", "--digest"]),
        ("apr.check/2", &["check", "model.safetensors", "missing.safetensors", "broken.safetensors"]),
        ("apr.diff/1", &["diff", "model.safetensors", "changed.safetensors"]),
        ("apr.convert/2", &["convert", "model.safetensors", "x.safetensors"]),
        ("apr.convert/2", &["convert", "model.safetensors", "y.safetensors", "--dry-run"]),
        ("apr.shard/1", &["shard", "model.safetensors", "-o", "shards", "--max-size", "150"]),
        ("apr.unshard/1", &["unshard", "sharded", "-o", "z.safetensors"]),
        ("apr.shard/1", &["shard", "tiny_llama.gguf", "-o", "parts", "--max-tensors", "8"]),
        ("apr.unshard/1", &["unshard", "parts", "-o", "z.gguf"]),
        ("apr.inspect/2", &["model.apr"]),
        ("apr.inspect/2", &["inspect", "model.apr", "--verify"]),
        ("apr.inspect/2", &["inspect", "tensors.apr", "--verify"]),
        ("apr.tensors/1", &["tensors", "model.apr", "--digest"]),
        ("apr.check/2", &["check", "model.apr", "tensors.apr"]),
        ("apr.diff/1", &["diff", "model.apr", "model.safetensors"]),
        ("apr.convert/2", &["convert", "model.apr", "a.safetensors"]),
        ("apr.convert/2", &["convert", "model.apr", "a.apr", "--compression", "lz4"]),
        ("apr.convert/2", &["convert", "tensors.apr", "b.apr", "--exclude", "packed"]),
        ("apr.embed/1", &["embed", "model.apr", "-o", "program", "--crates", "checkout"]),
        ("apr.size/1", &["size"]),
        ("apr.size/1", &["size", "model.apr"]),
        ("apr.predict/1", &["predict", "model.apr", "-i", "rows.csv"]),
        ("apr.predict/1", &["predict", "model.apr", "-i", "rows.csv", "-o", "predictions.json"]),
        ("apr.train/1", &["train", "kmeans", "--clusters", "2", "--data", "rows.csv", "-o", "k.apr"]),
        ("apr.train/1", &["train", "tfidf", "--data", "texts.txt", "-o", "t.apr", "--dry-run"]),
        ("apr.keygen/1", &["keygen", "encrypt", "-o", "new.key"]),
        ("apr.key/1", &["key", "show", "maker.key.pub"]),
        ("apr.encrypt/1", &["encrypt", "model.apr", "-o", "e.apr", "--recipient", "buyer.key.pub"]),
        ("apr.decrypt/1", &["decrypt", "locked.apr", "-o", "d.apr", "--password-file", "password.txt"]),
        ("apr.inspect/2", &["model.sealed"]),
        ("apr.seal/1", &["seal", "model.apr", "-o", "s.sealed", "--sign", "maker.key"]),
        ("apr.open/1", &["open", "model.sealed", "-o", "o.bin", "--identity", "buyer.key", "--any-signer"]),
        (
            "apr.rekey/2",
            &["rekey", "model.sealed", "--identity", "buyer.key", "--recipient", "second.key.pub"],
        ),
        ("apr.cache/1", &["cache", "list"]),
        ("apr.cache-clear/1", &["cache", "clear"]),
        ("apr.license/1", &["license", "show", "licensed.apr"]),
        ("apr.license-check/1", &["license", "check", "licensed.apr"]),
        ("apr.license-set/1", &["license", "set", "model.apr", "-o", "l.apr", "--seats", "1"]),
        ("apr.demo/1", &["demo"]),
        ("apr.demo/1", &["demo", "--dry-run"]),
        ("apr.explain/1", &["explain"]),
        ("apr.explain/1", &["explain", "st-offsets"]),
        ("apr.completions/1", &["completions", "bash"]),
        ("apr.man/1", &["man"]),
        ("apr.man/1", &["man", "pages"]),
        ("apr.man/1", &["man", "pages2", "--dry-run"]),
        ("apr.error/1", &["tensors", "broken.safetensors"]),
        ("apr.error/1", &["tensors", "table.parquet"]),
        ("apr.inspect/2", &["model.gguf"]),
        ("apr.quantization/2", &["inspect", "tensors.apr", "--quantization"]),
        ("apr.tensors/1", &["tensors", "model.gguf"]),
        ("apr.check/2", &["check", "model.gguf"]),
        ("apr.convert/2", &["export", "model.gguf", "--format", "gguf", "-o", "e.gguf"]),
        ("apr.convert-model/1", &["convert", "llama", "llama.gguf", "--type", "f16"]),
        ("apr.export-folder/1", &["export", "llama.gguf", "--format", "hf", "-o", "folder"]),
        ("apr.error/1", &["predict", "model.apr", "-i", "table.csv"]),
        ("apr.error/1", &["train"]),
        ("apr.error/1", &["tensors"]),
        ("apr.error/1", &["nonsense"]),
        ("apr.error/1", &["convert", "model.safetensors", "same.safetensors"]),
    ] {
        let (exit, value) = sandbox.json(args);
        assert_eq!(value["schema"], schema, "{args:?}");
        if schema == "apr.error/1" {
            assert_eq!(value["exit"], exit, "{args:?}");
            assert!(value["error"]["code"].is_string() && value["error"]["message"].is_string(), "{args:?}");
        }
    }
}

#[test]
fn tensors_are_listed_in_file_order_with_absolute_offsets_and_digests() {
    let sandbox = Sandbox::with_models();
    let (_, value) = sandbox.json(&["tensors", "model.safetensors", "--digest"]);
    let bytes = sandbox.read("model.safetensors");
    let mut end = 0;
    for tensor in value["tensors"].as_array().unwrap() {
        let (offset, len) = (tensor["offset"].as_u64().unwrap(), tensor["bytes"].as_u64().unwrap());
        assert!(offset >= end);
        end = offset + len;
        use sha2::Digest;
        let digest = sha2::Sha256::digest(&bytes[offset as usize..end as usize]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(tensor["sha256"], hex);
    }
    assert_eq!(end, bytes.len() as u64);
    let (_, sharded) = sandbox.json(&["tensors", "sharded", "--digest"]);
    let digest_of = |list: &serde_json::Value, name: &str| {
        let tensors = list["tensors"].as_array().unwrap();
        tensors.iter().find(|tensor| tensor["name"] == name).unwrap()["sha256"].clone()
    };
    assert_eq!(digest_of(&value, "mask"), digest_of(&sharded, "mask"));
}

#[test]
fn a_plain_file_is_inspected() {
    let sandbox = Sandbox::with_models();
    let (short, long) = (sandbox.run(&["model.safetensors"]), sandbox.run(&["inspect", "model.safetensors"]));
    assert_eq!(short.stdout, long.stdout);
    std::fs::rename(sandbox.path("model.safetensors"), sandbox.path("bare")).unwrap();
    assert_eq!(sandbox.run(&["bare"]).exit, 0);
}

#[test]
fn data_and_narration_go_to_their_streams() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["convert", "model.safetensors", "a.safetensors"]);
    assert!(ran.stdout.is_empty() && ran.stderr.contains("wrote a.safetensors"), "{}", ran.stderr);
    let ran = sandbox.run(&["-q", "convert", "model.safetensors", "b.safetensors"]);
    assert!(ran.stdout.is_empty() && ran.stderr.is_empty());
    let ran = sandbox.run(&["-q", "check", "broken.safetensors"]);
    assert!(ran.stderr.contains("error[st-"), "errors are shown even so");
    let ran = sandbox.run(&["check", "model.safetensors"]);
    assert!(ran.stderr.is_empty());
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let sandbox = Sandbox::with_models();
    let plain = sandbox.run(&["model.safetensors"]);
    assert!(!plain.stdout.contains('\u{1b}'));
    for args in
        [&["model.safetensors", "--color", "always"][..], &["--color=always", "check", "broken.safetensors"]]
    {
        let ran = sandbox.run(args);
        assert!(ran.stdout.contains('\u{1b}'), "{args:?}");
    }
    let json = sandbox.run(&["model.safetensors", "--color", "always", "--json"]);
    assert!(!json.stdout.contains('\u{1b}'));
    let ran = sandbox.run(&["model.safetensors", "--color", "never"]);
    assert_eq!(ran.stdout, plain.stdout);
}

fn many_tensors(sandbox: &Sandbox, name: &str, start: f32) {
    let tensors: Vec<_> =
        (0..5000).map(|idx| Tensor::counting(&format!("t{idx}.{}", "x".repeat(40)), &[1], start)).collect();
    sandbox.write(name, &file(&tensors, &[].into()));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::empty();
    many_tensors(&sandbox, "a.safetensors", 0.0);
    many_tensors(&sandbox, "b.safetensors", 1.0);
    sandbox.write("line.apr", &linear(&SaveOptions::default()));
    sandbox.write("many.csv", "1,2\n".repeat(50_000).as_bytes());
    for (exit, args) in [
        (0, &["tensors", "a.safetensors"][..]),
        (0, &["tensors", "a.safetensors", "--json"]),
        (0, &["inspect", "a.safetensors", "-v"]),
        (0, &["convert", "a.safetensors", "-"]),
        (0, &["completions", "zsh"]),
        (0, &["predict", "line.apr", "-i", "many.csv"]),
        (0, &["man"]),
        (0, &["explain"]),
        (0, &["--help"]),
        // A verdict stands whether or not it is read.
        (1, &["diff", "a.safetensors", "b.safetensors"]),
    ] {
        let mut child = sandbox.command(args).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let _ = out.read(&mut [0; 16]).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(exit), "{args:?}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("error"), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let sandbox = Sandbox::with_models();
    for args in [&["tensors", "model.safetensors"][..], &["convert", "model.safetensors", "-"], &["--help"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(args).stdout(Stdio::from(full)).output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("error[cli-stdout]"), "{args:?}");
    }
}

#[test]
fn the_demo_cleans_up_behind_itself() {
    let sandbox = Sandbox::empty();
    let before = sandbox.listing();
    let ran = sandbox.run(&["demo"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.listing(), before);
    assert_eq!(sandbox.run(&["demo", "--keep", "kept"]).exit, 0);
    assert_eq!(sandbox.run(&["demo", "--keep", "kept"]).exit, 2);
    assert_eq!(sandbox.run(&["check", "kept/model.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["check", "kept/damaged-header.safetensors"]).exit, 3);
    assert_eq!(sandbox.run(&["check", "kept/damaged-data.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["diff", "kept/model.safetensors", "kept/damaged-data.safetensors"]).exit, 1);
    for good in ["model.apr", "model-zstd.apr", "model-lz4.apr"] {
        assert_eq!(sandbox.run(&["check", &format!("kept/{good}")]).exit, 0, "{good}");
    }
    assert_eq!(sandbox.run(&["check", "kept/damaged.apr"]).exit, 4);
    assert_eq!(sandbox.run(&["check", "kept/checkpoints/step_1"]).exit, 0);
    let (exit, value) = sandbox.json(&["check", "kept/checkpoints/step_2"]);
    assert_eq!(exit, 4);
    assert_eq!(value["files"][0]["problems"][0]["code"], "sm-checksum-mismatch");
    std::fs::remove_file(sandbox.path("kept/checkpoints/step_1/manifest.json")).unwrap();
    assert_eq!(sandbox.run(&["check", "kept/checkpoints/step_1"]).exit, 4);
}

/// A line feed in a word of the command line would otherwise look like a line of the program.
#[test]
fn words_of_the_command_line_are_repeated_on_one_line() {
    let sandbox = Sandbox::empty();
    let forged = "x\nok: verified\u{1b}[2J";
    for args in [&[forged][..], &["inspect", &format!("--{forged}")], &["check", "f", &format!("--{forged}")]]
    {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("x\\nok: verified\\u{1b}[2J"), "{}", ran.stderr);
        assert!(!ran.stderr.lines().any(|line| line.trim_start().starts_with("ok:")), "{}", ran.stderr);
        let (_, value) = sandbox.json(args);
        assert!(!value["error"]["message"].as_str().unwrap().contains('\n'), "{value}");
    }
}
