//! Model folders that become GGUF files.

use std::fs;
use std::path::{Path, PathBuf};

use gguf_core::{Entry, Gguf};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

#[cfg(feature = "remote")]
use crate::get::{COMMIT, Files, hub};
use crate::sandbox::Sandbox;

/// Folders of the vectors whose tokenizers are known: shards, a pickle, experts, shifted norms, several kinds of layers.
const FOLDERS: [&str; 5] = ["Mistral-Mini-0.1-Instruct", "llama-from-bin", "mixtral", "gemma2", "t5"];

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/hf").join(name)
}

fn converted(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, report) = sandbox.json(&[&["convert"], args].concat());
    assert_eq!(exit, 0, "{args:?}\n{report:#}");
    report
}

#[test]
fn types_of_quantize_are_those_of_two_steps() {
    let sandbox = Sandbox::empty();
    for name in FOLDERS {
        let folder = vector(name);
        let folder = folder.to_str().unwrap();
        converted(&sandbox, &[folder, "f32.gguf", "-t", "f32", "--no-provenance", "--force"]);
        for target in ["q4_k_m", "Q5_0", "iq4_nl", "q2_k"] {
            converted(&sandbox, &[folder, "one.gguf", "-t", target, "--no-provenance", "--force"]);
            let words =
                ["quantize", "f32.gguf", "-t", target, "-o", "two.gguf", "--no-provenance", "--force"];
            assert_eq!(sandbox.run(&words).exit, 0, "{name} {target}");
            assert!(sandbox.read("one.gguf") == sandbox.read("two.gguf"), "{name} {target}");
        }
    }
}

#[test]
fn importance_is_that_of_quantize() {
    let sandbox = Sandbox::empty();
    let folder = vector("mixtral");
    let folder = folder.to_str().unwrap();
    converted(&sandbox, &[folder, "f32.gguf", "-t", "f32", "--no-provenance"]);
    let mut importance = Vec::new();
    let mut put = |number: i32| importance.extend(number.to_le_bytes());
    put(1);
    let name = "blk.0.attn_q.weight";
    put(name.len() as i32);
    importance.extend(name.as_bytes());
    let mut put = |number: i32| importance.extend(number.to_le_bytes());
    put(1);
    put(32);
    importance.extend((1..=32).flat_map(|weight| (weight as f32).to_le_bytes()));
    sandbox.write("i.dat", &importance);
    let options = ["-t", "q4_0", "--imatrix", "i.dat", "--no-provenance"];
    converted(&sandbox, &[&[folder, "one.gguf"], &options[..]].concat());
    converted(&sandbox, &[folder, "plain.gguf", "-t", "q4_0", "--no-provenance"]);
    assert_eq!(sandbox.run(&[&["quantize", "f32.gguf", "-o", "two.gguf"], &options[..]].concat()).exit, 0);
    assert!(sandbox.read("one.gguf") == sandbox.read("two.gguf"));
    assert!(sandbox.read("one.gguf") != sandbox.read("plain.gguf"));
}

#[test]
fn the_bound_of_all_texts_is_named() {
    let sandbox = Sandbox::with_models();
    for name in
        ["spiece.model", "sentencepiece.bpe.model", "tekken.json", "vocab.json", "vocab.txt", "merges.txt"]
    {
        // Sparse: nothing is written, and nothing of it is read.
        fs::File::create(sandbox.path(&format!("llama/{name}"))).unwrap().set_len(100 << 20).unwrap();
    }
    let (exit, report) = sandbox.json(&["convert", "llama", "x.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (2, &json!("cli-not-carried")), "{report:#}");
    assert!(report["error"]["message"].as_str().unwrap().contains("512 MiB"), "{report:#}");
}

#[test]
fn what_is_recorded_comes_last() {
    let sandbox = Sandbox::with_models();
    converted(&sandbox, &["llama", "plain.gguf", "--no-provenance"]);
    converted(&sandbox, &["llama", "recorded.gguf"]);
    let (recorded, plain) = (sandbox.read("recorded.gguf"), sandbox.read("plain.gguf"));
    let (recorded, plain) = (Gguf::from_bytes(&recorded).unwrap(), Gguf::from_bytes(&plain).unwrap());
    let added: Vec<_> = recorded.entries()[plain.entries().len()..].iter().map(Entry::key).collect();
    assert_eq!(added, ["apr.convert.tool", "apr.convert.options", "apr.convert.source.sha256"]);
    let digests = recorded.get("apr.convert.source.sha256").unwrap();
    let names: Vec<&str> = digests.as_str().unwrap().lines().map(|line| &line[66..]).collect();
    assert_eq!(names, ["config.json", "model.safetensors"]);
}

#[test]
fn a_model_is_divided_by_tensors_or_bytes() {
    let sandbox = Sandbox::with_models();
    let report = converted(&sandbox, &["llama", "out.gguf", "--split-max-tensors", "8"]);
    let files: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    let name = |number: u32| json!(format!("out-{number:05}-of-00003.gguf"));
    assert_eq!(files, [name(1), name(2), name(3)]);
    let first = sandbox.read("out-00001-of-00003.gguf");
    let number = |key: &str| Gguf::from_bytes(&first).unwrap().get(key).and_then(|value| value.to_u64());
    assert_eq!(
        ["no", "count", "tensors.count"].map(|key| number(&format!("split.{key}"))),
        [Some(0), Some(3), Some(21)]
    );
    assert_eq!(sandbox.run(&["unshard", "out-00001-of-00003.gguf", "-o", "joined.gguf"]).exit, 0);
    let report =
        converted(&sandbox, &["llama", "b.gguf", "--split-max-size", "50K", "--no-tensor-first-split"]);
    let tensors: Vec<_> =
        report["files"].as_array().unwrap().iter().map(|file| file["tensors"].clone()).collect();
    assert_eq!(tensors.iter().filter_map(Value::as_u64).sum::<u64>(), 21);
    assert_eq!(tensors[0], 0);
    // Nothing is replaced unless all may be.
    fs::remove_file(sandbox.path("out-00001-of-00003.gguf")).unwrap();
    let (exit, report) = sandbox.json(&["convert", "llama", "out.gguf", "--split-max-tensors", "8"]);
    assert_eq!((exit, &report["error"]["code"]), (2, &json!("cli-output-exists")));
    assert!(!sandbox.path("out-00001-of-00003.gguf").exists());
}

#[test]
fn nothing_is_written_where_something_is_refused() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["llama", "o.gguf", "-t", "q9"], 2, "cv-target"),
        (&["llama", "o.gguf", "-t", "iq2_xs"], 2, "cv-read-only-target"),
        (&["llama", "o.gguf", "--select", "*"], 2, "cli-usage"),
        (&["llama", "o.gguf", "--order", "given"], 2, "cli-usage"),
        (&["llama", "o.gguf", "--key", "maker.key.pub"], 2, "cli-usage"),
        (&["llama", "o.gguf", "--key", "maker.key.pub", "--signature", "s.minisig"], 2, "cli-usage"),
        (&["llama", "o.gguf", "--void-as-bf16"], 2, "cli-usage"),
        (&["llama", "-", "--format", "gguf", "--split-max-tensors", "9", "--dry-run"], 2, "cli-usage"),
        (&["model.safetensors", "o.gguf", "-t", "f16"], 2, "cli-usage"),
        (&["llama", "o.safetensors", "--no-provenance"], 2, "cli-usage"),
        (&["llama", "o.gguf", "-t", "q4_0", "--imatrix", "rows.csv"], 3, "cv-importance"),
        (&["llama", "model.gguf"], 2, "cli-output-exists"),
    ];
    for (args, exit, code) in cases {
        let (found, report) = sandbox.json(&[&["convert"], *args].concat());
        assert_eq!((found, &report["error"]["code"]), (*exit, &json!(code)), "{args:?}\n{report:#}");
    }
    fs::write(sandbox.path("llama/config.json"), r#"{"architectures": ["ResNet"]}"#).unwrap();
    let (exit, report) = sandbox.json(&["convert", "llama", "o.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (6, &json!("hg-architecture")));
    assert!(report["error"]["help"].as_str().unwrap().contains("--tensors-only"), "{report:#}");
    fs::write(sandbox.path("llama/config.json"), &before[&sandbox.path("llama/config.json")]).unwrap();
    assert_eq!(sandbox.listing(), before);
    // A dry run tells the same sizes as a run.
    let planned = converted(&sandbox, &["llama", "o.gguf", "--dry-run"]);
    assert_eq!(sandbox.listing(), before);
    let written = converted(&sandbox, &["llama", "o.gguf"]);
    assert_eq!(planned["bytes"], written["bytes"]);
    assert_eq!(written["bytes"], sandbox.read("o.gguf").len());
    assert_eq!((&written["architecture"], &written["type"]), (&json!("llama"), &json!("f16")));
}

#[test]
fn tensors_alone_keep_their_names() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "llama", "o.gguf", "--tensors-only", "--select", "*norm*"]).exit, 0);
    let file = sandbox.read("o.gguf");
    let file = Gguf::from_bytes(&file).unwrap();
    assert_ne!(file.get("general.architecture").and_then(|value| value.as_str()), Some("llama"));
    assert!(file.tensors().iter().all(|tensor| tensor.name().to_str().unwrap().starts_with("model.")));
}

#[test]
fn values_beyond_a_type_are_counted() {
    let sandbox = Sandbox::with_models();
    let path = sandbox.path("llama/model.safetensors");
    let mut file = fs::read(&path).unwrap();
    let header = st_core::Header::from_bytes(&file, &st_core::ReadOptions::STRICT).unwrap();
    let range = header.tensor("model.layers.0.mlp.down_proj.weight").unwrap().file_range();
    // A half float becomes infinite.
    file[range.start as usize..][..2].copy_from_slice(&0x7c00_u16.to_le_bytes());
    fs::write(&path, file).unwrap();
    let report = converted(&sandbox, &["llama", "o.gguf", "-t", "bf16"]);
    assert_eq!((&report["overflowed"], &report["not_finite"]), (&json!(0), &json!(1)), "{report:#}");
    let (exit, report) = sandbox.json(&["convert", "llama", "q.gguf", "-t", "q8_0"]);
    assert_eq!((exit, &report["error"]["code"]), (3, &json!("q-non-finite")), "{report:#}");
    assert!(!sandbox.path("q.gguf").exists());
}

#[test]
fn files_are_those_of_the_reference_implementation() {
    let sandbox = Sandbox::empty();
    for (name, kind) in [("gemma2", "auto"), ("Tiny-Llama2-110K-Chat", "Q8_0"), ("Qwen2-Mini-0.5B", "f16")] {
        let folder = vector(name);
        let expected = folder.with_file_name("expected").join(format!("{name}.json"));
        let expected: Value = serde_json::from_slice(&fs::read(expected).unwrap()).unwrap();
        let mut words = vec![folder.to_str().unwrap(), "o.gguf", "-t", kind, "--no-provenance", "--force"];
        if let Some(pre) = expected["pre_forced"].as_str() {
            words.extend(["--pre", pre]);
        }
        converted(&sandbox, &words);
        let wanted = expected["outputs"][kind.to_lowercase()]["sha256"].as_str().unwrap();
        let found: String =
            Sha256::digest(sandbox.read("o.gguf")).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(found, wanted, "{name} as {kind}");
    }
}

#[test]
fn names_and_metadata_of_the_caller_count_first() {
    let sandbox = Sandbox::with_models();
    sandbox.write(
        "m.json",
        br#"{"general.author": "Ada", "general.name": "First", "general.sampling.temp": 0.5}"#,
    );
    converted(&sandbox, &["llama", "o.gguf", "--metadata", "m.json", "--model-name", "Second"]);
    let file = sandbox.read("o.gguf");
    let file = Gguf::from_bytes(&file).unwrap();
    let text = |key: &str| file.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    assert_eq!(text("general.author").as_deref(), Some("Ada"));
    assert_eq!(text("general.name").as_deref(), Some("Second"));
    assert_eq!(
        text("apr.convert.options").as_deref(),
        Some("--type auto --metadata m.json --model-name Second")
    );
    for (text, part) in [
        (r#"{"general.author": 7}"#, "expected a string, found 7"),
        ("[]", "expected an object, found an array"),
        ("{", "the file of --metadata"),
    ] {
        sandbox.write("m.json", text.as_bytes());
        let (exit, report) = sandbox.json(&["convert", "llama", "p.gguf", "--metadata", "m.json"]);
        let error = &report["error"];
        assert_eq!((exit, &error["code"]), (2, &json!("hg-metadata")), "{report:#}");
        assert_eq!(error["file"], json!("m.json"), "{report:#}");
        assert!(error["message"].as_str().unwrap().contains(part), "{report:#}");
        assert!(!error["help"].as_str().unwrap().contains("config.json"), "{report:#}");
    }
}

#[test]
fn a_folder_without_some_of_its_parts_is_refused() {
    let sandbox = Sandbox::with_models();
    let path = sandbox.path("llama/config.json");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")).unwrap();
    let (exit, report) = sandbox.json(&["convert", "llama", "o.gguf"]);
    let error = &report["error"];
    assert_eq!((exit, &error["code"]), (3, &json!("hg-needed-tensor")), "{report:#}");
    assert_eq!(error["tensor"], json!("model.layers.2.input_layernorm.weight"), "{report:#}");
    fs::write(&path, config).unwrap();
    fs::rename(
        sandbox.path("llama/model.safetensors"),
        sandbox.path("llama/model-00001-of-00002.safetensors"),
    )
    .unwrap();
    let (exit, report) = sandbox.json(&["convert", "llama", "o.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (2, &json!("hg-missing-file")), "{report:#}");
}

#[test]
fn options_that_a_language_model_has_no_use_for_are_refused_as_what_they_are() {
    let sandbox = Sandbox::with_models();
    let message = |args: &[&str]| {
        let (exit, report) = sandbox.json(&[&["convert", "llama", "o.gguf"], args].concat());
        assert_eq!((exit, &report["error"]["code"]), (2, &json!("cli-usage")), "{report:#}");
        report["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(message(&["--compression", "zstd"]).contains("--compression has no effect on"));
    assert!(message(&["--layout", "0.60"]).contains("--layout"));
    assert!(message(&["--tensors-only", "--type", "f16"]).contains("--type and --tensors-only contradict"));
}

#[test]
fn an_export_is_the_conversion() {
    let sandbox = Sandbox::with_models();
    converted(&sandbox, &["llama", "a.gguf"]);
    let (exit, report) = sandbox.json(&["export", "llama", "--format", "gguf", "-o", "b.gguf"]);
    assert_eq!(exit, 0, "{report:#}");
    assert!(sandbox.read("a.gguf") == sandbox.read("b.gguf"));
    let ran = sandbox.run(&["export", "llama", "--format", "gguf", "-o", "c.gguf", "--dequantize", "f16"]);
    assert_eq!(ran.exit, 2);
}

#[test]
fn what_of_the_configuration_is_left_out_is_told() {
    let sandbox = Sandbox::with_models();
    let path = sandbox.path("llama/config.json");
    let config: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let remarks = |scaling: Value| {
        let mut config = config.clone();
        config["rope_scaling"] = scaling;
        fs::write(&path, config.to_string()).unwrap();
        converted(&sandbox, &["llama", "o.gguf", "--force"])["remarks"].to_string()
    };
    for none in
        [json!(null), json!({"type": "linear", "factor": 2.0}), json!({"rope_type": "llama3", "factor": 8.0})]
    {
        assert_eq!(remarks(none), "[]");
    }
    assert!(remarks(json!({"type": "linear"})).contains("no factor"));
    assert!(remarks(json!({"type": "dynamic", "factor": 2.0})).contains("no keys for the scaling"));
    fs::write(&path, config.to_string()).unwrap();
    let path = sandbox.path("llama/tokenizer_config.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    settings["chat_template"] = json!(5);
    fs::write(&path, settings.to_string()).unwrap();
    let report = converted(&sandbox, &["llama", "o.gguf", "--force"]);
    assert!(report["remarks"].to_string().contains("chat_template"), "{report:#}");
}

#[test]
fn an_unknown_pre_tokenizer_is_refused_with_the_name_of_its_form() {
    let sandbox = Sandbox::empty();
    let folder = vector("Qwen2-Mini-0.5B");
    let (exit, report) = sandbox.json(&["convert", folder.to_str().unwrap(), "o.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (6, &json!("hg-pre")), "{report:#}");
    assert!(report["error"]["message"].as_str().unwrap().contains("--pre qwen2"), "{report:#}");
    assert!(!sandbox.path("o.gguf").exists());
}

/// The files of a folder of the vectors, as a repository has them.
#[cfg(feature = "remote")]
fn repository(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let inner = if entry.is_dir() { fs::read_dir(&entry).unwrap().count() } else { 0 };
        let paths = match inner {
            0 => vec![entry],
            _ => fs::read_dir(&entry).unwrap().map(|inner| inner.unwrap().path()).collect(),
        };
        for path in paths {
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().replace('\\', "/");
            let is_large = name.ends_with(".safetensors") || name.ends_with(".bin");
            files.push((name.leak(), fs::read(&path).unwrap(), is_large));
        }
    }
    files
}

#[cfg(feature = "remote")]
#[test]
fn a_repository_of_the_hub_becomes_the_file_of_its_folder() {
    let folders =
        [("Mistral-Mini-0.1-Instruct", None), ("llama-from-bin", None), ("bert-embedding", Some("bert-bge"))];
    for (name, pre) in folders {
        let sandbox = Sandbox::empty();
        let files = repository(&vector(name));
        // The name of the folder is that of the repository.
        for (path, bytes, _) in &files {
            let path = sandbox.path(&format!("name/{path}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let n_parts = files.iter().filter(|(.., is_large)| *is_large).count();
        let server = hub(files.clone(), |_, reply| reply);
        let convert = |args: &[&str]| {
            let mut command = sandbox.command(&[&["convert"], args].concat());
            command.args(pre.iter().flat_map(|name| ["--pre", name]));
            let ran = command.env("HF_ENDPOINT", server.url("")).output().unwrap();
            assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        convert(&["name", "local.gguf"]);
        convert(&["hf://org/name", "dry.gguf", "--dry-run"]);
        assert!(!sandbox.path("dry.gguf").exists());
        convert(&["hf://org/name", "remote.gguf"]);
        let (local, remote) = (sandbox.read("local.gguf"), sandbox.read("remote.gguf"));
        let (local, remote) = (Gguf::from_bytes(&local).unwrap(), Gguf::from_bytes(&remote).unwrap());
        let source = format!("hf://org/name@{COMMIT}");
        assert_eq!(remote.get("apr.convert.source").unwrap().as_str(), Some(source.as_str()));
        // Digests are those that the hub declares.
        let key = "apr.convert.source.sha256";
        assert_eq!(remote.get(key).unwrap().as_str(), local.get(key).unwrap().as_str());
        assert!(local.get(key).unwrap().as_str().unwrap().lines().count() == n_parts + 1);
        for target in ["auto", "q4_k_m"] {
            convert(&["name", "local.gguf", "-t", target, "--no-provenance", "--force"]);
            convert(&["hf://org/name", "remote.gguf", "-t", target, "--no-provenance", "--force"]);
            assert!(sandbox.read("local.gguf") == sandbox.read("remote.gguf"), "{name} {target}");
        }
        // A folder of a repository.
        let within = files.iter().map(|(path, bytes, is_large)| {
            (&*format!("within/name/{path}").leak(), bytes.clone(), *is_large)
        });
        let server_within = hub(within.collect(), |_, reply| reply);
        let mut command =
            sandbox.command(&["convert", "hf://org/name/within/name", "within.gguf", "-t", "q4_k_m"]);
        command.arg("--no-provenance").args(pre.iter().flat_map(|name| ["--pre", name]));
        let ran = command.env("HF_ENDPOINT", server_within.url("")).output().unwrap();
        assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
        assert!(sandbox.read("within.gguf") == sandbox.read("local.gguf"), "{name}");
        // What is read belongs to one commit.
        let is_pinned = |path: &str| path.starts_with("/api/") || path.contains(COMMIT);
        assert!(server.seen().iter().all(|seen| is_pinned(&seen.path)));
    }
}

#[test]
fn a_folder_that_becomes_apr_keeps_its_configuration_and_tokenizer() {
    let sandbox = Sandbox::empty();
    for name in FOLDERS {
        let folder = vector(name);
        let folder = folder.to_str().unwrap();
        for target in ["auto", "f32", "f16", "q4_k"] {
            let of_type = ["-t", target, "--no-provenance", "--force"];
            converted(&sandbox, &[&[folder, "direct.gguf"], &of_type[..]].concat());
            let report = sandbox.json(&[&["convert", folder, "model.apr"], &of_type[..]].concat()).1;
            if report["error"]["code"] == "cli-not-carried" {
                // Rows that are no whole blocks become types that the format does not have.
                assert_eq!(target, "q4_k", "{report:#}");
                continue;
            }
            assert_eq!((&report["format"], &report["written"]), (&json!("apr"), &json!(true)), "{report:#}");
            assert_eq!(report["bytes"], json!(sandbox.read("model.apr").len()));
            // The same file as by way of GGUF, and the same GGUF file again.
            converted(&sandbox, &["direct.gguf", "two.apr", "--force"]);
            assert!(sandbox.read("model.apr") == sandbox.read("two.apr"), "{name} {target}");
            converted(&sandbox, &["model.apr", "again.gguf", "--force"]);
            assert!(sandbox.read("again.gguf") == sandbox.read("direct.gguf"), "{name} {target}");
        }
    }
    let recorded = converted(&sandbox, &[vector("gemma2").to_str().unwrap(), "recorded.apr"]);
    assert_eq!(recorded["architecture"], "gemma2");
    let metadata = sandbox.json(&["recorded.apr"]).1.to_string();
    assert!(metadata.contains("apr.convert.source.sha256"), "{metadata}");
    assert_eq!(sandbox.run(&["check", "recorded.apr"]).exit, 0);
    // The tensors alone, under the names that they have.
    let folder = vector("gemma2");
    converted(&sandbox, &[folder.to_str().unwrap(), "tensors.apr", "--tensors-only"]);
    assert!(sandbox.json(&["tensors", "tensors.apr"]).1.to_string().contains("model.embed_tokens.weight"));
    let split = ["convert", folder.to_str().unwrap(), "x.apr", "--split-max-tensors", "9"];
    assert_eq!(sandbox.json(&split).1["error"]["code"], "cli-usage");
    let error = sandbox.json(&["export", "recorded.apr", "--format", "hf", "-o", "hf"]).1["error"].clone();
    assert!(error["help"].as_str().unwrap().contains("apr convert MODEL MODEL.gguf"), "{error:#}");
    converted(&sandbox, &["recorded.apr", "recorded.gguf"]);
    assert_eq!(sandbox.run(&["export", "recorded.gguf", "--format", "hf", "-o", "hf"]).exit, 0);
}

#[test]
fn a_file_of_a_model_folder_points_to_the_folder() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["convert", "llama/model.safetensors", "x.gguf"]);
    let command = "`apr convert llama x.gguf`";
    assert!(ran.exit == 0 && ran.stderr.contains(command), "{}", ran.stderr);
    assert_eq!(sandbox.run(&["convert", "llama", "x.gguf", "--force"]).exit, 0);
    let ran = sandbox.run(&["convert", "llama/model.safetensors", "x.apr"]);
    assert!(ran.exit == 0 && ran.stderr.contains("`apr convert llama x.apr`"), "{}", ran.stderr);
    assert_eq!(sandbox.run(&["convert", "llama", "x.apr", "--force"]).exit, 0);
    let ran = sandbox.run(&["convert", "llama/model.safetensors", "y.gguf", "--type", "q4_k_m"]);
    assert!(
        ran.exit == 2 && ran.stderr.contains("`apr convert llama OUT.gguf --type ...`"),
        "{}",
        ran.stderr
    );
    // Without a configuration, and of a file that is not of the model.
    fs::copy(sandbox.path("llama/model.safetensors"), sandbox.path("alone.safetensors")).unwrap();
    let ran = sandbox.run(&["convert", "alone.safetensors", "z.gguf"]);
    assert!(ran.exit == 0 && !ran.stderr.contains("config.json"), "{}", ran.stderr);
}

#[test]
fn the_remedies_of_folders_work() {
    let sandbox = Sandbox::with_models();
    // A prefix of torch.compile.
    let wrapped = ["convert", "llama", "wrapped/model.safetensors", "--rename", "*=_orig_mod.*"];
    fs::create_dir(sandbox.path("wrapped")).unwrap();
    assert_eq!(sandbox.run(&wrapped).exit, 0);
    let copy = |to: &str| {
        for entry in fs::read_dir(sandbox.path("llama")).unwrap().map(Result::unwrap) {
            if !entry.file_name().to_str().unwrap().starts_with("model") {
                fs::copy(entry.path(), sandbox.path(to).join(entry.file_name())).unwrap();
            }
        }
    };
    copy("wrapped");
    let (exit, report) = sandbox.json(&["convert", "wrapped", "w.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (6, &json!("hg-prefix")), "{report:#}");
    fs::create_dir(sandbox.path("new")).unwrap();
    let remedy = ["convert", "wrapped", "new/model.safetensors", "--rename", "_orig_mod.*=*"];
    assert_eq!(sandbox.run(&remedy).exit, 0);
    copy("new");
    converted(&sandbox, &["new", "w.gguf", "--no-provenance", "--model-name", "m"]);
    converted(&sandbox, &["llama", "l.gguf", "--no-provenance", "--model-name", "m"]);
    assert_eq!(sandbox.json(&["diff", "w.gguf", "l.gguf", "--ignore-metadata"]).1["summary"]["changed"], 0);
    // Fewer layers in the configuration than in the files.
    let path = sandbox.path("llama/config.json");
    let config = fs::read_to_string(&path).unwrap();
    fs::write(&path, config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1")).unwrap();
    let (exit, report) = sandbox.json(&["convert", "llama", "x.gguf"]);
    assert_eq!((exit, &report["error"]["code"]), (6, &json!("hg-layer")), "{report:#}");
    fs::write(&path, config).unwrap();
    converted(&sandbox, &["llama", "x.gguf"]);
}

#[test]
fn folders_are_made_of_files_without_a_number_of_tokens() {
    let sandbox = Sandbox::with_models();
    converted(&sandbox, &["llama", "new.gguf", "--no-provenance"]);
    converted(&sandbox, &["new.gguf", "old.gguf", "--unset", "llama.vocab_size"]);
    assert_eq!(sandbox.run(&["export", "old.gguf", "--format", "hf", "-o", "hf"]).exit, 0);
    let config: Value = serde_json::from_slice(&sandbox.read("hf/config.json")).unwrap();
    let keys = sandbox.read("new.gguf");
    let count = Gguf::from_bytes(&keys).unwrap().get("llama.vocab_size").and_then(|value| value.to_u64());
    assert_eq!(config["vocab_size"].as_u64(), count);
}
