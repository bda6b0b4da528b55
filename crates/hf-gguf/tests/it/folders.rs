//! Folders of every architecture, against the files of the reference implementation.

use std::fs;
use std::path::{Path, PathBuf};

use hf_gguf::{Conversion, Key, Options, OutputType, Target, Value};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::folder::{Folder, vectors};

/// What the reference implementation made of a folder.
fn expected(folder: &Path) -> Json {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let file = fs::read(folder.with_file_name(format!("expected/{name}.json"))).unwrap();
    serde_json::from_slice(&file).unwrap()
}

/// The folders of all vectors: those of every architecture, and rerankers.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for (root, count) in [(vectors(), 29), (vectors().with_file_name("hf-rerank"), 2)] {
        let entries = fs::read_dir(root.join("expected")).unwrap();
        let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".json")?.to_owned());
        let mut names: Vec<String> = entries.filter_map(|entry| name(entry.unwrap())).collect();
        names.sort();
        assert_eq!(names.len(), count);
        folders.extend(names.iter().map(|name| root.join(name)));
    }
    folders
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Options for a type by its name, with the pre-tokenizer that the reference was given.
fn options(expected: &Json, output_type: &str) -> Options {
    let mut options = Options::default();
    options.pre = expected["pre_forced"].as_str().map(Into::into);
    if let Some(output_type) = OutputType::from_name(output_type) {
        options.target = Target::Type(output_type);
    }
    options
}

#[test]
fn the_file_of_every_folder_is_that_of_the_reference_in_every_type() {
    for path in folders() {
        let expected = expected(&path);
        let folder = Folder::open(&path);
        let name = path.display();
        for output_type in expected["outputs"].as_object().unwrap().keys() {
            let conversion = folder
                .convert(&options(&expected, output_type))
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let tensors = folder.produce(&conversion).unwrap();
            let found: Vec<Json> = conversion
                .outputs()
                .iter()
                .zip(&tensors)
                .map(|(output, bytes)| {
                    let dims: Vec<u64> = output.shape.iter().rev().copied().collect();
                    json!([output.name, dims, output.dtype.name(), sha256(bytes)])
                })
                .collect();
            let wanted: Vec<Json> = expected["tensors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tensor| {
                    let by_type = tensor["by_type"].as_array().unwrap();
                    let is_this =
                        |row: &&Json| row[0].as_str().unwrap().split(' ').any(|own| own == output_type);
                    let row = by_type.iter().find(is_this).unwrap();
                    json!([tensor["name"], tensor["dims"], row[1], row[2]])
                })
                .collect();
            assert_eq!(found, wanted, "{name} as {output_type}");
            let file = file(&conversion, &tensors);
            let wanted = &expected["outputs"][output_type];
            assert_eq!(
                (json!(file.len()), json!(sha256(&file))),
                (wanted["bytes"].clone(), wanted["sha256"].clone()),
                "{name} as {output_type}"
            );
        }
    }
}

/// The whole file.
fn file(conversion: &Conversion, tensors: &[Vec<u8>]) -> Vec<u8> {
    let layout = conversion.builder().unwrap().layout().unwrap();
    let data: Vec<&[u8]> = tensors.iter().map(Vec::as_slice).collect();
    layout.to_vec(&data).unwrap()
}

/// A key as the vectors have it.
fn described(key: &Key) -> Json {
    let (kind, value) = match &key.value {
        Value::U16(value) => ("uint16", json!(value)),
        Value::U32(value) => ("uint32", json!(value)),
        Value::I32(value) => ("int32", json!(value)),
        Value::U64(value) => ("uint64", json!(value)),
        Value::F32(value) => ("float32", json!(f64::from(*value))),
        Value::Bool(value) => ("bool", json!(value)),
        Value::String(value) => ("string", json!(value)),
        Value::U8s(value) => {
            ("array[uint8]", json!({"count": value.len(), "sha256_of_bytes": sha256(value)}))
        }
        Value::U32s(value) => ("array[uint32]", json!(value)),
        Value::I32s(value) => ("array[int32]", json!(value)),
        Value::F32s(value) => ("array[float32]", json!(value)),
        Value::Bools(value) => ("array[bool]", json!(value)),
        Value::Strings(value) => ("array[string]", json!(value)),
        other => panic!("{other:?}"),
    };
    json!([key.name, kind, value])
}

fn keys(conversion: &Conversion) -> Vec<Json> {
    conversion.keys().iter().map(described).collect()
}

#[test]
fn every_key_of_every_folder_is_that_of_the_reference() {
    for path in folders() {
        let expected = expected(&path);
        let folder = Folder::open(&path);
        let name = path.display();
        let conversion =
            folder.convert(&options(&expected, "f32")).unwrap_or_else(|error| panic!("{name}: {error}"));
        let wanted = expected["keys"].as_array().unwrap();
        let found = keys(&conversion);
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!(found, wanted, "{name}");
        }
        assert_eq!(found.len(), wanted.len(), "{name}");
    }
}
