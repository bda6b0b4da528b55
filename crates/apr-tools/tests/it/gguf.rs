//! GGUF files through the program.

use alloc::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use apr_quant::Dtype;
use gguf_core::GgufBuilder;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::vectors::sidecars;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/gguf")
}

fn verdicts() -> BTreeMap<String, Value> {
    sidecars("gguf")
}

/// A vector by its name.
fn vector(name: &str) -> String {
    folder().join("files").join(name).with_extension("gguf").to_str().unwrap().to_owned()
}

/// The files that both levels accept and that are written as we write them.
const CANONICAL: [&str; 13] = [
    "kv_all_types",
    "shard-00001-of-00002",
    "shard-00002-of-00002",
    "tensors_align32",
    "tensors_align64",
    "tensors_int_f64",
    "tiny_llama_BF16",
    "tiny_llama_Q4_0",
    "tiny_llama_Q4_0_pure",
    "tiny_llama_Q4_1",
    "tiny_llama_Q4_K_M",
    "tiny_llama_Q8_0",
    "tiny_llama_f32",
];

#[test]
fn verdicts_are_those_of_the_library() {
    let verdicts = verdicts();
    assert!(verdicts.len() >= 90, "{}", verdicts.len());
    let sandbox = Sandbox::empty();
    for (level, options) in [("strict", &[][..]), ("compat", &["--compat"])] {
        let paths: Vec<String> =
            verdicts.keys().map(|name| folder().join(name).to_str().unwrap().to_owned()).collect();
        let args: Vec<&str> = ["check"]
            .into_iter()
            .chain(options.iter().copied())
            .chain(paths.iter().map(String::as_str))
            .collect();
        let (_, value) = sandbox.json(&args);
        for ((name, verdict), file) in verdicts.iter().zip(value["files"].as_array().unwrap()) {
            let problem = &file["problems"][0];
            // What does not begin as GGUF is taken for something else.
            if verdict[level]["code"] == "gg-magic"
                || name.ends_with("trunc_0.gguf")
                || name.ends_with("trunc_3.gguf")
            {
                assert_ne!(*problem, Value::Null, "{name}");
                continue;
            }
            if verdict[level] == "accept" {
                assert_eq!(*problem, Value::Null, "{name} {level}");
            } else {
                assert_eq!(problem["code"], verdict[level]["code"], "{name} {level}");
                assert_eq!(problem["offset"], verdict[level]["offset"], "{name} {level}");
            }
        }
    }
}

#[test]
fn no_vector_is_more_than_a_verdict_to_any_command() {
    let sandbox = Sandbox::empty();
    for name in verdicts().keys() {
        let path = folder().join(name);
        let path = path.to_str().unwrap();
        for args in [
            &["inspect", path, "--compat", "-v"][..],
            &["tensors", path, "--compat", "--digest"],
            &["inspect", path, "--compat", "--quantization"],
            &["convert", path, "o.gguf", "--compat", "--force"],
            &["convert", path, "o.safetensors", "--compat", "--force", "--dequantize", "f32"],
            &["diff", path, path, "--compat"],
        ] {
            let ran = sandbox.run(args);
            assert!(matches!(ran.exit, 0 | 2 | 3 | 6), "{args:?} {}\n{}", ran.exit, ran.stderr);
        }
    }
}

#[test]
fn a_rewritten_file_is_the_same() {
    let sandbox = Sandbox::empty();
    for name in CANONICAL {
        let file = vector(name);
        assert_eq!(sandbox.run(&["convert", &file, "again.gguf", "--force"]).exit, 0, "{name}");
        assert!(sandbox.read("again.gguf") == fs::read(&file).unwrap(), "{name}");
    }
    // Of files that only --compat reads, the content is.
    for name in ["kv_all_types_be", "tensors_int_f64_be", "v1_minimal"] {
        let file = vector(name);
        assert_eq!(sandbox.run(&["convert", &file, "again.gguf", "--force", "--compat"]).exit, 0, "{name}");
        assert_eq!(sandbox.run(&["check", "again.gguf"]).exit, 0, "{name}");
        assert_eq!(sandbox.run(&["diff", &file, "again.gguf", "--compat"]).exit, 0, "{name}");
    }
    let (little, big) = (vector("tensors_int_f64"), vector("tensors_int_f64_be"));
    assert_eq!(sandbox.run(&["diff", &little, &big, "--compat"]).exit, 0);
}

#[test]
fn plain_files_come_back_the_same_from_other_formats() {
    let sandbox = Sandbox::empty();
    for (name, between) in [
        ("kv_all_types", "a.safetensors"),
        ("tensors_int_f64", "b.safetensors"),
        ("tiny_llama_f32", "c.safetensors"),
        ("tiny_llama_BF16", "d.safetensors"),
        ("tiny_llama_f32", "e.apr"),
    ] {
        let file = vector(name);
        // One of them is a file of keys alone.
        let there = ["convert", &file, between, "--order", "given", "--allow-empty"];
        assert_eq!(sandbox.json(&there).1["lost"], json!([]), "{name}");
        // Of metadata, an .apr file says more than it is given.
        let ignored = if between.ends_with("apr") { &["--ignore-metadata"][..] } else { &[] };
        assert_eq!(sandbox.run(&[&["diff", &file, between], ignored].concat()).exit, 0, "{between}");
        assert_eq!(
            sandbox.json(&["convert", between, "back.gguf", "--force", "--allow-empty"]).1["lost"],
            json!([]),
            "{between}"
        );
        assert_eq!(sandbox.run(&[&["diff", &file, "back.gguf"], ignored].concat()).exit, 0, "{between}");
        if between.ends_with("safetensors") {
            assert!(sandbox.read("back.gguf") == fs::read(&file).unwrap(), "{name}");
        }
    }
}

#[test]
fn quantized_tensors_become_plain_numbers_only_if_asked() {
    let sandbox = Sandbox::with_models();
    let (exit, value) = sandbox.json(&["convert", "model.gguf", "out.safetensors"]);
    assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-not-carried")));
    assert_eq!(value["error"]["tensor"], "blk.0.weight");
    assert!(value["error"]["help"].as_str().unwrap().contains("--dequantize f32"));
    assert!(!sandbox.path("out.safetensors").exists());
    for name in ["tensors_align32", "tiny_llama_Q4_K_M"] {
        let file = vector(name);
        for out in ["out.safetensors", "out.gguf"] {
            let convert = ["convert", &file, out, "--dequantize", "f32", "--force"];
            assert_eq!(sandbox.run(&convert).exit, 0, "{name}");
            let (exit, value) = sandbox.json(&["diff", &file, out, "--ignore-metadata"]);
            assert_eq!((exit, value["summary"]["changed"].as_u64() > Some(0)), (1, true));
            for tensor in value["tensors"].as_array().unwrap() {
                let differing = tensor.get("differing").unwrap_or(&json!(0)).clone();
                assert_eq!(
                    (&differing, tensor.get("shape_changed")),
                    (&json!(0), tensor.get("shape_changed").map(|_| &json!(false))),
                    "{tensor}"
                );
            }
        }
    }
    // What they were is no longer said.
    let (_, value) = sandbox.json(&["inspect", "out.gguf"]);
    let keys: BTreeMap<&str, &Value> = value["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (key["key"].as_str().unwrap(), &key["value"]))
        .collect();
    assert_eq!(keys["general.file_type"], 0);
    assert!(!keys.contains_key("general.quantization_version"));
    let ran = sandbox.run(&["convert", "model.gguf", "half.safetensors", "--dequantize", "f16"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, value) = sandbox.json(&["tensors", "half.safetensors", "--select", "blk.*"]);
    assert!(value["tensors"].as_array().unwrap().iter().all(|tensor| tensor["dtype"] == "F16"), "{value}");
    // .apr files have quantized tensors too.
    let ran = sandbox.run(&["convert", "tensors.apr", "apr.gguf", "--dequantize", "f32"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(
        sandbox.json(&["diff", "tensors.apr", "apr.gguf", "--ignore-metadata"]).1["summary"]["equal"],
        2
    );
}

#[test]
fn keys_are_edited_in_the_type_they_have() {
    let sandbox = Sandbox::with_models();
    let args = [
        "convert",
        "model.gguf",
        "out.gguf",
        "--set",
        "demo.rate=0.5",
        "--set",
        "general.name=new",
        "--set",
        "note=text",
        "--set",
        "general.alignment=64",
        "--unset",
        "demo.words",
        "--rename",
        "blk.*=layer.*",
        "--exclude",
        "head.*",
    ];
    let ran = sandbox.run(&args);
    assert_eq!((ran.exit, ran.stderr.lines().count()), (0, 1), "{}", ran.stderr);
    let (_, value) = sandbox.json(&["inspect", "out.gguf"]);
    assert_eq!(value["alignment"], 64);
    let keys: Vec<(&Value, &Value, &Value)> = value["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| (&key["key"], &key["type"], &key["value"]))
        .collect();
    assert!(keys.contains(&(&json!("demo.rate"), &json!("f32"), &json!(0.5))), "{keys:?}");
    assert!(keys.contains(&(&json!("note"), &json!("string"), &json!("text"))), "{keys:?}");
    assert!(keys.iter().all(|(key, ..)| **key != json!("demo.words")), "{keys:?}");
    let (_, value) = sandbox.json(&["tensors", "out.gguf"]);
    let names: Vec<&Value> =
        value["tensors"].as_array().unwrap().iter().map(|tensor| &tensor["name"]).collect();
    assert_eq!(names, ["layer.0.weight", "layer.1.weight", "norm.weight"]);
    assert!(
        value["tensors"]
            .as_array()
            .unwrap()
            .iter()
            .all(|tensor| tensor["offset"].as_u64().unwrap() % 64 == 0)
    );
    for wrong in ["demo.rate=fast", "demo.block_count=-1", "general.alignment=3"] {
        let (exit, _) = sandbox.json(&["convert", "model.gguf", "wrong.gguf", "--set", wrong]);
        assert!(matches!(exit, 2 | 3), "{wrong}");
    }
    assert!(!sandbox.path("wrong.gguf").exists());
}

#[test]
fn what_gguf_has_no_place_for_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    for (args, code, tensor) in [
        (&["convert", "model.safetensors", "o.gguf"][..], "cli-not-carried", "mask"),
        (
            &["convert", "model.gguf", "o.gguf", "--rename", "norm.weight=head.weight"],
            "cli-usage",
            "head.weight",
        ),
    ] {
        let (exit, value) = sandbox.json(args);
        assert_eq!((exit, value["error"]["code"].as_str()), (2, Some(code)), "{value}");
        assert_eq!(value["error"]["tensor"], tensor, "{value}");
    }
    let long = format!("norm.weight={}", "n".repeat(64));
    assert_eq!(
        sandbox.json(&["convert", "model.gguf", "o.gguf", "--rename", &long]).1["error"]["code"],
        "gg-name"
    );
    assert!(!sandbox.path("o.gguf").exists());
    let ran = sandbox.run(&["convert", "model.safetensors", "o.gguf", "--exclude", "mask"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let back = ["convert", "o.gguf", "back.safetensors"];
    assert_eq!(sandbox.json(&back).1["metadata"]["format"], "pt");
    assert_eq!(sandbox.json(&["diff", "model.safetensors", "back.safetensors"]).1["summary"]["removed"], 1);
}

#[test]
fn scales_that_are_no_numbers_are_reported() {
    let sandbox = Sandbox::with_models();
    let mut file = sandbox.read("model.gguf");
    let (_, value) = sandbox.json(&["tensors", "model.gguf"]);
    let offset = |idx: usize| value["tensors"][idx]["offset"].as_u64().unwrap() as usize;
    // The scale of the second block, and an infinite number.
    file[offset(0) + 34..][..2].copy_from_slice(&0x7e00_u16.to_le_bytes());
    file[offset(2) + 8..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    sandbox.write("odd.gguf", &file);
    let (exit, value) = sandbox.json(&["check", "odd.gguf"]);
    assert_eq!(exit, 0);
    let warnings = value["files"][0]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(warnings[0], "tensor `blk.0.weight`: scales that are not finite: 1, the first in block 1");
    assert_eq!(warnings[1], "tensor `norm.weight`: numbers that are not finite: 1, the first in element 2");
}

#[test]
fn nothing_but_the_header_is_read() {
    let sandbox = Sandbox::empty();
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "demo").unwrap();
    let words: Vec<String> = (0..50_000).map(|idx| format!("word {idx}")).collect();
    builder.set_texts("demo.words", words.iter().map(String::as_str)).unwrap();
    builder.add_tensor("large", Dtype::Q4_0, &[1 << 19, 1 << 14]).unwrap();
    let layout = builder.layout().unwrap();
    let mut file = File::create(sandbox.path("large.gguf")).unwrap();
    file.write_all(layout.header_bytes()).unwrap();
    file.set_len(layout.file_len()).unwrap();
    let begun = Instant::now();
    let (exit, value) = sandbox.json(&["inspect", "large.gguf"]);
    assert_eq!((exit, &value["parameters"]), (0, &json!(1_u64 << 33)));
    assert_eq!(
        (&value["keys"][1]["elements"], value["keys"][1]["value"].as_array().unwrap().len()),
        (&json!(50_000), 8)
    );
    // Reading five gigabytes takes longer on every machine.
    assert!(begun.elapsed().as_secs() < 2, "{:?}", begun.elapsed());
    file.set_len(layout.file_len() - 1).unwrap();
    assert_eq!(sandbox.json(&["inspect", "large.gguf"]).1["error"]["code"], "gg-data-end");
}

#[test]
fn names_and_keys_are_escaped() {
    let sandbox = Sandbox::with_models();
    let mut file = sandbox.read("model.gguf");
    for (old, new) in [
        (&b"demo.words"[..], &b"\x1b[2Jw\xff\xfe\xc2\x9b"[..]),
        (b"norm.weight", b"\x1b[31m\xe2\x80\xaeght"),
        (b"two layers", b"\x9b31m\x07\r\n\xe2\x80\xae"),
    ] {
        let at = file.windows(old.len()).position(|part| part == old).unwrap();
        file[at..at + new.len()].copy_from_slice(new);
    }
    sandbox.write("odd.gguf", &file);
    for args in [
        &["inspect", "odd.gguf"][..],
        &["inspect", "odd.gguf", "-v", "--json"],
        &["tensors", "odd.gguf"],
        &["check", "odd.gguf"],
        &["diff", "model.gguf", "odd.gguf"],
        &["convert", "odd.gguf", "o.gguf"],
    ] {
        let ran = sandbox.run(args);
        let is_hazard = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!ran.stdout.contains(is_hazard) && !ran.stderr.contains(is_hazard), "{args:?}\n{ran:?}");
        assert!(matches!(ran.exit, 0..=2), "{args:?}");
    }
}

#[test]
fn export_is_convert() {
    let sandbox = Sandbox::with_models();
    for (model, format) in [("model.apr", "safetensors"), ("model.apr", "gguf"), ("model.gguf", "gguf")] {
        let export = ["export", model, "--format", format, "--output", "made/", "--force"];
        let ran = sandbox.run(&export);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let out = format!("plain.{format}");
        assert_eq!(sandbox.run(&["convert", model, &out, "--force"]).exit, 0);
        assert_eq!(sandbox.read(&format!("made/model.{format}")), sandbox.read(&out), "{model} {format}");
    }
    // But for blocks that the format lacks: `convert` refuses them, `export` makes plain numbers of them and says so.
    let export = ["export", "model.gguf", "--format", "safetensors", "-o", "x.safetensors"];
    let (exit, value) = sandbox.json(&export);
    assert_eq!((exit, value["lost"].as_array().unwrap().len()), (0, 2), "{value:#}");
    let dequantized = ["convert", "model.gguf", "y.safetensors", "--dequantize", "f32"];
    assert_eq!(sandbox.run(&dequantized).exit, 0);
    assert_eq!(sandbox.read("x.safetensors"), sandbox.read("y.safetensors"));
    let half = [&export[..], &["--dequantize", "f16", "--force"]].concat();
    assert_eq!(sandbox.json(&half).1["lost"].as_array().map(Vec::len), Some(0));
    assert_eq!(sandbox.run(&["export", "model.gguf", "--format", "gguf", "-o", "x.safetensors"]).exit, 2);
    let dry = ["export", "model.gguf", "--format", "gguf", "-o", "none/", "--dry-run"];
    assert_eq!(sandbox.run(&dry).exit, 0);
    assert!(!sandbox.path("none").exists());
    // A model of version 1 comes back from the file it became.
    assert_eq!(sandbox.run(&["convert", "model.apr", "m.gguf"]).exit, 0);
    assert_eq!(sandbox.run(&["convert", "m.gguf", "m.apr"]).exit, 0);
    assert_eq!(sandbox.read("m.apr"), sandbox.read("model.apr"));
}

/// A file of one tensor with a key of this type and value.
fn with_key(kind: u32, value: &[u8], name: &[u8]) -> Vec<u8> {
    let text = |text: &[u8]| [&(text.len() as u64).to_le_bytes(), text].concat();
    let mut file = [&b"GGUF\x03\0\0\0"[..], &1_u64.to_le_bytes(), &1_u64.to_le_bytes()].concat();
    file.extend([text(b"k"), kind.to_le_bytes().to_vec(), value.to_vec(), text(name)].concat());
    file.extend([1_u32.to_le_bytes(), [1, 0, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4]].concat());
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend([0; 32]);
    file
}

#[test]
fn what_is_not_utf_8_differs() {
    let sandbox = Sandbox::empty();
    let text = |text: &[u8]| [&(text.len() as u64).to_le_bytes(), text].concat();
    let words = |word: &[u8]| [&8_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &text(word)].concat();
    sandbox.write("a.gguf", &with_key(9, &words(b"\xff"), b"t"));
    sandbox.write("b.gguf", &with_key(9, &words(b"\xfe"), b"t"));
    sandbox.write("c.gguf", &with_key(4, &1_u32.to_le_bytes(), b"t"));
    sandbox.write("d.gguf", &with_key(5, &1_u32.to_le_bytes(), b"t"));
    sandbox.write("e.gguf", &with_key(4, &1_u32.to_le_bytes(), b"t\xff"));
    for (old, new, shown) in
        [("a.gguf", "b.gguf", [r#"[b"\xff"]"#, r#"[b"\xfe"]"#]), ("c.gguf", "d.gguf", ["1 (u32)", "1 (i32)"])]
    {
        let (exit, value) = sandbox.json(&["diff", old, new]);
        let change = &value["metadata"][0];
        assert_eq!((exit, json!([change["a"], change["b"]])), (1, json!(shown)), "{value:#}");
        assert_eq!(sandbox.run(&["diff", old, old]).exit, 0);
    }
    assert_eq!(sandbox.run(&["diff", "c.gguf", "e.gguf"]).exit, 1);
    // Bytes and the text that they are shown as; arrays of arrays of other types.
    sandbox.write("f.gguf", &with_key(8, &text(b"\xff"), b"t"));
    sandbox.write("g.gguf", &with_key(8, &text(br#"b"\xff""#), b"t"));
    assert_eq!(sandbox.run(&["diff", "f.gguf", "g.gguf"]).exit, 1);
    for (name, kind) in [("h.gguf", 4_u32), ("i.gguf", 5)] {
        let inner = [&kind.to_le_bytes()[..], &1_u64.to_le_bytes(), &1_u32.to_le_bytes()].concat();
        let outer = [&9_u32.to_le_bytes()[..], &1_u64.to_le_bytes(), &inner].concat();
        sandbox.write(name, &with_key(9, &outer, b"t"));
    }
    assert_eq!(sandbox.run(&["diff", "h.gguf", "i.gguf", "--compat"]).exit, 1);
    let ran = sandbox.run(&["convert", "e.gguf", "e.safetensors"]);
    assert!(ran.exit == 0 && ran.stderr.contains("1 name of tensors not UTF-8"), "{ran:?}");
    assert!(sandbox.run(&["tensors", "e.safetensors"]).stdout.contains(r"t\xff"));
}

#[test]
fn a_file_that_gguf_cannot_hold_again_is_not_to_be_rewritten_as_gguf() {
    let sandbox = Sandbox::empty();
    for (name, rewritten) in [("name_64", false), ("key_empty", false), ("arr_nested", true)] {
        let file = folder().join("parser").join(name).with_extension("gguf");
        let file = file.to_str().unwrap();
        let (exit, report) = sandbox.json(&["inspect", file]);
        let help = report["error"]["help"].as_str().unwrap_or_default();
        assert!(exit != 0 && help.contains("`apr convert --compat IN OUT"), "{report:#}");
        assert_eq!(help.contains("IN OUT`"), rewritten, "{name}: {help}");
        let out = if rewritten { "o.gguf" } else { "o.safetensors" };
        // The vectors are files of keys alone.
        let empty: &[&str] = if rewritten { &[] } else { &["--allow-empty"] };
        let ran = sandbox.run(&[&["convert", "--compat", file, out, "--force"], empty].concat());
        assert_eq!(ran.exit, 0, "{name}");
    }
}
