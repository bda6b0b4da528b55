//! Where the elements of a dataset are: its messages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::error::Error;
use crate::hdf5::file::{Fields, File, Frame};
use crate::hdf5::header::{Header, Message, kind};

/// Dimensions at most, as in the library of HDF5.
const MAX_RANK: u8 = 32;

/// The shape of a dataset or an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dataspace {
    pub(crate) shape: Vec<u64>,
    /// What the dimensions may grow to; `None` for any length.
    pub(crate) max: Vec<Option<u64>>,
    /// There are no elements, not even of a shape.
    pub(crate) is_null: bool,
}

/// Reads a dataspace message.
pub(crate) fn dataspace(data: &[u8], frame: &Frame) -> Result<Dataspace, Error> {
    let mut fields = Fields::new(data);
    let (version, rank, flags) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let is_null = match version {
        1 => {
            fields.take(5)?;
            false
        }
        2 => fields.u8()? == 2,
        _ => return Err(Error::malformed("a shape has an unknown version")),
    };
    if rank > MAX_RANK {
        return Err(Error::malformed("a shape has more than 32 dimensions"));
    }
    let mut dims = || (0..rank).map(|_| fields.length(frame)).collect::<Result<Vec<u64>, Error>>();
    let shape = dims()?;
    let unlimited = u64::MAX >> (64 - 8 * frame.length_size);
    let max = if flags & 1 != 0 { dims()? } else { shape.clone() };
    let max = max.into_iter().map(|max| (max != unlimited).then_some(max)).collect();
    Ok(Dataspace { shape, max, is_null })
}

/// How the elements are stored.
#[derive(Debug)]
pub(crate) enum Layout {
    /// In the message: address and length.
    Compact(u64, u64),
    /// One after the other, or nowhere yet.
    Contiguous(Option<u64>),
    /// In chunks of this shape.
    Chunked { chunk: Vec<u64>, index: Index, address: Option<u64>, edges_unfiltered: bool },
    /// In other datasets.
    Virtual,
}

/// How chunks are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// B-tree of version 1.
    Tree1,
    /// There is one chunk. If it is filtered: its length, and the filters that were skipped.
    Single(Option<(u64, u32)>),
    /// One after the other.
    Implicit,
    /// An array of addresses.
    FixedArray,
    /// An array of addresses that can grow.
    ExtensibleArray,
    /// B-tree of version 2.
    Tree2,
}

/// Reads a layout message.
pub(crate) fn layout(message: &Message, frame: &Frame) -> Result<Layout, Error> {
    let mut fields = Fields::new(&message.data);
    let version = fields.u8()?;
    match version {
        1 | 2 => {
            let rank = fields.u8()?;
            let class = fields.u8()?;
            fields.take(5)?;
            let address = if class == 0 { None } else { fields.address(frame)? };
            let mut dims =
                (0..rank).map(|_| fields.u32().map(u64::from)).collect::<Result<Vec<u64>, Error>>()?;
            match class {
                0 => {
                    let len = u64::from(fields.u32()?);
                    compact(message, &mut fields, len)
                }
                1 => Ok(Layout::Contiguous(address)),
                2 => {
                    dims.pop();
                    chunked(dims, Index::Tree1, address, false)
                }
                _ => Err(Error::malformed("data have an unknown layout")),
            }
        }
        3..=5 => match fields.u8()? {
            0 => {
                let len = u64::from(fields.u16()?);
                compact(message, &mut fields, len)
            }
            1 => Ok(Layout::Contiguous(fields.address(frame)?)),
            2 if version == 3 => {
                let rank = fields.u8()?;
                let address = fields.address(frame)?;
                let mut dims =
                    (0..rank).map(|_| fields.u32().map(u64::from)).collect::<Result<Vec<u64>, Error>>()?;
                dims.pop();
                chunked(dims, Index::Tree1, address, false)
            }
            2 => chunked_4(&mut fields, frame),
            3 => Ok(Layout::Virtual),
            _ => Err(Error::malformed("data have an unknown layout")),
        },
        _ => Err(Error::unsupported("this version of the layout of data in HDF5")),
    }
}

fn compact(message: &Message, fields: &mut Fields<'_>, len: u64) -> Result<Layout, Error> {
    let at = message.address + (message.data.len() - fields.rest().len()) as u64;
    fields.take(usize::try_from(len).unwrap_or(usize::MAX))?;
    Ok(Layout::Compact(at, len))
}

fn chunked_4(fields: &mut Fields<'_>, frame: &Frame) -> Result<Layout, Error> {
    let (flags, rank, width) = (fields.u8()?, fields.u8()?, usize::from(fields.u8()?));
    if width > 8 {
        return Err(Error::malformed("the shape of chunks has an unknown form"));
    }
    let mut dims = (0..rank).map(|_| fields.length_of(width)).collect::<Result<Vec<u64>, Error>>()?;
    dims.pop();
    let index = match fields.u8()? {
        1 if flags & 2 != 0 => Index::Single(Some((fields.length(frame)?, fields.u32()?))),
        1 => Index::Single(None),
        2 => Index::Implicit,
        3 => {
            fields.take(1)?;
            Index::FixedArray
        }
        4 => {
            fields.take(5)?;
            Index::ExtensibleArray
        }
        5 => {
            fields.take(6)?;
            Index::Tree2
        }
        _ => return Err(Error::unsupported("this index of chunks in HDF5")),
    };
    chunked(dims, index, fields.address(frame)?, flags & 1 != 0)
}

fn chunked(
    chunk: Vec<u64>,
    index: Index,
    address: Option<u64>,
    edges_unfiltered: bool,
) -> Result<Layout, Error> {
    if chunk.contains(&0) {
        return Err(Error::malformed("a chunk has a dimension of 0"));
    }
    Ok(Layout::Chunked { chunk, index, address, edges_unfiltered })
}

/// The element that stands where none was written; `None` for zeros.
pub(crate) fn fill_value(file: &File<'_>, header: &Header) -> Result<Option<Box<[u8]>>, Error> {
    let value = match header.content(file, kind::FILL)? {
        Some(data) => new_fill(&data)?,
        None => match header.content(file, kind::OLD_FILL)? {
            Some(data) => {
                let mut fields = Fields::new(&data);
                let len = fields.u32()?;
                fields.take(len as usize)?.into()
            }
            None => Box::default(),
        },
    };
    Ok(Some(value).filter(|value| !value.is_empty() && value.iter().any(|byte| *byte != 0)))
}

fn new_fill(data: &[u8]) -> Result<Box<[u8]>, Error> {
    let mut fields = Fields::new(data);
    let has_value = match fields.u8()? {
        version @ (1 | 2) => {
            fields.take(2)?;
            let defined = fields.u8()? != 0;
            defined || version == 1
        }
        3 => fields.u8()? & 1 << 5 != 0,
        _ => return Err(Error::malformed("a fill value has an unknown version")),
    };
    if !has_value {
        return Ok(Box::default());
    }
    let len = fields.u32()?;
    // A length of -1 is one that is not defined.
    if len == u32::MAX { Ok(Box::default()) } else { Ok(fields.take(len as usize)?.into()) }
}
