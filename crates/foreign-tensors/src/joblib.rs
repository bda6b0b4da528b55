//! Pickled arrays of NumPy, joblib, scikit-learn and Paddle.

use alloc::boxed::Box;
use alloc::vec::Vec;

use foreign_format::Format;
use read_at::ReadAt;
use zip_core::{Wrapper, decompress};

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::pickled::{self, Follower, NoStorages, Source};

/// Deflate does not shrink data further.
const MAX_RATIO: u64 = 1032;

/// Reads a pickle, compressed with zlib or gzip or not at all.
///
/// # Errors
///
/// [`ErrorKind::Format`] if something else than a pickle is compressed; if the pickle names what no array needs, or has no arrays.
pub fn read(file: &dyn ReadAt, _companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::Pickle);
    let mut first = [0; 2];
    if file.total_len() >= 2 {
        file.read_exact_at(0, &mut first)?;
    }
    match first {
        [0x1f, 0x8b] | [0x78, 0x01 | 0x5e | 0x9c | 0xda] => {
            let bytes = decompressed(file, options)?;
            // Its tensors are in the first file beside the file: the decompressed one.
            pickle(Source { bytes: &bytes, at: Some((1, 0)) }, options, &mut model)?;
            model.add_companion(Box::new(bytes));
        }
        _ => pickle(Source { bytes: file, at: Some((0, 0)) }, options, &mut model)?,
    }
    if model.tensors().is_empty() && model.notes().is_empty() {
        return Err(Error::unsupported("a pickle without arrays"));
    }
    Ok(model)
}

fn pickle(source: Source<'_>, options: &Options, model: &mut Model) -> Result<(), Error> {
    let mut follower = Follower::new(source, false, true);
    let root = follower.follow()?;
    if follower.position() < source.bytes.total_len() {
        return Err(Error::malformed("bytes after the pickle").at(follower.position()));
    }
    pickled::walk(&follower.finish(), root, &NoStorages, options, model)
}

/// The whole stream.
fn decompressed(file: &dyn ReadAt, options: &Options) -> Result<Vec<u8>, Error> {
    let mut first = [0; 2];
    file.read_exact_at(0, &mut first)?;
    let (start, wrapper) =
        if first == [0x1f, 0x8b] { (gzip_header(file)?, Wrapper::Raw) } else { (0, Wrapper::Zlib) };
    let allowed = options.limits.decompressed_bytes.min(file.total_len().saturating_mul(MAX_RATIO));
    let mut bytes = Vec::new();
    let mut failure = None;
    let end = decompress(&file, start..file.total_len(), wrapper, |piece| {
        if bytes.is_empty() && foreign_format::sniff(piece) != Some(Format::Pickle) {
            failure = Some(ErrorKind::Format {});
            return false;
        }
        if bytes.len() as u64 + piece.len() as u64 > allowed {
            let allowed = options.limits.decompressed_bytes;
            failure = Some(ErrorKind::Limit { limit: "decompressed_bytes", allowed });
            return false;
        }
        if bytes.try_reserve(piece.len()).is_err() {
            failure = Some(ErrorKind::OutOfMemory { needed: bytes.len() as u64 });
            return false;
        }
        bytes.extend_from_slice(piece);
        true
    })?;
    match (failure, end) {
        (Some(kind), _) => Err(kind.into()),
        (None, Some(end)) if wrapper == Wrapper::Raw => {
            let mut trailer = [0; 8];
            if file.total_len() - end != 8 {
                return Err(Error::malformed("the compressed stream is not the whole file").at(end));
            }
            file.read_exact_at(end, &mut trailer)?;
            let (sum, len) = (zip_core::crc32(&bytes), bytes.len() as u32);
            if u64::from_le_bytes(trailer) != u64::from(len) << 32 | u64::from(sum) {
                return Err(Error::malformed("the checksum of the compressed stream does not match").at(end));
            }
            Ok(bytes)
        }
        (None, Some(end)) if end == file.total_len() => Ok(bytes),
        _ => Err(Error::malformed("the compressed stream is not the whole file")),
    }
}

/// Length of the header of gzip.
fn gzip_header(file: &dyn ReadAt) -> Result<u64, Error> {
    let mut first = [0; 4096];
    let len = usize::try_from(file.total_len()).unwrap_or(first.len()).min(first.len());
    let first = first.get_mut(..len).unwrap_or_default();
    file.read_exact_at(0, first)?;
    let header = || {
        let (fixed, mut rest) = first.split_at_checked(10)?;
        let flags = *fixed.get(3)?;
        if flags & 4 != 0 {
            let (len, after) = rest.split_first_chunk()?;
            rest = after.get(usize::from(u16::from_le_bytes(*len))..)?;
        }
        // Name and comment.
        for flag in [8, 16] {
            if flags & flag != 0 {
                let end = rest.iter().position(|byte| *byte == 0)?;
                rest = rest.get(end + 1..)?;
            }
        }
        if flags & 2 != 0 {
            rest = rest.get(2..)?;
        }
        Some(first.len() - rest.len())
    };
    header().map(|len| len as u64).ok_or_else(|| Error::malformed("the header of gzip is invalid"))
}
