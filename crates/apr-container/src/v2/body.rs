//! The bytes of a file in memory.

use core::ops::Range;

use crate::crc::{Crc32, crc32};
use crate::v2::header::Header;

/// A whole file, or the part after its header.
#[derive(Clone, Copy)]
pub(crate) struct Body<'data> {
    bytes: &'data [u8],
    /// Their offset in the file.
    base: u64,
}

impl<'data> Body<'data> {
    pub(crate) const fn whole(file: &'data [u8]) -> Self {
        Self { bytes: file, base: 0 }
    }

    /// The part after the header.
    pub(crate) const fn after_header(bytes: &'data [u8]) -> Self {
        Self { bytes, base: Header::LEN as u64 }
    }

    /// Length of the file.
    pub(crate) const fn file_len(self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The bytes of a range of the file.
    pub(crate) fn get(self, range: Range<u64>) -> Option<&'data [u8]> {
        let place = |offset: u64| usize::try_from(offset.checked_sub(self.base)?).ok();
        self.bytes.get(place(range.start)?..place(range.end)?)
    }

    /// The checksum of everything but the last four bytes, and the one stored there. Without a header in the bytes, `header` is
    /// included.
    pub(crate) fn checksums(self, header: &Header) -> Option<Checksums> {
        let (sealed, last) = self.bytes.split_last_chunk()?;
        let actual = if self.base == 0 {
            crc32(sealed)
        } else {
            let mut crc = Crc32::default();
            crc.update(&header.to_bytes());
            crc.update(sealed);
            crc.get()
        };
        Some(Checksums { expected: u32::from_le_bytes(*last), actual })
    }
}

/// Two checksums to be compared.
#[derive(Clone, Copy)]
pub(crate) struct Checksums {
    /// The last four bytes of the file.
    pub(crate) expected: u32,
    /// Of all before them.
    pub(crate) actual: u32,
}

impl Checksums {
    pub(crate) const fn agree(self) -> bool {
        self.expected == self.actual
    }
}
