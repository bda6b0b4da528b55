//! Filters: how chunks are compressed and checked.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use crate::error::Error;
use crate::hdf5::file::Fields;
use crate::tensor::reserved;

/// Filters of a dataset, at most, as in the library of HDF5.
const MAX_FILTERS: u8 = 32;
/// What a checksum adds to a chunk.
const CHECKSUM: u64 = 4;

/// One filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    /// zlib.
    Deflate,
    /// The first bytes of all elements, then the second ones, and so on. Elements have this many bytes.
    Shuffle(usize),
    /// A checksum after the chunk.
    Fletcher32,
}

/// The filters in the order in which they were applied, or the name of one that is not read.
pub(crate) fn read(data: &[u8]) -> Result<Result<Vec<Filter>, String>, Error> {
    let mut fields = Fields::new(data);
    let (version, count) = (fields.u8()?, fields.u8()?);
    if !(1..=2).contains(&version) || count > MAX_FILTERS {
        return Err(Error::malformed("the filters of a dataset have an unknown version"));
    }
    if version == 1 {
        fields.take(6)?;
    }
    let mut filters = Vec::new();
    for _ in 0..count {
        let id = fields.u16()?;
        let name_len = if version == 1 || id >= 256 { usize::from(fields.u16()?) } else { 0 };
        fields.u16()?;
        let n_values = usize::from(fields.u16()?);
        fields.take(if version == 1 { name_len.next_multiple_of(8) } else { name_len })?;
        let mut values = Fields::new(fields.take(4 * n_values)?);
        if version == 1 && n_values % 2 == 1 {
            fields.take(4)?;
        }
        filters.push(match id {
            1 => Filter::Deflate,
            2 => Filter::Shuffle(values.u32()? as usize),
            3 => Filter::Fletcher32,
            _ => return Ok(Err(format!("data with the filter {id} ({})", filter_name(id)))),
        });
    }
    Ok(Ok(filters))
}

fn filter_name(id: u16) -> &'static str {
    match id {
        4 => "szip",
        5 => "nbit",
        6 => "scale-offset",
        32000 => "LZF",
        32001 => "Blosc",
        32004 => "LZ4",
        32008 => "bitshuffle",
        32013 => "ZFP",
        32015 => "Zstandard",
        32026 => "Blosc2",
        _ => "unknown",
    }
}

/// Undoes the filters of a chunk of `len` bytes. `skipped` has a bit for each filter that was not applied to it.
pub(crate) fn undo(filters: &[Filter], skipped: u32, stored: Vec<u8>, len: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = stored;
    for (idx, filter) in filters.iter().enumerate().rev() {
        if skipped >> idx & 1 != 0 {
            continue;
        }
        bytes = match filter {
            Filter::Deflate => {
                let most = usize::try_from(len + CHECKSUM * filters.len() as u64).unwrap_or(usize::MAX);
                decompress_to_vec_zlib_with_limit(&bytes, most)
                    .map_err(|_| Error::malformed("a compressed chunk is damaged or too long"))?
            }
            Filter::Shuffle(width) => match unshuffle(&bytes, *width)? {
                Cow::Borrowed(_) => bytes,
                Cow::Owned(unshuffled) => unshuffled,
            },
            Filter::Fletcher32 => checked(bytes)?,
        };
    }
    if bytes.len() as u64 == len {
        Ok(bytes)
    } else {
        Err(Error::malformed("a chunk has another length than its shape"))
    }
}

fn unshuffle(bytes: &[u8], width: usize) -> Result<Cow<'_, [u8]>, Error> {
    let count = bytes.len().checked_div(width).unwrap_or(0);
    if width < 2 || count < 2 {
        return Ok(Cow::Borrowed(bytes));
    }
    let mut out = reserved(bytes.len() as u64)?;
    out.resize(bytes.len(), 0);
    for (place, plane) in bytes.chunks_exact(count).take(width).enumerate() {
        for (element, byte) in out.chunks_exact_mut(width).zip(plane) {
            if let Some(out) = element.get_mut(place) {
                *out = *byte;
            }
        }
    }
    // What is left over is not shuffled.
    let whole = count * width;
    if let (Some(out), Some(rest)) = (out.get_mut(whole..), bytes.get(whole..)) {
        out.copy_from_slice(rest);
    }
    Ok(Cow::Owned(out))
}

fn checked(mut bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
    let stored = bytes.len().checked_sub(CHECKSUM as usize).map(|at| bytes.split_off(at)).unwrap_or_default();
    let stored = Fields::new(&stored).u32()?;
    let sum = fletcher32(&bytes);
    // Before version 1.6.3 the library of HDF5 swapped the bytes of each half on little-endian machines.
    let swapped = (sum & 0x00ff_00ff) << 8 | sum >> 8 & 0x00ff_00ff;
    if stored == sum || stored == swapped {
        Ok(bytes)
    } else {
        Err(Error::malformed("the checksum of a chunk does not match"))
    }
}

/// Fletcher's checksum of 16-bit big-endian words.
fn fletcher32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (0_u32, 0_u32);
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    // As many words as cannot overflow.
    for block in bytes.chunks(2 * 360) {
        for word in block.chunks(2) {
            let first = u32::from(word.first().copied().unwrap_or(0));
            low += first << 8 | u32::from(word.get(1).copied().unwrap_or(0));
            high += low;
        }
        (low, high) = (fold(low), fold(high));
    }
    (low, high) = (fold(low), fold(high));
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_bytes_are_put_back() {
        assert_eq!(*unshuffle(b"aceg1357bdfh2468x", 4).unwrap(), *b"a1b2c3d4e5f6g7h8x");
        assert_eq!(*unshuffle(b"abc", 1).unwrap(), *b"abc");
        assert_eq!(*unshuffle(b"abc", 0).unwrap(), *b"abc");
    }

    #[test]
    fn a_chunk_has_the_length_of_its_shape() {
        let error = undo(&[], 0, b"abc".to_vec(), 4).unwrap_err();
        assert_eq!(error.code(), "ft-malformed");
        assert!(undo(&[Filter::Deflate], 1, b"abcd".to_vec(), 4).is_ok());
        assert!(undo(&[Filter::Deflate], 0, b"abcd".to_vec(), 4).is_err());
    }
}
