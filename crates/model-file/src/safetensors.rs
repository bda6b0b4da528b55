//! safetensors: one file or a set of shards.

use alloc::vec::Vec;

use read_at::ReadAt;
#[cfg(feature = "std")]
use st_core::ShardIndex;
use st_core::{Header, ReadOptions};
#[cfg(feature = "std")]
use st_mmap::{SafeTensorsFile, ShardedSafeTensors};

use crate::content::read_prefix;
use crate::error::Error;
#[cfg(feature = "std")]
use crate::tensor::Part;
use crate::tensor::Tensor;

/// The header of a safetensors file, or of each file of a set.
#[derive(Debug)]
pub enum SafeTensors {
    /// Of bytes read by offset.
    Header(Header),
    /// Of a file.
    #[cfg(feature = "std")]
    File(SafeTensorsFile),
    /// Of a set of shards with their index.
    #[cfg(feature = "std")]
    Sharded(ShardedSafeTensors),
}

impl SafeTensors {
    pub(crate) fn read(content: &dyn ReadAt, options: &ReadOptions) -> Result<Self, Error> {
        let len = content.total_len();
        let mut prefix = read_prefix(content, 8)?;
        if let Some(first) = prefix.first_chunk::<8>() {
            // Within the limit, and within the content.
            let header_len = Header::declared_len(*first, len, options)?;
            prefix = read_prefix(content, 8 + header_len)?;
        }
        Ok(Self::Header(Header::from_prefix(&prefix, len, options)?))
    }

    /// The headers of its files, shards in the order of their names.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    pub fn headers(&self) -> Result<Vec<&Header>, Error> {
        match self {
            Self::Header(header) => Ok(alloc::vec![header]),
            #[cfg(feature = "std")]
            _ => Ok(self.parts()?.into_iter().map(|part| part.file.header()).collect()),
        }
    }

    /// Its files, shards in the order of their names; none of bytes that are no file.
    ///
    /// # Errors
    ///
    /// If a shard cannot be opened.
    #[cfg(feature = "std")]
    pub fn parts(&self) -> Result<Vec<Part<'_>>, Error> {
        match self {
            Self::Header(_) => Ok(Vec::new()),
            Self::File(file) => Ok(alloc::vec![Part { file, shard: None }]),
            Self::Sharded(set) => {
                let index = set.index().into_iter().flat_map(ShardIndex::weight_map);
                let mut listed: Vec<(&str, &str)> = index.map(|(tensor, shard)| (shard, tensor)).collect();
                listed.sort_unstable();
                listed.dedup_by_key(|&mut (shard, _)| shard);
                let part = |(shard, tensor)| Ok(Part { file: set.file_of(tensor)?, shard: Some(shard) });
                listed.into_iter().map(part).collect()
            }
        }
    }

    /// The tensor at this index of one file; `None` of a set of shards.
    pub(crate) fn tensor_at<'m>(&'m self, index: usize, content: &'m dyn ReadAt) -> Option<Tensor<'m>> {
        match self {
            Self::Header(header) => Some(Tensor::of_safetensors(header.get(index)?, content)),
            #[cfg(feature = "std")]
            Self::File(file) => Some(Tensor::of_part(Part { file, shard: None }, file.header().get(index)?)),
            #[cfg(feature = "std")]
            Self::Sharded(_) => None,
        }
    }

    pub(crate) fn tensors<'m>(&'m self, content: &'m dyn ReadAt) -> Result<Vec<Tensor<'m>>, Error> {
        match self {
            Self::Header(header) => {
                let mut tensors = Vec::with_capacity(header.len());
                for info in header.iter() {
                    tensors.push(Tensor::of_safetensors(info, content));
                }
                Ok(tensors)
            }
            #[cfg(feature = "std")]
            _ => {
                let parts = self.parts()?;
                let tensors = parts
                    .iter()
                    .flat_map(|&part| part.file.header().iter().map(move |info| Tensor::of_part(part, info)));
                Ok(tensors.collect())
            }
        }
    }
}
