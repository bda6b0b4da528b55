//! Sizes of tensors by data type.

use tensor_dtype::{AprType, Dtype};

use crate::error::Error;
use crate::v2;

/// Bytes of a tensor of this type and shape, as the format's other writers lay it out: in a matrix of super-blocks each row
/// begins with a new block, all other blocks run through the whole tensor. The last block is filled up.
///
/// # Errors
///
/// [`v2::ErrorKind::UnknownDtype`]; [`v2::ErrorKind::SizeOverflow`] beyond 64 bits.
///
/// ```
/// use apr_container::v2::{AprType, byte_len};
///
/// assert_eq!(byte_len(AprType::AprQ4, &[2, 35])?, 3 * 18);
/// assert_eq!(byte_len(AprType::Q4_K, &[2, 300])?, 2 * 2 * 144);
/// # Ok::<(), apr_container::Error>(())
/// ```
pub fn byte_len(dtype: AprType, shape: &[u64]) -> Result<u64, Error> {
    let (len, _) = byte_lens(dtype, shape)?;
    Ok(len)
}

/// [`byte_len`], and the other length that occurs: super-blocks through the whole tensor.
pub(crate) fn byte_lens(dtype: AprType, shape: &[u64]) -> Result<(u64, u64), Error> {
    let known = dtype.known().ok_or(v2::ErrorKind::UnknownDtype { found: dtype.0 })?;
    element_count(shape).and_then(|count| lens(known, count, shape)).ok_or(v2::ErrorKind::SizeOverflow.into())
}

fn lens(dtype: Dtype, count: u64, shape: &[u64]) -> Option<(u64, u64)> {
    let bytes_of =
        |count: u64| count.div_ceil(dtype.block_len() as u64).checked_mul(dtype.block_bytes() as u64);
    let scale_bytes = if count > 0 { dtype.scale_bytes() as u64 } else { 0 };
    let whole = bytes_of(count)?.checked_add(scale_bytes)?;
    match *shape {
        [rows, columns] if matches!(dtype, Dtype::Q4_K | Dtype::Q6_K) => {
            Some((bytes_of(columns)?.checked_mul(rows)?, whole))
        }
        _ => Some((whole, whole)),
    }
}

/// Refuses a length that a tensor of this type and shape cannot have. Tensors of unknown types may have any length.
pub(crate) fn check_len(dtype: AprType, shape: &[u64], len: u64) -> Result<(), Error> {
    if dtype.known().is_none() {
        return Ok(());
    }
    match byte_lens(dtype, shape)? {
        (rows, whole) if len == rows || len == whole => Ok(()),
        (computed, _) => Err(v2::ErrorKind::SizeMismatch { declared: len, computed }.into()),
    }
}

/// Least alignment of a tensor's bytes: that of an element, or of a block's scale.
pub(crate) fn align(dtype: AprType) -> u64 {
    match dtype.known() {
        Some(Dtype::AprQ8) => 4,
        Some(dtype) if dtype.is_quantized() => 2,
        Some(dtype) => dtype.block_bytes() as u64,
        None => 1,
    }
}

/// Elements of a tensor of this shape: 1 without dimensions, `None` beyond 64 bits.
pub(crate) fn element_count(shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1u64, |count, &dim| count.checked_mul(dim))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_follow_the_table() {
        let cases: [(AprType, &[u64], u64); 16] = [
            (AprType::F32, &[], 4),
            (AprType::F32, &[0, u64::MAX, u64::MAX], 0),
            (AprType::F64, &[3], 24),
            (AprType::Bf16, &[7, 10], 140),
            (AprType::I8, &[3], 3),
            (AprType::AprQ4, &[2, 35], 54),
            (AprType::AprQ4, &[32], 18),
            (AprType::AprQ4, &[33], 36),
            (AprType::AprQ4, &[0], 0),
            (AprType::AprQ8, &[70], 74),
            (AprType::AprQ8, &[0], 0),
            (AprType::AprQ8, &[], 5),
            (AprType::Q4_K, &[256], 144),
            (AprType::Q4_K, &[2, 300], 4 * 144),
            (AprType::Q6_K, &[2, 2, 300], 5 * 210),
            (AprType::Q6_K, &[0, 300], 0),
        ];
        for (dtype, shape, expected) in cases {
            assert_eq!(byte_len(dtype, shape).unwrap(), expected, "{dtype} {shape:?}");
            assert!(check_len(dtype, shape, expected).is_ok());
            assert!(check_len(dtype, shape, expected + 1).is_err());
        }
    }

    #[test]
    fn super_blocks_may_run_through_the_rows() {
        assert!(check_len(AprType::Q4_K, &[2, 300], 3 * 144).is_ok());
        assert!(check_len(AprType::Q4_K, &[2, 300], 5 * 144).is_err());
    }

    #[test]
    fn overflow_is_an_error_and_unknown_types_are_carried() {
        let is_overflow = |dtype: AprType, shape: &[u64]| {
            byte_lens(dtype, shape)
                .is_err_and(|error| matches!(error.kind().v2(), Some(v2::ErrorKind::SizeOverflow)))
        };
        for dtype in Dtype::ALL.iter().filter_map(|dtype| dtype.apr_type()) {
            let huge = [u64::MAX, 2];
            assert!(is_overflow(dtype, &huge), "{dtype}");
        }
        assert!(is_overflow(AprType::F64, &[1 << 61]));
        assert!(is_overflow(AprType::AprQ8, &[u64::MAX]));
        let unknown = byte_lens(AprType(40), &[1]).unwrap_err();
        assert!(matches!(unknown.kind().v2(), Some(v2::ErrorKind::UnknownDtype { found: 40 })));
        assert!(check_len(AprType(40), &[1], 999).is_ok());
    }
}
