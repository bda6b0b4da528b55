//! Sizes of tensors in bytes.

use core::fmt;

use crate::dtype::Dtype;

/// Why a tensor of a shape has no size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SizeError {
    /// Elements, bits or bytes do not fit 64 bits.
    Overflow,
    /// The elements of a sub-byte element type do not fill whole bytes.
    PartialByte {
        /// Bits of all elements.
        bits: u64,
    },
    /// A row is not a whole number of blocks.
    PartialBlock {
        /// Elements of the row.
        row_len: u64,
    },
}

impl fmt::Display for SizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow => f.write_str("size does not fit 64 bits"),
            Self::PartialByte { bits } => write!(f, "{bits} bits are not a whole number of bytes"),
            Self::PartialBlock { row_len } => {
                write!(f, "a row of {row_len} elements is not a whole number of blocks")
            }
        }
    }
}

impl core::error::Error for SizeError {}

impl Dtype {
    /// Bytes of a tensor of this type and shape. Of a block type, each row (the last dimension) is a whole number of blocks;
    /// `AprQ4` alone fills up the last block of the tensor.
    ///
    /// Dimensions are multiplied from left to right, so a zero avoids an overflow after it, not one before it, as in the
    /// official reader of safetensors.
    ///
    /// # Errors
    ///
    /// [`SizeError`]: elements or bits that do not fit 64 bits, elements that do not fill bytes or blocks.
    ///
    /// ```
    /// use tensor_dtype::{Dtype, SizeError};
    ///
    /// assert_eq!(Dtype::Bf16.byte_len(&[3, 5]), Ok(30));
    /// assert_eq!(Dtype::F4.byte_len(&[6]), Ok(3));
    /// assert_eq!(Dtype::F4.byte_len(&[3]), Err(SizeError::PartialByte { bits: 12 }));
    /// assert_eq!(Dtype::Q4_K.byte_len(&[3, 512]), Ok(3 * 2 * 144));
    /// ```
    #[inline]
    pub fn byte_len(self, shape: &[usize]) -> Result<u64, SizeError> {
        if self.is_quantized() {
            return self.byte_len_of_blocks(shape);
        }
        let bits = product(shape)?.checked_mul(u64::from(self.bits())).ok_or(SizeError::Overflow)?;
        if bits.is_multiple_of(8) { Ok(bits / 8) } else { Err(SizeError::PartialByte { bits }) }
    }

    #[cold]
    fn byte_len_of_blocks(self, shape: &[usize]) -> Result<u64, SizeError> {
        match shape.split_last() {
            Some((&row_len, front)) => self.byte_len_of_rows(row_len as u64, product(front)?),
            None => self.byte_len_of_rows(1, 1),
        }
    }

    /// Bytes of `n_rows` rows of `row_len` elements each; see [`byte_len`](Self::byte_len).
    ///
    /// # Errors
    ///
    /// [`SizeError::Overflow`] beyond 64 bits, [`SizeError::PartialBlock`] if a row is not a whole number of blocks.
    ///
    /// ```
    /// use tensor_dtype::{Dtype, SizeError};
    ///
    /// assert_eq!(Dtype::Q8_0.byte_len_of_rows(64, 3), Ok(3 * 2 * 34));
    /// assert_eq!(Dtype::Q8_0.byte_len_of_rows(33, 1), Err(SizeError::PartialBlock { row_len: 33 }));
    /// assert_eq!(Dtype::AprQ4.byte_len_of_rows(35, 2), Ok(3 * 18));
    /// assert_eq!(Dtype::AprQ8.byte_len_of_rows(35, 2), Ok(4 + 70));
    /// ```
    pub const fn byte_len_of_rows(self, row_len: u64, n_rows: u64) -> Result<u64, SizeError> {
        let (block_len, block_bytes) = (self.block_len() as u64, self.block_bytes() as u64);
        let Some(count) = row_len.checked_mul(n_rows) else { return Err(SizeError::Overflow) };
        if !row_len.is_multiple_of(block_len) && !matches!(self, Self::AprQ4) {
            return Err(SizeError::PartialBlock { row_len });
        }
        let Some(bytes) = count.div_ceil(block_len).checked_mul(block_bytes) else {
            return Err(SizeError::Overflow);
        };
        let scale_bytes = if count > 0 { self.scale_bytes() as u64 } else { 0 };
        match bytes.checked_add(scale_bytes) {
            Some(bytes) => Ok(bytes),
            None => Err(SizeError::Overflow),
        }
    }
}

#[inline]
fn product(shape: &[usize]) -> Result<u64, SizeError> {
    let mut count = 1u64;
    for &dim in shape {
        count = count.checked_mul(dim as u64).ok_or(SizeError::Overflow)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_len_multiplies_from_left_to_right() {
        assert_eq!(Dtype::U8.byte_len(&[0, 1 << 63, 4]), Ok(0));
        assert_eq!(Dtype::U8.byte_len(&[1 << 63, 4, 0]), Err(SizeError::Overflow));
        assert_eq!(Dtype::F4.byte_len(&[1 << 62]), Err(SizeError::Overflow));
    }

    #[test]
    fn lengths_of_blocks_are_checked() {
        assert_eq!(Dtype::AprQ4.byte_len_of_rows(35, 2), Ok(3 * 18));
        assert_eq!(Dtype::AprQ8.byte_len_of_rows(35, 2), Ok(74));
        assert_eq!(Dtype::AprQ8.byte_len_of_rows(0, 2), Ok(0));
        assert_eq!(Dtype::F64.byte_len_of_rows(u64::MAX, 1), Err(SizeError::Overflow));
        assert_eq!(Dtype::Q8_0.byte_len_of_rows(1 << 63, 4), Err(SizeError::Overflow));
        assert_eq!(Dtype::Q4_0.byte_len_of_rows(33, 1), Err(SizeError::PartialBlock { row_len: 33 }));
        assert_eq!(Dtype::Q4_0.byte_len(&[]), Err(SizeError::PartialBlock { row_len: 1 }));
    }
}
