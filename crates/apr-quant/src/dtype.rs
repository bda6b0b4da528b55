//! The data types that this crate decodes, and their sizes with this crate's errors.

use tensor_dtype::{Dtype, SizeError};

use crate::codecs;
use crate::error::{Error, ErrorKind};

/// Types that this crate decodes: floats and signed integers of whole bytes, and all block types.
pub fn dtypes() -> impl Iterator<Item = Dtype> + Clone {
    Dtype::ALL.iter().copied().filter(|&dtype| is_decodable(dtype))
}

/// Whether this crate decodes a type.
#[must_use]
pub const fn is_decodable(dtype: Dtype) -> bool {
    codecs::is_decodable(dtype)
}

/// Bytes of `n_rows` rows of `row_len` elements.
///
/// ```
/// use apr_quant::{Dtype, byte_len};
///
/// assert_eq!(byte_len(Dtype::Q4_K, 512, 3)?, 3 * 2 * 144);
/// assert_eq!(byte_len(Dtype::Q4_K, 128, 2).unwrap_err().code(), "q-row-length");
/// # Ok::<(), apr_quant::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::RowLength`] if a row is not a whole number of blocks (`AprQ4` alone fills up the last block of the tensor),
/// [`ErrorKind::TooLong`] beyond 64 bits.
pub fn byte_len(dtype: Dtype, row_len: u64, n_rows: u64) -> Result<u64, Error> {
    dtype.byte_len_of_rows(row_len, n_rows).map_err(|error| match error {
        SizeError::Overflow => ErrorKind::TooLong.into(),
        _ => ErrorKind::RowLength { dtype, row_len }.into(),
    })
}

/// Checks that the bytes are the blocks of as many elements.
pub(crate) fn check_blocks(dtype: Dtype, bytes: &[u8], elements: &[f32]) -> Result<(), Error> {
    if !codecs::is_decodable(dtype) {
        return Err(ErrorKind::NotDecodable { dtype }.into());
    }
    let expected = byte_len(dtype, elements.len() as u64, 1)?;
    if bytes.len() as u64 != expected {
        return Err(ErrorKind::BlocksLength { dtype, expected, found: bytes.len() as u64 }.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_sizes_are_this_crates() {
        assert_eq!(byte_len(Dtype::F64, u64::MAX, 1).unwrap_err().code(), "q-too-long");
        assert_eq!(byte_len(Dtype::Q8_0, 1 << 63, 4).unwrap_err().code(), "q-too-long");
        assert_eq!(byte_len(Dtype::Q4_0, 33, 1).unwrap_err().code(), "q-row-length");
    }

    #[test]
    fn every_type_of_ggml_is_decoded() {
        for dtype in Dtype::ALL {
            let has_codec = dtype.ggml_type().is_some() || dtype.is_quantized();
            assert_eq!(is_decodable(*dtype), has_codec, "{dtype}");
        }
    }
}
