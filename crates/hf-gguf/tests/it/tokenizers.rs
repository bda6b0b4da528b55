//! Tokenizers of every folder, against the keys of the reference implementation.

use std::fs;
use std::path::{Path, PathBuf};

use hf_gguf::{Config, ErrorKind, Key, Texts, Tokenizer, Value};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/hf")
}

fn texts(path: &Path) -> Texts {
    let mut texts = Texts::new(path.file_name().unwrap().to_str().unwrap());
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if Texts::max_len(&name).is_some() {
            texts.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    texts
}

fn described(key: &Key) -> Json {
    let (kind, value) = match &key.value {
        Value::U32(value) => ("uint32", json!(value)),
        Value::I32(value) => ("int32", json!(value)),
        Value::F32(value) => ("float32", json!(f64::from(*value))),
        Value::Bool(value) => ("bool", json!(value)),
        Value::String(value) => ("string", json!(value)),
        Value::U8s(value) => {
            ("array[uint8]", json!({"count": value.len(), "sha256_of_bytes": sha256(value)}))
        }
        Value::I32s(value) => ("array[int32]", json!(value)),
        Value::F32s(value) => {
            ("array[float32]", json!(value.iter().copied().map(f64::from).collect::<Vec<_>>()))
        }
        Value::Strings(value) => ("array[string]", json!(value)),
        other => panic!("{other:?}"),
    };
    json!([key.name, kind, value])
}

/// The elements of an array, or the value.
fn items(value: &Json) -> Vec<&Json> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A folder of the vectors.
struct Folder {
    name: String,
    texts: Texts,
    config: Config,
    /// What the reference implementation made of it.
    expected: Json,
}

fn folders() -> impl Iterator<Item = Folder> {
    fs::read_dir(vectors().join("expected")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let texts = texts(&vectors().join(&name));
        let config = Config::from_texts(&texts).unwrap();
        Folder { name, texts, config, expected: serde_json::from_slice(&fs::read(&path).unwrap()).unwrap() }
    })
}

fn architecture(expected: &Json) -> String {
    expected["keys"][0][2].as_str().unwrap().into()
}

#[test]
fn every_key_of_the_tokenizer_is_that_of_the_reference() {
    for Folder { name, texts, config, expected } in folders() {
        let keys = expected["keys"].as_array().unwrap();
        let pre = expected["pre_forced"].as_str();
        let tokenizer = Tokenizer::from_texts(&texts, &config, &architecture(&expected), pre)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        // They come last, but one that is among the parameters of an architecture.
        let begin = keys.iter().position(|key| key[0] == "general.quantization_version").unwrap() + 1;
        let (before, wanted) = keys.split_at(begin);
        let found: Vec<Json> =
            tokenizer.keys.iter().map(described).filter(|key| !before.contains(key)).collect();
        for (found, wanted) in found.iter().zip(wanted) {
            assert_eq!((&found[0], &found[1]), (&wanted[0], &wanted[1]), "{name}");
            for (idx, (found, wanted)) in items(&found[2]).iter().zip(items(&wanted[2])).enumerate() {
                assert_eq!(*found, wanted, "{name}, {} {idx}", wanted[0]);
            }
            assert_eq!(items(&found[2]).len(), items(&wanted[2]).len(), "{name}, {}", wanted[0]);
        }
        assert_eq!(found.len(), wanted.len(), "{name}");
    }
}

#[test]
fn the_text_is_encoded_as_by_the_reference_and_the_name_of_the_form_suggested() {
    let mut n_hashes = 0;
    for Folder { name, texts, config, expected } in folders() {
        let (Some(hash), Some(given)) = (expected["pre"]["chkhsh"].as_str(), expected["pre_forced"].as_str())
        else {
            continue;
        };
        let error = Tokenizer::from_texts(&texts, &config, &architecture(&expected), None).unwrap_err();
        let ErrorKind::UnknownPre { hash: found, suggestion, .. } = error.kind() else {
            panic!("{name}: {error}")
        };
        assert_eq!(&**found, hash, "{name}");
        // Names of the same expression.
        let same: &[&[&str]] = &[
            &["qwen2", "stablelm2"],
            &["gpt-2", "phi-2", "mpt", "olmo"],
            &["starcoder", "refact"],
            // Folders whose pre-tokenizer is not that of the model whose name they were given.
            &["qwen2", "deepseek-llm"],
            &["gpt-2", "falcon", "bloom"],
        ];
        let is_same = |names: &&[&str]| names.contains(&given) && names.contains(&&**suggestion);
        assert!(&**suggestion == given || same.iter().any(is_same), "{name}: {error}");
        n_hashes += 1;
    }
    assert_eq!(n_hashes, 18);
}
