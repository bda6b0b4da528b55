//! Tensors of `.apr` files.

use apr_container::v2;
use read_at::ReadAt;
use tensor_dtype::TensorType;

use super::{Origin, Place, Tensor};

impl<'m> Tensor<'m> {
    pub(crate) fn in_memory(name: &'m str, dtype: TensorType, shape: &'m [usize], data: &'m [u8]) -> Self {
        let elements = shape.iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
        let byte_len = data.len() as u64;
        let place = Place::Memory(data);
        Self {
            name,
            dtype,
            shape,
            elements,
            byte_len,
            place,
            #[cfg(feature = "quantize")]
            shown: None,
            #[cfg(feature = "foreign")]
            alias_of: None,
        }
    }

    pub(crate) fn stored(info: v2::TensorInfo<'m>, shape: &'m [usize], content: &'m dyn ReadAt) -> Self {
        Self::of_apr(info, shape, Place::Stored(Origin { content, offset: info.file_range().start }))
    }

    /// Of a file that was decompressed into memory.
    pub(crate) fn inflated(info: v2::TensorInfo<'m>, shape: &'m [usize], data: &'m [u8]) -> Self {
        Self::of_apr(info, shape, Place::Memory(data))
    }

    fn of_apr(info: v2::TensorInfo<'m>, shape: &'m [usize], place: Place<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: TensorType::from(info.dtype()),
            shape,
            elements: info.shape().iter().fold(1, |count: u64, &dim| count.saturating_mul(dim)),
            byte_len: info.byte_len(),
            place,
            #[cfg(feature = "quantize")]
            shown: None,
            #[cfg(feature = "foreign")]
            alias_of: None,
        }
    }
}
