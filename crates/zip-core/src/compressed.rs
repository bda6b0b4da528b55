//! Files that are compressed as a whole.

#[cfg(any(feature = "bzip2", feature = "lz4", feature = "xz"))]
mod decoders;

use alloc::vec::Vec;

use miniz_oxide::DataFormat;
use read_at::ReadAt;

use crate::crc::Hasher;
use crate::error::{Error, ErrorKind};
use crate::member::inflate_all;

/// Takes decompressed bytes, and says whether it wants more.
type Take<'t> = &'t mut dyn FnMut(&[u8]) -> bool;

/// How a file is compressed: what joblib writes and has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Deflate with the header and the checksum of zlib.
    Zlib,
    /// Deflate with those of gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// lzma alone, without a checksum.
    Lzma,
    /// Frames of lz4.
    Lz4,
    /// zlib after the length of the data, as joblib wrote it before 0.10.
    ZFile,
}

/// `ZF`, then the length in hexadecimal digits, in as many bytes as joblib pads it to.
const ZFILE_MAGIC: &[u8] = b"ZF";
const ZFILE_HEADER: usize = ZFILE_MAGIC.len() + "0x10000000000000000".len();

impl Compression {
    /// How a file is compressed that begins with these bytes; 32 are enough.
    #[must_use]
    pub fn of(start: &[u8]) -> Option<Self> {
        // A block of bzip2, or the end of an empty stream.
        let bzip2 = [b"1AY&SY".as_slice(), b"\x17\x72\x45\x38\x50\x90"];
        match start {
            // Without a preset dictionary, which no reader of models has.
            [0x78, 0x01 | 0x5e | 0x9c | 0xda, ..] => Some(Self::Zlib),
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', rest @ ..]
                if bzip2.iter().any(|magic| rest.starts_with(magic)) =>
            {
                Some(Self::Bzip2)
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            [b'Z', b'F', b'0', b'x', ..] => Some(Self::ZFile),
            // Python reads other spellings of the length, too.
            [b'Z', b'F', ..] if zfile_data(start).is_some() => Some(Self::ZFile),
            // Properties, the size of the dictionary, the length of the data or nothing.
            [0x5d, 0, 0, _, _, len @ ..] => {
                let len = u64::from_le_bytes(*len.first_chunk()?);
                (len == u64::MAX || len < 1 << 40).then_some(Self::Lzma)
            }
            _ => None,
        }
    }

    /// The program whose format it is.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Lzma => "lzma",
            Self::Lz4 => "lz4",
            Self::ZFile => "joblib before 0.10",
        }
    }
}

/// Decompresses a file, a piece at a time, until `take` returns `false`. Streams that follow each other are one file, as to Python. Returns
/// whether it was read to its end.
///
/// `memory` is what the window of a decoder may take, in bytes, before anything is decoded; whatever it is, the window grows with what is
/// decompressed.
///
/// # Errors
///
/// [`ErrorKind::Deflate`], [`ErrorKind::Short`] and [`ErrorKind::Damaged`], after what precedes the damage was taken; [`ErrorKind::Trailing`];
/// [`ErrorKind::NoDecoder`]; [`ErrorKind::Read`].
pub fn decompress(
    source: &dyn ReadAt,
    compression: Compression,
    memory: u64,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<bool, Error> {
    let mut at = 0;
    while at < source.total_len() {
        match stream(source, at, compression, memory, &mut take) {
            Ok(Some(end)) => at = end.max(at + 1),
            Ok(None) => return Ok(false),
            Err(error) if at > 0 && *error.kind() != (ErrorKind::Read {}) => {
                return Err(Error::from(ErrorKind::Trailing {}).at(at));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Decompresses the stream that begins at `at`, and returns where it ends; `None` if `take` did not want more.
fn stream(
    source: &dyn ReadAt,
    at: u64,
    compression: Compression,
    memory: u64,
    take: Take<'_>,
) -> Result<Option<u64>, Error> {
    let _ = memory;
    match compression {
        Compression::Zlib => inflate_all(source, at..source.total_len(), DataFormat::Zlib, take),
        Compression::Gzip => gzip(source, at, take),
        Compression::ZFile => zfile(source, at, take),
        #[cfg(feature = "bzip2")]
        Compression::Bzip2 => decoders::bzip2(source, at, take),
        #[cfg(feature = "xz")]
        Compression::Xz => decoders::xz(source, at, memory, take),
        #[cfg(feature = "xz")]
        Compression::Lzma => decoders::lzma(source, at, memory, take),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => decoders::lz4(source, at, memory, take),
        #[cfg(not(all(feature = "bzip2", feature = "lz4", feature = "xz")))]
        other => Err(ErrorKind::NoDecoder { compression: other.name() }.into()),
    }
}

/// A member of gzip: its header, a deflate stream, and the checksum and length of its data.
fn gzip(source: &dyn ReadAt, at: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    const MAX_HEADER: usize = 1 << 16;
    let damaged = || Error::from(ErrorKind::Damaged {});
    let header = prefix(source, at, MAX_HEADER)?;
    let data = gzip_data(&header).ok_or_else(|| damaged().at(at))?;
    drop(header);
    let (mut crc32, mut len) = (Hasher::new(), 0_u32);
    let end = inflate_all(source, at + data..source.total_len(), DataFormat::Raw, &mut |piece| {
        crc32.update(piece);
        len = len.wrapping_add(piece.len() as u32);
        take(piece)
    })?;
    let Some(end) = end else { return Ok(None) };
    let trailer = prefix(source, end, 8)?;
    let (declared, found) = ([crc32.finalize(), len].map(u32::to_le_bytes), trailer.as_chunks().0);
    if found == declared { Ok(Some(end + 8)) } else { Err(damaged().at(end)) }
}

/// Length of the header of gzip.
fn gzip_data(header: &[u8]) -> Option<u64> {
    let [0x1f, 0x8b, 8, flags, _, _, _, _, _, _, rest @ ..] = header else { return None };
    let mut rest = rest;
    if flags & 4 != 0 {
        let (len, after) = rest.split_first_chunk()?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..)?;
    }
    // A name and a comment, which end with a zero; a checksum.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & 2 != 0 {
        rest = rest.get(2..)?;
    }
    Some((header.len() - rest.len()) as u64)
}

/// The length of the data, then zlib.
fn zfile(source: &dyn ReadAt, at: u64, take: Take<'_>) -> Result<Option<u64>, Error> {
    let damaged = || Error::from(ErrorKind::Damaged {}).at(at);
    let header = prefix(source, at, ZFILE_HEADER + 3)?;
    let data = zfile_data(&header).ok_or_else(damaged)?;
    let digits =
        header.get(ZFILE_MAGIC.len()..ZFILE_HEADER).and_then(|digits| core::str::from_utf8(digits).ok());
    // Python 2 writes `L` after a long integer.
    let digits = digits.map(|digits| digits.trim_ascii().trim_start_matches("0x").trim_end_matches('L'));
    let declared = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(damaged)?;
    let mut len = 0_u64;
    let end = inflate_all(source, at + data..source.total_len(), DataFormat::Zlib, &mut |piece| {
        len += piece.len() as u64;
        take(piece)
    })?;
    if end.is_some() && len != declared { Err(damaged()) } else { Ok(end) }
}

/// Where the data of a `ZFile` begin: joblib up to 0.8.4 under Python 2 wrote one more space.
fn zfile_data(header: &[u8]) -> Option<u64> {
    let rest = header.strip_prefix(ZFILE_MAGIC)?.get(ZFILE_HEADER - ZFILE_MAGIC.len()..)?;
    let data = rest.strip_prefix(b" ").unwrap_or(rest);
    let [method, flags, ..] = data else { return None };
    let is_zlib = method & 0x8f == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0;
    is_zlib.then_some((ZFILE_HEADER + rest.len() - data.len()) as u64)
}

/// At most `max` bytes at an offset.
fn prefix(source: &dyn ReadAt, at: u64, max: usize) -> Result<Vec<u8>, Error> {
    let left = source.total_len().saturating_sub(at);
    let mut bytes = alloc::vec![0; usize::try_from(left).unwrap_or(max).min(max)];
    source.read_exact_at(at, &mut bytes)?;
    Ok(bytes)
}
