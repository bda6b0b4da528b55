//! Rust types of tensor elements.

use core::marker::PhantomData;

use half::slice::HalfBitsSliceExt;
use half::{bf16, f16};

use crate::dtype::Dtype;

/// A Rust type with the representation of a tensor element: integers, `f32`, `f64`, and `f16`, `bf16` of the `half`
/// crate.
pub trait Element: Copy + sealed::Sealed {
    /// The element type.
    const DTYPE: Dtype;

    /// The element in these little-endian bytes; `None` unless there are as many as it takes.
    fn from_le_slice(bytes: &[u8]) -> Option<Self>;

    /// The elements in these bytes of the host's byte order, without a copy; `None` if the bytes are not
    /// aligned or not a whole number of elements.
    fn slice_of(bytes: &[u8]) -> Option<&[Self]>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty: $dtype:ident = $slice_of:expr,)*) => {$(
        impl sealed::Sealed for $ty {}

        impl Element for $ty {
            const DTYPE: Dtype = Dtype::$dtype;

            #[inline]
            fn from_le_slice(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }

            fn slice_of(bytes: &[u8]) -> Option<&[Self]> {
                $slice_of(bytes)
            }
        }
    )*};
}

fn cast<T: bytemuck::Pod>(bytes: &[u8]) -> Option<&[T]> {
    bytemuck::try_cast_slice(bytes).ok()
}

elements! {
    u8: U8 = cast,
    i8: I8 = cast,
    u16: U16 = cast,
    i16: I16 = cast,
    u32: U32 = cast,
    i32: I32 = cast,
    u64: U64 = cast,
    i64: I64 = cast,
    f32: F32 = cast,
    f64: F64 = cast,
    f16: F16 = |bytes| cast::<u16>(bytes).map(HalfBitsSliceExt::reinterpret_cast),
    bf16: Bf16 = |bytes| cast::<u16>(bytes).map(HalfBitsSliceExt::reinterpret_cast),
}

/// Iterator over the elements of a tensor, for any alignment and byte order of the host.
#[derive(Clone, Debug)]
pub struct Elements<'data, T> {
    chunks: core::slice::ChunksExact<'data, u8>,
    element: PhantomData<T>,
}

impl<'data, T: Element> Elements<'data, T> {
    /// The elements of little-endian bytes; bytes after the last whole element are left out.
    #[must_use]
    pub fn new(data: &'data [u8]) -> Self {
        Self { chunks: data.chunks_exact(size_of::<T>()), element: PhantomData }
    }
}

impl<T: Element> Iterator for Elements<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        T::from_le_slice(self.chunks.next()?)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.chunks.size_hint()
    }
}

impl<T: Element> DoubleEndedIterator for Elements<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        T::from_le_slice(self.chunks.next_back()?)
    }
}

impl<T: Element> ExactSizeIterator for Elements<'_, T> {}
