//! CRC-32 with the reflected polynomial 0xEDB88320.

#[cfg(not(apr_small))]
pub(crate) use crc32fast::Hasher;

#[cfg(apr_small)]
pub(crate) use self::small::Hasher;

/// The CRC-32 of bytes, as ZIP and gzip have it.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher.finalize()
}

/// Four bits at a time: the tables of `crc32fast` take 16 kB of a module, and do not compress.
#[cfg(any(apr_small, test))]
mod small {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut idx = 0;
        while idx < 16 {
            let (mut state, mut bit) = (idx as u32, 0);
            while bit < 4 {
                state = state >> 1 ^ if state & 1 == 0 { 0 } else { 0xedb8_8320 };
                bit += 1;
            }
            table[idx] = state;
            idx += 1;
        }
        table
    };

    /// A checksum that is computed incrementally.
    #[derive(Clone, Debug)]
    pub(crate) struct Hasher(u32);

    impl Hasher {
        pub(crate) const fn new() -> Self {
            Self(!0)
        }

        pub(crate) fn update(&mut self, bytes: &[u8]) {
            for &byte in bytes {
                for half in [byte & 15, byte >> 4] {
                    let entry = TABLE.get(((self.0 ^ u32::from(half)) & 15) as usize);
                    self.0 = self.0 >> 4 ^ entry.copied().unwrap_or_default();
                }
            }
        }

        pub(crate) const fn finalize(self) -> u32 {
            !self.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_implementations_agree() {
        let bytes: alloc::vec::Vec<u8> =
            (0..=255_u8).cycle().map(|byte| byte.wrapping_mul(167)).take(1000).collect();
        for len in [0, 1, 7, 256, 1000] {
            let mut small = small::Hasher::new();
            small.update(&bytes[..len / 3]);
            small.update(&bytes[len / 3..len]);
            assert_eq!(small.finalize(), crc32(&bytes[..len]), "{len}");
        }
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
