//! Adapters of PEFT that become GGUF files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[cfg(feature = "remote")]
use crate::get::{COMMIT, Files, hub};
use crate::sandbox::Sandbox;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors")
}

/// An adapter of the vectors, its model, and the digests of what the reference implementation makes of it.
fn vector(name: &str) -> (String, String, Value) {
    let folder = vectors().join("hf-lora").join(name);
    let expected: Value = serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap();
    let base = vectors().join("hf").join(expected["base"].as_str().unwrap());
    let text = |path: PathBuf| path.to_str().unwrap().to_owned();
    (text(folder), text(base), expected["sha256"].clone())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn refused(sandbox: &Sandbox, args: &[&str]) -> (i32, String, String) {
    let (exit, report) = sandbox.json(&[&["convert"], args].concat());
    let text = |name: &str| report["error"][name].as_str().unwrap_or_default().to_owned();
    (exit, text("code"), text("message"))
}

#[test]
fn adapters_become_the_files_of_the_reference() {
    let sandbox = Sandbox::empty();
    for name in ["llama-lora-7B", "mixtral-experts", "gpt2", "falcon-from-bin", "qwen2"] {
        let (adapter, base, digests) = vector(name);
        for (own, digest_of_own) in digests.as_object().unwrap() {
            let mut args = vec!["convert", &adapter, "a.gguf", "--base", &base, "--no-provenance", "--force"];
            // The default is F32.
            if own != "f32" {
                args.extend(["-t", own]);
            }
            let (exit, report) = sandbox.json(&args);
            assert_eq!((exit, &report["type"]), (0, &json!(own)), "{report:#}");
            assert_eq!(&json!(digest(&sandbox.read("a.gguf"))), digest_of_own, "{name} as {own}");
        }
    }
}

#[test]
fn a_folder_with_the_files_of_a_model_is_an_adapter_if_its_base_is_named() {
    let sandbox = Sandbox::with_models();
    for file in ["adapter_config.json", "adapter_model.safetensors"] {
        sandbox.write(&format!("qwen2/{file}"), &sandbox.read(&format!("adapter/{file}")));
    }
    let kind = |args: &[&str]| {
        let words =
            [&["convert"], args, &["x.gguf", "--force", "--no-provenance", "--pre", "gpt-2"]].concat();
        let (exit, report) = sandbox.json(&words);
        assert_eq!(exit, 0, "{report:#}");
        report["tensors"].as_u64().unwrap()
    };
    let n_model = kind(&["qwen2"]);
    let adapter = ["convert", "qwen2", "x.gguf", "--base", "qwen2", "--force"];
    let (exit, report) = sandbox.json(&adapter);
    assert_eq!(exit, 0, "{report:#}");
    assert_ne!(report["tensors"].as_u64().unwrap(), n_model);
    // Without the files of a model, the configuration is that of the adapter's.
    let model = sandbox.read("qwen2/model.safetensors");
    for entry in fs::read_dir(sandbox.path("qwen2")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("model") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let (exit, again) = sandbox.json(&["convert", "qwen2", "x.gguf", "--force"]);
    assert_eq!((exit, &again["tensors"]), (0, &report["tensors"]), "{again:#}");
    // A model that lacks a file is a model, too.
    sandbox.write("qwen2/model-00001-of-00002.safetensors", &model);
    assert_eq!(refused(&sandbox, &["qwen2", "x.gguf", "--force"]).1, "hg-missing-file");
}

#[test]
fn what_adapters_do_not_have_is_refused() {
    let sandbox = Sandbox::with_models();
    let usage = |args: &[&str], part: &str| {
        let (exit, code, message) = refused(&sandbox, args);
        assert_eq!((exit, code.as_str()), (2, "cli-usage"), "{args:?}: {message}");
        assert!(message.contains(part), "{message}");
    };
    usage(&["adapter", "x.gguf"], "which it calls `org/Qwen2-Mini-0.5B`");
    usage(&["adapter", "x.gguf", "--base", "missing"], "no folder or repository with config.json");
    usage(&["adapter", "x.gguf", "--base", "adapter"], "no folder or repository with config.json");
    usage(&["adapter", "x.gguf", "--base", "qwen2", "-t", "q4_k_m"], "f32, f16, bf16, q8_0 or auto");
    usage(&["adapter", "x.gguf", "--base", "qwen2", "--pre", "qwen2"], "--pre is for models");
    usage(&["adapter", "x.gguf", "--base", "qwen2", "--split-max-size", "1M"], "--split-max-size");
    usage(&["llama", "x.gguf", "--base", "qwen2"], "--base is for adapters");
    usage(&["model.safetensors", "x.gguf", "--base", "qwen2"], "--base is for folders");
    // Another model than the adapter's.
    let (exit, code, _) = refused(&sandbox, &["adapter", "x.gguf", "--base", "llama"]);
    assert_eq!((exit, code.as_str()), (3, "hg-tensor-shape"));
    assert!(!sandbox.path("x.gguf").exists());
}

#[test]
fn source_and_options_are_recorded() {
    let sandbox = Sandbox::with_models();
    let (exit, report) = sandbox.json(&["convert", "adapter", "x.gguf", "--base", "qwen2", "-t", "auto"]);
    assert_eq!((exit, &report["type"], &report["architecture"]), (0, &json!("f16"), &json!("qwen2")));
    let (_, inspected) = sandbox.json(&["inspect", "x.gguf"]);
    let text = inspected.to_string();
    assert!(text.contains("--type auto --base qwen2") && text.contains("  adapter_config.json"), "{text}");
}

#[cfg(feature = "remote")]
#[test]
fn adapter_and_model_may_be_repositories() {
    let (adapter, base, digests) = vector("qwen2");
    let mut files = Files::new();
    // The name of the folder goes into the file.
    for (folder, from) in [("adapters/qwen2", &adapter), ("base", &base)] {
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            let is_large = name.ends_with(".safetensors");
            files.push((name.leak(), fs::read(entry.path()).unwrap(), is_large));
        }
    }
    let sandbox = Sandbox::empty();
    let server = hub(files, |_, reply| reply);
    let words = ["convert", "hf://org/name/adapters/qwen2", "a.gguf", "--base", "hf://org/name/base"];
    let mut command = sandbox.command(&words);
    let ran = command.arg("--no-provenance").env("HF_ENDPOINT", server.url("")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(json!(digest(&sandbox.read("a.gguf"))), digests["f32"]);
    // Of the model, the configuration alone is read.
    let read =
        |name: &str| server.seen().iter().any(|seen| seen.path.contains(COMMIT) && seen.path.contains(name));
    assert!(read("base/config.json") && !read("base/tokenizer"));
}
