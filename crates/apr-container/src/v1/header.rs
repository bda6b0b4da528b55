//! The 32 bytes at the beginning of every file of version 1.
//!
//! | offset | length | field |
//! |---:|---:|---|
//! | 0 | 4 | magic `APRN` |
//! | 4 | 1 | major version |
//! | 5 | 1 | minor version |
//! | 6 | 2 | model type |
//! | 8 | 4 | length of the metadata |
//! | 12 | 4 | length of the stored payload |
//! | 16 | 4 | length of the payload before compression |
//! | 20 | 1 | compression |
//! | 21 | 1 | flags |
//! | 22 | 1 | quality score, 0 for none |
//! | 23 | 9 | reserved, zero |
//!
//! Integers are little-endian.

use crate::compression::{Bound, Compression};
use crate::error::{Error, ErrorKind};
use crate::limits::ReadOptions;
use crate::model_type::ModelType;
use crate::v1::flags::Flags;
use crate::v2;

/// The first four bytes of a file of version 1.
pub(crate) const MAGIC: [u8; 4] = *b"APRN";
/// Newest version known. Minor versions add what older readers may ignore.
pub(crate) const VERSION: (u8, u8) = (1, 0);
/// Length of a header.
pub(crate) const HEADER_LEN: usize = 32;
/// A signature and the public key that made it.
pub(crate) const SIGNATURE_LEN: usize = 96;
/// The checksum at the end.
pub(crate) const CHECKSUM_LEN: usize = 4;
/// Maximum length of a compressed payload after decompression, in every known reader.
pub(crate) const EXPANDED_MAX: u64 = 1 << 30;

/// A header: all values but magic and version are declared, not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Major and minor version.
    pub version: (u8, u8),
    /// Kind of model.
    pub model_type: ModelType,
    /// Length of the metadata.
    pub metadata_len: u32,
    /// Length of the payload as stored.
    pub payload_len: u32,
    /// Length of the payload before compression.
    pub uncompressed_len: u32,
    /// How the payload is compressed.
    pub compression: Compression,
    /// Flags.
    pub flags: Flags,
    /// Quality score from 1 to 100 that a writer gave, 0 for none.
    pub quality: u8,
    /// Reserved bytes.
    pub reserved: [u8; 9],
}

impl Header {
    /// The first four bytes of every file.
    pub const MAGIC: [u8; 4] = MAGIC;

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Magic`], [`ErrorKind::Version2`], [`ErrorKind::UnsupportedVersion`],
    /// [`ErrorKind::UnknownCompression`]; [`ErrorKind::Reserved`] (strict).
    pub fn from_bytes(bytes: &[u8; HEADER_LEN], options: &ReadOptions) -> Result<Self, Error> {
        let &[
            m0,
            m1,
            m2,
            m3,
            major,
            minor,
            t0,
            t1,
            a0,
            a1,
            a2,
            a3,
            b0,
            b1,
            b2,
            b3,
            c0,
            c1,
            c2,
            c3,
            rest @ ..,
        ] = bytes;
        let [compression, flags, quality, reserved @ ..] = rest;
        check_magic([m0, m1, m2, m3])?;
        let version = (major, minor);
        let oldest = if options.is_strict() { 1 } else { 0 };
        if !(oldest..=VERSION.0).contains(&major) {
            return Err(ErrorKind::UnsupportedVersion { found: version, supported: VERSION }.at(4));
        }
        let compression = Compression(compression);
        if compression.name().is_none() {
            return Err(ErrorKind::UnknownCompression { found: compression.0 }.at(20));
        }
        // A newer minor version may have given them a meaning that this reader can ignore.
        if options.is_strict() && version <= VERSION && reserved != [0; 9] {
            return Err(ErrorKind::Reserved.at(23));
        }
        Ok(Self {
            version,
            model_type: ModelType(u16::from_le_bytes([t0, t1])),
            metadata_len: u32::from_le_bytes([a0, a1, a2, a3]),
            payload_len: u32::from_le_bytes([b0, b1, b2, b3]),
            uncompressed_len: u32::from_le_bytes([c0, c1, c2, c3]),
            compression,
            flags: Flags(flags),
            quality,
            reserved,
        })
    }

    /// The header's bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        let fields: [&[u8]; 10] = [
            &MAGIC,
            &[self.version.0, self.version.1],
            &self.model_type.0.to_le_bytes(),
            &self.metadata_len.to_le_bytes(),
            &self.payload_len.to_le_bytes(),
            &self.uncompressed_len.to_le_bytes(),
            &[self.compression.0],
            &[self.flags.0],
            &[self.quality],
            &self.reserved,
        ];
        for (place, byte) in bytes.iter_mut().zip(fields.into_iter().flatten()) {
            *place = *byte;
        }
        bytes
    }

    /// Whether the payload is encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        self.flags.contains(Flags::ENCRYPTED)
    }

    /// Whether a signature follows the payload.
    #[must_use]
    pub const fn is_signed(&self) -> bool {
        self.flags.contains(Flags::SIGNED)
    }

    /// The quality score, if the writer gave one.
    #[must_use]
    pub const fn quality(&self) -> Option<u8> {
        match self.quality {
            0 => None,
            score => Some(score),
        }
    }

    /// The offsets of all parts in a file of `file_len` bytes: the only function that computes offsets from lengths.
    pub(crate) fn geometry(&self, file_len: u64, options: &ReadOptions) -> Result<Geometry, Error> {
        let limit = options.limits.metadata_bytes;
        if u64::from(self.metadata_len) > limit {
            return Err(
                ErrorKind::Limit { what: "metadata length", found: self.metadata_len.into(), limit }.at(8)
            );
        }
        let metadata_end = HEADER_LEN as u64 + u64::from(self.metadata_len);
        let payload_end = metadata_end + u64::from(self.payload_len);
        let signature_end = payload_end + if self.is_signed() { SIGNATURE_LEN as u64 } else { 0 };
        let needed = signature_end + CHECKSUM_LEN as u64;
        let Some(unowned) = file_len.checked_sub(needed) else {
            let (part, at) = match file_len {
                ..36 => ("header and checksum", 0),
                len if len < metadata_end + CHECKSUM_LEN as u64 => ("metadata", 8),
                len if len < payload_end + CHECKSUM_LEN as u64 => ("payload", 12),
                _ => ("signature", 21),
            };
            return Err(ErrorKind::Truncated { part, needed, available: file_len }.at(at));
        };
        if unowned > 0 && options.is_strict() {
            return Err(ErrorKind::Unowned { count: unowned }.at(signature_end));
        }
        self.check_lengths(options)?;
        Ok(Geometry { metadata_end, payload_end, signature_end, checksum_at: file_len - CHECKSUM_LEN as u64 })
    }

    /// Whether the payload is neither compressed nor encrypted.
    const fn is_verbatim(&self) -> bool {
        self.compression.0 == Compression::None.0 && !self.is_encrypted()
    }

    fn check_lengths(&self, options: &ReadOptions) -> Result<(), Error> {
        let (stored, declared) = (u64::from(self.payload_len), u64::from(self.uncompressed_len));
        if declared > EXPANDED_MAX && !(self.is_verbatim() && declared == stored) {
            let limit = EXPANDED_MAX;
            return Err(ErrorKind::Limit { what: "uncompressed length", found: declared, limit }.at(16));
        }
        let (found, limit) = (stored.max(declared), options.limits.payload_bytes);
        if found > limit {
            return Err(ErrorKind::Limit { what: "payload length", found, limit }.at(12));
        }
        if self.is_verbatim() && options.is_strict() && declared != stored {
            return Err(ErrorKind::UncompressedSize { declared, actual: stored }.at(16));
        }
        Ok(())
    }

    /// Maximum length of the payload after decompression.
    pub(crate) fn allowed_expansion(&self, options: &ReadOptions) -> u64 {
        let limits = &options.limits;
        limits.expansion.allowed(self.payload_len.into()).min(EXPANDED_MAX).min(limits.payload_bytes)
    }

    /// The bound on the payload's length after decompression.
    pub(crate) fn bound(&self, options: &ReadOptions) -> Result<Bound, Error> {
        let declared = u64::from(self.uncompressed_len);
        if self.is_verbatim() {
            return Ok(Bound::Exactly(self.payload_len.into()));
        }
        let allowed = self.allowed_expansion(options);
        match options.is_strict() {
            true if declared > allowed => Err(ErrorKind::Expansion { declared, allowed }.at(16)),
            true => Ok(Bound::Exactly(declared)),
            // The known readers never compare the header's value with the actual length.
            false => Ok(Bound::AtMost(allowed)),
        }
    }
}

/// Checks the first four bytes of a file of version 1.
pub(crate) fn check_magic(found: [u8; 4]) -> Result<(), Error> {
    match v2::Magic::of(&found) {
        _ if found == MAGIC => Ok(()),
        Some(_) => Err(ErrorKind::Version2.at(0)),
        None => Err(ErrorKind::Magic { found }.at(0)),
    }
}

/// Offsets checked to be within the file, in this order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub(crate) metadata_end: u64,
    pub(crate) payload_end: u64,
    /// Equal to `payload_end` without a signature.
    pub(crate) signature_end: u64,
    /// Greater than `signature_end` if bytes belong to no part.
    pub(crate) checksum_at: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            version: VERSION,
            model_type: ModelType::KMeans,
            metadata_len: 7,
            payload_len: 0x0102_0304,
            uncompressed_len: 0x0102_0304,
            compression: Compression::None,
            flags: Flags::SIGNED,
            quality: 95,
            reserved: [0; 9],
        }
    }

    #[test]
    fn bytes_and_fields_are_two_sides() {
        let bytes = header().to_bytes();
        assert_eq!(bytes[..8], *b"APRN\x01\x00\x06\x00");
        assert_eq!(bytes[12..16], [4, 3, 2, 1]);
        assert_eq!(Header::from_bytes(&bytes, &ReadOptions::STRICT).unwrap(), header());
    }

    #[test]
    fn no_sum_of_claims_overflows() {
        let huge = Header { metadata_len: u32::MAX, payload_len: u32::MAX, ..header() };
        let options = ReadOptions::COMPAT;
        assert_eq!(huge.geometry(u64::MAX, &options).unwrap_err().code(), "ac-limit");
        let huge = Header { metadata_len: 1 << 24, ..huge };
        assert_eq!(huge.geometry(1 << 24, &options).unwrap_err().code(), "ac-truncated");
    }
}
