//! The checksum at the end of a file.

use crc32fast::Hasher;

use crate::error::{Error, ErrorKind};

/// Which checksum a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// CRC-32.
    Crc32,
    /// CRC-32 as alimentar computes it: two of the 256 entries of its table are wrong.
    Alimentar,
}

/// The table of CRC-32 (reflected, `EDB88320`) with alimentar's entries 222 and 223.
const TABLE: [u32; 256] = {
    let mut table = [0_u32; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table[222] = 0x6169_ffd3;
    table[223] = 0x166e_cf45;
    table
};

/// Both, computed at once.
pub(super) struct Checksums {
    crc32: Hasher,
    alimentar: u32,
}

impl Checksums {
    pub(super) fn new() -> Self {
        Self { crc32: Hasher::new(), alimentar: u32::MAX }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.crc32.update(bytes);
        self.alimentar = bytes.iter().fold(self.alimentar, |state, &byte| {
            let entry = TABLE.get((state as u8 ^ byte) as usize).copied().unwrap_or_default();
            state >> 8 ^ entry
        });
    }

    /// The one that was stored.
    pub(super) fn compare(self, stored: u32) -> Result<Checksum, Error> {
        let (crc32, alimentar) = (self.crc32.finalize(), !self.alimentar);
        match stored {
            _ if stored == alimentar => Ok(Checksum::Alimentar),
            _ if stored == crc32 => Ok(Checksum::Crc32),
            _ => Err(ErrorKind::AldChecksum { expected: stored, found: alimentar }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_differ_where_the_wrong_entries_are_used() {
        let compare = |bytes: &[u8], stored| {
            let mut sums = Checksums::new();
            sums.update(bytes);
            sums.compare(stored)
        };
        // alimentar's only test.
        assert_eq!(compare(b"123456789", 0xcbf4_3926).unwrap(), Checksum::Alimentar);
        let bytes = [0x21];
        assert_eq!(compare(&bytes, crc32fast::hash(&bytes)).unwrap(), Checksum::Crc32);
        assert_eq!(compare(&bytes, 0).unwrap_err().code(), "tb-ald-checksum");
    }
}
