//! Matrices of models that predict: their rows are inputs, where programs that read GGUF expect outputs.

use alloc::collections::BTreeSet;

use apr_convert::TargetFormat;
use apr_models::{TRANSPOSED_KEY, Tensors, transposed};
use apr_quant::Dtype;

use crate::error::Failure;
use crate::input::{Model, Tensor};

/// Indices of the tensors that are written transposed: matrices of weights whose rows are not whole blocks and whose columns are.
///
/// # Errors
///
/// If the metadata cannot be read.
pub(super) fn turned(
    model: &Model,
    tensors: &[Tensor<'_>],
    format: TargetFormat,
    target: Dtype,
) -> Result<BTreeSet<usize>, Failure> {
    if format != TargetFormat::Gguf || !target.is_quantized() || !model.is_known() {
        return Ok(BTreeSet::new());
    }
    if model.entries()?.entries.contains_key(TRANSPOSED_KEY) {
        return Ok(BTreeSet::new());
    }
    // The types that shorter rows fall back to have the shortest blocks.
    let lens = [target.block_len(), Dtype::Q4_0.block_len()];
    let is_turned = |tensor: &Tensor<'_>| match (tensor.dtype().element(), tensor.shape()) {
        (Some(dtype), shape @ &[n_rows, n_cols]) => {
            let fitting =
                lens.iter().find(|len| n_rows.is_multiple_of(**len) || n_cols.is_multiple_of(**len));
            // A single row would be taken for a vector.
            let is_weight = n_cols > 1 && Tensors::is_weight_matrix(dtype, shape);
            is_weight && fitting.is_some_and(|len| !n_cols.is_multiple_of(*len))
        }
        _ => false,
    };
    Ok(tensors.iter().enumerate().filter(|(_, tensor)| is_turned(tensor)).map(|(idx, _)| idx).collect())
}

/// The bytes of a transposed tensor.
///
/// # Errors
///
/// If it cannot be read.
pub(super) fn bytes(tensor: &Tensor<'_>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    tensor.stream(&mut Vec::new(), |chunk| {
        bytes.extend_from_slice(chunk);
        Ok::<(), Failure>(())
    })?;
    Ok(match *tensor.shape() {
        [n_rows, n_cols] => transposed(&bytes, n_rows, n_cols),
        _ => bytes,
    })
}
