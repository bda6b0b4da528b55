//! Quantization and dequantization of rows.

use crate::blocks::Weighed;
use crate::codecs::{self, Scalar};
use crate::dispatch::{SimdLevel, with_simd};
use crate::dtype::{byte_len, check_blocks};
use crate::error::{Error, ErrorKind};
use crate::rows::{NonFinite, Rows};
use tensor_dtype::Dtype;

/// Quantizes rows of values, bit for bit as ggml's reference quantizers (`ggml-quants.c` of ggml 0.25.3, llama.cpp commit 0c1e57098).
///
/// ```
/// use apr_quant::{Dtype, Quantizer, dequantize};
///
/// let values: Vec<f32> = (0..64).map(|idx| idx as f32 / 32.0 - 1.0).collect();
/// let mut blocks = [0; 68];
/// Quantizer::new(Dtype::Q8_0)?.quantize(&values, 64, &mut blocks)?;
///
/// let mut back = [0.0; 64];
/// dequantize(Dtype::Q8_0, &blocks, &mut back)?;
/// assert!(values.iter().zip(&back).all(|(value, back)| (value - back).abs() < 0.005));
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quantizer<'w> {
    dtype: Dtype,
    importance: Option<&'w [f32]>,
    non_finite: NonFinite,
    level: SimdLevel,
}

impl<'w> Quantizer<'w> {
    /// A quantizer for this format.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotQuantizable`] for formats that are read only; the error says what to use instead.
    pub fn new(dtype: Dtype) -> Result<Self, Error> {
        if !codecs::is_encodable(dtype) {
            return Err(codecs::not_quantizable(dtype));
        }
        Ok(Self { dtype, importance: None, non_finite: NonFinite::Refuse, level: SimdLevel::best() })
    }

    /// Weights of the errors, one per column, the same for every row. Formats whose reference has no weights ignore them.
    #[must_use]
    pub const fn importance(mut self, weights: &'w [f32]) -> Self {
        self.importance = Some(weights);
        self
    }

    /// Handling of input that no block type represents.
    #[must_use]
    pub const fn non_finite(mut self, non_finite: NonFinite) -> Self {
        self.non_finite = non_finite;
        self
    }

    /// SIMD level; the best one of this CPU by default. All give the same bits.
    #[must_use]
    pub const fn simd(mut self, level: SimdLevel) -> Self {
        self.level = level;
        self
    }

    /// Quantizes whole rows of `row_len` elements into exactly the bytes they take.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::RowLength`] if a row is not a whole number of blocks, [`ErrorKind::ValuesLength`] if the values are
    ///   not a whole number of rows, [`ErrorKind::OutputLength`] if `out` does not have the length of their blocks.
    /// - [`ErrorKind::ImportanceLength`] and [`ErrorKind::ImportanceValue`] for a wrong number of weights, or a weight that is
    ///   negative or not finite.
    /// - [`ErrorKind::NonFinite`], [`ErrorKind::ScaleTooSmall`] and [`ErrorKind::ScaleTooLarge`] for values that the
    ///   format cannot hold. `out` then holds the blocks before the error; the bytes after them are unspecified.
    pub fn quantize(&self, values: &[f32], row_len: usize, out: &mut [u8]) -> Result<(), Error> {
        self.check(values, row_len, out)?;
        let Self { dtype, importance, non_finite, level } = *self;
        let importance = importance.filter(|_| uses_importance(dtype));
        let rows = Rows { dtype, values, row_len, importance, non_finite };
        with_simd!(level, simd => crate::simd::encode(simd, &rows, out), codecs::encode(Scalar, &rows, out))
    }

    /// Checks the lengths and the importance weights.
    pub(crate) fn check(&self, values: &[f32], row_len: usize, out: &[u8]) -> Result<(), Error> {
        let count = values.len() as u64;
        if row_len == 0 && count > 0 || row_len > 0 && !values.len().is_multiple_of(row_len) {
            return Err(ErrorKind::ValuesLength { row_len: row_len as u64, count }.into());
        }
        let n_rows = values.len().checked_div(row_len).unwrap_or(0) as u64;
        let expected = byte_len(self.dtype, row_len as u64, n_rows)?;
        if out.len() as u64 != expected {
            return Err(ErrorKind::OutputLength { expected, found: out.len() as u64 }.into());
        }
        if let Some(weights) = self.importance {
            check_importance(weights, row_len)?;
        }
        Ok(())
    }

    #[cfg(feature = "rayon")]
    pub(crate) const fn dtype(&self) -> Dtype {
        self.dtype
    }

    #[cfg(feature = "rayon")]
    pub(crate) const fn has_importance(&self) -> bool {
        self.importance.is_some()
    }
}

fn check_importance(weights: &[f32], row_len: usize) -> Result<(), Error> {
    if weights.len() != row_len {
        let (expected, found) = (row_len as u64, weights.len() as u64);
        return Err(ErrorKind::ImportanceLength { expected, found }.into());
    }
    match weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
        Some(column) => Err(ErrorKind::ImportanceValue { column: column as u64 }.into()),
        None => Ok(()),
    }
}

/// Whether importance weights change what becomes of values in this format. Formats whose reference has no weights ignore them.
#[must_use]
pub fn uses_importance(dtype: Dtype) -> bool {
    codecs::rules_of(dtype).weighed != Weighed::Never
}

/// Dequantizes blocks into `out`, which must have exactly as many elements.
///
/// Integers and 64-bit floats become the nearest `f32`.
///
/// # Errors
///
/// [`ErrorKind::RowLength`] if `out` is not a whole number of blocks, [`ErrorKind::BlocksLength`] if the bytes are not the
/// blocks of as many elements, [`ErrorKind::NotDecodable`] for a type that this crate does not decode.
pub fn dequantize(dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    // Built for size, each step of the lanes is a call, and takes up to ten times as long as an element at a time.
    let level = if cfg!(apr_small) { SimdLevel::SCALAR } else { SimdLevel::best() };
    dequantize_on(level, dtype, bytes, out)
}

/// As [`dequantize`], with the instructions of this level.
///
/// # Errors
///
/// As [`dequantize`].
pub fn dequantize_on(level: SimdLevel, dtype: Dtype, bytes: &[u8], out: &mut [f32]) -> Result<(), Error> {
    check_blocks(dtype, bytes, out)?;
    with_simd!(level, simd => crate::simd::decode(simd, dtype, bytes, out), codecs::decode(Scalar, dtype, bytes, out));
    Ok(())
}
