//! Dot products of quantized rows and vectors.

use crate::codecs::{self, Scalar};
use crate::dispatch::{SimdLevel, with_simd};
use crate::dtype::check_blocks;
use crate::error::{Error, ErrorKind};
use crate::partial_sums::{row_pieces, sum};
use tensor_dtype::Dtype;

/// Dot product of a quantized row and a vector, without a buffer for the decoded row.
///
/// Element `i` is added to sum `i % 16`, each product rounded first; then sums 8 apart are added, then 4, 2 and 1 apart. The
/// result is bit-identical on every machine.
///
/// ```
/// use apr_quant::{Dtype, Quantizer, dot};
///
/// let weights: Vec<f32> = (0..64).map(|idx| idx as f32).collect();
/// let mut row = [0; 68];
/// Quantizer::new(Dtype::Q8_0)?.quantize(&weights, 64, &mut row)?;
/// let product = dot(Dtype::Q8_0, &row, &[1.0; 64])?;
/// assert!((product - 2016.0).abs() < 5.0);
/// # Ok::<(), apr_quant::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::RowLength`] if `x` is not a whole number of blocks, [`ErrorKind::BlocksLength`] if `row` is not the blocks of
/// `x.len()` elements, [`ErrorKind::NotQuantizable`] for `AprQ8`, whose scale belongs to a whole tensor.
pub fn dot(dtype: Dtype, row: &[u8], x: &[f32]) -> Result<f32, Error> {
    dot_on(SimdLevel::best(), dtype, row, x)
}

/// As [`dot`], with the instructions of this level.
///
/// # Errors
///
/// As [`dot`].
pub fn dot_on(level: SimdLevel, dtype: Dtype, row: &[u8], x: &[f32]) -> Result<f32, Error> {
    if dtype == Dtype::AprQ8 {
        return Err(ErrorKind::NotQuantizable { dtype, instead: "Q8_0" }.into());
    }
    check_blocks(dtype, row, x)?;
    Ok(with_simd!(
        level,
        simd => crate::simd::dot(simd, dtype, row, x),
        sum(Scalar, row_pieces(dtype, row, x), |bytes, values| codecs::decode(Scalar, dtype, bytes, values))
    ))
}
