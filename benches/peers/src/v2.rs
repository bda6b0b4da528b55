//! Version 2 of the container, by its own crate.

use std::path::Path;

use apr_format::v2::AprV2Reader;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::hex;

/// Metadata, and every tensor with a digest of its bytes.
pub(crate) fn describe(path: &Path) -> Result<Value, String> {
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let reader = AprV2Reader::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let tensors = reader.tensor_index().iter().map(|entry| {
        let data = reader.get_tensor_data(&entry.name);
        let data = data.ok_or_else(|| format!("tensor {} lies outside the file", entry.name))?;
        Ok(json!({
            "name": entry.name,
            "dtype": entry.dtype.to_string(),
            "dtype_id": entry.dtype as u8,
            "shape": entry.shape,
            "size": entry.size,
            "sha256": hex::encode(&Sha256::digest(data)),
        }))
    });
    let tensors = tensors.collect::<Result<Vec<Value>, String>>()?;
    let metadata = serde_json::to_value(reader.metadata()).map_err(|error| error.to_string())?;
    Ok(json!({
        "flags": reader.header().flags.bits(),
        "version": [reader.header().version.0, reader.header().version.1],
        "aligned": reader.verify_alignment(),
        "metadata": metadata,
        "tensors": tensors,
    }))
}
