//! Tensors as borrowed bytes.

use core::fmt;

use crate::decode::{ToF32, ToF64};
use crate::dtype::byte_len;
use crate::error::{Error, ErrorKind};
use crate::header::Header;
use crate::limits::ReadOptions;
use crate::slice::{Bounds, Index, Slice, SlicePlan};
use tensor_dtype::Dtype;
use tensor_dtype::{Element, Elements};

/// A whole file in memory: a [`Header`] and the bytes it describes. Nothing is copied.
///
/// ```
/// use st_core::{Dtype, SafeTensors, TensorView, WriteOptions, to_vec};
///
/// let weights = [1.0f32, 2.0].map(f32::to_le_bytes);
/// let view = TensorView::new(Dtype::F32, &[2], weights.as_flattened())?;
/// let file = to_vec(&[("w", view)], &WriteOptions::default())?;
///
/// let tensors = SafeTensors::from_bytes(&file)?;
/// let w = tensors.tensor("w")?;
/// assert_eq!(w.shape(), [2]);
/// assert!(w.elements::<f32>()?.eq([1.0, 2.0]));
/// assert!(tensors.tensor("b").is_err());
/// # Ok::<(), st_core::Error>(())
/// ```
#[derive(Clone)]
pub struct SafeTensors<'data> {
    header: Header,
    data: &'data [u8],
}

impl<'data> SafeTensors<'data> {
    /// Reads a file with [`ReadOptions::STRICT`].
    ///
    /// # Errors
    ///
    /// As [`Header::from_bytes`].
    pub fn from_bytes(file: &'data [u8]) -> Result<Self, Error> {
        Self::from_bytes_with(file, &ReadOptions::STRICT)
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// As [`Header::from_bytes`].
    pub fn from_bytes_with(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        let header = Header::from_bytes(file, options)?;
        // The header was accepted for exactly these bytes.
        let data = &file[file.len() - header.data_len() as usize..];
        Ok(Self { header, data })
    }

    /// Joins a header read before with the data section it describes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DataLength`] if `data` is not exactly [`Header::data_len`] bytes long.
    pub fn from_parts(header: Header, data: &'data [u8]) -> Result<Self, Error> {
        if data.len() as u64 != header.data_len() {
            let (needed, given) = (header.data_len(), data.len() as u64);
            return Err(ErrorKind::DataLength { needed, given }.into());
        }
        Ok(Self { header, data })
    }

    /// The header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Number of tensors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.header.len()
    }

    /// Whether there is no tensor.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.header.is_empty()
    }

    /// The tensor of this name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TensorNotFound`].
    pub fn tensor(&self, name: &str) -> Result<TensorView<'_>, Error> {
        let found = self.header.tensor(name).and_then(|info| info.view(self.data));
        found.ok_or_else(|| Error::from(ErrorKind::TensorNotFound).of_tensor(name))
    }

    /// The bytes of the tensor of this name; they outlive this value.
    #[must_use]
    pub fn data(&self, name: &str) -> Option<&'data [u8]> {
        let (begin, end) = self.header.tensor(name)?.data_offsets();
        self.data.get(begin as usize..end as usize)
    }

    /// Names and tensors in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, TensorView<'_>)> {
        self.header.iter().map(|info| {
            // The header was read for exactly this data.
            let (begin, end) = info.data_offsets();
            let data = &self.data[begin as usize..end as usize];
            (info.name(), TensorView::proven(info.dtype(), info.shape(), data))
        })
    }
}

impl fmt::Debug for SafeTensors<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)
    }
}

/// A tensor: element type, dimensions, and little-endian, row-major bytes of exactly the size they imply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TensorView<'data> {
    dtype: Dtype,
    shape: &'data [usize],
    data: &'data [u8],
}

impl<'data> TensorView<'data> {
    /// Views bytes as a tensor.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SizeOverflow`], [`ErrorKind::PartialByte`], or [`ErrorKind::DataLength`] if `data` is not
    /// exactly as long as type and shape need.
    pub fn new(dtype: Dtype, shape: &'data [usize], data: &'data [u8]) -> Result<Self, Error> {
        let needed = byte_len(dtype, shape)?;
        let given = data.len() as u64;
        if given != needed {
            return Err(ErrorKind::DataLength { needed, given }.into());
        }
        Ok(Self { dtype, shape, data })
    }

    /// Views bytes whose length a header has proven.
    pub(crate) const fn proven(dtype: Dtype, shape: &'data [usize], data: &'data [u8]) -> Self {
        Self { dtype, shape, data }
    }

    /// Type of the elements.
    #[must_use]
    pub const fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Dimensions, the slowest first; empty for a scalar.
    #[must_use]
    pub const fn shape(&self) -> &'data [usize] {
        self.shape
    }

    /// The bytes.
    #[must_use]
    pub const fn data(&self) -> &'data [u8] {
        self.data
    }

    /// Number of elements.
    #[must_use]
    pub const fn element_count(&self) -> u64 {
        self.data.len() as u64 * 8 / self.dtype.bits() as u64
    }

    /// The elements, without a copy.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`]; [`ErrorKind::Misaligned`] and [`ErrorKind::ForeignEndian`] where
    /// [`elements`](Self::elements) still works.
    pub fn as_slice<T: Element>(&self) -> Result<&'data [T], Error> {
        self.expect_dtype::<T>()?;
        if cfg!(target_endian = "big") && size_of::<T>() > 1 {
            return Err(ErrorKind::ForeignEndian.into());
        }
        T::slice_of(self.data).ok_or(ErrorKind::Misaligned { align: align_of::<T>() }.into())
    }

    /// The elements one after the other, at any alignment and on any host.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`].
    pub fn elements<T: Element>(&self) -> Result<Elements<'data, T>, Error> {
        self.expect_dtype::<T>()?;
        Ok(Elements::new(self.data))
    }

    /// The elements of a float tensor (`F32`, `F16`, `BF16`, every `F8`, `F6` and `F4`) as `f32`, exactly.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`] for integers, booleans, `F64` and `C64`.
    pub fn to_f32(&self) -> Result<ToF32<'data>, Error> {
        ToF32::new(self.dtype, self.data).ok_or_else(|| self.mismatch("floats of at most 32 bits"))
    }

    /// The elements of any tensor but `C64` as `f64`: booleans as their byte, 64-bit integers rounded.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::DtypeMismatch`] for `C64`.
    pub fn to_f64(&self) -> Result<ToF64<'data>, Error> {
        ToF64::new(self.dtype, self.data).ok_or_else(|| self.mismatch("real numbers"))
    }

    /// Part of the tensor, as the pieces of its bytes.
    ///
    /// # Errors
    ///
    /// As [`SlicePlan::new`].
    ///
    /// ```
    /// use st_core::{Bounds, Dtype, Index, TensorView};
    ///
    /// let view = TensorView::new(Dtype::U8, &[3, 4], b"0123456789ab")?;
    /// let columns = view.slice(&[Index::ALL, Index::from(1..3)], Bounds::Exact)?;
    /// assert_eq!(columns.shape(), [3, 2]);
    /// assert_eq!(columns.to_vec(), b"12569a");
    /// # Ok::<(), st_core::Error>(())
    /// ```
    pub fn slice(&self, index: &[Index], bounds: Bounds) -> Result<Slice<'data>, Error> {
        Ok(Slice::new(SlicePlan::new(self.dtype, self.shape, index, bounds)?, self.data))
    }

    fn expect_dtype<T: Element>(&self) -> Result<(), Error> {
        if self.dtype == T::DTYPE { Ok(()) } else { Err(self.mismatch(T::DTYPE.name())) }
    }

    fn mismatch(&self, expected: &'static str) -> Error {
        ErrorKind::DtypeMismatch { found: self.dtype, expected }.into()
    }
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorView")
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("bytes", &self.data.len())
            .finish()
    }
}
