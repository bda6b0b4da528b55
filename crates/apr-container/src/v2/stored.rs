//! Files that are compressed as a whole.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::codec::SliceSource;
use crate::compression::{self, Bound, Compression};
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::body::Body;
use crate::v2::container::{Container, Found};
use crate::v2::flags::Flags;
use crate::v2::header::Header;
use crate::v2::index::Index;

/// A stored file: raw, or with everything after its header in one compressed block.
///
/// The flags [`LZ4`](Flags::LZ4) and [`ZSTD`](Flags::ZSTD) have two meanings in circulation. One writer sets them and stores the
/// bytes raw; one reader expects everything after the header to be one block (zstd, or the uncompressed length and an lz4
/// block). So the bytes decide: a file that can be read raw is raw; any other with such a flag is decompressed, as far as
/// [`Limits`](crate::Limits) allow, and then has to be valid. Nothing is written with these flags.
///
/// ```
/// use apr_container::ReadOptions;
/// use apr_container::v2::{Stored, WriteOptions, to_vec};
///
/// let file = to_vec(&[], &WriteOptions::default())?;
/// let stored = Stored::from_bytes(&file, &ReadOptions::STRICT)?;
/// assert!(matches!(stored, Stored::Raw(_)));
/// assert!(stored.container().is_empty());
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Debug)]
pub enum Stored<'data> {
    /// Readable in place.
    Raw(Container<'data>),
    /// Decompressed.
    Inflated(Inflated),
}

impl<'data> Stored<'data> {
    /// Reads a file that may be compressed.
    ///
    /// # Errors
    ///
    /// As [`Container::from_bytes_with`] for a raw file, as [`Inflated::from_bytes`] for a compressed one.
    pub fn from_bytes(file: &'data [u8], options: &ReadOptions) -> Result<Self, Error> {
        match Container::from_bytes_with(file, options) {
            Ok(container) => Ok(Self::Raw(container)),
            Err(error) if matches!(error.kind().v2(), Some(v2::ErrorKind::WholeCompressed { .. })) => {
                Inflated::from_bytes(file, options).map(Self::Inflated)
            }
            Err(error) => Err(error),
        }
    }

    /// The file, readable.
    #[must_use]
    pub fn container(&self) -> Container<'_> {
        match self {
            Self::Raw(container) => container.reborrow(),
            Self::Inflated(inflated) => inflated.container(),
        }
    }
}

/// A file whose content was one compressed block, decompressed.
#[derive(Clone, Debug)]
pub struct Inflated {
    /// The part after the header.
    content: Vec<u8>,
    index: Index,
    found: Found,
}

impl Inflated {
    /// Decompresses a file.
    ///
    /// The header's offsets count in the decompressed file, which is the header as stored and the content of the block. A
    /// footer may have been made for that header or for the one without a compression flag.
    ///
    /// # Errors
    ///
    /// Those of [`Header::from_bytes`]; [`ErrorKind::Reserved`] if both compression flags or none of them is set;
    /// [`ErrorKind::FeatureDisabled`], [`ErrorKind::Decompression`], [`ErrorKind::Expansion`], [`ErrorKind::OutOfMemory`];
    /// those of [`Container::from_bytes_with`], with offsets in the decompressed file.
    pub fn from_bytes(file: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        let header = Header::from_bytes(file, options)?;
        let compression = match header.flags().contains(Flags::COMPRESSED) && options.is_strict() {
            false if header.flags().intersects(Flags::LZ4) => Compression::LZ4,
            false if header.flags().intersects(Flags::ZSTD) => Compression::ZstdDefault,
            _ => return Err(ErrorKind::Reserved.at(6)),
        };
        if !cfg!(any(feature = "zstd", feature = "ruzstd", feature = "lz4")) {
            // A build without decompressors leaves out the rest.
            let feature = if compression == Compression::LZ4 { "lz4" } else { "zstd" };
            return Err(ErrorKind::FeatureDisabled { feature }.into());
        }
        let block = file.get(Header::LEN..).unwrap_or_default();
        let limits = &options.limits;
        let allowed = limits.expansion.allowed(block.len() as u64).min(limits.payload_bytes);
        let content =
            inflate(compression, block, allowed).map_err(|error| error.shifted(Header::LEN as u64))?;

        let body = Body::after_header(&content);
        let index = Index::after_header(header, body, options)?;
        let mut found = Found::at_end_of(body, &index, &header);
        if !found.is_right() {
            let raw = Header { flags: header.flags().without(Flags::COMPRESSED), ..header };
            let second = Found::at_end_of(body, &index, &raw);
            found = if second.is_right() { second } else { found };
        }
        let container = Container::open(Cow::Borrowed(&index), body, found, options)?;
        if options.is_strict() {
            container.check_padding()?;
        }
        drop(container);
        Ok(Self { content, index, found })
    }

    /// Header, metadata and tensor index.
    #[must_use]
    pub const fn index(&self) -> &Index {
        &self.index
    }

    /// The file, readable.
    #[must_use]
    pub fn container(&self) -> Container<'_> {
        Container::reopen(&self.index, Body::after_header(&self.content), self.found)
    }
}

/// Decompresses a block into memory of exactly its length.
fn inflate(compression: Compression, block: &[u8], allowed: u64) -> Result<Vec<u8>, Error> {
    let bound = Bound::AtMost(allowed);
    if compression == Compression::LZ4 {
        return compression::decompress(compression, block, bound);
    }
    // The length of the content is not stored. It is counted first, which takes time: memory that grows would exceed the
    // documented bound.
    let mut len = 0;
    pieces(compression, block, bound, |piece| len += piece.len())?;
    let mut content = Vec::new();
    content.try_reserve_exact(len).map_err(|_| ErrorKind::OutOfMemory { bytes: len as u64 })?;
    pieces(compression, block, bound, |piece| content.extend_from_slice(piece))?;
    Ok(content)
}

fn pieces(
    compression: Compression,
    block: &[u8],
    bound: Bound,
    mut take: impl FnMut(&[u8]),
) -> Result<(), Error> {
    let mut stored = SliceSource::new(block);
    compression::with_decompressed(compression, &mut stored, block.len() as u64, bound, |source| {
        loop {
            let piece = source.fill()?;
            let len = piece.len();
            if len == 0 {
                return Ok(());
            }
            take(piece);
            source.consume(len);
        }
    })
}
