//! One tensor of a model, wherever its bytes are.

use core::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use apr_container::v2;
use st_core::TensorInfo;

use super::Part;
use crate::error::Failure;

/// Bytes read from a tensor at once.
const CHUNK: u64 = 1 << 20;

/// A tensor and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensor<'m> {
    name: &'m str,
    dtype: Dtype,
    shape: &'m [usize],
    elements: u64,
    byte_len: u64,
    place: Place<'m>,
}

/// Several tensors together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) tensors: u64,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

impl Totals {
    pub(crate) fn of(tensors: &[Tensor<'_>]) -> Self {
        let mut totals = Self::default();
        tensors.iter().for_each(|tensor| totals.add(tensor));
        totals
    }

    pub(crate) fn add(&mut self, tensor: &Tensor<'_>) {
        self.tensors += 1;
        self.elements = self.elements.saturating_add(tensor.elements);
        self.bytes = self.bytes.saturating_add(tensor.byte_len);
    }
}

/// Type of the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Dtype {
    /// One that safetensors has.
    Plain(st_core::Dtype),
    /// One of `.apr` files alone: quantized blocks, and numbers of types that no specification lists.
    Packed(v2::Dtype),
}

/// Where the bytes are.
#[derive(Clone, Copy, Debug)]
enum Place<'m> {
    SafeTensors(Part<'m>, TensorInfo<'m>),
    /// From this offset of a file.
    File(&'m File, &'m Path, u64),
    Memory(&'m [u8]),
}

impl<'m> Tensor<'m> {
    pub(super) fn of_safetensors(part: Part<'m>, info: TensorInfo<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: Dtype::Plain(info.dtype()),
            shape: info.shape(),
            elements: info.element_count(),
            byte_len: info.byte_len(),
            place: Place::SafeTensors(part, info),
        }
    }

    pub(super) fn in_memory(
        name: &'m str,
        dtype: st_core::Dtype,
        shape: &'m [usize],
        data: &'m [u8],
    ) -> Self {
        let elements = shape.iter().fold(1_u64, |count, &dim| count.saturating_mul(dim as u64));
        let byte_len = data.len() as u64;
        Self { name, dtype: Dtype::Plain(dtype), shape, elements, byte_len, place: Place::Memory(data) }
    }

    pub(super) fn in_file(
        info: v2::TensorInfo<'m>,
        shape: &'m [usize],
        file: &'m File,
        label: &'m Path,
    ) -> Self {
        Self::of_apr(info, shape, Place::File(file, label, info.file_range().start))
    }

    /// Of a file that was decompressed into memory.
    pub(super) fn inflated(info: v2::TensorInfo<'m>, shape: &'m [usize], data: &'m [u8]) -> Self {
        Self::of_apr(info, shape, Place::Memory(data))
    }

    fn of_apr(info: v2::TensorInfo<'m>, shape: &'m [usize], place: Place<'m>) -> Self {
        Self {
            name: info.name(),
            dtype: Dtype::from(info.dtype()),
            shape,
            elements: info.shape().iter().fold(1, |count: u64, &dim| count.saturating_mul(dim)),
            byte_len: info.byte_len(),
            place,
        }
    }

    pub(crate) fn name(&self) -> &'m str {
        self.name
    }

    pub(crate) fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub(crate) fn shape(&self) -> &'m [usize] {
        self.shape
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.byte_len
    }

    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Where its bytes begin in its file; `None` for a tensor that no file has as such.
    pub(crate) fn file_offset(&self) -> Option<u64> {
        match &self.place {
            Place::SafeTensors(_, info) => Some(info.file_range().start),
            Place::File(_, _, offset) => Some(*offset),
            Place::Memory(_) => None,
        }
    }

    /// Name of the shard it is in.
    pub(crate) fn shard(&self) -> Option<&'m str> {
        match &self.place {
            Place::SafeTensors(part, _) => part.shard,
            Place::File(..) | Place::Memory(_) => None,
        }
    }

    /// Reads `buf.len()` bytes from `offset` within the tensor.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or became shorter.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<(), Failure> {
        match &self.place {
            Place::SafeTensors(part, _) => {
                let range = offset..offset + buf.len() as u64;
                Ok(part.file.read_range(self.name, range, buf)?)
            }
            Place::File(file, label, start) => {
                let mut file = *file;
                let read = file.seek(SeekFrom::Start(start + offset)).and_then(|_| file.read_exact(buf));
                read.map_err(|error| Failure::io("read the tensor", label, &error).of_tensor(Some(self.name)))
            }
            Place::Memory(data) => {
                let bytes =
                    usize::try_from(offset).ok().and_then(|offset| data.get(offset..)?.get(..buf.len()));
                let bytes = bytes.ok_or_else(|| {
                    Failure::new(crate::error::CODE_INTERNAL, "a read beyond the tensor")
                        .of_tensor(Some(self.name))
                })?;
                buf.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Passes all bytes to `take`, a chunk at a time.
    ///
    /// # Errors
    ///
    /// Those of [`read`](Self::read) and of `take`.
    pub(crate) fn stream<E: From<Failure>>(
        &self,
        buf: &mut Vec<u8>,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut offset = 0;
        while offset < self.byte_len {
            let len = CHUNK.min(self.byte_len - offset);
            // At most CHUNK, which fits any usize.
            buf.resize(len as usize, 0);
            self.read(offset, buf)?;
            take(buf)?;
            offset += len;
        }
        Ok(())
    }
}

impl Dtype {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain(dtype) => dtype.name(),
            Self::Packed(dtype) => dtype.name().unwrap_or("unknown"),
        }
    }

    /// The type as safetensors has it.
    pub(crate) fn plain(self) -> Option<st_core::Dtype> {
        match self {
            Self::Plain(dtype) => Some(dtype),
            Self::Packed(_) => None,
        }
    }

    /// The type as `.apr` files of the second generation have it.
    pub(crate) fn in_apr(self) -> Option<v2::Dtype> {
        match self {
            Self::Packed(dtype) => Some(dtype),
            Self::Plain(dtype) => SHARED.iter().find(|(plain, _)| *plain == dtype).map(|(_, apr)| *apr),
        }
    }
}

/// Types that both formats have, with the same bytes.
const SHARED: [(st_core::Dtype, v2::Dtype); 8] = [
    (st_core::Dtype::F64, v2::Dtype::F64),
    (st_core::Dtype::F32, v2::Dtype::F32),
    (st_core::Dtype::F16, v2::Dtype::F16),
    (st_core::Dtype::Bf16, v2::Dtype::Bf16),
    (st_core::Dtype::I64, v2::Dtype::I64),
    (st_core::Dtype::I32, v2::Dtype::I32),
    (st_core::Dtype::I8, v2::Dtype::I8),
    (st_core::Dtype::U8, v2::Dtype::U8),
];

impl From<v2::Dtype> for Dtype {
    fn from(dtype: v2::Dtype) -> Self {
        match SHARED.iter().find(|(_, apr)| *apr == dtype) {
            Some((plain, _)) => Self::Plain(*plain),
            None => Self::Packed(dtype),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
