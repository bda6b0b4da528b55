//! Codes without their scales, and settings of quantization beside tensors that are not quantized.

use alloc::format;
use alloc::string::String;

use json_scan::Quoted;
use located_error::{Subject, cut};
use tensor_dtype::Dtype;

use super::SourceTensor;
use super::input::{Input, MAX_METHOD, Values};
use super::leftover::leftover;
use crate::error::{Error, ErrorKind};

/// Bytes that remarks keep of the name of a tensor.
const MAX_NAME: usize = 100;

/// Whether all tensors are floats of 16 bits or more, and none is of a program for quantization: there is nothing to decode.
pub(crate) fn is_plain(tensors: &[&SourceTensor]) -> bool {
    tensors.iter().all(|tensor| {
        matches!(tensor.dtype, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16)
            && leftover(&tensor.name).is_none()
    })
}

/// Remark on a configuration that names a method where nothing is quantized: programs that merge adapters leave its settings.
pub(crate) fn passed_over(method: &str) -> String {
    let method = cut(method, MAX_METHOD);
    format!(
        "config.json says that the tensors are quantized by {method}, and all are plain floats: it is passed over"
    )
}

/// Refuses matrices of codes that no scale belongs to, whose values are up to thousands of times those of the model. `end` is what the
/// name of a scale has after that of its matrix.
///
/// # Errors
///
/// [`ErrorKind::MissingTensor`].
pub(super) fn refuse_unscaled<'i>(
    inputs: impl IntoIterator<Item = &'i (String, Input)>,
    end: &str,
) -> Result<(), Error> {
    match inputs.into_iter().find(|(_, input)| is_code(input)) {
        Some((name, _)) => {
            Err(Error::from(ErrorKind::MissingTensor).of(Subject::tensor(&format!("{name}{end}"))))
        }
        None => Ok(()),
    }
}

/// Remark on matrices of codes that are taken as values, in a folder that does not say how they are quantized.
pub(super) fn unscaled<'i>(inputs: impl IntoIterator<Item = &'i (String, Input)>) -> Option<String> {
    let mut names = inputs.into_iter().filter(|(_, input)| is_code(input)).map(|(name, _)| name);
    let first = names.next()?;
    let more = match names.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = Quoted(cut(first, MAX_NAME));
    Some(format!(
        "values of 8 bits without scales are taken as they are: {first}{more}; if the model was quantized, its scales are lost"
    ))
}

/// Whether it is a matrix of 8-bit values that nothing scales.
fn is_code(input: &Input) -> bool {
    let is_code = |dtype| matches!(dtype, Dtype::F8E4M3 | Dtype::F8E5M2 | Dtype::I8);
    input.shape.len() > 1 && matches!(input.values, Values::Stored { dtype, .. } if is_code(dtype))
}
