//! Bytes of tensors in shards, compared with their checksums.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use read_at::ReadAt;

use crate::error::Error;
use crate::tensor::{Decode, reserved};

use super::crc::masked;

/// A file with bytes of tensors.
pub(super) type Shard = Arc<dyn ReadAt + Send + Sync>;

/// Bytes of a shard and their checksum.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) shard: Shard,
    pub(super) range: Range<u64>,
    pub(super) checksum: u32,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("range", &self.range).finish_non_exhaustive()
    }
}

impl Stored {
    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let len = self.range.end - self.range.start;
        let mut bytes = reserved(len)?;
        bytes.resize(len as usize, 0);
        self.shard.read_exact_at(self.range.start, &mut bytes)?;
        if masked(&bytes) == self.checksum || bytes.is_empty() {
            Ok(bytes)
        } else {
            Err(Error::malformed("the data of a tensor does not have its checksum").at(self.range.start))
        }
    }
}

impl Decode for Stored {
    fn decode(&self, _: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        self.bytes()
    }
}

/// A tensor in parts that fill it exactly.
#[derive(Debug)]
pub(super) struct Sliced {
    /// Of the whole.
    pub(super) shape: Vec<u64>,
    /// Bytes of an element.
    pub(super) width: u64,
    /// Begin and length in each dimension, and the bytes.
    pub(super) parts: Vec<(Vec<(u64, u64)>, Stored)>,
}

impl Decode for Sliced {
    fn decode(&self, _: &dyn ReadAt) -> Result<Vec<u8>, Error> {
        let len = self.shape.iter().product::<u64>() * self.width;
        let mut whole = reserved(len)?;
        whole.resize(len as usize, 0);
        for (extents, stored) in &self.parts {
            let part = stored.bytes()?;
            let Some(((start, row), outer)) = extents.split_last() else {
                // A scalar.
                whole = part;
                continue;
            };
            let row_len = (row * self.width) as usize;
            let mut index = alloc::vec![0_u64; outer.len()];
            for bytes in part.chunks_exact(row_len.max(1)) {
                // The place of the row, dimension by dimension.
                let dims = index.iter().zip(outer).map(|(at, (start, _))| at + start).chain([*start]);
                let at = dims.zip(&self.shape).fold(0, |at, (idx, dim)| at * dim + idx) * self.width;
                let rest = whole.get_mut(at as usize..).and_then(|rest| rest.get_mut(..row_len));
                rest.ok_or_else(short)?.copy_from_slice(bytes);
                for (digit, (_, len)) in index.iter_mut().zip(outer).rev() {
                    *digit += 1;
                    if *digit < *len {
                        break;
                    }
                    *digit = 0;
                }
            }
        }
        Ok(whole)
    }
}

fn short() -> Error {
    Error::view("a part of it is shorter than its shape")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> Stored {
        Stored { shard: Arc::new(bytes.to_vec()), range: 0..bytes.len() as u64, checksum: masked(bytes) }
    }

    #[test]
    fn parts_are_put_at_their_place() {
        let sliced = Sliced {
            shape: [2, 2, 3].to_vec(),
            width: 1,
            parts: [
                ([(0, 2), (0, 1), (0, 2)].to_vec(), part(b"abgh")),
                ([(0, 2), (1, 1), (0, 2)].to_vec(), part(b"dejk")),
                ([(0, 2), (0, 2), (2, 1)].to_vec(), part(b"cfil")),
            ]
            .to_vec(),
        };
        assert_eq!(sliced.decode(&[][..].to_vec()).unwrap(), b"abcdefghijkl");
        let mut damaged = part(b"abc");
        damaged.checksum ^= 1;
        assert_eq!(damaged.decode(&Vec::new()).unwrap_err().code(), "ft-malformed");
    }
}
