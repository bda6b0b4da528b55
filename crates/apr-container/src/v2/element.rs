//! Rust types that tensors hold.

use core::marker::PhantomData;

use half::slice::HalfBitsSliceExt;
use half::{bf16, f16};

use crate::v2::dtype::Dtype;

/// A Rust type with the bytes of a tensor element: the signed integers and `u8` the format has, `f32`, `f64`, and
/// `f16`, `bf16` of the `half` crate.
pub trait Element: Copy + sealed::Sealed {
    /// The element type of the format.
    const DTYPE: Dtype;

    /// The element in these little-endian bytes; `None` unless there are as many as it takes.
    fn from_le_slice(bytes: &[u8]) -> Option<Self>;

    /// The elements in these bytes of the host's byte order, where they lie; `None` if the bytes are not aligned or not
    /// a whole number of elements.
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
    i32: I32 = cast,
    i64: I64 = cast,
    f32: F32 = cast,
    f64: F64 = cast,
    f16: F16 = |bytes| cast::<u16>(bytes).map(HalfBitsSliceExt::reinterpret_cast),
    bf16: Bf16 = |bytes| cast::<u16>(bytes).map(HalfBitsSliceExt::reinterpret_cast),
}

/// The elements of a tensor one after the other, whatever their alignment and the host's byte order.
#[derive(Clone, Debug)]
pub struct Elements<'data, T> {
    chunks: core::slice::ChunksExact<'data, u8>,
    element: PhantomData<T>,
}

impl<'data, T: Element> Elements<'data, T> {
    pub(crate) fn new(data: &'data [u8]) -> Self {
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

impl<T: Element> ExactSizeIterator for Elements<'_, T> {}
