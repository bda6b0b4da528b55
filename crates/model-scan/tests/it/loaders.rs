//! Files of the loaders that configurations, graphs and templates are for: `tests/data/loaders/README.md`.

use std::path::{Path, PathBuf};

use model_scan::{Options, Verdict, scan_named};

/// What each hostile file is.
const NOT_SAFE: [(&str, Verdict); 39] = [
    ("config/attn/config.json", Verdict::Suspicious),
    ("config/diffusers/model_index.json", Verdict::Suspicious),
    ("config/function.skops", Verdict::Dangerous),
    ("config/hydra-json/config.json", Verdict::Dangerous),
    ("config/hydra-yaml/model_config.yaml", Verdict::Dangerous),
    ("config/metadata.safetensors", Verdict::Dangerous),
    ("config/mlflow/MLmodel", Verdict::Suspicious),
    ("config/model.nemo", Verdict::Dangerous),
    ("config/pipelines/config.json", Verdict::Suspicious),
    ("config/st/modules.json", Verdict::Suspicious),
    ("config/yaml/config.yaml", Verdict::Suspicious),
    ("jinja/case/chat_template.jinja", Verdict::Suspicious),
    ("jinja/cycler-variable/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/entities/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/environment-of-macro/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/generator-frame.gguf", Verdict::Suspicious),
    ("jinja/groupby/chat_template.jinja", Verdict::Suspicious),
    ("jinja/lipsum-concat.gguf", Verdict::Suspicious),
    ("jinja/map-attr-by-name/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/map-attribute/chat_template.jinja", Verdict::Suspicious),
    ("jinja/percent-c/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/raise-exception/tokenizer_config.json", Verdict::Suspicious),
    ("jinja/underscore-of-name.gguf", Verdict::Suspicious),
    ("keras/hdexternal.h5", Verdict::Suspicious),
    ("keras/stringlookup.keras", Verdict::Suspicious),
    ("keras/textvectorization.keras", Verdict::Suspicious),
    ("keras/classmethod-tfrecord.keras", Verdict::Dangerous),
    ("keras/dump-debug.keras", Verdict::Dangerous),
    ("keras/get-file.h5", Verdict::Dangerous),
    ("keras/get-file.keras", Verdict::Dangerous),
    ("keras/print.keras", Verdict::Dangerous),
    ("keras/summary-writer.keras", Verdict::Dangerous),
    ("onnx/external-traversal.onnx", Verdict::Suspicious),
    ("tf/cache-file/saved_model.pb", Verdict::Dangerous),
    ("tf/flex.tflite", Verdict::Dangerous),
    ("tf/read-fixed/saved_model.pb", Verdict::Suspicious),
    ("tf/save-dataset/saved_model.pb", Verdict::Dangerous),
    ("tf/sql/saved_model.pb", Verdict::Dangerous),
    ("tf/summary-file/saved_model.pb", Verdict::Dangerous),
];

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/loaders").join(name)
}

fn judged(path: &Path) -> Verdict {
    let bytes = std::fs::read(path).expect("a file");
    let name = path.to_str().expect("text");
    scan_named(bytes.as_slice(), name, &Options::DEFAULT).expect("a report").verdict()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn hostile_files_have_their_verdicts() {
    for (name, verdict) in NOT_SAFE {
        assert_eq!(judged(&folder("not_safe").join(name)), verdict, "{name}");
    }
    assert_eq!(files(&folder("not_safe")).len(), NOT_SAFE.len());
}

#[test]
fn files_that_libraries_write_are_safe() {
    let files = files(&folder("safe"));
    for path in &files {
        assert_eq!(judged(path), Verdict::Safe, "{}", path.display());
    }
    assert_eq!(files.len(), 19);
}
