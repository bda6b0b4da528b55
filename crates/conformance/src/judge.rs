//! Sidecars of new vectors.

use serde_json::{Map, Value, json};
use st_core::ReadOptions;

use crate::content::Tensor;
use crate::digest::sha256_hex;
use crate::{official, ours};

/// The sidecar of a new safetensors file: what the official crate and our strict reader say. To be reviewed before it is kept:
/// a judge can be wrong.
///
/// Ask a release build where the crate's own overflow matters: with overflow checks it panics instead.
///
/// # Examples
///
/// ```
/// let sidecar = conformance::judge::sidecar(b"short");
/// assert_eq!(sidecar["official"]["crate_0_8_0"]["variant"], "HeaderTooSmall");
/// assert_eq!(sidecar["strict"]["code"], "st-header-too-small");
/// ```
#[must_use]
pub fn sidecar(bytes: &[u8]) -> Value {
    let mut entry = Map::new();
    let mut put = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    put("category", "".into());
    put("note", "".into());
    put("size", bytes.len().into());
    put("sha256", sha256_hex(bytes).into());
    put("writer", "hand".into());
    match official::read(bytes) {
        Ok(content) => {
            put("official", json!({"crate_0_8_0": {"verdict": "accept"}}));
            put("metadata", json!(content.metadata));
            put("n_tensors", content.tensors.len().into());
            let start = bytes.first_chunk().map_or(0, |first8| 8 + u64::from_le_bytes(*first8));
            put("header_len", (start.saturating_sub(8)).into());
            put("byte_exact_reserialize", false.into());
            let mut tensors: Vec<_> = content.tensors.iter().collect();
            tensors.sort_by_key(|(name, tensor)| (tensor.begin, tensor.data.len(), *name));
            let tensors: Value =
                tensors.iter().map(|(name, tensor)| tensor_facts(name, tensor, start)).collect();
            // A sidecar is read by people too.
            if tensors.to_string().len() <= 4096 {
                put("tensors", tensors);
            }
        }
        Err(official::Refusal::Variant(variant)) => {
            put("official", json!({"crate_0_8_0": {"verdict": "reject", "variant": variant}}));
        }
        Err(official::Refusal::Panic) => {
            put("official", json!({"crate_0_8_0_overflow_checks_on": {"verdict": "panic"}}));
        }
    }
    let strict = match ours::read(bytes, &ReadOptions::STRICT) {
        Ok(_) => "accept".into(),
        Err(error) => match error.offset() {
            Some(offset) => json!({"code": error.code(), "offset": offset}),
            None => json!({"code": error.code()}),
        },
    };
    put("strict", strict);
    entry.into()
}

fn tensor_facts(name: &str, tensor: &Tensor<'_>, start: u64) -> Value {
    let len = tensor.data.len() as u64;
    let mut facts = json!({
        "name": name,
        "dtype": tensor.dtype.name(),
        "shape": tensor.shape,
        "data_offsets": [tensor.begin, tensor.begin + len],
        "abs_offset": start + tensor.begin,
        "sha256": sha256_hex(tensor.data),
    });
    if len <= 64 {
        facts["hex"] = base16ct::lower::encode_string(tensor.data).into();
    }
    facts
}
