//! Every vector has a sidecar, every sidecar a vector, and the files are the recorded ones.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use conformance::digest::sha256_hex;
use conformance::vectors::{SUFFIX, Sidecar, folder, sidecars};
use serde_json::Value;

/// The formats: folders of `vectors` whose files have sidecars, and how many of them there are at least.
const FORMATS: [(&str, usize); 7] = [
    ("apr", 280),
    ("gguf", 100),
    ("import", 335),
    ("quantization", 22),
    ("safetensors", 418),
    ("signatures/refused", 67),
    ("structures", 12),
];

/// What is not a vector, as the beginnings of paths: what several vectors share, a table of all codes of small types, and what CPython reads
/// of random pickles.
const SHARED: [&str; 4] =
    ["apr/inputs.json", "apr/payloads/", "dtypes/small-floats.json", "pickle/unpicklers.txt"];

/// The files below a folder, by their paths below it; a folder with a sidecar counts as one file.
fn files(root: &Path, below: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        let is_vector = root.join(format!("{name}{SUFFIX}")).exists();
        if entry.file_type().unwrap().is_dir() && !is_vector {
            found.extend(files(root, &format!("{name}/")));
        } else {
            found.push(name);
        }
    }
    found
}

fn all() -> Vec<(PathBuf, Sidecar)> {
    let of = |(format, _): &(&str, usize)| {
        let path = |sidecar: Sidecar| (folder(format).join(&sidecar.vector), sidecar);
        sidecars(format).unwrap().into_iter().map(path).collect::<Vec<_>>()
    };
    FORMATS.iter().flat_map(of).collect()
}

#[test]
fn every_file_has_a_sidecar_and_every_sidecar_a_file() {
    let root = folder("");
    let (mut n_stored, mut n_generated) = (0, 0);
    for file in files(&root, "") {
        let is_text = file.ends_with("README.md") || file.ends_with(".py");
        // Keys, models and signatures of other programs, which `signatures/README.md` describes.
        // Model folders and adapters, which `hf/README.md`, `hf-rerank/README.md` and `hf-lora/README.md` describe.
        let is_material = file.starts_with("hf/")
            || file.starts_with("hf-rerank/")
            || file.starts_with("hf-lora/")
            || file.starts_with("signatures/") && !file.starts_with("signatures/refused/");
        if is_text || is_material || SHARED.iter().any(|shared| file.starts_with(shared)) {
            continue;
        }
        let Some(vector) = file.strip_suffix(SUFFIX) else {
            assert!(root.join(format!("{file}{SUFFIX}")).is_file(), "{file} has no sidecar");
            n_stored += 1;
            continue;
        };
        let facts: Value = serde_json::from_slice(&fs::read(root.join(&file)).unwrap()).unwrap();
        let is_generated = facts.get("generate").is_some();
        n_generated += usize::from(is_generated);
        assert_ne!(
            root.join(vector).exists(),
            is_generated,
            "{file} has no vector, or one that is generated"
        );
    }
    assert_eq!(n_stored + n_generated, all().len());
    for (format, count) in FORMATS {
        assert!(sidecars(format).unwrap().len() >= count, "{format}");
    }
}

#[test]
fn files_are_the_recorded_ones() {
    let (mut compared, mut folders) = (0, 0);
    for (path, sidecar) in all() {
        if !path.is_file() {
            folders += usize::from(path.is_dir());
            continue;
        }
        let file = fs::read(&path).unwrap();
        let facts = &sidecar.facts;
        assert_eq!(
            (&facts["size"], &facts["sha256"]),
            (&file.len().into(), &sha256_hex(&file).into()),
            "{}",
            path.display()
        );
        compared += 1;
    }
    assert!(compared >= 1210 && folders >= 12, "{compared} {folders}");
}

#[test]
fn every_payload_is_one_of_a_file() {
    let named: BTreeSet<String> = all()
        .iter()
        .filter_map(|(_, sidecar)| sidecar.facts["payload"].as_str().map(str::to_owned))
        .collect();
    let stored = files(&folder("apr/payloads"), "");
    let stored: BTreeSet<String> = stored.iter().map(|file| file.replace(".json", "")).collect();
    assert_eq!(named, stored);
}

#[test]
fn texts_name_no_path_outside_the_vectors() {
    let root = folder("");
    for file in files(&root, "") {
        if ![".json", ".md", ".py"].iter().any(|ending| file.ends_with(ending)) {
            continue;
        }
        let text = fs::read_to_string(root.join(&file)).unwrap();
        for path in ["/home", "/root", "/tmp", "/usr"] {
            assert!(!text.contains(path), "{file} mentions {path}");
        }
        // What models say of themselves.
        let has_addresses = file.starts_with("signatures/make.py") || file.starts_with("hf/");
        assert!(!text.contains("://") || has_addresses, "{file} names an address");
    }
}
