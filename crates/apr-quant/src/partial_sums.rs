//! Sums of products in [`SUMS`] independent partial sums, in an order that does not depend on the instructions.

use crate::codecs::Instructions;
use tensor_dtype::Dtype;

/// Elements decoded at once: a whole number of blocks of each type, and of SIMD lanes.
const AT_ONCE: usize = 256;
/// Independent partial sums.
const SUMS: usize = 16;

/// Blocks of a row together with the elements of `x` that they are multiplied with, in pieces of [`AT_ONCE`] elements.
pub(crate) fn row_pieces<'a>(
    dtype: Dtype,
    row: &'a [u8],
    x: &'a [f32],
) -> impl Iterator<Item = (&'a [u8], &'a [f32])> {
    row.chunks(AT_ONCE / dtype.block_len() * dtype.block_bytes()).zip(x.chunks(AT_ONCE))
}

/// Decodes each piece, adds its products to the partial sums, and returns their total.
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

/// Adds the products of `values` and `x` to the sums.
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
