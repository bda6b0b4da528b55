//! Dot products of quantized rows and vectors.

use crate::dispatch::{SimdLevel, with_simd};
use crate::error::{Error, ErrorKind};
use crate::quantizer::check_blocks;
use crate::rows::{self, Instructions, Scalar};
use tensor_dtype::Dtype;

/// Elements decoded at once: a whole number of blocks of each type, and of SIMD lanes.
const AT_ONCE: usize = 256;
/// Independent partial sums.
const SUMS: usize = 16;

/// Dot product of a quantized row and a vector, without a buffer for the decoded row.
///
/// Element `i` is added to sum `i % 16`, each product rounded before; then sums 8 apart are added, then 4, 2 and 1 apart. The bits are
/// the same on every machine.
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
/// [`ErrorKind::RowLength`] if there is not a number for each element of whole blocks, [`ErrorKind::BlocksLength`] if the row does not
/// have the bytes of as many elements, [`ErrorKind::NotQuantizable`] for `AprQ8`, whose scale belongs to a whole tensor.
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
        sum(Scalar, row_pieces(dtype, row, x), |bytes, values| rows::decode(Scalar, dtype, bytes, values))
    ))
}

/// The row and the numbers in pieces that belong together.
pub(crate) fn row_pieces<'a>(
    dtype: Dtype,
    row: &'a [u8],
    x: &'a [f32],
) -> impl Iterator<Item = (&'a [u8], &'a [f32])> {
    row.chunks(AT_ONCE / dtype.block_len() * dtype.block_bytes()).zip(x.chunks(AT_ONCE))
}

pub(crate) fn sum<'a, I: Instructions>(
    on: I,
    pieces: impl Iterator<Item = (&'a [u8], &'a [f32])>,
    decode: impl Fn(&[u8], &mut [f32]),
) -> f32 {
    let mut values = [0.0; AT_ONCE];
    let mut sums = [0.0; SUMS];
    for (bytes, x) in pieces {
        let values = &mut values[..x.len()];
        decode(bytes, values);
        on.run(
            #[inline(always)]
            || add(&mut sums, values, x),
        );
    }
    let mut apart = SUMS / 2;
    while apart > 0 {
        for idx in 0..apart {
            sums[idx] += sums[idx + apart];
        }
        apart /= 2;
    }
    sums[0]
}

/// Adds products to the sums.
#[inline(always)]
fn add(sums: &mut [f32; SUMS], values: &[f32], x: &[f32]) {
    let ((values, rest), (x, x_rest)) = (values.as_chunks::<SUMS>(), x.as_chunks::<SUMS>());
    for (values, x) in values.iter().zip(x) {
        for ((sum, value), x) in sums.iter_mut().zip(values).zip(x) {
            *sum += value * x;
        }
    }
    for ((sum, value), x) in sums.iter_mut().zip(rest).zip(x_rest) {
        *sum += value * x;
    }
}
