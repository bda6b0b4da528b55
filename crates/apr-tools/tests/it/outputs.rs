//! What is written, and what is left alone.

use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn nothing_is_overwritten_without_force() {
    let sandbox = Sandbox::with_models();
    for args in [
        &["convert", "model.safetensors", "changed.safetensors"][..],
        &["convert", "model.safetensors", "model.safetensors"],
        &["unshard", "sharded", "-o", "changed.safetensors"],
        &["shard", "model.safetensors", "-o", "sharded", "--max-size", "200"],
        &["shard", "model.safetensors", "-o", "changed.safetensors"],
        // One file is enough, but the old index would be left to mislead.
        &["shard", "model.safetensors", "-o", "sharded"],
    ] {
        let before = sandbox.listing();
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 2, "{args:?}\n{}", ran.stderr);
        assert_eq!(sandbox.listing(), before, "{args:?}");
    }
    fs::create_dir(sandbox.path("folder")).unwrap();
    for output in ["folder", "/dev/null"] {
        assert_eq!(sandbox.run(&["convert", "model.safetensors", output, "--force"]).exit, 2, "{output}");
    }
    let ran = sandbox.run(&["convert", "model.safetensors", "changed.safetensors", "--force"]);
    assert_eq!(ran.exit, 0);
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "changed.safetensors"]).exit, 0);
    assert_eq!(sandbox.run(&["shard", "model.safetensors", "-o", "sharded", "--force"]).exit, 0);
    assert!(!sandbox.path("sharded/model.safetensors.index.json").exists());
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "sharded"]).exit, 0);
}

#[test]
fn an_output_of_another_kind_does_not_replace_an_input() {
    let sandbox = Sandbox::with_models();
    sandbox.write("table.csv", b"a,b,y\n1,2,3\n2,3,5\n3,5,8\n4,1,5\n");
    let train = ["train", "linear-regression", "--data", "table.csv", "--target", "y", "--force", "-o"];
    assert_eq!(sandbox.run(&[&train[..], &["sum.apr"]].concat()).exit, 0);
    let before = sandbox.listing();
    for args in [
        &[&train[..], &["table.csv"]].concat()[..],
        &["predict", "sum.apr", "-i", "table.csv", "-o", "./table.csv", "--force"],
        &["predict", "sum.apr", "-i", "table.csv", "-o", "sum.apr", "--force"],
        &["dump", "model.safetensors", "w", "-o", "model.safetensors", "--force"],
        &["sign", "model.safetensors", "--key", "maker.key", "-o", "model.safetensors", "--force"],
        &["sign", "model.safetensors", "--key", "maker.key", "-o", "maker.key", "--force"],
        &["distill", "sum.apr", "--data", "table.csv", "-o", "x.apr", "--report", "table.csv", "--force"],
        &["distill", "sum.apr", "--data", "table.csv", "-o", "sum.apr", "--force"],
    ] {
        let ran = sandbox.run(args);
        assert!(ran.exit == 2 && ran.stderr.contains("would replace an input"), "{args:?}\n{}", ran.stderr);
        assert_eq!(sandbox.listing(), before, "{args:?}");
    }
}

#[test]
fn key_files_are_replaced_by_nothing() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["keygen", "encrypt", "-o", "a.key", "--comment", "of the buyer"]).exit, 0);
    sandbox.write("b.key", b"Bag Attributes\n-----BEGIN PRIVATE KEY-----\n");
    let before = sandbox.listing();
    for output in ["a.key", "b.key"] {
        for args in [
            &["convert", "model.safetensors", output, "--force", "--format", "safetensors"][..],
            &["seal", "model.safetensors", "-o", output, "--recipient", "a.key.pub", "--force"],
        ] {
            let ran = sandbox.run(args);
            assert!(ran.exit == 2 && ran.stderr.contains("a secret key"), "{args:?}\n{}", ran.stderr);
            assert_eq!(sandbox.listing(), before, "{args:?}");
        }
    }
}

#[test]
fn a_folder_that_is_not_there_is_refused_before_the_work() {
    let sandbox = Sandbox::with_models();
    for args in [
        &["convert", "model.safetensors", "no/x.safetensors"][..],
        &["dump", "model.safetensors", "mask", "-o", "no/x.npy"],
    ] {
        let ran = sandbox.run(args);
        assert!(ran.exit == 5 && ran.stderr.contains("x."), "{args:?}\n{}", ran.stderr);
    }
}

#[test]
fn a_model_can_replace_itself() {
    let sandbox = Sandbox::with_models();
    let ran =
        sandbox.run(&["convert", "model.safetensors", "model.safetensors", "--force", "--align", "4096"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "same.safetensors"]).exit, 0);
    let (_, value) = sandbox.json(&["inspect", "model.safetensors"]);
    assert_eq!(value["files"][0]["data_start"], 4096);
}

#[test]
fn a_dry_run_writes_nothing() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    for args in [
        &["convert", "model.safetensors", "x.safetensors", "--dry-run"][..],
        &["convert", "model.safetensors", "-", "--dry-run"],
        &["shard", "model.safetensors", "-o", "x", "--dry-run"],
        &["unshard", "sharded", "-o", "x.safetensors", "-n"],
        &["man", "x", "--dry-run"],
        &["demo", "--keep", "x", "--dry-run"],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
        assert!(ran.stdout.contains("would write"), "{args:?}");
        let (_, value) = sandbox.json(args);
        assert_eq!(value["written"], false, "{args:?}");
        assert_eq!(sandbox.listing(), before, "{args:?}");
    }
}

#[test]
fn shards_of_another_model_do_not_stay_beside_new_ones() {
    let sandbox = Sandbox::with_models();
    let names = || {
        let entries = sandbox.path("out").read_dir().unwrap().map(Result::unwrap);
        entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect::<alloc::collections::BTreeSet<_>>()
    };
    fs::create_dir(sandbox.path("out")).unwrap();
    sandbox.write("out/model.safetensors", b"another model");
    sandbox.write("out/config.json", b"{}");
    let divided = ["shard", "model.safetensors", "-o", "out", "--max-size", "100"];
    let refused = sandbox.run(&divided);
    assert!(refused.exit == 2 && refused.stderr.contains("out/model.safetensors"), "{}", refused.stderr);
    assert!(names().len() == 2 && refused.stderr.contains("--force"), "{}", refused.stderr);
    let ran = sandbox.run(&[&divided[..], &["--force"]].concat());
    assert!(ran.exit == 0 && ran.stderr.contains("removed a file of the old model: out/model.safetensors"));
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "out"]).exit, 0);
    // And an older set of another number of shards.
    let whole = ["shard", "model.safetensors", "-o", "out", "--force"];
    assert_eq!(sandbox.run(&whole).exit, 0);
    assert_eq!(names().into_iter().collect::<Vec<_>>(), ["config.json", "model.safetensors"]);
}

#[test]
fn predictions_are_not_written_under_endings_of_binary_formats() {
    let sandbox = Sandbox::with_models();
    for ending in ["npz", "NPY", "xlsx", "safetensors", "pt"] {
        let name = format!("out.{ending}");
        let ran =
            sandbox.run(&["predict", "made.apr", "--signer", "maker.key.pub", "-i", "rows.csv", "-o", &name]);
        assert!(ran.exit == 2 && ran.stderr.contains(".jsonl"), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains("[cli-output-format]") && !sandbox.path(&name).exists(), "{name}");
    }
    for name in ["out.txt", "out.jsonl"] {
        let ran =
            sandbox.run(&["predict", "made.apr", "--signer", "maker.key.pub", "-i", "rows.csv", "-o", name]);
        assert_eq!(ran.exit, 0, "{name}: {}", ran.stderr);
    }
}

#[test]
fn sharding_and_joining_give_the_same_bytes_back() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["shard", "model.safetensors", "-o", "out", "--max-size", "100"]).exit, 0);
    assert!(sandbox.path("out/model.safetensors.index.json").exists());
    assert_eq!(sandbox.run(&["check", "out"]).exit, 0);
    assert_eq!(sandbox.run(&["unshard", "out", "-o", "joined.safetensors"]).exit, 0);
    assert_eq!(sandbox.read("joined.safetensors"), sandbox.read("model.safetensors"));
}

#[test]
fn standard_output_gets_the_same_bytes_as_a_file() {
    let sandbox = Sandbox::with_models();
    let output = sandbox.command(&["convert", "model.safetensors", "-", "--align", "64"]).output().unwrap();
    assert_eq!(sandbox.run(&["convert", "model.safetensors", "x", "--align", "64"]).exit, 0);
    assert_eq!(output.stdout, sandbox.read("x"));
}

#[test]
fn tensors_are_selected_and_renamed() {
    let sandbox = Sandbox::with_models();
    let names = |file: &str| -> Vec<String> {
        let (_, value) = sandbox.json(&["tensors", file]);
        let tensors = value["tensors"].as_array().unwrap();
        tensors.iter().map(|tensor| tensor["name"].as_str().unwrap().to_owned()).collect()
    };
    let convert = |out: &str, options: &[&str]| {
        let ran = sandbox.run(&[&["convert", "model.safetensors", out], options].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    };
    convert("a", &["--select", "encoder.*", "--exclude", "*.bias", "--rename", "encoder.layer.*.*=h.*.*"]);
    assert_eq!(names("a"), ["h.0.weight", "h.1.weight", "h.2.weight"]);
    convert("b", &["--order", "name", "--select", "m*", "--select", "pos*"]);
    assert_eq!(names("b"), ["mask", "position_ids"]);
    convert("c", &["--order", "official", "--select", "m*", "--select", "pos*"]);
    assert_eq!(names("c"), ["position_ids", "mask"]);
    let ran = sandbox.run(&["convert", "model.safetensors", "d", "--rename", "*.bias=b"]);
    assert_eq!(ran.exit, 2, "two tensors of one name");
    assert!(!sandbox.path("d").exists());
}

#[test]
fn metadata_is_edited() {
    let sandbox = Sandbox::with_models();
    let metadata = |options: &[&str]| {
        let args = [&["convert", "model.safetensors", "x", "--dry-run"], options].concat();
        sandbox.json(&args).1["metadata"].clone()
    };
    assert_eq!(metadata(&[]), serde_json::json!({"format": "pt", "version": "1"}));
    assert_eq!(
        metadata(&["--unset", "version", "--set", "a=b=c", "--set", "format="]),
        serde_json::json!({"a": "b=c", "format": ""})
    );
    assert_eq!(metadata(&["--no-metadata"]), serde_json::Value::Null);
    assert_eq!(metadata(&["--no-metadata", "--set", "k=v"]), serde_json::json!({"k": "v"}));
    assert_eq!(
        metadata(&["--metadata-from", "changed.safetensors"]),
        serde_json::json!({"format": "pt", "version": "2"})
    );
}

#[test]
fn header_room_is_reserved() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "model.safetensors", "x", "--header-room", "1000"]).exit, 0);
    let (_, value) = sandbox.json(&["inspect", "x"]);
    assert!(value["files"][0]["spare_header_bytes"].as_u64().unwrap() >= 1000);
}

#[test]
fn an_output_with_an_ending_of_another_format_is_refused() {
    let sandbox = Sandbox::with_models();
    sandbox.write("table.csv", b"x,y\n1,2\n2,4\n3,6\n");
    let before = sandbox.listing();
    for ending in ["onnx", "pt", "bin", "ckpt", "h5", "mlmodel", "json"] {
        let out = format!("x.{ending}");
        for args in [
            &["convert", "model.safetensors", &out][..],
            &["quantize", "model.safetensors", "--type", "q8_0", "-o", &out],
            &["unshard", "sharded", "-o", &out],
            &["train", "linear-regression", "--data", "table.csv", "--target", "y", "-o", &out],
        ] {
            let ran = sandbox.run(args);
            assert_eq!(ran.exit, 2, "{args:?}\n{}", ran.stderr);
            let said = format!("error[cli-output-format]: apr cannot write .{ending} files");
            assert!(ran.stderr.contains(&said) && ran.stderr.contains("help:"), "{args:?}\n{}", ran.stderr);
        }
    }
    for args in [
        &["unshard", "sharded", "-o", "x.gguf"][..],
        &["train", "linear-regression", "--data", "table.csv", "--target", "y", "-o", "x.safetensors"],
    ] {
        let ran = sandbox.run(args);
        assert!(ran.exit == 2 && ran.stderr.contains("cli-output-format"), "{args:?}\n{}", ran.stderr);
    }
    assert_eq!(sandbox.listing(), before);

    for args in [
        &["convert", "model.safetensors", "x.onnx", "--format", "safetensors"][..],
        &["convert", "model.safetensors", "copy"],
        &[
            "quantize",
            "model.safetensors",
            "--type",
            "q8_0",
            "-o",
            "x.bin",
            "--format",
            "gguf",
            "--exclude",
            "mask",
        ],
    ] {
        let ran = sandbox.run(args);
        assert_eq!(ran.exit, 0, "{args:?}\n{}", ran.stderr);
    }
    assert_eq!(sandbox.run(&["diff", "model.safetensors", "copy"]).exit, 0);
}

#[test]
fn a_name_that_disagrees_with_the_content_is_reported() {
    let sandbox = Sandbox::with_models();
    sandbox.write("wrong.gguf", &sandbox.read("model.safetensors"));
    let message = "the name ends in .gguf, but the content is a safetensors model";
    let (exit, value) = sandbox.json(&["inspect", "wrong.gguf"]);
    assert_eq!(exit, 0);
    let warnings = value["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|w| w["kind"] == "misnamed" && w["message"] == message), "{warnings:?}");
    let (exit, value) = sandbox.json(&["check", "wrong.gguf"]);
    assert_eq!((exit, &value["files"][0]["warnings"][0]), (0, &message.into()));
    let ran = sandbox.run(&["convert", "wrong.gguf", "right.safetensors"]);
    assert!(ran.exit == 0 && ran.stderr.contains(message), "{}", ran.stderr);

    for (name, format, exit) in [
        ("wrong.gguf", "safetensors", 0),
        ("wrong.gguf", "gguf", 3),
        ("model.safetensors", "apr1", 3),
        ("sharded", "safetensors", 0),
    ] {
        let ran = sandbox.run(&["check", name, "--format", format]);
        assert_eq!(ran.exit, exit, "{name} {format}\n{}", ran.stderr);
    }
    let ran = sandbox.run(&["check", "wrong.gguf", "--format", "gguf"]);
    assert!(
        ran.stderr.contains("this is a safetensors model, and `--format gguf` was asked for"),
        "{}",
        ran.stderr
    );
}
