//! Sizes of tensors of the format's element types.

use tensor_dtype::{Dtype, SizeError};

use crate::error::{Error, ErrorKind};

/// Bytes of a tensor of this element type and shape.
///
/// Dimensions are multiplied from left to right, so a zero avoids an overflow after it, not one before it, as in the
/// official reader.
///
/// # Errors
///
/// [`ErrorKind::UnknownDtype`] for a block type, [`ErrorKind::SizeOverflow`] if elements or bits do not fit 64 bits,
/// [`ErrorKind::PartialByte`] if the elements of a sub-byte type do not fill whole bytes.
///
/// ```
/// use st_core::{Dtype, byte_len};
///
/// assert_eq!(byte_len(Dtype::Bf16, &[3, 5])?, 30);
/// assert_eq!(byte_len(Dtype::F4, &[6])?, 3);
/// assert_eq!(byte_len(Dtype::F4, &[3]).unwrap_err().code(), "st-partial-byte");
/// assert_eq!(byte_len(Dtype::Q4_K, &[256]).unwrap_err().code(), "st-dtype");
/// # Ok::<(), st_core::Error>(())
/// ```
pub fn byte_len(dtype: Dtype, shape: &[usize]) -> Result<u64, Error> {
    Ok(checked_byte_len(dtype, shape)?)
}

/// [`byte_len`], with the kind of the error alone.
#[inline]
pub(crate) fn checked_byte_len(dtype: Dtype, shape: &[usize]) -> Result<u64, ErrorKind> {
    if dtype.is_quantized() {
        return Err(ErrorKind::UnknownDtype);
    }
    dtype.byte_len(shape).map_err(|error| match error {
        SizeError::PartialByte { bits } => ErrorKind::PartialByte { bits },
        _ => ErrorKind::SizeOverflow,
    })
}
