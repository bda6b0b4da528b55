//! Tensors of `.apr` files.

use apr_container::v2;
use read_at::ReadAt;
use tensor_dtype::TensorType;

use super::{Origin, Place, Tensor, elements_of};

impl<'m> Tensor<'m> {
    pub(crate) fn in_memory(name: &'m str, dtype: TensorType, shape: &'m [usize], data: &'m [u8]) -> Self {
        Self::new((name, dtype), (shape, elements_of(shape)), data.len() as u64, Place::Memory(data))
    }

    pub(crate) fn stored(info: v2::TensorInfo<'m>, shape: &'m [usize], content: &'m dyn ReadAt) -> Self {
        Self::of_apr(info, shape, Place::Stored(Origin { content, offset: info.file_range().start }))
    }

    /// Of a file that was decompressed into memory.
    pub(crate) fn inflated(info: v2::TensorInfo<'m>, shape: &'m [usize], data: &'m [u8]) -> Self {
        Self::of_apr(info, shape, Place::Memory(data))
    }

    fn of_apr(info: v2::TensorInfo<'m>, shape: &'m [usize], place: Place<'m>) -> Self {
        let kind = (info.name(), TensorType::from(info.dtype()));
        Self::new(kind, (shape, elements_of(shape)), info.byte_len(), place)
    }
}
