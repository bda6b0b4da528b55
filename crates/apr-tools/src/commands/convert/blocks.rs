//! Conversion of quantized tensors to a format with other blocks, or none.

use apr_quant::Dtype;
use tensor_dtype::TensorType;

use crate::error::Failure;

use crate::input::{Format, Tensor, decodable};

/// What becomes of blocks that the new format lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Blocks with the same values; if there are none, the tensor is refused.
    Exact,
    /// The nearest thing that the format has: at last `F32`.
    Nearest,
}

/// Chooses a type of the format for quantized tensors, and reports which of them change; a tensor whose values are the same in
/// other blocks is.
///
/// # Errors
///
/// If a tensor cannot be read, or has blocks that cannot be decoded.
pub(super) fn fit(tensors: &mut [Tensor<'_>], to: Format, blocks: Blocks) -> Result<Vec<String>, Failure> {
    let mut changed = Vec::new();
    for tensor in tensors {
        let fitted = match (to, tensor.dtype()) {
            (_, dtype) if dtype.element().is_some() => continue,
            // NumPy has some of them.
            (Format::Foreign(_), TensorType::Other(_)) => continue,
            (_, TensorType::Other(_)) => return tensor.check_type().map(|()| changed),
            // Not written.
            (Format::AprV1 | Format::Sealed | Format::Foreign(_), _) => continue,
            (Format::AprV2, dtype) if dtype.apr_type().is_some() => continue,
            (Format::AprV2, _) => tensor.repacked(Dtype::AprQ4),
            (Format::Gguf, _) => in_gguf(tensor, blocks, &mut changed)?,
            (Format::SafeTensors, _) => match blocks {
                Blocks::Exact => None,
                Blocks::Nearest => {
                    Some(plain(tensor, "safetensors has no quantized types".to_owned(), &mut changed)?)
                }
            },
        };
        *tensor = fitted.unwrap_or(*tensor);
    }
    Ok(changed)
}

/// The tensor as a GGUF file can hold it; `None` if it is one already, or none is near enough.
fn in_gguf<'m>(
    tensor: &Tensor<'m>,
    blocks: Blocks,
    changed: &mut Vec<String>,
) -> Result<Option<Tensor<'m>>, Failure> {
    let format = decodable(tensor.dtype());
    if format.is_some_and(|format| format.ggml_type().is_some() && tensor.has_rows_of(format)) {
        return Ok(None);
    }
    if let Some(same) = tensor.repacked(Dtype::Q4_0) {
        return Ok(Some(same));
    }
    match tensor.with_half_scale()? {
        Some((same, 0.0)) => return Ok(Some(same)),
        Some((near, difference)) if blocks == Blocks::Nearest => {
            changed.push(format!(
                "tensor {} as {}: it is {} with its scale rounded to 16 bits, and no number differs by more than {difference:.1e}",
                tensor.name(),
                tensor.dtype(),
                near.dtype(),
            ));
            return Ok(Some(near));
        }
        _ => {}
    }
    if blocks == Blocks::Exact {
        return Ok(None);
    }
    let row_len = tensor.shape().last().copied().unwrap_or(1);
    let why = match format {
        Some(Dtype::AprQ8) if row_len.is_multiple_of(Dtype::Q8_0.block_len()) => {
            "its scale is no normal number of 16 bits".to_owned()
        }
        _ => format!("its rows of {row_len} elements are not whole blocks"),
    };
    plain(tensor, why, changed).map(Some)
}

fn plain<'m>(tensor: &Tensor<'m>, why: String, changed: &mut Vec<String>) -> Result<Tensor<'m>, Failure> {
    let plain = tensor.dequantized(Dtype::F32)?;
    changed.push(format!("tensor {} as {}: it is F32, because {why}", tensor.name(), tensor.dtype()));
    Ok(plain)
}
