//! Compression and decompression of payloads.

use alloc::vec::Vec;

pub use self::id::Compression;
use crate::codec::{Sink, SliceSource, Source, collect};
use crate::error::{Error, ErrorKind};

pub(crate) mod id;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
mod zstd_c;
#[cfg(any(all(feature = "ruzstd", not(feature = "zstd")), all(feature = "zstd", target_family = "wasm")))]
mod zstd_rust;

/// Largest window a zstd frame may ask for, as a power of two: 8 MiB, what level 19 writes.
#[cfg(any(feature = "zstd", feature = "ruzstd"))]
const WINDOW_LOG_MAX: u32 = 23;

/// How many bytes decompression may produce.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    /// Exactly what the header declares.
    Exactly(u64),
    /// No more than this.
    AtMost(u64),
}

impl Bound {
    pub(crate) const fn len(self) -> u64 {
        match self {
            Self::Exactly(len) | Self::AtMost(len) => len,
        }
    }

    /// Bytes so far.
    #[cfg(any(feature = "zstd", feature = "ruzstd", feature = "lz4"))]
    fn check(self, so_far: u64) -> Result<(), Error> {
        match self {
            Self::Exactly(declared) if so_far > declared => {
                Err(ErrorKind::UncompressedSize { declared, actual: so_far }.into())
            }
            Self::AtMost(allowed) if so_far > allowed => {
                Err(ErrorKind::Expansion { declared: so_far, allowed }.into())
            }
            _ => Ok(()),
        }
    }

    /// Bytes at the end.
    pub(crate) fn check_end(self, total: u64) -> Result<(), Error> {
        match self {
            Self::Exactly(declared) if total != declared => {
                Err(ErrorKind::UncompressedSize { declared, actual: total }.into())
            }
            _ => Ok(()),
        }
    }
}

/// Compresses `len` bytes, which `write` produces, into `out`.
pub(crate) fn compress(
    compression: Compression,
    len: u64,
    out: &mut dyn Sink,
    write: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    match compression {
        Compression::None => write(out),
        Compression::ZstdDefault => compress_zstd(3, len, out, write),
        Compression::ZstdMax => compress_zstd(19, len, out, write),
        #[cfg(feature = "lz4")]
        Compression::LZ4 => lz4::compress(len, out, write),
        #[cfg(not(feature = "lz4"))]
        Compression::LZ4 => Err(ErrorKind::FeatureDisabled { feature: "lz4" }.into()),
        Compression(found) => Err(ErrorKind::UnknownCompression { found }.into()),
    }
}

#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
use self::zstd_c::compress as compress_zstd;
#[cfg(any(
    all(feature = "ruzstd", not(feature = "zstd")),
    all(feature = "zstd", target_family = "wasm")
))]
use self::zstd_rust::compress as compress_zstd;

#[cfg(not(any(feature = "zstd", feature = "ruzstd")))]
fn compress_zstd(
    _level: i32,
    _len: u64,
    _out: &mut dyn Sink,
    _write: &mut dyn FnMut(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    Err(ErrorKind::FeatureDisabled { feature: "zstd" }.into())
}

/// Calls `read` with the decompressed bytes of the `stored_len` bytes of `stored`, at most as many as `bound` allows.
pub(crate) fn with_decompressed<T>(
    compression: Compression,
    stored: &mut dyn Source,
    stored_len: u64,
    bound: Bound,
    read: impl FnOnce(&mut dyn Source) -> Result<T, Error>,
) -> Result<T, Error> {
    match compression {
        Compression::None => read(stored),
        #[cfg(all(feature = "zstd", not(target_family = "wasm")))]
        Compression::ZstdDefault | Compression::ZstdMax => {
            let _ = stored_len;
            read(&mut zstd_c::ZstdSource::new(stored, bound)?)
        }
        #[cfg(any(
            all(feature = "ruzstd", not(feature = "zstd")),
            all(feature = "zstd", target_family = "wasm")
        ))]
        Compression::ZstdDefault | Compression::ZstdMax => {
            let stored = collect(stored, stored_len)?;
            read(&mut zstd_rust::ZstdSource::new(&stored, bound))
        }
        #[cfg(not(any(feature = "zstd", feature = "ruzstd")))]
        Compression::ZstdDefault | Compression::ZstdMax => {
            let _ = (bound, stored_len);
            Err(ErrorKind::FeatureDisabled { feature: "zstd" }.into())
        }
        #[cfg(feature = "lz4")]
        Compression::LZ4 => {
            let bytes = lz4::decompress(&collect(stored, stored_len)?, bound)?;
            read(&mut SliceSource::new(&bytes))
        }
        #[cfg(not(feature = "lz4"))]
        Compression::LZ4 => Err(ErrorKind::FeatureDisabled { feature: "lz4" }.into()),
        Compression(found) => Err(ErrorKind::UnknownCompression { found }.into()),
    }
}

/// The decompressed bytes of `stored`.
pub(crate) fn decompress(compression: Compression, stored: &[u8], bound: Bound) -> Result<Vec<u8>, Error> {
    #[cfg(feature = "lz4")]
    if compression == Compression::LZ4 {
        return lz4::decompress(stored, bound);
    }
    with_decompressed(compression, &mut SliceSource::new(stored), stored.len() as u64, bound, |source| {
        let bytes = collect(source, bound.len())?;
        bound.check_end(bytes.len() as u64)?;
        Ok(bytes)
    })
}
