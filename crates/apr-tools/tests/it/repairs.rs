//! Indexes and headers that are repaired, and what the program says about mistakes.

use std::fs;

use crate::sandbox::{Sandbox, raw};

const INDEX: &str = "sharded/model.safetensors.index.json";
const W: &str = r#""w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#;

fn with_wrong_total(sandbox: &Sandbox) {
    let text = String::from_utf8(sandbox.read(INDEX)).unwrap();
    let (before, rest) = text.split_once(r#""total_size": "#).unwrap();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    sandbox.write(INDEX, format!(r#"{before}"total_size": 7{}"#, &rest[digits..]).as_bytes());
}

#[test]
fn a_wrong_total_size_is_a_warning() {
    let sandbox = Sandbox::with_models();
    with_wrong_total(&sandbox);
    for args in [
        &["tensors", "sharded"][..],
        &["check", "sharded"],
        &["inspect", "sharded"],
        &["convert", "sharded", "one.safetensors"],
        &["quantize", "sharded", "small.gguf", "--type", "bf16", "--exclude", "mask"],
        &["shard", "sharded", "-o", "again", "--max-size", "100"],
        &["unshard", "sharded", "-o", "joined.safetensors"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(said.contains("expected 7 bytes by total_size"), "{args:?}\n{said}");
        assert!(said.contains("apr shard --index sharded --force"), "{args:?}\n{said}");
    }
    assert_eq!(sandbox.run(&["diff", "one.safetensors", "model.safetensors"]).exit, 0);
    let (exit, report) = sandbox.json(&["inspect", "sharded"]);
    let warnings = report["warnings"].as_array().unwrap();
    assert!(exit == 0 && warnings.iter().any(|warning| warning["kind"] == "index"), "{warnings:?}");
}

#[test]
fn an_index_is_written_anew_only_if_it_is_wrong() {
    let sandbox = Sandbox::with_models();
    let sound = sandbox.read(INDEX);
    let right = sandbox.run(&["shard", "--index", "sharded"]);
    assert!(right.exit == 0 && right.stderr.contains("is right: nothing was written"), "{}", right.stderr);
    with_wrong_total(&sandbox);
    let wrong = sandbox.read(INDEX);
    assert_eq!(sandbox.run(&["shard", "--index", "sharded"]).exit, 2, "the old index is kept");
    let (exit, _) = sandbox.json(&["shard", "--index", "sharded", "--force", "--dry-run"]);
    assert_eq!((exit, sandbox.read(INDEX)), (0, wrong));
    let (exit, report) = sandbox.json(&["shard", "--index", "sharded", "--force"]);
    assert_eq!(
        (exit, &report["written"], &report["index"]),
        (0, &true.into(), &"model.safetensors.index.json".into())
    );
    // The same tensors and files; their order is that of the files.
    assert_eq!(sandbox.run(&["diff", "sharded", "model.safetensors"]).exit, 0);
    assert_eq!(sandbox.read(INDEX).len(), sound.len());
    for (args, exit) in [
        (&["shard", "--index", "empty"][..], 3),
        (&["shard", "--index", "nowhere"], 5),
        (&["shard", "--index", "model.safetensors"], 2),
        (&["shard", "--index", "sharded", "-o", "x"], 2),
        (&["shard", "--index", "sharded", "--align", "64"], 2),
        (&["shard", "model.safetensors"], 2),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
    }
    fs::remove_file(sandbox.path("sharded/model-00001-of-00003.safetensors")).unwrap();
    let ran = sandbox.run(&["shard", "--index", "sharded", "--force"]);
    assert!(ran.exit == 3 && ran.stderr.contains("sm-missing-shard"), "{}", ran.stderr);
    // The remedy is not promised where it does not work.
    assert!(!sandbox.run(&["tensors", "sharded"]).stderr.contains("of them; else"));
}

#[test]
fn other_names_of_shards_are_opened() {
    let sandbox = Sandbox::with_models();
    for (prefix, from) in [("model.safetensors", 1), ("model", 0), ("pytorch_model", 1)] {
        let folder = sandbox.path("renamed");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let mut shards: Vec<_> =
            fs::read_dir(sandbox.path("sharded")).unwrap().map(|entry| entry.unwrap().path()).collect();
        shards.retain(|path| path.extension().is_some_and(|ending| ending == "safetensors"));
        shards.sort();
        for (shard, number) in shards.iter().zip(from..) {
            let name = format!("{prefix}-{number:05}-of-{:05}.safetensors", shards.len());
            fs::copy(shard, folder.join(name)).unwrap();
        }
        assert_eq!(sandbox.run(&["shard", "--index", "renamed"]).exit, 0, "{prefix}");
        let ran = sandbox.run(&["diff", "renamed", "model.safetensors"]);
        assert_eq!(ran.exit, 0, "{prefix}\n{}", ran.stderr);
    }
}

#[test]
fn a_header_is_repaired_and_the_changes_are_listed() {
    let sandbox = Sandbox::with_models();
    let header = format!(r#"{{"__metadata__":{{"steps":5,"cfg":{{"a":1}},"lr":"1e-3"}},{W}}}"#);
    sandbox.write("bad.safetensors", &raw(&header, &[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    let ran = sandbox.run(&["convert", "bad.safetensors", "good.safetensors", "--repair"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    for part in [
        "repaired: the metadata value of \"steps\" was a number",
        "repaired: the metadata value of \"cfg\" was an object",
        "repaired: bytes after the last tensor are left out: 1",
    ] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
    let (_, report) = sandbox.json(&["inspect", "good.safetensors"]);
    let metadata = report["files"][0]["metadata"].to_string();
    assert!(metadata.contains("steps") && metadata.contains("1e-3"), "{metadata}");
    let (exit, report) =
        sandbox.json(&["convert", "bad.safetensors", "good.safetensors", "--repair", "--force"]);
    let kinds: Vec<_> = report["repaired"].as_array().unwrap().iter().map(|change| &change["kind"]).collect();
    assert_eq!(exit, 0);
    assert!(
        kinds.contains(&&"metadata-value".into()) && kinds.contains(&&"trailing-bytes".into()),
        "{kinds:?}"
    );
    let ran = sandbox.run(&["convert", "model.safetensors", "same2.safetensors", "--repair"]);
    assert!(ran.exit == 0 && ran.stderr.contains("needs no repair"), "{}", ran.stderr);
    // The remedy is not named where it does not work, and what cannot be repaired is refused.
    sandbox.write("cut.safetensors", &raw(&header, &[1, 2, 3]));
    assert!(!sandbox.run(&["tensors", "cut.safetensors"]).stderr.contains("--repair"));
    for (args, exit) in [
        (["convert", "cut.safetensors", "n.safetensors", "--repair"], 3),
        (["convert", "model.apr", "n.safetensors", "--repair"], 2),
        (["convert", "sharded", "n.safetensors", "--repair"], 2),
        (["convert", "llama", "n.gguf", "--repair"], 2),
    ] {
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
        assert!(!sandbox.path(args[2]).exists());
    }
}

#[test]
fn a_missing_input_is_reported_before_an_existing_output() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    for args in [
        &["convert", "nothere.safetensors", "model.safetensors"][..],
        &["convert", "nothere.safetensors", "-o", "model.safetensors"],
        &["quantize", "nothere.safetensors", "model.gguf", "--type", "q8_0"],
        &["export", "nothere.gguf", "--format", "safetensors", "--output", "model.safetensors"],
        &["export", "nothere.gguf", "--format", "hf", "--output", "llama"],
        &["dump", "nothere.safetensors", "-o", "model.npy"],
        &["shard", "nothere.safetensors", "-o", "model.safetensors"],
        &["unshard", "nothere", "-o", "model.safetensors"],
        &["encrypt", "nothere.apr", "-o", "model.apr", "--recipient", "buyer.key.pub"],
        &["decrypt", "nothere.apr", "-o", "model.apr", "--identity", "buyer.key"],
        &["seal", "nothere.apr", "-o", "model.apr", "--recipient", "buyer.key.pub"],
        &["open", "nothere.sealed", "-o", "model.apr", "--identity", "buyer.key"],
        &["license", "set", "nothere.apr", "-o", "model.apr", "--seats", "1"],
        &["train", "linear-regression", "--data", "nothere.csv", "--target", "price", "-o", "model.apr"],
        &["distill", "nothere.apr", "--data", "rows.csv", "-o", "model.apr"],
        &["predict", "nothere.apr", "rows.csv", "-o", "model.apr"],
        &["sign", "nothere.apr", "--key", "maker.key"],
        &["sign", "nothere.apr", "--inside", "-o", "model.apr", "--key", "maker.key"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 5, "{args:?}\n{}", ran.stderr);
        assert!(
            ran.stderr.contains("nothere") && !ran.stderr.contains("--force"),
            "{args:?}\n{}",
            ran.stderr
        );
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn outputs_and_tables_are_taken_in_both_ways() {
    let sandbox = Sandbox::with_models();
    for (one, other) in [
        (&["convert", "tiny_llama.gguf", "a.gguf"][..], &["convert", "tiny_llama.gguf", "-o", "b.gguf"][..]),
        (
            &["quantize", "tiny_llama.gguf", "-o", "a2.gguf", "--type", "f16"],
            &["quantize", "tiny_llama.gguf", "b2.gguf", "--type", "f16"],
        ),
        (&["predict", "model.apr", "-i", "rows.csv"], &["predict", "model.apr", "rows.csv"]),
    ] {
        let (one, other) = (sandbox.run(one), sandbox.run(other));
        assert_eq!((one.exit, &one.stdout), (0, &other.stdout), "{}{}", one.stderr, other.stderr);
        assert_eq!(other.exit, 0);
    }
    assert_eq!(sandbox.read("a.gguf"), sandbox.read("b.gguf"));
    assert_eq!(sandbox.read("a2.gguf"), sandbox.read("b2.gguf"));
    for twice in [
        &["convert", "model.safetensors", "a.apr", "-o", "b.apr"][..],
        &["predict", "model.apr", "rows.csv", "-i", "rows.csv"],
    ] {
        assert_eq!(sandbox.run(twice).exit, 2, "{twice:?}");
    }
}

#[test]
fn usage_errors_have_the_form_of_others() {
    let sandbox = Sandbox::with_models();
    for (args, part) in [
        (
            &["tensors", "model.safetensors", "same.safetensors"][..],
            "`apr diff model.safetensors same.safetensors` compares two",
        ),
        (&["model.safetensors", "check"], "the command comes first: apr check model.safetensors"),
        (
            &["encrypt", "model.apr", "-o", "x.apr", "--password", "secret"],
            "never taken from the command line",
        ),
        (&["encrypt", "model.apr", "-o", "x.apr"], "no recipient or password is given"),
        (&["tensors"], "were not provided: <FILE>"),
        (&["tensors", "model.safetensors", "--digset"], "'--digest'"),
        (&["convert", "model.safetensors", "x", "--align", "7"], "[possible values: 8, 64, 4096]"),
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 2, "{args:?}");
        for part in ["error[cli-usage]: ", "\n  help:   ", "\n  more:   apr explain cli-usage\n", part] {
            assert!(ran.stderr.contains(part), "{part} {args:?}\n{}", ran.stderr);
        }
        assert!(!ran.stderr.contains("secret\n") && !ran.stderr.contains("\n\n"), "{}", ran.stderr);
    }
}

#[test]
fn causes_are_named() {
    let sandbox = Sandbox::with_models();
    sandbox.write("empty.gguf", b"");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 48\n";
    sandbox.write("lfs.gguf", pointer.as_bytes());
    let (first, rest) = pointer.split_once('\n').unwrap();
    let conflict = format!("{first}\n<<<<<<< HEAD\n{rest}=======\n{rest}>>>>>>> branch\n");
    sandbox.write("conflict.onnx", conflict.as_bytes());
    let whole = sandbox.read("model.gguf");
    let (one, two) = whole.split_at(whole.len() / 2);
    sandbox.write("big.gguf.part1of2", one);
    sandbox.write("big.gguf.part2of2", two);
    let long = "x".repeat(100_000);
    for (args, part, unsaid) in [
        (&["check", "empty.gguf"][..], "the file is empty", "8 bytes"),
        (&["check", "lfs.gguf"], "a Git LFS pointer, not the model itself\n", "safetensors, .apr"),
        (&["check", "conflict.onnx"], "an unresolved merge conflict\n", "stands for"),
        (&["check", "big.gguf.part1of2"], "cat big.gguf.part1of2 big.gguf.part2of2 > big.gguf", "publisher"),
        (
            &["inspect", "big.gguf.part2of2"],
            "cat big.gguf.part1of2 big.gguf.part2of2 > big.gguf",
            "publisher",
        ),
        (&["unshard", "big.gguf.part1of2", "-o", "x.gguf"], "cat big.gguf.part1of2", "names back"),
        (
            &["decrypt", "model.safetensors", "-o", "x", "--identity", "buyer.key"],
            "this file is not encrypted",
            "sealed files",
        ),
        (&["inspect", &long], "(+99600 characters)", "publisher"),
        (&["tensors", "--x", &long], "unexpected argument", "xxxxxxxxxxxxxxxxxxxx"),
        (&["tensors", "model.safetensors", &long], "characters)", "free space"),
    ] {
        let ran = sandbox.run(args);
        assert!(ran.exit != 0 && ran.stderr.contains(part), "{part}\n{}", ran.stderr);
        assert!(
            !ran.stderr.contains(unsaid) || ran.stderr.len() < 3_000 && unsaid.starts_with('x'),
            "{unsaid}\n{}",
            ran.stderr
        );
        assert!(ran.stderr.len() < 3_000, "{}", ran.stderr.len());
    }
    let ran = sandbox.run_with_input(&["inspect", "-"], b"");
    assert!(ran.exit == 3 && ran.stderr.contains("standard input was empty"), "{}", ran.stderr);
    let ran = sandbox.run(&["inspect", "sharded"]);
    assert!(ran.stdout.starts_with("sharded/model.safetensors.index.json: "), "{}", ran.stdout);
    let ran = sandbox.run(&["hf://only-org"]);
    assert!(ran.stderr.contains("write hf://ORG/NAME") || ran.stderr.contains("feature"), "{}", ran.stderr);
    #[cfg(unix)]
    {
        assert_eq!(sandbox.shell("cat big.gguf.part1of2 big.gguf.part2of2 > big.gguf").exit, 0);
        assert_eq!(sandbox.read("big.gguf"), whole);
    }
}
