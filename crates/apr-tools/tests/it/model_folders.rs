//! GGUF files that become model folders, and the same files again.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn vectors() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/hf")
}

/// The type of the tensors of a folder, and the pre-tokenizer that the conversion was told.
fn options(name: &str) -> (String, Option<String>) {
    let read =
        |path: &str| -> Value { serde_json::from_slice(&fs::read(vectors().join(path)).unwrap()).unwrap() };
    let config = read(&format!("{name}/config.json"));
    let dtype = config.get("dtype").or(config.get("torch_dtype")).and_then(Value::as_str);
    let dtype = match dtype.unwrap() {
        "bfloat16" => "bf16",
        "float16" => "f16",
        _ => "f32",
    };
    let pre = read(&format!("expected/{name}.json"))["pre_forced"].as_str().map(Into::into);
    (dtype.to_owned(), pre)
}

fn report(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, report) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{report:#}");
    report
}

/// A folder whose tensors are in a pickle has them in an order that names do not have.
const ANOTHER_ORDER: [&str; 1] = ["llama-from-bin"];

#[test]
fn every_folder_of_the_vectors_comes_back_as_the_same_file() {
    let mut n_folders = 0;
    for entry in fs::read_dir(vectors().join("expected")).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".json").unwrap();
        let (dtype, pre) = options(name);
        let sandbox = Sandbox::empty();
        let source = vectors().join(name);
        let mut args = vec!["convert", source.to_str().unwrap(), "a.gguf", "-t", &dtype, "--no-provenance"];
        args.extend(pre.iter().flat_map(|pre| ["--pre", pre]));
        report(&sandbox, &args);
        let made = report(&sandbox, &["export", "a.gguf", "--format", "hf", "-o", "folder"]);
        let mut args = vec!["convert", "folder", "b.gguf", "--no-provenance"];
        args.extend(made["options"].as_str().unwrap().split(' '));
        report(&sandbox, &args);
        let is_same = sandbox.read("a.gguf") == sandbox.read("b.gguf");
        match ANOTHER_ORDER.contains(&name) {
            true => assert_eq!(made["differences"], json!(["tensors are in another order"]), "{name}"),
            false => assert!(is_same && made["differences"] == json!([]), "{name}: {made:#}"),
        }
        n_folders += 1;
    }
    assert_eq!(n_folders, 29);
}

#[test]
fn blocks_become_numbers_of_the_type_that_is_asked_for() {
    let sandbox = Sandbox::with_models();
    report(&sandbox, &["convert", "llama", "q.gguf", "-t", "q5_0", "--no-provenance"]);
    for (dtype, own) in [("", "F16"), ("f32", "F32"), ("bf16", "BF16")] {
        let mut args = vec!["export", "q.gguf", "--format", "hf", "-o", "folder", "--force"];
        args.extend([["--dtype", dtype]].iter().filter(|_| !dtype.is_empty()).flatten());
        let made = report(&sandbox, &args);
        assert_eq!(made["options"], Value::Null, "no type of a conversion");
        let listed = report(&sandbox, &["tensors", "folder/model.safetensors"]);
        let tensors = listed["tensors"].as_array().unwrap();
        let of = |name: &str| tensors.iter().find(|tensor| tensor["name"] == name).unwrap()["dtype"].clone();
        assert_eq!(of("model.layers.0.mlp.up_proj.weight"), own);
        assert_eq!(of("model.norm.weight"), if dtype.is_empty() { "F32" } else { own });
        // The values are those of the blocks.
        report(&sandbox, &["convert", "folder", "again.gguf", "-t", "f32", "--no-provenance", "--force"]);
    }
    report(&sandbox, &["export", "q.gguf", "--format", "hf", "-o", "folder", "--force", "--dtype", "f32"]);
    report(&sandbox, &["convert", "folder", "again.gguf", "-t", "q5_0", "--no-provenance", "--force"]);
    let values = report(&sandbox, &["diff", "q.gguf", "again.gguf"]);
    assert!(values["changed"].as_array().is_none_or(|changed| changed.len() < 3), "{values:#}");
}

#[test]
fn what_is_in_the_way_stays_unless_it_may_be_replaced() {
    let sandbox = Sandbox::with_models();
    report(&sandbox, &["convert", "llama", "m.gguf", "--no-provenance"]);
    let export = ["export", "m.gguf", "--format", "hf", "-o", "there"];
    fs::create_dir(sandbox.path("there")).unwrap();
    for name in ["notes.txt", "tokenizer.json", "model-00001-of-00002.safetensors", "vocab.json"] {
        sandbox.write(&format!("there/{name}"), b"old");
    }
    let (exit, refused) = sandbox.json(&export);
    assert_eq!((exit, &refused["error"]["code"]), (2, &json!("cli-output-exists")));
    assert_eq!(sandbox.read("there/tokenizer.json"), b"old");
    report(&sandbox, &[&export[..], &["--force"]].concat());
    assert_eq!(sandbox.read("there/notes.txt"), b"old");
    assert_ne!(sandbox.read("there/tokenizer.json"), b"old");
    for name in ["model-00001-of-00002.safetensors", "vocab.json"] {
        assert!(
            !sandbox.path(&format!("there/{name}")).exists(),
            "{name} would be read beside the new files"
        );
    }
    report(&sandbox, &["convert", "there", "again.gguf", "-t", "f16", "--no-provenance"]);
    assert!(sandbox.read("m.gguf") == sandbox.read("again.gguf"));
    // An empty folder is not in the way, and a dry run makes none.
    let before = sandbox.listing();
    report(&sandbox, &["export", "m.gguf", "--format", "hf", "-o", "none", "--dry-run"]);
    assert_eq!(sandbox.listing(), before);
    fs::create_dir(sandbox.path("none")).unwrap();
    report(&sandbox, &["export", "m.gguf", "--format", "hf", "-o", "none"]);
}

#[test]
fn what_has_no_way_back_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    let export = |model: &str, more: &[&str]| {
        let (exit, report) =
            sandbox.json(&[&["export", model, "--format", "hf", "-o", "none"], more].concat());
        assert!(!sandbox.path("none").exists());
        (exit, report["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    let cases: [(&str, &[&str], i32, &str); 5] = [
        ("model.safetensors", &[], 6, "cli-foreign-format"),
        ("model.gguf", &[], 6, "hg-restore-architecture"),
        ("cut.gguf", &[], 3, "gg-data-end"),
        ("model.gguf", &["--dequantize", "f16"], 2, "cli-usage"),
        ("missing.gguf", &[], 5, "df-io"),
    ];
    for (model, more, exit, code) in cases {
        assert_eq!(export(model, more), (exit, code.to_owned()), "{model} {more:?}");
    }
    report(&sandbox, &["convert", "llama", "m.gguf", "--split-max-tensors", "9"]);
    assert_eq!(export("m-00001-of-00003.gguf", &[]), (2, "cli-usage".to_owned()));
    assert_eq!(sandbox.run(&["export", "m.gguf", "--format", "gguf", "-o", "x", "--dtype", "f16"]).exit, 2);
    assert_eq!(sandbox.run(&["export", "tiny_llama.gguf", "--format", "hf", "-o", "-"]).exit, 2);
}

#[test]
fn a_file_that_makes_no_whole_folder_is_refused_as_a_file() {
    let sandbox = Sandbox::with_models();
    report(&sandbox, &["convert", "llama", "m.gguf"]);
    report(&sandbox, &["convert", "m.gguf", "less.gguf", "--exclude", "blk.1.ffn_up.weight"]);
    let (exit, report) = sandbox.json(&["export", "less.gguf", "--format", "hf", "-o", "none"]);
    let error = &report["error"];
    assert_eq!((exit, &error["code"]), (3, &json!("hg-needed-tensor")), "{report:#}");
    assert_eq!(error["tensor"], json!("model.layers.1.mlp.up_proj.weight"));
    assert!(error["help"].as_str().unwrap().contains("--format safetensors"), "{report:#}");
}

#[test]
fn the_command_that_converts_back_is_one_that_a_shell_reads_as_it_is_meant() {
    let sandbox = Sandbox::empty();
    let source = vectors().join("Qwen2-Mini-0.5B");
    report(&sandbox, &["convert", source.to_str().unwrap(), "a.gguf", "--pre", "qwen2", "-t", "f16"]);
    report(&sandbox, &["convert", "a.gguf", "b.gguf", "--set", "tokenizer.ggml.pre=x; touch pwned"]);
    let made = report(&sandbox, &["export", "b.gguf", "--format", "hf", "-o", "folder"]);
    assert_eq!(made["options"], json!("--type f16 --pre 'x; touch pwned'"));
    let ran = sandbox.run(&["export", "b.gguf", "--format", "hf", "-o", "other"]);
    assert!(ran.stderr.contains("--type f16 --pre 'x; touch pwned' --no-provenance"), "{}", ran.stderr);
}

#[test]
fn empty_texts_that_do_not_come_back_are_listed() {
    let sandbox = Sandbox::with_models();
    report(&sandbox, &["convert", "llama", "m.gguf", "--no-provenance"]);
    report(&sandbox, &["convert", "m.gguf", "e.gguf", "--set", "general.name=", "--set", "general.author="]);
    let made = report(&sandbox, &["export", "e.gguf", "--format", "hf", "-o", "folder"]);
    let differences = made["differences"].to_string();
    assert!(differences.contains("general.author is left out"), "{differences}");
    assert!(differences.contains("general.name"), "{differences}");
}
