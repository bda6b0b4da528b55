//! Quantization.

use alloc::string::String;
use alloc::vec::Vec;

use apr_quant::{Dtype, Quantizer};

use crate::failure::Failure;
use crate::values;
use crate::wire::{Answer, Arguments};

/// The names of all block types.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    apr_quant::dtypes().map(Dtype::name)
}

/// The name of a block type, the row length, the number of importance weights, the weights, the values.
///
/// # Errors
///
/// Those of the quantizer.
pub(crate) fn quantize(args: &mut Arguments<'_>) -> Result<Answer, Failure> {
    let name = args.text()?;
    let dtype = Dtype::from_name_ignore_case(name)
        .filter(|&dtype| apr_quant::is_decodable(dtype))
        .ok_or_else(|| Failure::new("aw-dtype", "no format of blocks is called so: see quantTypes()"))?;
    let row_len = args.u32()? as usize;
    let importance = values::floats_of(args.bytes()?);
    let numbers = values::floats_of(args.clone().rest());
    let n_rows = numbers.len().checked_div(row_len).unwrap_or(0);
    let len = apr_quant::byte_len(dtype, row_len as u64, n_rows as u64)?;
    let len = usize::try_from(len).map_err(|_| values::too_many())?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| values::too_many())?;
    bytes.resize(len, 0);
    let mut quantizer = Quantizer::new(dtype)?;
    if !importance.is_empty() {
        quantizer = quantizer.importance(&importance);
    }
    quantizer.quantize(&numbers, row_len, &mut bytes)?;
    Ok(Answer { bytes, json: String::new() })
}
