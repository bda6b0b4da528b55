//! The vectors and what their sidecars say.

use std::path::{Path, PathBuf};

use foreign_tensors::{Error, Folder, Model, Options, read, read_folder};
use read_at::{FileSource, ReadAt};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// What a sidecar allows in words: "may also import the numpy array 'arr' (F32 [2,3])", "attributes may be listed".
const MAY_ADD: [(&str, &str); 3] = [
    ("torch/np_leaves.ckpt", "arr F32 [2, 3] "),
    ("joblib/sk_logreg.joblib", "n_iter_ I32 [1] "),
    ("joblib/sk_logreg.pkl", "n_iter_ I32 [1] "),
];

pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    facts: Value,
}

/// The folder of all vectors.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import")
}

/// All vectors below these folders: files, and folders that are models.
pub(crate) fn vectors(below: &[&str]) -> Vec<Vector> {
    let root = root();
    let (mut folders, mut found) =
        (below.iter().map(|folder| root.join(folder)).collect::<Vec<_>>(), Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(file) = path.to_str().expect("text").strip_suffix(".vector.json") {
                let text = std::fs::read_to_string(&path).expect("a sidecar");
                let name = Path::new(file).strip_prefix(&root).expect("inside").display().to_string();
                let facts: Value = serde_json::from_str(&text).expect("JSON");
                // Formats of this project have readers of their own.
                let is_own = ["safetensors", "gguf"].iter().any(|format| facts["format"] == *format);
                if facts["import"].is_array() && Path::new(file).exists() && !is_own {
                    found.push(Vector { name, path: file.into(), facts });
                }
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!found.is_empty());
    found
}

/// Name, type, shape and digest of each tensor, sorted; aliases are tensors of their own.
fn found(model: &Model, file: &dyn ReadAt) -> Result<Vec<String>, Error> {
    let mut rows = Vec::new();
    for tensor in model.tensors() {
        let bytes = tensor.to_vec(model, file)?;
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let rest = format!("{} {:?} {digest}", tensor.dtype().name(), tensor.shape());
        for alias in model.aliases().iter().filter(|alias| alias.of == tensor.name()) {
            rows.push(format!("{} {rest}", alias.name));
        }
        rows.push(format!("{} {rest}", tensor.name()));
    }
    rows.sort();
    Ok(rows)
}

fn expected(tensors: &Value) -> Vec<String> {
    let row = |tensor: &Value| {
        let shape: Vec<u64> = tensor["shape"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|dim| dim.as_u64().expect("a length"))
            .collect();
        let text = |key: &str| tensor[key].as_str().expect("text").to_owned();
        format!("{} {} {shape:?} {}", text("name"), text("dtype"), text("sha256"))
    };
    let mut rows: Vec<String> = tensors.as_array().into_iter().flatten().map(row).collect();
    rows.sort();
    rows
}

/// What is wrong with the answer for a vector.
fn problem(vector: &Vector) -> Option<String> {
    let may = |outcome: &str| {
        vector.facts["import"].as_array().expect("a list").iter().any(|allowed| allowed == outcome)
    };
    let (file, model): (Box<dyn ReadAt>, _) = if vector.path.is_dir() {
        (Box::new(Vec::new()), read_folder(&Folder::new(&vector.path), &Options::default()))
    } else {
        let file = FileSource::new(std::fs::File::open(&vector.path).expect("a file")).expect("its length");
        let model = read(&file, &Folder::of_file(&vector.path), &Options::default());
        (Box::new(file), model)
    };
    let answer = model.and_then(|model| {
        model.check()?;
        let rows = found(&model, &file)?;
        Ok((model, rows))
    });
    match answer {
        Err(error) => (!may("refused")).then(|| format!("refused: {} {error}", error.code())),
        Ok((model, rows)) => {
            if !may("ok") && (!may("ok-with-warnings") || model.notes().is_empty()) {
                return Some(format!("accepted, notes {:?}", model.notes()));
            }
            let listed = expected(&vector.facts["tensors"]);
            // The sidecar leaves open which tensors there are.
            if listed.is_empty() && expected(&vector.facts["alternatives"]).is_empty() {
                return None;
            }
            let mut with_alternatives = [listed.clone(), expected(&vector.facts["alternatives"])].concat();
            with_alternatives.sort();
            let other = expected(&vector.facts["alternatives"]);
            if rows == listed || rows == with_alternatives || (!other.is_empty() && rows == other) {
                return None;
            }
            let missing: Vec<_> = listed.iter().filter(|row| !rows.contains(row)).collect();
            let may_add = |row: &str| {
                MAY_ADD.iter().any(|(name, start)| *name == vector.name && row.starts_with(start))
            };
            let more: Vec<_> = rows.iter().filter(|row| !listed.contains(row) && !may_add(row)).collect();
            // What alternatives may add.
            if missing.is_empty() && more.iter().all(|row| with_alternatives.contains(row)) {
                return None;
            }
            Some(format!("missing {missing:#?}\nmore {more:#?}"))
        }
    }
}

/// Compares every vector below these folders.
pub(crate) fn check(below: &[&str]) {
    let all = vectors(below);
    let problems: Vec<String> =
        all.iter().filter_map(|vector| Some(format!("{}: {}", vector.name, problem(vector)?))).collect();
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), all.len(), problems.join("\n"));
}
