//! Tensors as borrowed bytes.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::v2;
use crate::v2::decode;
use crate::v2::dtype::{check_len, element_count};
use tensor_dtype::{AprType, Element, Elements};

/// A named tensor: element type, dimensions and little-endian, row-major bytes of a length that fits them.
///
/// ```
/// use apr_container::v2::{AprType, TensorView};
///
/// let bytes = [0.5f32, -2.0].map(f32::to_le_bytes);
/// let view = TensorView::new("bias", AprType::F32, &[2], bytes.as_flattened())?;
/// assert_eq!(view.to_f32()?, [0.5, -2.0]);
/// assert!(TensorView::new("bias", AprType::F32, &[3], bytes.as_flattened()).is_err());
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorView<'a> {
    name: &'a str,
    dtype: AprType,
    shape: &'a [u64],
    data: &'a [u8],
}

impl<'a> TensorView<'a> {
    /// Views bytes as a tensor.
    ///
    /// Super-blocks (`Q4_K`, `Q6_K`) of a matrix may restart with each row or span the whole tensor; for a type
    /// the specification does not list, any length will do.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::SizeMismatch`] if the data are not as long as type and shape need, [`v2::ErrorKind::SizeOverflow`]. Both name
    /// the tensor.
    pub fn new(name: &'a str, dtype: AprType, shape: &'a [u64], data: &'a [u8]) -> Result<Self, Error> {
        check_len(dtype, shape, data.len() as u64).map_err(|error| error.about(Subject::tensor(name)))?;
        Ok(Self { name, dtype, shape, data })
    }

    /// Views bytes whose length an index has validated.
    pub(crate) const fn proven(name: &'a str, dtype: AprType, shape: &'a [u64], data: &'a [u8]) -> Self {
        Self { name, dtype, shape, data }
    }

    /// Name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// Type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> AprType {
        self.dtype
    }

    /// Dimensions, the slowest first; empty for a scalar.
    #[must_use]
    pub const fn shape(&self) -> &'a [u64] {
        self.shape
    }

    /// The bytes.
    #[must_use]
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Number of elements; `u64::MAX` if a tensor of an unknown type declares more than that.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        element_count(self.shape).unwrap_or(u64::MAX)
    }

    /// The elements in place, without a copy.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::DtypeMismatch`]; [`v2::ErrorKind::UnalignedView`] and [`v2::ErrorKind::ForeignEndian`] where
    /// [`elements`](Self::elements) still works. All name the tensor.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], Error> {
        self.expect_dtype::<T>()?;
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return Err(Error::from(v2::ErrorKind::ForeignEndian).about(Subject::tensor(self.name)));
        }
        let align = align_of::<T>();
        T::slice_of(self.data).ok_or_else(|| {
            Error::from(v2::ErrorKind::UnalignedView { align }).about(Subject::tensor(self.name))
        })
    }

    /// The elements one after the other, at any alignment and on any host.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::DtypeMismatch`] names the tensor.
    pub fn elements<T: Element>(&self) -> Result<Elements<'a, T>, Error> {
        self.expect_dtype::<T>()?;
        Ok(Elements::new(self.data))
    }

    /// The elements as `f32`, in memory of their own.
    ///
    /// # Errors
    ///
    /// As [`to_f32_into`](Self::to_f32_into); [`ErrorKind::OutOfMemory`].
    pub fn to_f32(&self) -> Result<Vec<f32>, Error> {
        self.expect_decodable()?;
        let count = self.element_count();
        let no_memory = || ErrorKind::OutOfMemory { bytes: count.saturating_mul(4) };
        let count = usize::try_from(count).map_err(|_| no_memory())?;
        let mut out = vec![];
        out.try_reserve_exact(count).map_err(|_| no_memory())?;
        out.resize(count, 0.0);
        self.to_f32_into(&mut out)?;
        Ok(out)
    }

    /// The elements as `f32`: those of `F32`, `F16` and `BF16` exactly; of `AprQ4` (nibble - 8) x scale and of `AprQ8`
    /// integer x scale, each product rounded once, with the scale the file has, be it zero, tiny or not finite.
    ///
    /// # Errors
    ///
    /// [`v2::ErrorKind::DtypeMismatch`] for `F64`, integers, `Q4_K`, `Q6_K` and unknown types; [`v2::ErrorKind::DataLength`] if `out`
    /// has not as many elements as the tensor. Both name the tensor.
    pub fn to_f32_into(&self, out: &mut [f32]) -> Result<(), Error> {
        self.expect_decodable()?;
        let (needed, given) = (self.element_count(), out.len() as u64);
        if needed != given {
            return Err(
                Error::from(v2::ErrorKind::DataLength { needed, given }).about(Subject::tensor(self.name))
            );
        }
        decode::to_f32(self.dtype, self.data, out);
        Ok(())
    }

    fn expect_decodable(&self) -> Result<(), Error> {
        match decode::is_decodable(self.dtype) {
            true => Ok(()),
            false => Err(self.mismatch("floats of at most 32 bits or AprQ4, AprQ8")),
        }
    }

    fn expect_dtype<T: Element>(&self) -> Result<(), Error> {
        match self.dtype.known() == Some(T::DTYPE) {
            true => Ok(()),
            false => Err(self.mismatch(T::DTYPE.name())),
        }
    }

    fn mismatch(&self, expected: &'static str) -> Error {
        Error::from(v2::ErrorKind::DtypeMismatch { found: self.dtype, expected })
            .about(Subject::tensor(self.name))
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("bytes", &self.data.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    #[test]
    fn elements_are_read_at_any_alignment() {
        let mut buffer = [0; 24];
        for shift in 0..8 {
            let values = [1.5f64, -3.0].map(f64::to_le_bytes);
            buffer[shift..shift + 16].copy_from_slice(values.as_flattened());
            let view = TensorView::new("x", AprType::F64, &[2], &buffer[shift..shift + 16]).unwrap();
            assert!(view.elements::<f64>().unwrap().eq([1.5, -3.0]));
            match view.as_slice::<f64>() {
                Ok(slice) => assert_eq!(slice, [1.5, -3.0]),
                Err(error) => {
                    assert_eq!((error.code(), error.subject().map(Subject::name)), ("ac-v2-view", Some("x")));
                }
            }
        }
    }

    #[test]
    fn half_precision_is_widened_exactly() {
        let halves = [f16::from_f32(0.1), f16::NEG_INFINITY].map(f16::to_le_bytes);
        let view = TensorView::new("h", AprType::F16, &[2], halves.as_flattened()).unwrap();
        assert_eq!(view.to_f32().unwrap(), [0.099_975_586, f32::NEG_INFINITY]);
        assert_eq!(view.elements::<f16>().unwrap().len(), 2);
        let brains = [bf16::from_f32(3.25), bf16::from_bits(0x7FC1)].map(bf16::to_le_bytes);
        let view = TensorView::new("b", AprType::Bf16, &[1, 2], brains.as_flattened()).unwrap();
        let values = view.to_f32().unwrap().into_iter().map(f32::to_bits);
        assert!(values.eq([3.25f32.to_bits(), 0x7FC1_0000]));
        assert!(view.elements::<f16>().is_err());
    }

    #[test]
    fn other_types_and_lengths_are_refused_with_the_name() {
        let view = TensorView::new("k", AprType::Q4_K, &[1], &[0; 144]).unwrap();
        let error = view.to_f32().unwrap_err();
        assert_eq!((error.code(), error.subject().map(Subject::name)), ("ac-v2-dtype-mismatch", Some("k")));
        let view = TensorView::new("q", AprType::AprQ8, &[3], &[0; 7]).unwrap();
        let error = view.to_f32_into(&mut [0.0; 2]).unwrap_err();
        assert!(matches!(error.kind().v2(), Some(v2::ErrorKind::DataLength { needed: 3, given: 2 })));
        let error = TensorView::new("q", AprType::AprQ8, &[3], &[0; 6]).unwrap_err();
        assert!(matches!(error.kind().v2(), Some(v2::ErrorKind::SizeMismatch { declared: 6, computed: 7 })));
    }

    #[test]
    fn unknown_types_are_kept_whatever_their_shape_is() {
        let shape = [u64::MAX, 2];
        let view = TensorView::new("new", AprType(99), &shape, &[1]).unwrap();
        assert_eq!((view.element_count(), view.to_f32().is_err()), (u64::MAX, true));
    }
}
