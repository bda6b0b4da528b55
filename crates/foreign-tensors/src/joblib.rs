//! Pickled arrays of NumPy, joblib, scikit-learn and Paddle.

use alloc::boxed::Box;
use alloc::vec::Vec;

use foreign_format::Format;
use read_at::ReadAt;
use zip_core::Compression;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::Model;
use crate::options::Options;
use crate::pickled::{self, Follower, NoStorages, Source};

/// Bytes for each byte of the file: deflate does not shrink data further.
const MAX_RATIO: u64 = 1032;

/// Reads a pickle, compressed or not.
///
/// # Errors
///
/// [`ErrorKind::Format`] if something else than a pickle is compressed; if the pickle names what no array needs, or has no arrays.
pub fn read(file: &dyn ReadAt, _companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let mut model = Model::new(Format::Pickle);
    let mut first = [0; 32];
    let len = usize::try_from(file.total_len()).unwrap_or(first.len()).min(first.len());
    let first = first.get_mut(..len).unwrap_or_default();
    file.read_exact_at(0, first)?;
    match Compression::of(first) {
        Some(compression) => {
            let bytes = decompressed(file, compression, options)?;
            // Its tensors are in the first file beside the file: the decompressed one.
            pickle(Source { bytes: &bytes, at: Some((1, 0)) }, options, &mut model)?;
            model.add_companion(Box::new(bytes));
        }
        None => pickle(Source { bytes: file, at: Some((0, 0)) }, options, &mut model)?,
    }
    match model.classes().first() {
        _ if !model.tensors().is_empty() || model.has_excluded() => Ok(model),
        Some(class) => Err(ErrorKind::NoArrays { class: class.clone() }.into()),
        None => Err(Error::unsupported("a pickle without arrays")),
    }
}

fn pickle(source: Source<'_>, options: &Options, model: &mut Model) -> Result<(), Error> {
    let mut follower = Follower::new(source, false, true);
    let root = follower.follow()?;
    if follower.position() < source.bytes.total_len() {
        return Err(Error::malformed("bytes after the pickle").at(follower.position()));
    }
    pickled::walk(&follower.finish(), root, &NoStorages, options, model)
}

/// What the file contains.
fn decompressed(file: &dyn ReadAt, compression: Compression, options: &Options) -> Result<Vec<u8>, Error> {
    let allowed = options.limits.decompressed_bytes.min(file.total_len().saturating_mul(MAX_RATIO));
    let mut bytes = Vec::new();
    let mut failure = None;
    // The windows of decoders grow with the bytes.
    zip_core::decompress(file, compression, u64::MAX, |piece| {
        let len = bytes.len() as u64 + piece.len() as u64;
        failure = if bytes.is_empty() && foreign_format::sniff(piece) != Some(Format::Pickle) {
            Some(ErrorKind::Format {})
        } else if len > options.limits.decompressed_bytes {
            let allowed = options.limits.decompressed_bytes;
            Some(ErrorKind::Limit { limit: "decompressed_bytes", allowed })
        } else if len > allowed {
            Some(ErrorKind::Unsupported { feature: "a file that is compressed to less than a thousandth" })
        } else {
            bytes.try_reserve(piece.len()).is_err().then_some(ErrorKind::OutOfMemory { needed: len })
        };
        if failure.is_none() {
            bytes.extend_from_slice(piece);
        }
        failure.is_none()
    })?;
    failure.map_or(Ok(bytes), |kind| Err(kind.into()))
}
