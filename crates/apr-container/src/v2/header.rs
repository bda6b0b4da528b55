//! The first 64 bytes.

use core::fmt;

use crate::crc::Crc32;
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::v2;
use crate::v2::flags::Flags;

/// What sections and tensors are aligned to.
pub(crate) const ALIGN: u64 = 64;
/// Length of the checksum at the end.
pub(crate) const FOOTER_LEN: u64 = 4;

/// The magic bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Magic {
    /// `APR\0`, which is written.
    Apr,
    /// `APR2`: what writers of 2025 wrote; the rest of the file is the same.
    Apr2,
}

impl Magic {
    /// The four bytes.
    #[must_use]
    pub const fn bytes(self) -> [u8; 4] {
        match self {
            Self::Apr => *b"APR\0",
            Self::Apr2 => *b"APR2",
        }
    }

    /// The magic a file begins with, if it is of version 2.
    #[must_use]
    pub fn of(file: &[u8]) -> Option<Self> {
        let first = file.first_chunk::<4>()?;
        [Self::Apr, Self::Apr2].into_iter().find(|magic| magic.bytes() == *first)
    }
}

/// The header: where the parts of the file are.
///
/// All numbers are little-endian. Offsets and counts are what the file declares; [`Index`](crate::v2::Index) validates them.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | 4 | magic: `APR\0`, in old files `APR2` |
/// | 4 | 2 | version, major and minor: 2, 0 |
/// | 6 | 2 | [`Flags`] |
/// | 8 | 4 | number of tensors |
/// | 12 | 8 | offset of the metadata: 64 |
/// | 20 | 4 | length of the metadata without padding |
/// | 24 | 8 | offset of the tensor index |
/// | 32 | 8 | offset of the tensor data |
/// | 40 | 4 | CRC-32 of bytes 0 to 40 and 44 to 64 |
/// | 44 | 20 | reserved: zero |
///
/// ```
/// use apr_container::ReadOptions;
/// use apr_container::v2::{Header, WriteOptions, to_vec};
///
/// let file = to_vec(&[], &WriteOptions::default())?;
/// let header = Header::from_bytes(&file, &ReadOptions::STRICT)?;
/// assert_eq!((header.version(), header.n_tensors_declared()), ((2, 0), 0));
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub(crate) magic: Magic,
    pub(crate) version: (u8, u8),
    pub(crate) flags: Flags,
    pub(crate) n_tensors: u32,
    pub(crate) metadata_offset: u64,
    pub(crate) metadata_len: u32,
    pub(crate) index_offset: u64,
    pub(crate) data_offset: u64,
    pub(crate) reserved: [u8; 20],
}

impl Header {
    /// Length of every header in bytes.
    pub const LEN: usize = 64;

    /// Newest version known.
    pub const VERSION: (u8, u8) = (2, 0);

    /// Reads the header at the beginning of a file, and nothing after it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::TooSmall`], [`ErrorKind::Magic`], [`v2::ErrorKind::HeaderChecksum`]; strict also
    /// [`ErrorKind::UnsupportedVersion`] for another major version and [`ErrorKind::Reserved`] for flags and bytes that
    /// version 2.0 does not define.
    pub fn from_bytes(file: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        let Some(bytes) = file.first_chunk::<{ Self::LEN }>() else {
            // Three other bytes are not a truncated file of this format.
            let available = file.len() as u64;
            return match (file.first_chunk::<4>(), Magic::of(file)) {
                (Some(&found), None) => Err(ErrorKind::Magic { found }.at(0)),
                _ => Err(ErrorKind::TooSmall { available, needed: Self::LEN as u64 }.into()),
            };
        };
        let Some(magic) = Magic::of(bytes) else {
            return Err(ErrorKind::Magic { found: field(bytes, 0) }.at(0));
        };
        let (expected, actual) = (u32::from_le_bytes(field(bytes, 40)), checksum(bytes));
        if expected != actual {
            return Err(v2::ErrorKind::HeaderChecksum { expected, actual }.at(40));
        }
        let [major, minor] = field(bytes, 4);
        let header = Self {
            magic,
            version: (major, minor),
            flags: Flags(u16::from_le_bytes(field(bytes, 6))),
            n_tensors: u32::from_le_bytes(field(bytes, 8)),
            metadata_offset: u64::from_le_bytes(field(bytes, 12)),
            metadata_len: u32::from_le_bytes(field(bytes, 20)),
            index_offset: u64::from_le_bytes(field(bytes, 24)),
            data_offset: u64::from_le_bytes(field(bytes, 32)),
            reserved: field(bytes, 44),
        };
        if options.is_strict() {
            if major != Self::VERSION.0 {
                let (found, supported) = (header.version, Self::VERSION);
                return Err(ErrorKind::UnsupportedVersion { found, supported }.at(4));
            }
            // A later minor version may give meaning to them.
            if minor == Self::VERSION.1 && header.has_reserved() {
                let at = if header.flags.intersects(Flags::RESERVED) { 6 } else { 44 };
                return Err(ErrorKind::Reserved.at(at));
            }
        }
        Ok(header)
    }

    /// The bytes of this header, with their checksum.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let mut put = |at: usize, field: &[u8]| {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        };
        put(0, &self.magic.bytes());
        put(4, &[self.version.0, self.version.1]);
        put(6, &self.flags.0.to_le_bytes());
        put(8, &self.n_tensors.to_le_bytes());
        put(12, &self.metadata_offset.to_le_bytes());
        put(20, &self.metadata_len.to_le_bytes());
        put(24, &self.index_offset.to_le_bytes());
        put(32, &self.data_offset.to_le_bytes());
        put(44, &self.reserved);
        let checksum = checksum(&bytes);
        bytes[40..44].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The magic bytes.
    #[must_use]
    pub const fn magic(&self) -> Magic {
        self.magic
    }

    /// Major and minor version.
    #[must_use]
    pub const fn version(&self) -> (u8, u8) {
        self.version
    }

    /// The flags.
    #[must_use]
    pub const fn flags(&self) -> Flags {
        self.flags
    }

    /// Number of tensors.
    #[must_use]
    pub const fn n_tensors_declared(&self) -> u32 {
        self.n_tensors
    }

    /// Where the metadata begins.
    #[must_use]
    pub const fn metadata_offset_declared(&self) -> u64 {
        self.metadata_offset
    }

    /// Length of the metadata in bytes, without padding.
    #[must_use]
    pub const fn metadata_len_declared(&self) -> u32 {
        self.metadata_len
    }

    /// Where the tensor index begins.
    #[must_use]
    pub const fn index_offset_declared(&self) -> u64 {
        self.index_offset
    }

    /// Where the tensor data begins.
    #[must_use]
    pub const fn data_offset_declared(&self) -> u64 {
        self.data_offset
    }

    /// The checksum of the header, which was found to match.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        checksum(&self.to_bytes())
    }

    /// Whether flags or bytes are set that version 2.0 does not define.
    #[must_use]
    pub fn has_reserved(&self) -> bool {
        self.flags.intersects(Flags::RESERVED) || self.reserved != [0; 20]
    }

    /// The algorithm a compression flag names.
    pub(crate) const fn algorithm(&self) -> Option<&'static str> {
        // The known reader of compressed files tests this flag first.
        if self.flags.intersects(Flags::LZ4) {
            Some("lz4")
        } else if self.flags.intersects(Flags::ZSTD) {
            Some("zstd")
        } else {
            None
        }
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Header")
            .field("magic", &self.magic)
            .field("version", &self.version)
            .field("flags", &self.flags)
            .field("n_tensors", &self.n_tensors)
            .field("metadata_offset", &self.metadata_offset)
            .field("metadata_len", &self.metadata_len)
            .field("index_offset", &self.index_offset)
            .field("data_offset", &self.data_offset)
            .finish_non_exhaustive()
    }
}

/// The `N` bytes at an offset within the header.
fn field<const N: usize>(bytes: &[u8; Header::LEN], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

fn checksum(bytes: &[u8; Header::LEN]) -> u32 {
    let mut crc = Crc32::default();
    crc.update(&bytes[..40]);
    crc.update(&bytes[44..]);
    crc.get()
}

/// The next multiple of [`ALIGN`]; `None` beyond 64 bits.
pub(crate) const fn aligned(len: u64) -> Option<u64> {
    len.checked_next_multiple_of(ALIGN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Header {
        Header {
            magic: Magic::Apr,
            version: (2, 0),
            flags: Flags::ROW_MAJOR,
            n_tensors: 3,
            metadata_offset: 64,
            metadata_len: 10,
            index_offset: 128,
            data_offset: 192,
            reserved: [0; 20],
        }
    }

    #[test]
    fn headers_round_trip_whatever_they_hold() {
        let mut header = sample();
        header.magic = Magic::Apr2;
        header.version = (7, 9);
        header.flags = Flags(0xFFFF);
        header.data_offset = u64::MAX;
        header.reserved = [5; 20];
        let bytes = header.to_bytes();
        assert_eq!(Header::from_bytes(&bytes, &ReadOptions::COMPAT).unwrap(), header);
        assert_eq!(header.checksum().to_le_bytes(), bytes[40..44]);
    }

    #[test]
    fn the_checksum_of_a_file_in_circulation_is_reproduced() {
        let header = Header { n_tensors: 0, metadata_len: 107, index_offset: 192, ..sample() };
        assert_eq!(header.checksum(), 0x7E00_D6A7);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = sample().to_bytes();
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
                let error = Header::from_bytes(&flipped, &options).unwrap_err();
                let expected = if bit < 32 { "ac-magic" } else { "ac-v2-header-checksum" };
                assert_eq!(error.code(), expected, "bit {bit}");
            }
        }
    }

    #[test]
    fn short_files_are_told_from_other_files() {
        let bytes = sample().to_bytes();
        for len in 0..Header::LEN {
            let error = Header::from_bytes(&bytes[..len], &ReadOptions::STRICT).unwrap_err();
            assert_eq!(error.code(), "ac-too-small", "{len} bytes");
        }
        let error = Header::from_bytes(b"GGUF", &ReadOptions::STRICT).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Magic { found: [b'G', b'G', b'U', b'F'] }));
    }

    #[test]
    fn other_versions_and_reserved_fields_are_for_compat() {
        let change = |change: fn(&mut Header)| {
            let mut header = sample();
            change(&mut header);
            header.to_bytes()
        };
        type Edit = fn(&mut Header);
        let refused: [(Edit, &str, u64); 4] = [
            (|header| header.version = (3, 0), "ac-version", 4),
            (|header| header.version = (1, 0), "ac-version", 4),
            (|header| header.flags = Flags(1 << 12), "ac-reserved", 6),
            (|header| header.reserved[19] = 1, "ac-reserved", 44),
        ];
        for (edit, code, at) in refused {
            let bytes = change(edit);
            let error = Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap_err();
            assert_eq!((error.code(), error.offset()), (code, Some(at)));
            assert!(Header::from_bytes(&bytes, &ReadOptions::COMPAT).is_ok());
        }
        let later = change(|header| {
            header.version = (2, 1);
            header.flags = Flags(1 << 15);
            header.reserved[0] = 1;
        });
        assert!(Header::from_bytes(&later, &ReadOptions::STRICT).unwrap().has_reserved());
    }
}
