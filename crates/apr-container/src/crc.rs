//! The checksum at the end of every file: CRC-32 with the reflected polynomial 0xEDB88320, as zlib and PNG use it.

#[cfg(any(apr_small, test))]
mod sliced;

#[cfg(not(apr_small))]
use crc32fast::Hasher;

#[cfg(apr_small)]
use self::sliced::Hasher;

/// The checksum of a slice.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = Crc32::default();
    crc.update(bytes);
    crc.get()
}

/// A checksum that is computed incrementally.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crc32(Hasher);

impl Crc32 {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Appends bytes whose own checksum is known.
    #[cfg(any(feature = "std", test))]
    pub(crate) fn append(&mut self, other: &Self) {
        self.0.combine(&other.0);
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.clone().finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_check_value_of_the_catalogue_in_any_split() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        let (mut head, mut tail) = (Crc32::default(), Crc32::default());
        head.update(b"1234");
        tail.update(b"56789");
        head.append(&tail);
        assert_eq!(head.get(), 0xCBF4_3926);
    }
}
