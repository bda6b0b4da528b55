//! The shared vectors through the program: its verdicts are those of the library.

use alloc::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sandbox::Sandbox;

/// An invalid safetensors file that is a valid GGUF file by its first bytes.
const GGUF: &str = "invalid/gguf_file.safetensors";

/// One that is a valid array of NumPy: `check` refuses it for its name, other commands read it.
const NPY: &str = "invalid/npy_file.safetensors";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/safetensors")
}

/// What is known about the vectors of a format, by their paths below its folder.
pub(crate) fn sidecars(format: &str) -> BTreeMap<String, Value> {
    fn add(root: &Path, below: &str, found: &mut BTreeMap<String, Value>) {
        for entry in root.join(below).read_dir().unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if let Some(vector) = name.strip_suffix(".vector.json") {
                let facts = fs::read(entry.path()).unwrap();
                found.insert(vector.to_owned(), serde_json::from_slice(&facts).unwrap());
            } else if entry.file_type().unwrap().is_dir() {
                add(root, &format!("{name}/"), found);
            }
        }
    }
    let mut found = BTreeMap::new();
    add(&folder().with_file_name(format), "", &mut found);
    assert!(!found.is_empty(), "{format}");
    found
}

/// The files of a kind of vector, by their names below the folder.
fn names(kind: &str) -> Vec<String> {
    let folder = folder().join(kind);
    let entries = folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| format!("{kind}/{}", entry.unwrap().file_name().to_str().unwrap()));
    names.filter(|name| !name.ends_with(".json") && name != GGUF).collect()
}

/// What `apr check` says about each vector, by one run: the first problem, or null.
fn verdicts(names: &[String], options: &[&str]) -> BTreeMap<String, Value> {
    assert!(!names.is_empty());
    let paths: Vec<String> =
        names.iter().map(|name| folder().join(name).to_str().unwrap().to_owned()).collect();
    let paths = paths.iter().map(String::as_str);
    let args: Vec<&str> = ["check"].into_iter().chain(options.iter().copied()).chain(paths).collect();
    let (_, value) = Sandbox::empty().json(&args);
    let files = value["files"].as_array().unwrap();
    assert_eq!(files.len(), names.len());
    let verdict = |file: &Value| {
        assert_eq!(file["ok"], file["problems"].as_array().unwrap().is_empty());
        file["problems"][0].clone()
    };
    names.iter().cloned().zip(files.iter().map(verdict)).collect()
}

#[test]
fn strict_verdicts_are_the_reviewed_ones() {
    let expected = sidecars("safetensors");
    let names = expected.keys().filter(|name| name.ends_with(".safetensors") && *name != GGUF);
    let names: Vec<String> = names.cloned().collect();
    for (name, problem) in verdicts(&names, &[]) {
        // Codes and offsets are the library's, and tested where it is.
        assert_eq!(problem.is_null(), expected[&name]["strict"] == "accept", "{name}: {problem}");
    }
}

#[test]
fn compat_accepts_the_quirks_and_nothing_more() {
    for kind in ["valid", "quirk", "own/valid", "own/quirk"] {
        for (name, problem) in verdicts(&names(kind), &["--compat"]) {
            assert_eq!(problem, Value::Null, "{name}");
        }
    }
    for kind in ["invalid", "own/invalid"] {
        for (name, problem) in verdicts(&names(kind), &["--compat"]) {
            assert_ne!(problem, Value::Null, "{name}");
        }
    }
}

#[test]
fn unsound_vectors_are_refused_by_reading_commands() {
    let sandbox = Sandbox::empty();
    for name in names("invalid") {
        let path = folder().join(&name);
        let ran = sandbox.run(&["tensors", path.to_str().unwrap()]);
        let is_expected = if name == NPY { ran.exit == 0 } else { matches!(ran.exit, 3 | 6) };
        assert!(is_expected, "{}: {}", path.display(), ran.exit);
    }
}

#[test]
fn sharded_vectors_are_told_apart() {
    let sandbox = Sandbox::empty();
    for name in names("sharded") {
        let path = folder().join(&name);
        let ran = sandbox.run(&["check", path.to_str().unwrap()]);
        // No loader uses the total size: a wrong one is a warning.
        let is_harmless = name.ends_with("/b_wrong_total_size");
        assert_eq!(ran.stdout.contains("by total_size"), is_harmless, "{name}\n{}", ran.stdout);
        let expected = if name.contains("/b_") && !is_harmless { 3 } else { 0 };
        assert_eq!(ran.exit, expected, "{name}\n{}{}", ran.stdout, ran.stderr);
    }
}
