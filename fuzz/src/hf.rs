//! Model folders of the vectors, to be changed.

use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use hf_gguf::{SourceTensor, Texts};
use st_core::{Header, ReadOptions};

/// A folder whose files are safetensors.
pub struct Folder {
    /// The class in its configuration.
    pub class: String,
    /// The configuration.
    pub config: Vec<u8>,
    /// Its texts.
    pub texts: Texts,
    /// The names of its files with tensors, and their tables.
    pub parts: Vec<(String, Vec<SourceTensor>)>,
}

/// All of them.
pub static FOLDERS: LazyLock<Vec<Folder>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/conformance/vectors/hf");
    let mut paths: Vec<_> =
        fs::read_dir(root).expect("the vectors").map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| read(path)).collect()
});

fn read(path: &Path) -> Option<Folder> {
    let config = fs::read(path.join("config.json")).ok()?;
    let values: serde_json::Value = serde_json::from_slice(&config).ok()?;
    let class = values["architectures"][0].as_str()?.to_owned();
    let mut texts = Texts::new(path.file_name()?.to_str()?);
    let mut parts = Vec::new();
    for entry in fs::read_dir(path).ok()?.flatten() {
        let name = entry.file_name().into_string().ok()?;
        if Texts::max_len(&name).is_some() && name != "config.json" {
            texts.insert(name, fs::read(entry.path()).ok()?);
        } else if name.ends_with(".safetensors") {
            parts.push((name, table(&fs::read(entry.path()).ok()?)));
        }
    }
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    (!parts.is_empty()).then_some(Folder { class, config, texts, parts })
}

fn table(file: &[u8]) -> Vec<SourceTensor> {
    let header = Header::from_bytes(file, &ReadOptions::STRICT).expect("a vector");
    let tensor = |info: st_core::TensorInfo<'_>| SourceTensor {
        name: info.name().into(),
        dtype: info.dtype(),
        shape: info.shape().iter().map(|&len| len as u64).collect(),
    };
    header.iter().map(tensor).collect()
}
